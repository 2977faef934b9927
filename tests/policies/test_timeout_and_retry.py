"""Deadlines and further attempts around tools."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from greenroom.runtime.cancel import Cancel
from greenroom.runtime.pipeline.approvals import Decision
from greenroom.runtime.pipeline.verdicts import Ask
from greenroom.runtime.policies import retry_policy, timeout_policy
from greenroom.runtime.tools import Tool
from tests.pipeline.track import Track


class Flaky:
    """A tool that takes so many seconds, and fails so often before it does not."""

    def __init__(self, seconds: float = 0, failures: int = 0) -> None:
        self.seconds = seconds
        self.failures = failures
        self.attempts = 0

    async def work(self) -> int:
        self.attempts += 1
        await trio.sleep(self.seconds)
        if self.attempts <= self.failures:
            raise ConnectionError("no route")
        return self.attempts


@pytest.fixture
def track() -> Track:
    return Track()


async def test_a_tool_that_takes_too_long_is_cancelled(track: Track, autojump_clock: MockClock) -> None:
    track.bus.on("tools/execute", timeout_policy(2, tools=["t"]))
    track.tool(Flaky(seconds=3).work)
    track.tool(Flaky(seconds=3).work, "other")
    assert "took longer than 2 s" in await track.error()
    assert track.outcome.code == "TOOL_TIMEOUT"
    assert await track.value("other") == 1


@pytest.mark.case("pipeline", 20)
@pytest.mark.parametrize("patience", [True, False])
async def test_a_shielded_tool_that_succeeds_after_the_deadline_has_timed_out(
    track: Track, patience: bool, autojump_clock: MockClock
) -> None:
    async def stubborn() -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(3)
        return "done after all"

    track.bus.on("tools/execute", timeout_policy(2, patience=patience))
    track.tool(stubborn)
    assert "took longer than 2 s" in await track.error()


@pytest.mark.case("pipeline", 21)
@pytest.mark.parametrize("patience", [True, False])
async def test_an_inner_deadline_does_not_claim_what_an_outer_one_has_ended(
    track: Track, patience: bool, autojump_clock: MockClock
) -> None:
    inner: list[str] = []

    async def watch(call: Any, next: Any) -> Any:
        try:
            return await next()
        except BaseException as error:
            inner.append(type(error).__name__)
            raise

    track.bus.on("tools/execute", timeout_policy(1, patience=patience))
    track.bus.on("tools/execute", watch)
    track.bus.on("tools/execute", timeout_policy(5, patience=patience))
    track.tool(trio.sleep_forever)
    assert "took longer than 1 s" in await track.error()
    assert inner == ["Cancelled"]
    assert trio.current_time() == 1


@pytest.mark.case("pipeline", 4)
async def test_each_attempt_has_the_deadline_that_is_within(track: Track, autojump_clock: MockClock) -> None:
    flaky = Flaky(seconds=3)
    track.bus.on("tools/execute", retry_policy(["t"], attempts=2, delay=1))
    track.bus.on("tools/execute", timeout_policy(2))
    track.tool(flaky.work)
    assert "took longer than 2 s" in await track.error()
    assert (flaky.attempts, trio.current_time()) == (2, 5)


async def test_a_deadline_around_bounds_all_attempts(track: Track, autojump_clock: MockClock) -> None:
    flaky = Flaky(seconds=1, failures=99)
    track.bus.on("tools/execute", timeout_policy(4))
    track.bus.on("tools/execute", retry_policy(["t"], attempts=9, delay=1, factor=1))
    track.tool(flaky.work)
    assert "took longer than 4 s" in await track.error()
    assert flaky.attempts == 2


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_a_deadline_is_a_positive_number_of_seconds(seconds: float) -> None:
    with pytest.raises(ValueError, match="a positive number of seconds"):
        timeout_policy(seconds)


async def test_what_failed_is_tried_again_ever_later(track: Track, autojump_clock: MockClock) -> None:
    track.bus.on("tools/execute", retry_policy(["t"], attempts=3, delay=1, factor=3))
    flaky = Flaky(failures=2)
    track.tool(flaky.work)
    assert await track.value() == 3
    assert trio.current_time() == 4
    track.tool(Flaky(failures=9).work, "other")
    assert await track.error("other") == "no route"
    assert len(track.results) == 2, "one result a call, however many attempts"


async def test_what_no_attempt_would_change_is_not_tried_again(track: Track, autojump_clock: MockClock) -> None:
    track.bus.on("tools/execute", retry_policy(["t", "ghost"], attempts=3))
    await track.error("ghost")
    assert trio.current_time() == 0
    with pytest.raises(ValueError, match="at least one attempt"):
        retry_policy(["t"], attempts=0)


async def test_a_call_that_somebody_approved_of_is_not_tried_again(track: Track, autojump_clock: MockClock) -> None:
    flaky = Flaky(failures=1)
    track.on(track.pipeline.pre_execute, lambda call: Ask())
    track.on(track.pipeline.approvals.event, lambda request: Decision("allowed-once"))
    track.bus.on("tools/execute", retry_policy(["t"], attempts=3))
    track.tool(flaky.work)
    assert await track.error() == "no route"
    assert flaky.attempts == 1


async def test_a_stop_ends_the_wait_for_the_next_attempt(track: Track, autojump_clock: MockClock) -> None:
    stop = Cancel()
    track.bus.on("tools/execute", retry_policy(["t"], delay=100))
    track.tool(Flaky(failures=9).work)
    async with trio.open_nursery() as nursery:

        async def later() -> None:
            await trio.sleep(1)
            stop.set()

        nursery.start_soon(later)
        assert await track.error(stop=stop) == "no route"
    assert trio.current_time() == 1


@pytest.mark.parametrize("patience", [True, False])
@pytest.mark.parametrize("own", [True, False])
async def test_a_tool_that_fails_as_it_is_cancelled_has_timed_out(
    track: Track, own: bool, patience: bool, autojump_clock: MockClock
) -> None:
    """Beside what was cancelled, in a group with it; by the tool's own deadline or a policy's."""

    async def careless() -> None:
        try:
            await trio.sleep(3)
        finally:
            raise LookupError("there is nothing to close")

    async def work() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(careless)
            await trio.sleep(3)

    if own:
        track.tools.add(Tool("t", work, timeout=2, patience=patience))
    else:
        track.bus.on("tools/execute", timeout_policy(2, patience=patience))
        track.tool(work)
    assert "took longer than 2 s" in await track.error()
    assert track.outcome.code == "TOOL_TIMEOUT"
    assert "post" in track.seen


async def test_an_error_in_time_is_the_tools_own(track: Track, autojump_clock: MockClock) -> None:
    track.bus.on("tools/execute", timeout_policy(2))
    track.tools.add(Tool("t", Flaky(seconds=1, failures=9).work, timeout=2))
    assert await track.error() == "no route"


WRONG: list[dict[str, Any]] = [
    {"attempts": 0},
    {"delay": -1},
    {"delay": math.nan},
    {"delay": math.inf},
    {"factor": -1},
    {"factor": math.nan},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_what_no_attempt_could_wait_for_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"attempt|seconds"):
        retry_policy(["t"], **wrong)


def test_attempts_are_whole_and_tools_are_several() -> None:
    part: Any = 2.5
    with pytest.raises(TypeError):
        retry_policy(["t"], attempts=part)
    with pytest.raises(TypeError, match="names"):
        retry_policy("fetch_all")
