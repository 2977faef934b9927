"""Policies, guards, recorders and tools that do what they should not: each call has its one result all the same."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from greenroom.actors.agent import Agent
from greenroom.actors.providers import ScriptedProvider
from greenroom.actors.system import open_runtime
from greenroom.protocol.agents import MessageInput, ProviderResult
from greenroom.protocol.errors import GreenroomError, InvariantError
from greenroom.protocol.tools import ToolFailure, ToolSuccess
from greenroom.runtime.bus import Bus, Next
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.pipeline.execution import conclude_turn
from greenroom.runtime.pipeline.handling import Card, Handling, call_card, result_card
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.outcomes import Outcome, ToolFail, ToolOk
from greenroom.runtime.pipeline.pipeline import Pipeline
from greenroom.runtime.pipeline.verdicts import Accept, Block, Review
from greenroom.runtime.policies import CheckedRecorder, retry_policy
from greenroom.runtime.tools import Tool, ToolManager
from tests.pipeline.track import Log, Track, call


@pytest.fixture
def track() -> Track:
    track = Track()
    track.tool(lambda: "done")
    return track


async def sleep() -> None:
    await trio.sleep(9)


# -------------------------------------------------------------------- what they say

WRONG: Any = [None, "one text", 5, ("fine", 5), ("lone \ud800",)]


@pytest.mark.parametrize("contexts", WRONG)
@pytest.mark.parametrize("review", [Accept, lambda contexts: Block("no", contexts=contexts)])
async def test_a_review_with_texts_that_are_none_is_a_failure(track: Track, review: Any, contexts: Any) -> None:
    track.on(track.pipeline.post_execute, lambda settled: review(contexts=contexts))
    await track.error()
    assert track.log.events == ["call 1", "result 1"]
    assert (track.outcome.code, track.outcome.contexts) == ("INVALID_REVIEW", ())


@pytest.mark.parametrize("contexts", WRONG)
@pytest.mark.parametrize("outcome", [ToolOk, lambda contexts, value: ToolFail("no", contexts=contexts)])
async def test_an_outcome_with_texts_that_are_none_is_a_failure(track: Track, outcome: Any, contexts: Any) -> None:
    track.on(track.pipeline.execute, lambda call: outcome(value=1, contexts=contexts))
    await track.error()
    assert track.log.events == ["call 1", "result 1"]
    assert (track.outcome.code, track.outcome.contexts) == ("INVALID_OUTCOME", ())


async def test_a_failure_has_a_code(track: Track) -> None:
    code: Any = None
    track.on(track.pipeline.execute, lambda call: ToolFail("no", code=code))
    await track.error()
    assert track.outcome.code == "INVALID_OUTCOME"


async def test_texts_of_a_kind_of_their_own_come_out_plain(track: Track) -> None:
    class Why(StrEnum):
        LATE = "it is late"

    class Markup(str):
        pass

    track.tool(lambda: "done", "rendered", render=lambda arguments, value: Markup("<b>done</b>"))
    await track.value("rendered")
    track.on(track.pipeline.post_execute, lambda settled: Block(Why.LATE, contexts=(Markup("later"),)))
    result = await track.execute()
    assert msgspec.json.decode(msgspec.json.encode(result))["error"] == "it is late"
    rendered, blocked = (settled.outcome for settled in track.results)
    assert isinstance(blocked, ToolFail)
    said = (rendered.content, blocked.message, *blocked.contexts)
    assert said == ("<b>done</b>", "it is late", "later")
    assert {type(text) for text in said} == {str}


@pytest.mark.parametrize("made", [None, "a title", Card(WRONG[0]), Card("t", WRONG[2])], ids=repr)
def test_a_card_that_is_none_gives_way_to_a_general_one(made: Any) -> None:
    handling = Handling(present_call=lambda arguments: made, present_result=lambda arguments, outcome: made)
    sent = Invocation(call_id="1", name="send", arguments={})
    assert call_card(handling, sent) == Card("send", "{}")
    assert result_card(handling, sent, ToolOk(1, content="1")) == Card("send", "1")


@pytest.mark.parametrize("reason", [False, True, 5])
async def test_a_guard_that_gives_what_is_no_reason_lets_nothing_run(track: Track, reason: Any) -> None:
    track.pipeline.guard(lambda call: reason)
    assert "None" in await track.error()
    assert track.outcome.code == "INVALID_VERDICT"
    assert track.seen == ["pre", "result"]


def test_a_guard_that_must_be_awaited_is_refused(track: Track) -> None:
    async def guard(call: Invocation) -> None: ...

    wrong: Any = guard
    with pytest.raises(GreenroomError) as caught:
        track.pipeline.guard(wrong)
    assert caught.value.code == "WRONG_KIND"
    assert not track.pipeline.guards


@pytest.mark.parametrize("policed", [True, False])
async def test_an_error_is_told_though_it_has_no_utf8_form(track: Track, policed: bool) -> None:
    def tool() -> None:
        raise FileNotFoundError("no file \udcff")

    track.tool(tool)
    tools = track.tools
    if not policed:
        tools = ToolManager()
        tools.add(Tool("t", tool))
    result = await tools.execute(call())
    assert isinstance(result, ToolFailure)
    assert result.error == "no file \\udcff"


# -------------------------------------------------------------------- when they say it


async def test_a_tool_is_not_entered_once_its_policies_are_done(track: Track, autojump_clock: MockClock) -> None:
    """The outer policy lets the inner one run on in a task of its own, and answers meanwhile."""
    entered: list[str] = []
    track.tool(lambda: entered.append("late"), "late", concurrent=True)
    track.tool(sleep, "slow", concurrent=True)
    misused: list[str] = []

    async with trio.open_nursery() as nursery:

        async def hasty(call: Invocation, next: Next[Outcome]) -> Outcome:
            if call.name == "slow":
                return await next()

            async def beneath() -> None:
                with pytest.raises(GreenroomError) as caught:
                    await next()
                misused.append(caught.value.code)

            nursery.start_soon(beneath)
            await trio.sleep(1)
            return ToolOk("mine")

        async def slow(call: Invocation, next: Next[Outcome]) -> Outcome:
            await trio.sleep(3)
            return await next()

        track.bus.on(track.pipeline.execute, hasty)
        track.bus.on(track.pipeline.execute, slow)
        await track.tools.execute([call("late", id="1"), call("slow", id="2")])
    assert (entered, misused) == ([], ["NEXT_MISUSE"])
    assert track.log.events == ["call 1", "call 2", "result 1", "result 2"]


async def test_what_a_failed_attempt_has_said_of_the_turn_does_not_stand(track: Track) -> None:
    attempts: list[int] = []

    def tool() -> str:
        attempts.append(1)
        if len(attempts) == 1:
            conclude_turn()
            raise ConnectionError("it broke")
        return "done"

    track.tool(tool)
    track.bus.on(track.pipeline.execute, retry_policy(["t"], delay=0))
    assert await track.value() == "done"
    assert not track.outcome.concludes_turn


async def test_a_stop_reaches_the_tool_though_a_policy_fails_at_it(track: Track, autojump_clock: MockClock) -> None:
    async def policy(call: Invocation, next: Next[Outcome]) -> Outcome:
        call.on_stop(lambda: 1 / 0)
        return await next()

    track.tool(sleep)
    track.bus.on(track.pipeline.execute, policy)
    stop = Cancel()
    async with trio.open_nursery() as nursery:

        async def stopping() -> None:
            await trio.sleep(1)
            stop.set("enough")

        nursery.start_soon(stopping)
        await track.error(stop=stop)
    assert track.outcome.code == "ABORTED"
    assert trio.current_time() == pytest.approx(1), "nobody waited for the tool"


async def test_a_tool_that_calls_itself_without_an_end_is_ended(track: Track) -> None:
    track.pipeline.recorder = checked = CheckedRecorder(track.log)

    async def again() -> str:
        result = await track.execute()
        return result.error if isinstance(result, ToolFailure) else result.value

    track.tool(again)
    assert "17 calls deep, and 16 are allowed" in await track.value()
    assert (len(track.results), checked.open) == (18, 0)


# -------------------------------------------------------------------- who takes it down


async def test_a_recorder_that_counts_its_records_is_one_while_it_has_none() -> None:
    class Counting(Log):
        def __len__(self) -> int:
            return len(self.events)

    pipeline = Pipeline(Bus())
    pipeline.recorder = recorder = Counting()
    tools = ToolManager(pipeline=pipeline)
    tools.add(Tool("t", lambda: "done"))
    await tools.execute(call())
    assert recorder.events == ["call 1", "result 1"]


async def test_a_call_ends_in_the_record_that_it_began_in(track: Track) -> None:
    other = Log()

    def swap() -> None:
        track.pipeline.recorder = other

    track.tool(swap, "swap")
    await track.execute("swap")
    assert (track.log.events, other.events) == (["call 1", "result 1"], [])


@pytest.mark.parametrize("fault", [InvariantError("INVARIANT", "it cannot be"), KeyboardInterrupt()])
async def test_each_call_of_a_cancelled_batch_is_told_of_whatever_an_observer_raises(
    track: Track, fault: BaseException, autojump_clock: MockClock
) -> None:
    def observe(settled: Settled) -> None:
        raise fault

    track.bus.on(track.pipeline.result, observe)
    track.tool(sleep, concurrent=True)
    with pytest.raises(type(fault)), trio.move_on_after(1):
        await track.tools.execute([call(id=str(number)) for number in range(3)])
    assert sorted(track.log.events) == [*(f"call {n}" for n in range(3)), *(f"result {n}" for n in range(3))]


@pytest.mark.parametrize("most", [0, -1, 2.5, None])
def test_at_least_one_call_of_a_batch_may_run(track: Track, most: Any) -> None:
    with pytest.raises(ValueError, match="at least one"):
        track.pipeline.max_parallel = most
    assert track.pipeline.max_parallel == 10


async def test_a_guard_or_a_policy_that_is_added_within_a_call_is_asked_of_later_ones(track: Track) -> None:
    closes: list[Callable[[], None]] = []

    async def forbid(settled: Settled, next: Next[Review]) -> Review:
        return Block("not any more")

    def add() -> str:
        closes.append(track.bus.on(track.pipeline.post_execute, forbid, prepend=True))
        return "added"

    track.tool(add, "add")
    assert await track.error("add") == "not any more", "its own review is dispatched later"
    closes[0]()
    assert isinstance(await track.execute(), ToolSuccess)


# -------------------------------------------------------------------- tools that fail as they are cancelled


async def careless() -> None:
    """Of its two parts one raises when both are cancelled."""

    async def part() -> None:
        try:
            await trio.sleep(9)
        finally:
            raise LookupError("there is nothing to close")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(part)
        nursery.start_soon(trio.sleep, 9)


@pytest.mark.parametrize("calls", [call(), [call(id="1"), call(id="2")]], ids=["one", "batch"])
async def test_a_cancelled_call_is_cancelled_whatever_its_tool_raises_then(
    track: Track, calls: Any, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    track.tool(careless, concurrent=True)
    with trio.move_on_after(1) as scope:
        await track.tools.execute(calls)
    assert {settled.outcome.content for settled in track.results} == {
        "Error: The call was stopped while it ran: what it had done by then may stand."
    }
    assert scope.cancelled_caught
    assert "there is nothing to close" in caplog.text


@pytest.mark.parametrize("policed", [True, False])
async def test_a_stopped_run_is_no_failure_whatever_its_tools_raise_then(
    policed: bool, autojump_clock: MockClock
) -> None:
    async with open_runtime() as runtime:
        if policed:
            runtime.pipeline.guard(lambda call: None)
        provider = ScriptedProvider([ProviderResult("", tools=(call(),)), ProviderResult("never")])
        agent = runtime.agents.add(Agent(provider, tools=[Tool("t", careless)]))
        agent.context.messages.add(MessageInput("user", "Go."))
        async with agent.stream() as run:
            await trio.testing.wait_all_tasks_blocked()
            run.abort("enough")
            assert (await run.result()).partial
        assert [message.content for message in agent.context.messages.view() if message.role == "tool"] == ["cancelled"]
