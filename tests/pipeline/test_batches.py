"""Several calls of one answer: which overlap, in which order they are told of, and how they are stopped."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from greenroom.protocol.tools import ToolResult, ToolSuccess
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.outcomes import Outcome
from greenroom.runtime.pipeline.verdicts import Allow, Verdict
from greenroom.runtime.tools import Tool, ToolManager
from tests.pipeline.track import Track, call


class Crowd:
    """Tools that sleep and say when they begin and end."""

    def __init__(self) -> None:
        self.track = Track()
        self.events: list[str] = []
        self.running = self.most = 0

    def add(self, name: str, seconds: float, concurrent: object = True) -> None:
        async def work() -> str:
            self.events.append(f"{name} in")
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await trio.sleep(seconds)
            finally:
                self.running -= 1
            self.events.append(f"{name} out")
            return name

        self.track.tool(work, name, concurrent=concurrent)

    async def execute(self, *names: str, stop: Cancel | None = None) -> list[ToolResult]:
        calls = [call(name, id=str(number)) for number, name in enumerate(names)]
        return await self.track.tools.execute(calls, stop=stop)


@pytest.fixture
def crowd() -> Crowd:
    return Crowd()


async def test_how_many_may_overlap_is_asked_anew_for_each_group(crowd: Crowd, autojump_clock: MockClock) -> None:
    most: list[int] = []

    async def alone() -> None:
        most.append(crowd.most)
        crowd.most = 0
        crowd.track.pipeline.max_parallel += 2

    crowd.track.pipeline.max_parallel = 1
    crowd.add("A", 1)
    crowd.track.tool(alone, "alone")
    await crowd.execute("A", "A", "alone", "A", "A", "A", "A", "alone", *"AAAAAAA", "alone")
    assert most == [1, 3, 5]


@pytest.mark.case("pipeline", 24)
async def test_neighbours_that_may_overlap_do_and_are_told_of_in_their_order(
    crowd: Crowd, autojump_clock: MockClock
) -> None:
    crowd.add("A", 2)
    crowd.add("B", 1)
    crowd.add("C", 1, concurrent=False)
    results = await crowd.execute("A", "B", "C")
    assert crowd.events == ["A in", "B in", "B out", "A out", "C in", "C out"]
    assert [result.name for result in results] == ["A", "B", "C"]
    assert [settled.call.name for settled in crowd.track.results] == ["A", "B", "C"]
    assert crowd.track.log.events == ["call 0", "call 1", "result 0", "result 1", "call 2", "result 2"]
    assert trio.current_time() == 3


async def test_who_may_not_overlap_bars_those_behind(crowd: Crowd, autojump_clock: MockClock) -> None:
    crowd.add("A", 1)
    crowd.add("X", 1, concurrent=False)
    await crowd.execute("X", "A", "A", "X")
    assert crowd.events == ["X in", "X out", "A in", "A in", "A out", "A out", "X in", "X out"]


@pytest.mark.case("pipeline", 25)
@pytest.mark.parametrize("cap", [10, 1])
async def test_no_more_tools_run_than_there_is_room_for(crowd: Crowd, cap: int, autojump_clock: MockClock) -> None:
    crowd.add("A", 1)
    crowd.track.pipeline.max_parallel = cap
    await crowd.execute(*["A"] * 12)
    assert crowd.most == cap
    assert trio.current_time() == (2 if cap == 10 else 12)


async def test_only_a_plain_yes_lets_a_call_overlap(crowd: Crowd, autojump_clock: MockClock) -> None:
    def raises(_: object) -> bool:
        raise LookupError

    for number, concurrent in enumerate((lambda _: 1, raises, False)):
        crowd.add(str(number), 1, concurrent)
    await crowd.execute("0", "1", "2", "0")
    assert crowd.most == 1


async def test_verdicts_are_taken_one_after_another_while_tools_run(crowd: Crowd, autojump_clock: MockClock) -> None:
    crowd.add("A", 5)
    deciding: list[str] = []

    async def slow(call: Invocation) -> Verdict:
        deciding.append(call.call_id)
        assert len(deciding) == 1
        await trio.sleep(1)
        deciding.remove(call.call_id)
        return Allow()

    crowd.track.on(crowd.track.pipeline.pre_execute, slow)
    await crowd.execute("A", "A")
    assert trio.current_time() == 7


@pytest.mark.case("pipeline", 26)
async def test_a_stopped_batch_has_a_pair_for_each_call(crowd: Crowd, autojump_clock: MockClock) -> None:
    crowd.add("A", 10)
    crowd.track.pipeline.max_parallel = 2
    stop = Cancel()
    async with trio.open_nursery() as nursery:

        async def later() -> None:
            await trio.sleep(1)
            stop.set()

        nursery.start_soon(later)
        await crowd.execute(*["A"] * 5, stop=stop)
    log = crowd.track.log.events
    assert [event for event in log if event.startswith("call")] == [f"call {number}" for number in range(5)]
    assert [event for event in log if event.startswith("result")] == [f"result {number}" for number in range(5)]
    codes = [getattr(settled.outcome, "code", None) for settled in crowd.track.results]
    assert codes == ["ABORTED"] * 2 + ["ABORTED_BEFORE_DISPATCH"] * 3
    assert crowd.events == ["A in", "A in"]
    assert trio.current_time() == 1


async def test_a_cancelled_batch_keeps_what_was_done_and_tells_of_what_had_begun(
    crowd: Crowd, autojump_clock: MockClock
) -> None:
    crowd.add("fast", 1)
    crowd.add("slow", 10)
    crowd.add("last", 1, concurrent=False)
    kept: dict[int, ToolResult] = {}

    def settled(position: int, result: ToolResult, outcome: Outcome | None) -> None:
        assert outcome is not None
        kept[position] = result

    with trio.move_on_after(5) as scope:
        calls = [call(name, id=name) for name in ("fast", "slow", "last")]
        await crowd.track.tools.execute(calls, settled=settled)
    assert scope.cancelled_caught
    assert kept == {0: ToolSuccess(id="fast", name="fast", value="fast")}
    assert crowd.track.log.events == ["call fast", "call slow", "result fast", "result slow"]


async def test_a_batch_without_policies_tells_of_each_call_as_it_ends() -> None:
    kept: list[tuple[int, Outcome | None]] = []
    tools = ToolManager()
    tools.add([Tool("a", lambda: 1), Tool("b", lambda: 2)])
    await tools.execute([call("a"), call("b")], settled=lambda at, result, outcome: kept.append((at, outcome)))
    await tools.execute(call("a"), settled=lambda at, result, outcome: kept.append((at, outcome)))
    assert kept == [(0, None), (1, None), (0, None)]


async def test_a_recorder_that_fails_lets_what_runs_end_and_begins_nothing_else(
    crowd: Crowd, autojump_clock: MockClock
) -> None:
    crowd.add("A", 2)
    crowd.track.log.full = "call 1"
    with pytest.raises(OSError, match="full"):
        await crowd.execute("A", "A", "A")
    assert crowd.events == ["A in", "A out"]
    assert crowd.track.log.events == ["call 0", "result 0"]
