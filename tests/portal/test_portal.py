"""A runtime that is driven from outside of trio: by threads, by asyncio, by a script that is interrupted."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio

import greenroom
from greenroom.actors.portal import Portal
from greenroom.protocol.errors import ActorError, FormError, TerminalDeadlock, TerminalError
from tests.gateway.conftest import ONE_FIELD


def until(portal: Portal, condition: Callable[[], object]) -> None:
    """Wait, for five seconds at most, until something holds in the runtime."""
    end = time.monotonic() + 5
    while not portal.call(condition):
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.001)


def until_asked(portal: Portal, name: str = "ops") -> str:
    """The id of the one form at that terminal, once it is there."""
    until(portal, lambda: portal.runtime.terminals.pending(name))
    (form,) = portal.call(portal.runtime.terminals.pending, name)
    return form.id


# -------------------------------------------------------------------- threads


def test_a_plain_program_asks_and_another_thread_answers() -> None:
    with greenroom.portal() as portal, ThreadPoolExecutor() as threads:
        portal.call(portal.runtime.terminals.add, "ops")
        asked = threads.submit(portal.call, portal.runtime.ask, "ops", ONE_FIELD, from_="script")
        result = portal.call(portal.runtime.terminals.answer, "ops", until_asked(portal), {"x": "v"})
        assert result.success
        assert asked.result(5) == {"x": "v"}


def test_what_a_call_raises_is_raised_where_it_was_made() -> None:
    error = LookupError("the very one")

    def fail() -> None:
        raise error

    async def fail_later() -> None:
        await trio.lowlevel.checkpoint()
        raise error

    with greenroom.portal() as portal:
        for failing in (fail, fail_later):
            with pytest.raises(LookupError) as raised:
                portal.call(failing)
            assert raised.value is error
        with pytest.raises(TerminalError, match="nobody"):
            portal.call(portal.runtime.ask, "nobody", ONE_FIELD)


def test_a_circle_is_refused_across_threads() -> None:
    with greenroom.portal() as portal:
        for name in ("a", "b"):
            portal.call(portal.runtime.terminals.add, name)
        portal.submit(portal.runtime.ask, "b", ONE_FIELD, from_="a")
        until_asked(portal, "b")
        with pytest.raises(TerminalDeadlock) as refused:
            portal.call(portal.runtime.ask, "a", ONE_FIELD, from_="b")
        assert list(refused.value.path) == ["b", "a", "b"]


def test_many_threads_call_at_once() -> None:
    with greenroom.portal() as portal, ThreadPoolExecutor(16) as threads:
        portal.call(portal.runtime.terminals.add, "ops")
        asked = [threads.submit(portal.call, portal.runtime.ask, "ops", ONE_FIELD) for _ in range(16)]
        until(portal, lambda: len(portal.runtime.terminals.pending("ops")) == 16)
        for form in portal.call(portal.runtime.terminals.pending, "ops"):
            portal.call(portal.runtime.terminals.answer, "ops", form.id, {"x": form.id})
        assert len({future.result(5)["x"] for future in asked}) == 16


def test_an_interrupt_ends_the_call_and_withdraws_what_it_asked() -> None:
    with greenroom.portal() as portal:
        portal.call(portal.runtime.terminals.add, "ops")
        main = threading.main_thread().ident
        assert main is not None

        def interrupt() -> None:
            until_asked(portal)
            signal.pthread_kill(main, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            portal.call(portal.runtime.ask, "ops", ONE_FIELD)
        thread.join()
        assert portal.call(portal.runtime.terminals.pending, "ops") == []  # it holds and serves others


def test_a_future_that_is_cancelled_cancels_its_call() -> None:
    with greenroom.portal() as portal:
        portal.call(portal.runtime.terminals.add, "ops")
        asked = portal.submit(portal.runtime.ask, "ops", ONE_FIELD)
        until_asked(portal)
        assert asked.cancel()
        until(portal, lambda: not portal.runtime.terminals.pending("ops"))
        with pytest.raises(CancelledError):
            asked.result(0)


def test_the_end_of_the_block_ends_what_is_under_way() -> None:
    cleaned = []

    async def stay() -> None:
        try:
            await trio.sleep_forever()
        finally:
            cleaned.append(threading.current_thread().name)

    with greenroom.portal() as portal:
        portal.call(portal.runtime.terminals.add, "ops")
        asked, stays = portal.submit(portal.runtime.ask, "ops", ONE_FIELD), portal.submit(stay)
        until_asked(portal)
    for future in (asked, stays):
        with pytest.raises(ActorError) as ended:
            future.result(0)
        assert ended.value.code == "STOPPED"
    assert cleaned == ["greenroom"]
    with pytest.raises(ActorError):
        portal.call(list)
    assert not any(thread.name == "greenroom" for thread in threading.enumerate())


def test_nothing_is_called_before_the_block() -> None:
    portal = greenroom.portal()
    with pytest.raises(ActorError):
        portal.call(list)
    with pytest.raises(ActorError):
        _ = portal.runtime


def test_a_wrong_option_is_refused_at_the_opening() -> None:
    with pytest.raises(TypeError), greenroom.portal(no_such=1):  # type: ignore[call-arg]
        pass


def test_what_ends_the_runtime_is_raised_at_the_end_of_the_block() -> None:
    @asynccontextmanager
    async def broken() -> AsyncGenerator[greenroom.Runtime]:
        async with greenroom.open_runtime() as runtime:
            yield runtime
        raise LookupError("at the end")

    with pytest.raises(LookupError, match="at the end"), Portal(broken) as portal:
        assert portal.call(lambda: 1) == 1


def test_a_step_that_exits_ends_its_own_call_and_no_other() -> None:
    with greenroom.portal() as portal:
        with pytest.raises(SystemExit) as exited:
            portal.call(sys.exit, 3)
        assert exited.value.code == 3
        assert portal.call(lambda: "still there") == "still there"


async def exit_in_a_task() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, sys.exit, 3)


class Odd(BaseException):
    """What no code expects."""


@pytest.mark.parametrize("error", [Odd(), KeyboardInterrupt(), BaseExceptionGroup("g", [Odd(), ValueError()])])
def test_whatever_a_call_raises_is_its_caller_s_alone(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with greenroom.portal() as portal:
        with pytest.raises(type(error)) as raised:
            portal.call(fail)
        assert raised.value is error or isinstance(error, BaseExceptionGroup)
        with pytest.raises(BaseExceptionGroup, match="nursery"):
            portal.call(exit_in_a_task)
        assert portal.call(lambda: "still there") == "still there"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_was_forked_has_no_runtime_and_is_not_held_up() -> None:
    told, tells = os.pipe()
    with greenroom.portal() as portal:
        child = os.fork()
        if not child:
            try:
                portal.call(list)
            except ActorError as error:
                portal.__exit__(None, None, None)
                os.write(tells, error.code.encode())
            os._exit(0)
        os.close(tells)
        assert select.select([told], [], [], 5)[0], "it waits for a thread that it does not have"
        assert os.read(told, 100) == b"STOPPED"
        os.waitpid(child, 0)
        assert portal.call(lambda: "still there") == "still there"
    os.close(told)


def hold_up_until_open(portal: Portal) -> None:
    """Let whoever opens it not hear of it yet."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        with suppress(ActorError):
            assert portal.runtime
            break
        time.sleep(0.001)
    time.sleep(0.01)


