"""Every stage, and what becomes of a call where what is hooked in there returns, raises, or is cancelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import trio
from trio.testing import MockClock

from greenroom.protocol.tools import ToolSuccess
from greenroom.runtime.bus import Next
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.pipeline.approvals import Decision
from greenroom.runtime.pipeline.handling import Card, Handling, call_card, result_card
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.outcomes import Outcome, ToolFail, ToolOk
from greenroom.runtime.pipeline.verdicts import Accept, Ask
from tests.pipeline.track import Log, Track

END = ("finalizer", "result", "recorded")
BEFORE = ("called", "pre", "card", "approval", "guard", "around")
ALL = (*BEFORE, "body", "post", *END)
"""What a call passes that needs approval and gets it."""
DONE = "done"
"""In place of a code: the call has succeeded."""


class Ends(NamedTuple):
    """What a call has passed in the end, and what it came to."""

    passed: tuple[str, ...]
    code: str


class Stage(NamedTuple):
    """One line of the pipeline's table: what becomes of a call where what is hooked in there raises, where the task of
    the call is cancelled in it, and where the call is told to stop in it. None: nothing waits there, so that nothing
    can be cancelled."""

    number: int
    raises: Ends
    cancelled: Ends | None
    stopped: Ends


def up_to(stage: str, *then: str) -> tuple[str, ...]:
    """All stages as far as this one, and the end."""
    return (*ALL[: ALL.index(stage) + 1], *then, *END)


ABORTED_BEFORE = "ABORTED_BEFORE_DISPATCH"
STAGES = {
    "called": Stage(2, Ends(("called",), "raised"), None, Ends(("called", *END), ABORTED_BEFORE)),
    "card": Stage(3, Ends(ALL, DONE), None, Ends(up_to("approval", "post"), ABORTED_BEFORE)),
    "pre": Stage(
        4,
        Ends(up_to("pre"), "TOOL"),
        Ends(up_to("pre"), ABORTED_BEFORE),
        Ends(up_to("approval", "post"), ABORTED_BEFORE),
    ),
    "approval": Stage(
        5,
        Ends(up_to("approval", "post"), "DENIED"),
        Ends(up_to("approval"), ABORTED_BEFORE),
        Ends(up_to("approval", "post"), ABORTED_BEFORE),
    ),
    "guard": Stage(6, Ends(up_to("guard"), "TOOL"), None, Ends(up_to("guard", "post"), ABORTED_BEFORE)),
    "around": Stage(
        7,
        Ends(up_to("around"), "TOOL"),
        Ends(up_to("around"), ABORTED_BEFORE),
        Ends(up_to("around", "post"), ABORTED_BEFORE),
    ),
    "body": Stage(8, Ends(ALL, "TOOL"), Ends(up_to("body"), "ABORTED"), Ends(ALL, "ABORTED")),
    "post": Stage(9, Ends(ALL, "TOOL"), Ends(ALL, "ABORTED"), Ends(ALL, "ABORTED")),
    "normalization": Stage(10, Ends(ALL, "TOOL"), None, Ends(ALL, "ABORTED")),
    "finalizer": Stage(11, Ends(ALL, "TOOL"), None, Ends(ALL, DONE)),
    "result": Stage(12, Ends(ALL, DONE), None, Ends(ALL, DONE)),
    "recorded": Stage(13, Ends(ALL, "raised"), None, Ends(ALL, DONE)),
}
"""By name. The stages that are left are not the pipeline's: a model's message (1) begins calls, contexts (14) go into
its next step, and the card of a result (15) is made of a record."""


class Walk:
    """A call that passes every stage; at `at` it `raises`, or `is cancelled`, or `is stopped`."""

    def __init__(self, at: str | None = None, how: str = "") -> None:
        self.track = Track()
        self.passed: list[str] = []
        self.at = at
        self.how = how
        self.stop = Cancel()
        track, pipeline = self.track, self.track.pipeline
        pipeline.recorder = Recording(self)
        track.bus.on(pipeline.pre_execute, self.listener("pre", Ask("it is a test")), prepend=True)
        track.bus.on(pipeline.approvals.event, self.listener("approval", Decision("allowed-once")))
        track.bus.on(pipeline.execute, self.listener("around", None))
        track.bus.on(pipeline.post_execute, self.listener("post", None))
        track.bus.on(pipeline.result, lambda _: self.step("result"))
        pipeline.guard(lambda _: self.step("guard"))
        track.tool(self.body, finalize=self.finalize, present_call=self.present)

    def step(self, stage: str) -> None:
        self.passed.append(stage)
        if stage == self.at and self.how == "raises":
            raise LookupError(f"broken at {stage}")
        if stage == self.at and self.how == "is stopped":
            self.stop.set()

    async def wait(self, stage: str) -> None:
        self.step(stage)
        if stage == self.at and self.how == "is cancelled":
            await trio.sleep_forever()

    def listener(self, stage: str, answer: Any) -> Callable[[Any, Next[Any]], Any]:
        async def listener(_: Any, next: Next[Any]) -> Any:
            await self.wait(stage)
            if stage == "post" and self.at == "normalization":
                await next()
                return Accept(contexts=Odd(self))  # which stage 10 looks at
            return await next() if answer is None else answer

        return listener

    async def body(self) -> str:
        await self.wait("body")
        return "done"

    def present(self, arguments: Any) -> Card:
        self.step("card")
        return Card("t")

    def finalize(self, call: Invocation, outcome: Outcome) -> str:
        self.step("finalizer")
        return f"{outcome.content}!"

    async def ends(self, stop: Cancel | None = None) -> Ends:
        """Make the call, and tell what it has come to; `raised`: it has raised the recorder's error."""
        try:
            await self.track.execute(stop=stop)
        except LookupError:
            return Ends(tuple(self.passed), "raised")
        return self.told

    @property
    def told(self) -> Ends:
        """What its one record and its observers say."""
        (settled,) = self.track.log.settled
        assert self.track.outcome is settled.outcome
        outcome = settled.outcome
        return Ends(tuple(self.passed), outcome.code if isinstance(outcome, ToolFail) else DONE)


