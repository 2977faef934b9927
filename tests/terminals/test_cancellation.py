"""Cancelling any wait at a terminal, at every moment: the form counts or it is gone, and nothing is left."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.system import open_runtime
from greenroom.actors.terminal import TerminalManager
from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import Form
from tests.cancelling import Doomed, at_every_step
from tests.terminals.conftest import NEED_X

GOOD = {"x": "v"}


class Stage:
    """The terminals a and b, what was told of b, and somebody who answers there if he is let."""

    def __init__(self, terminals: TerminalManager) -> None:
        self.terminals = terminals
        self.told: list[str] = []
        self.results: list[Any] = []
        self.send, self.receive = trio.open_memory_channel[str](100)

    def hear(self, notice: Any) -> None:
        self.told.append(notice.kind)
        if notice.kind == "pending":
            self.send.send_nowait(notice.id)

    async def answer(self) -> None:
        async for id in self.receive:
            self.results.append(await self.terminals.answer("b", id, GOOD))

    async def park(self) -> Form:
        """A form at b that nobody waits for."""
        terminal = self.terminals.terminal("b")
        assert terminal is not None
        form = Form(NEED_X)
        await terminal.park(form, to="b")
        return form


@asynccontextmanager
async def stage(*, answering: bool = False) -> AsyncGenerator[Stage]:
    """A runtime in which nothing may be left at the end."""
    async with open_runtime() as runtime:
        runtime.terminals.add("a")
        runtime.terminals.add("b")
        set_up = Stage(runtime.terminals)
        unsubscribe = runtime.terminals.subscribe("b", set_up.hear)
        await trio.testing.wait_all_tasks_blocked()
        tasks = trio.lowlevel.current_statistics().tasks_living
        async with trio.open_nursery() as nursery:
            if answering:
                nursery.start_soon(set_up.answer)
                await trio.testing.wait_all_tasks_blocked()
            yield set_up
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        unsubscribe()
        assert runtime.snapshot().waits == ()
        assert runtime.snapshot().deadlines == 0
        assert runtime.terminals.pending() == []
        assert runtime.terminals.subscriptions == 0
        assert trio.lowlevel.current_statistics().tasks_living <= tasks


async def test_an_ask_that_is_answered(autojump_clock: trio.testing.MockClock) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with stage(answering=True) as here:
            form = Form(NEED_X)
            ended = await doomed(here.terminals.ask, "a", "b", form)
            await trio.testing.wait_all_tasks_blocked()
            if ended.cancelled:
                assert form.status == "abandoned"
                assert here.told in ([], ["pending", "withdrawn"])
                assert not any(result.success for result in here.results)
            else:
                assert ended.value == GOOD
                assert here.told == ["pending", "answered"]

    assert await at_every_step(scenario) > 2


async def test_an_ask_that_expires(autojump_clock: trio.testing.MockClock) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with stage() as here:
            form = Form(NEED_X)

            async def ask() -> None:
                with pytest.raises(FormError):
                    await here.terminals.ask("a", "b", form, timeout=1)

            await doomed(ask)
            await trio.testing.wait_all_tasks_blocked()
            assert form.status == "abandoned"
            assert here.told in ([], ["pending", "withdrawn"], ["pending", "expired"])

    assert await at_every_step(scenario) > 2


@pytest.mark.parametrize("whole", [False, True])
async def test_an_answer(autojump_clock: trio.testing.MockClock, whole: bool) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with stage() as here:
            form = await here.park()
            (record,) = here.terminals.pending("b")

            async def answer() -> bool:
                return (await here.terminals.answer("b", record.id, GOOD, whole=whole)).success

            ended = await doomed(answer)
            await trio.testing.wait_all_tasks_blocked()
            counted = form.status == "settled"
            assert ended.cancelled or (ended.value and counted)
            assert here.told == (["pending", "answered"] if counted else ["pending"])
            await here.terminals.remove("b")

    await at_every_step(scenario)


async def test_a_removal_is_carried_out_though_its_caller_has_gone(autojump_clock: trio.testing.MockClock) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with stage() as here:
            form = await here.park()
            ended = await doomed(here.terminals.remove, ["a", "b"])
            await trio.testing.wait_all_tasks_blocked()
            left = here.terminals.terminals()
            assert left in ([], ["b"], ["a", "b"])
            assert ended.cancelled or left == []
            assert (form.status == "abandoned") == ("b" not in left)
            await here.terminals.remove()

    await at_every_step(scenario)


async def test_a_park(autojump_clock: trio.testing.MockClock) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with stage() as here:
            ended = await doomed(here.park)
            await trio.testing.wait_all_tasks_blocked()
            assert len(here.terminals.pending("b")) == len(here.told) <= 1
            assert ended.cancelled or len(here.told) == 1
            await here.terminals.remove()

    await at_every_step(scenario)


async def test_leaving_the_runtime_by_cancellation_leaves_nothing(autojump_clock: trio.testing.MockClock) -> None:
    async def scenario(doomed: Doomed) -> None:
        forms = [Form(NEED_X) for _ in range(3)]

        async def run() -> None:
            async with open_runtime() as runtime, trio.open_nursery() as nursery:
                runtime.terminals.add("b")

                async def ask(form: Form) -> None:
                    with pytest.raises(FormError):
                        await runtime.terminals.ask(None, "b", form)

                for form in forms:
                    nursery.start_soon(ask, form)
                await trio.testing.wait_all_tasks_blocked()
                await runtime.terminals.destroy()

        tasks = trio.lowlevel.current_statistics().tasks_living
        ended = await doomed(run)
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        assert ended.cancelled or [form.status for form in forms] == ["abandoned"] * 3

    await at_every_step(scenario)