def test_an_opening_that_is_cancelled_at_its_very_end_leaves_no_runtime() -> None:
    portal = greenroom.portal()

    async def enter() -> None:
        async with portal:
            raise AssertionError("it was entered")

    async def main() -> None:
        entering = asyncio.ensure_future(enter())
        await asyncio.sleep(0)
        hold_up_until_open(portal)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering

    asyncio.run(main())
    deadline = time.monotonic() + 5
    while any(thread.name == "greenroom" for thread in threading.enumerate()):
        assert time.monotonic() < deadline, "nobody has ended it"
        time.sleep(0.001)


def test_a_stop_iteration_reaches_its_caller_as_something_that_futures_take() -> None:
    async def main() -> None:
        async with greenroom.portal() as portal:
            with pytest.raises(RuntimeError, match="StopIteration") as raised:
                await portal.run(next, iter(()))
            assert isinstance(raised.value.__cause__, StopIteration)

    asyncio.run(main())


def test_who_calls_while_it_closes_gets_an_answer_or_is_told_that_it_is_closed() -> None:
    for _ in range(10):
        with ThreadPoolExecutor(4) as threads:
            with greenroom.portal() as portal:
                started = threading.Barrier(5)
                callers = [threads.submit(_hammer, portal, started) for _ in range(4)]
                started.wait()
            assert {caller.result(5) for caller in callers} == {"STOPPED"}


def _hammer(portal: Portal, started: threading.Barrier) -> str:
    started.wait()
    while True:
        try:
            assert portal.call(lambda: 1) == 1
        except ActorError as error:
            return error.code


def test_a_call_from_the_runtimes_own_thread_is_refused_instead_of_hanging() -> None:
    with greenroom.portal() as portal, pytest.raises(RuntimeError, match="own thread"):
        portal.call(lambda: portal.call(list))


# -------------------------------------------------------------------- asyncio


def test_asyncio_asks_while_its_loop_goes_on() -> None:
    async def main() -> None:
        async with greenroom.portal() as portal:
            terminals = portal.runtime.terminals
            await portal.run(terminals.add, "ops")
            asked = asyncio.create_task(portal.run(portal.runtime.ask, "ops", ONE_FIELD))
            await portal.run(terminals.answer, "ops", await asyncio.to_thread(until_asked, portal), {"x": "v"})
            assert await asked == {"x": "v"}
            with pytest.raises(FormError):
                await portal.run(portal.runtime.ask, "ops", {"fields": 1})

    asyncio.run(main())


def test_a_task_of_asyncio_that_is_cancelled_has_withdrawn_its_form() -> None:
    async def main() -> None:
        async with greenroom.portal() as portal:
            terminals = portal.runtime.terminals
            await portal.run(terminals.add, "ops")
            asked = asyncio.create_task(portal.run(portal.runtime.ask, "ops", ONE_FIELD))
            await asyncio.to_thread(until_asked, portal)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            assert portal.call(terminals.pending, "ops") == []

    asyncio.run(main())


def test_opening_may_be_cancelled_and_leaves_no_thread() -> None:
    opened = threading.Event()

    @asynccontextmanager
    async def slow() -> AsyncGenerator[greenroom.Runtime]:
        async with greenroom.open_runtime() as runtime:
            opened.set()
            await trio.to_thread.run_sync(cancelled.wait)
            yield runtime

    cancelled = threading.Event()

    async def main() -> None:
        async def enter() -> Any:
            async with Portal(slow):
                raise AssertionError("it was cancelled before")

        task = asyncio.create_task(enter())
        await asyncio.to_thread(opened.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled.set()

    asyncio.run(main())
    for thread in threading.enumerate():
        if thread.name == "greenroom":
            thread.join(5)
            assert not thread.is_alive()
