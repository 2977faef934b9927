"""Every stage, and what becomes of a call where what is hooked in there returns, raises, or is cancelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import trio
from trio.testing import MockClock

from greenroom.protocol.tools import ToolFailure, ToolSuccess
from greenroom.runtime.bus import Next
from greenroom.runtime.pipeline.approvals import Decision
from greenroom.runtime.pipeline.handling import Card, Handling, call_card, result_card
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.outcomes import Outcome, ToolFail, ToolOk
from greenroom.runtime.pipeline.verdicts import Ask
from tests.pipeline.track import Track

FIRST = ("pre", "approval", "guard", "around", "body", "post", "finalizer", "result", "recorded")
"""What a call passes that needs approval and gets it."""


class Stage(NamedTuple):
    """`passed` is what the call has passed where the stage raises, or where it is cancelled in it; `code` and
    `aborted` what it came to then. None for `aborted`: nothing waits there, so that nothing can be cancelled."""

    passed: tuple[str, ...]
    code: str
    aborted: str | None
    passed_when_cancelled: tuple[str, ...] = ()


END = ("finalizer", "result", "recorded")
STAGES = {
    "pre": Stage(("pre", *END), "TOOL", "ABORTED_BEFORE_DISPATCH", ("pre", *END)),
    "approval": Stage(
        ("pre", "approval", "post", *END), "DENIED", "ABORTED_BEFORE_DISPATCH", ("pre", "approval", *END)
    ),
    "guard": Stage(("pre", "approval", "guard", *END), "TOOL", None),
    "around": Stage(
        ("pre", "approval", "guard", "around", *END),
        "TOOL",
        "ABORTED_BEFORE_DISPATCH",
        ("pre", "approval", "guard", "around", *END),
    ),
    "body": Stage(
        ("pre", "approval", "guard", "around", "body", "post", *END),
        "TOOL",
        "ABORTED",
        ("pre", "approval", "guard", "around", "body", *END),
    ),
    "post": Stage(
        ("pre", "approval", "guard", "around", "body", "post", *END),
        "TOOL",
        "ABORTED",
        ("pre", "approval", "guard", "around", "body", "post", *END),
    ),
    "finalizer": Stage(FIRST, "TOOL", None),
    "result": Stage(FIRST, "", None),
}


class Walk:
    """A call that stops at every stage; at `at` it goes wrong there."""

    def __init__(self, at: str | None = None, how: str = "") -> None:
        self.track = Track()
        self.passed: list[str] = []
        self.at = at
        self.how = how
        track, pipeline = self.track, self.track.pipeline
        track.bus.on(pipeline.pre_execute, self.listener("pre", Ask("it is a test")), prepend=True)
        track.bus.on(pipeline.approvals.event, self.listener("approval", Decision("allowed-once")))
        track.bus.on(pipeline.execute, self.listener("around", None))
        track.bus.on(pipeline.post_execute, self.listener("post", None))
        track.bus.on(pipeline.result, lambda _: self.step("result"))
        pipeline.guard(lambda _: self.step("guard"))
        track.tool(self.body, finalize=self.finalize)

    def step(self, stage: str) -> None:
        self.passed.append(stage)
        if stage == self.at and self.how == "raises":
            raise LookupError(f"broken at {stage}")

    async def wait(self, stage: str) -> None:
        self.step(stage)
        if stage == self.at and self.how == "is cancelled":
            await trio.sleep_forever()

    def listener(self, stage: str, answer: Any) -> Callable[[Any, Next[Any]], Any]:
        async def listener(_: Any, next: Next[Any]) -> Any:
            await self.wait(stage)
            return await next() if answer is None else answer

        return listener

    async def body(self) -> str:
        await self.wait("body")
        return "done"

    def finalize(self, call: Invocation, outcome: Outcome) -> str:
        self.step("finalizer")
        return f"{outcome.content}!"

    def stages(self) -> tuple[str, ...]:
        """What was passed, the record included."""
        return (*self.passed, *("recorded" for each in self.track.log.events if each.startswith("result")))


async def test_a_call_passes_all_stages_in_their_order() -> None:
    walk = Walk()
    assert await walk.track.value() == "done"
    assert walk.stages() == FIRST
    assert walk.track.outcome == ToolOk("done", content='"done"!')
    assert walk.track.log.events == ["call 1", "asked 1", "decided 1 allowed-once", "result 1"]


@pytest.mark.parametrize("stage", STAGES)
async def test_a_stage_that_raises(stage: str) -> None:
    walk = Walk(stage, "raises")
    result = await walk.track.execute()
    assert walk.stages() == STAGES[stage].passed
    if stage == "result":  # an observer changes nothing
        assert result == ToolSuccess(id="1", name="t", value="done")
        return
    assert isinstance(result, ToolFailure)
    assert f"broken at {stage}" in result.error
    assert walk.track.outcome.code == STAGES[stage].code
    assert walk.track.outcome.content == f"Error: {result.error}" + ("" if stage == "finalizer" else "!")


@pytest.mark.parametrize("stage", [stage for stage, told in STAGES.items() if told.aborted is not None])
async def test_a_stage_that_is_cancelled(stage: str, autojump_clock: MockClock) -> None:
    """Nothing is waited for any more, and yet there is one result, and it is recorded."""
    walk = Walk(stage, "is cancelled")
    with trio.move_on_after(1) as scope:
        await walk.track.execute()
    assert scope.cancelled_caught, "cancellation passed"
    assert walk.stages() == STAGES[stage].passed_when_cancelled
    assert walk.track.outcome.code == STAGES[stage].aborted
    assert walk.track.log.events.count("result 1") == 1


async def test_a_recorder_that_raises_before_a_call_lets_nothing_of_it_happen() -> None:
    walk = Walk()
    walk.track.log.full = "call"
    with pytest.raises(OSError, match="full"):
        await walk.track.execute()
    assert walk.stages() == ()


async def test_a_recorder_that_raises_after_a_call_is_heard_of_once_observers_have_been_told() -> None:
    walk = Walk()
    walk.track.log.full = "result"
    with pytest.raises(OSError, match="full"):
        await walk.track.execute()
    assert len(walk.track.results) == 1


async def test_a_recorder_that_cannot_note_a_question_asks_nobody() -> None:
    walk = Walk()
    walk.track.log.full = "asked"
    assert await walk.track.error() == "the disk is full"
    assert walk.stages() == ("pre", *END)


@pytest.mark.parametrize("raises", [False, True])
def test_the_cards_are_pure_and_general_where_a_tool_has_none(raises: bool) -> None:
    def of_call(arguments: Any) -> Card:
        if raises:
            raise LookupError
        return Card("Sends a mail", f"to {arguments['to']}")

    def of_result(arguments: Any, outcome: Outcome) -> Card:
        if raises:
            raise LookupError
        return Card("Sent a mail", outcome.content or "")

    handling = Handling(present_call=of_call, present_result=of_result)
    sent = Invocation(call_id="1", name="send", arguments={"to": "ann"})
    general = (Card("send", '{"to":"ann"}'), Card("send", "Error: no such box"))
    own = (Card("Sends a mail", "to ann"), Card("Sent a mail", "Error: no such box"))
    failed = ToolFail("no such box", content="Error: no such box")
    shown = (call_card(handling, sent), result_card(handling, sent, failed))
    assert shown == (general if raises else own)
    plain = (call_card(Handling(), sent), result_card(Handling(), sent, failed))
    assert plain == general


def test_what_observers_get_names_call_and_outcome() -> None:
    settled = Settled(Invocation(call_id="1", name="t", arguments={}), ToolOk(1))
    assert settled != Settled(settled.call, settled.outcome), "it is its own identity"