class Odd(tuple[str, ...]):
    """Contexts that go wrong, or stop the call, while stage 9 hands them to stage 10."""

    def __new__(cls, walk: Walk) -> Odd:
        made = super().__new__(cls, ())
        made.walk = walk
        return made

    walk: Walk

    def __iter__(self) -> Iterator[str]:
        if self.walk.how == "raises":
            raise LookupError("broken at normalization")
        if self.walk.how == "is stopped":
            self.walk.stop.set()
        return iter(())


class Recording(Log):
    """The record of a walk, which is two of its stages."""

    def __init__(self, walk: Walk) -> None:
        super().__init__()
        self.walk = walk
        walk.track.log = self

    def called(self, call: Invocation) -> int:
        self.walk.step("called")
        return super().called(call)

    def ended(self, settled: Settled, called: Any) -> None:
        self.walk.step("recorded")
        super().ended(settled, called)


async def test_a_call_passes_all_stages_in_their_order() -> None:
    walk = Walk()
    assert await walk.ends() == Ends(ALL, DONE)
    assert walk.track.outcome == ToolOk("done", content='"done"!')
    assert walk.track.log.events == ["call 1", "asked 1", "decided 1 allowed-once", "result 1"]
    assert sorted(each.number for each in STAGES.values()) == list(range(2, 14))


@pytest.mark.parametrize("stage", STAGES)
async def test_a_stage_that_raises(stage: str) -> None:
    walk = Walk(stage, "raises")
    assert await walk.ends() == STAGES[stage].raises
    if STAGES[stage].raises.code in ("TOOL", "DENIED"):
        assert f"broken at {stage}" in walk.track.outcome.message
        told = f"Error: {walk.track.outcome.message}" + ("" if stage == "finalizer" else "!")
        assert walk.track.outcome.content == told


@pytest.mark.parametrize("stage", [stage for stage, told in STAGES.items() if told.cancelled is not None])
async def test_a_stage_that_is_cancelled(stage: str, autojump_clock: MockClock) -> None:
    """Nothing is waited for any more, and yet there is one result, and it is recorded."""
    walk = Walk(stage, "is cancelled")
    with trio.move_on_after(1) as scope:
        await walk.track.execute()
    assert scope.cancelled_caught, "cancellation passed"
    assert walk.told == STAGES[stage].cancelled


@pytest.mark.parametrize("stage", STAGES)
async def test_a_stage_in_which_the_call_is_stopped(stage: str) -> None:
    """Policies finish, and what has succeeded before the stop came to be known stays a success."""
    walk = Walk(stage, "is stopped")
    assert await walk.ends(walk.stop) == STAGES[stage].stopped


async def test_a_call_that_is_stopped_before_it_begins_passes_no_policy() -> None:
    walk = Walk()
    walk.stop.set()
    assert await walk.ends(walk.stop) == Ends(("called", *END), ABORTED_BEFORE)


@pytest.mark.parametrize("stage", ["called", "recorded"])
async def test_a_stage_that_raises_leaves_the_track_open_for_the_next_call(stage: str) -> None:
    walk = Walk(stage, "raises")
    await walk.ends()
    walk.passed.clear()
    walk.how = ""
    assert isinstance(await walk.track.execute(), ToolSuccess)
    assert tuple(walk.passed) == ALL


async def test_a_recorder_that_raises_before_a_call_lets_nothing_of_it_happen() -> None:
    walk = Walk()
    walk.track.log.full = "call"
    with pytest.raises(OSError, match="full"):
        await walk.track.execute()
    assert walk.passed == ["called"]


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
    assert tuple(walk.passed) == ("called", "pre", "card", *END)


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
