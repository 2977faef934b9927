"""A tool's own deadline: what it ends, what it does not, and that it stands still while a person is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.errors import ToolError
from greenroom.protocol.forms import Form
from greenroom.protocol.terminals import AnswerFailure, AnswerRefusal
from greenroom.protocol.tools import ToolCall, ToolFailure, ToolResult, ToolSuccess
from greenroom.runtime.tools import Tool, ToolManager, tool_function
from tests.clock import advance

TEN_MINUTES = 600_000.0
NEED_X = {"fields": [{"control": "text", "name": "x", "rule": {"required": True}}]}
DONE = ToolSuccess(id="1", name="work", value="done")


class Input(NamedTuple):
    """What a workflow's task gives to its function, as far as a tool needs it."""

    input: Any


class Bench:
    """A tool `work`, and calls of it that run beside the test."""

    def __init__(self, runtime: Runtime, nursery: trio.Nursery) -> None:
        self.terminals = runtime.terminals
        self.nursery = nursery
        self.tools = ToolManager()
        self.result: ToolResult | None = None
        self.came = 0

    def add(self, seconds: float, *persons: str, timeout: float = 1.0, patience: bool = True) -> None:
        """It works so long, asks all those persons at once, and works so long again."""

        async def work() -> str:
            await trio.sleep(seconds)
            async with trio.open_nursery() as nursery:
                for person in persons:
                    nursery.start_soon(self.terminals.ask, None, person, Form(NEED_X))
            self.came += 1
            await trio.sleep(seconds)
            return "done"

        self.tools.add(Tool("work", work, timeout=timeout, patience=patience))

    async def call(self) -> None:
        self.result = await self.tools.execute(ToolCall("1", "work", {}))

    async def answer(self, person: str) -> None:
        (record,) = self.terminals.pending(person)
        assert (await self.terminals.answer(person, record.id, {"x": "yes"})).success
        await trio.testing.wait_all_tasks_blocked()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_runtime(timeout=None) as runtime, trio.open_nursery() as nursery:
        for person in ("ann", "bob"):
            runtime.terminals.add(person)
        yield Bench(runtime, nursery)
        nursery.cancel_scope.cancel()


def message_of(result: ToolResult | None) -> str:
    assert isinstance(result, ToolFailure)
    return result.error


@pytest.mark.case("reports/pipeline", 1)
async def test_the_minutes_in_which_a_person_thinks_are_not_the_tools(bench: Bench, mock_clock: MockClock) -> None:
    bench.add(0.3, "ann")
    bench.nursery.start_soon(bench.call)
    await advance(TEN_MINUTES)
    await bench.answer("ann")
    await advance(300)
    assert bench.result == DONE


@pytest.mark.case("reports/pipeline", 1)
async def test_of_two_asks_at_once_the_last_answer_lets_the_clock_go_on(bench: Bench, mock_clock: MockClock) -> None:
    bench.add(0.3, "ann", "bob")
    bench.nursery.start_soon(bench.call)
    await advance(TEN_MINUTES)
    await bench.answer("bob")
    await advance(TEN_MINUTES)
    await bench.answer("ann")
    await advance(300)
    assert bench.result == DONE


@pytest.mark.case("reports/pipeline", 1)
async def test_work_alone_that_takes_too_long_fails_though_a_person_was_asked_within(
    bench: Bench, mock_clock: MockClock
) -> None:
    bench.add(0.6, "ann")
    bench.nursery.start_soon(bench.call)
    await advance(TEN_MINUTES)
    await bench.answer("ann")
    await advance(390)
    assert bench.result is None
    await advance(10)
    assert "work was cancelled, since it took longer than 1 s" in message_of(bench.result)


@pytest.mark.case("reports/pipeline", 1)
async def test_after_a_timeout_what_was_asked_is_withdrawn_and_a_late_answer_runs_nothing(
    bench: Bench, mock_clock: MockClock
) -> None:
    bench.add(0.3, "ann", "bob", patience=False)
    bench.nursery.start_soon(bench.call)
    await advance(300)
    records = bench.terminals.pending()
    assert [record.to for record in records] == ["ann", "bob"]
    await advance(700)
    assert "took longer" in message_of(bench.result)
    assert bench.terminals.pending() == []
    for record in records:
        late = await bench.terminals.answer(str(record.to), record.id, {"x": "yes"})
        assert late == AnswerFailure(error=AnswerRefusal("unknown"))
    assert bench.came == 0


async def test_calls_of_a_batch_have_a_deadline_each(bench: Bench, mock_clock: MockClock) -> None:
    bench.add(0.3, "ann")
    bench.tools.add(Tool("hang", trio.sleep_forever, timeout=1.0, patience=True))
    results: list[list[ToolResult]] = []

    async def both() -> None:
        results.append(await bench.tools.execute([ToolCall("1", "work", {}), ToolCall("2", "hang", {})]))

    bench.nursery.start_soon(both)
    await advance(TEN_MINUTES)
    await bench.answer("ann")
    await advance(300)
    ((worked, hung),) = results
    assert worked == DONE
    assert "hang was cancelled" in message_of(hung)


@pytest.mark.case("pipeline", 20)
async def test_a_shielded_body_that_returns_after_its_deadline_has_timed_out(autojump_clock: MockClock) -> None:
    async def stubborn() -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(2.0)
        return "done after all"

    for patience in (False, True):
        tool = Tool("stubborn", stubborn, timeout=1.0, patience=patience)
        with pytest.raises(ToolError, match="took longer than 1 s") as raised:
            await tool.execute({})
        assert (raised.value.code, raised.value.context) == ("TOOL_TIMEOUT", {"tool": "stubborn", "seconds": 1.0})


async def test_what_a_body_raises_stays_and_cancellation_from_outside_passes(autojump_clock: MockClock) -> None:
    async def fail() -> None:
        await trio.sleep(0.5)
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        await Tool("fail", fail, timeout=1.0).execute({})
    with trio.move_on_after(0.2) as outside:
        await Tool("fail", fail, timeout=1.0, patience=True).execute({})
    assert outside.cancelled_caught


async def test_a_tool_as_a_function_of_a_task_keeps_its_deadline(autojump_clock: MockClock) -> None:
    tools = ToolManager()
    tools.add(Tool("hang", trio.sleep_forever, timeout=1.0))
    with pytest.raises(ToolError) as raised:
        await tool_function(tools, "hang")(Input({}))
    assert raised.value.code == "TOOL_TIMEOUT"


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf")])
def test_a_timeout_is_a_positive_number_of_seconds(timeout: float) -> None:
    with pytest.raises(ValueError, match=r"tool 'hang': its timeout is a positive number of seconds"):
        Tool("hang", trio.sleep_forever, timeout=timeout)


def test_patience_without_a_timeout_is_refused() -> None:
    with pytest.raises(ValueError, match=r"tool 'hang': without a timeout there is nothing to be patient with"):
        Tool("hang", trio.sleep_forever, patience=True)


def test_a_timeout_is_not_shown_to_models() -> None:
    tools = ToolManager()
    tools.add(Tool("hang", trio.sleep_forever, description="Hangs.", timeout=1.0))
    (definition,) = tools.definitions()
    assert (definition.name, definition.description, definition.parameters) == ("hang", "Hangs.", None)
