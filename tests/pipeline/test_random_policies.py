"""Whatever policies and tools do: each call begins once, ends once, and runs as often as it may."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, NamedTuple

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.tools import ToolResult
from greenroom.runtime.bus import Next
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.pipeline.approvals import Decision
from greenroom.runtime.pipeline.execution import conclude_turn, current_invocation, defer_context
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.pipeline.outcomes import ToolFail, ToolOk
from greenroom.runtime.pipeline.verdicts import Accept, Allow, Ask, Block, Deny
from greenroom.runtime.policies import CheckedRecorder, retry_policy, timeout_policy
from greenroom.runtime.tools import Tool
from tests.pipeline.track import Track, call

NOTHING: Final[Any] = None
ANSWERS: Final[dict[str, list[Any]]] = {
    "tools/pre-execute": [Allow(), Ask(), Deny("no"), Deny(NOTHING)],
    "approval/request": [Decision("allowed-once", "go"), Decision("rejected"), Decision(NOTHING)],
    "tools/execute": [ToolOk(1), ToolFail("no"), ToolOk(object()), ToolFail("no", contexts=NOTHING)],
    "tools/post-execute": [Accept(content="c"), Accept(value=2), Block("no"), Block("no", contexts=NOTHING), "odd"],
}
WORDS: Final = ("call ", "result ", "asked ", "decided ")
ACTS: Final = ("sleep", "raise", "try", "hurry", "both", "stop", "stray")


class Policy(NamedTuple):
    event: str
    acts: list[str]
    answers: bool
    answer: Any


class Case(NamedTuple):
    policies: list[Policy]
    tool: list[str]
    calls: int
    concurrent: bool
    retried: bool
    timed: bool
    stoppable: bool
    cancelled: float


policies = st.sampled_from(sorted(ANSWERS)).flatmap(
    lambda event: st.builds(
        Policy,
        st.just(event),
        st.lists(st.sampled_from(ACTS), max_size=2),
        st.booleans(),
        st.sampled_from(ANSWERS[event]),
    )
)
cases = st.builds(
    Case,
    st.lists(policies, max_size=5),
    st.lists(st.sampled_from(["sleep", "raise", "defer", "conclude", "nest", "careless", "odd"]), max_size=3),
    st.integers(1, 3),
    *[st.booleans()] * 4,
    st.sampled_from([0.5, 1.5, 1000.0]),
)


class Play:
    def __init__(self, case: Case) -> None:
        self.case = case
        self.track = track = Track()
        self.runs: Counter[object] = Counter()
        self.results: list[ToolResult] | None = None
        self.stop = Cancel()
        track.pipeline.recorder = self.recorder = CheckedRecorder(track.log)
        if case.timed:
            track.bus.on("tools/execute", timeout_policy(2))
        for policy in case.policies:
            track.bus.on(policy.event, self.listener(policy))
        if case.retried:
            track.bus.on("tools/execute", retry_policy(["t"], delay=0.1))
        track.tools.add(Tool("t", self.tool, handling=Handling(concurrent=case.concurrent)))

    def listener(self, policy: Policy) -> Any:
        async def listen(payload: object, next: Next[Any]) -> Any:
            for act in policy.acts:
                if act == "sleep":
                    await trio.sleep(1)
                elif act == "raise":
                    raise GreenroomError("ODD", "it is odd")
                elif act == "try":
                    await quietly(next)
                elif act == "hurry":
                    with trio.move_on_after(0.5):
                        return await next()
                elif act == "both":
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(quietly, next)
                        nursery.start_soon(quietly, next)
                elif act == "stop":
                    self.stop.set()
                else:
                    self.outside.start_soon(quietly, next)
            return policy.answer if policy.answers else await next()

        return listen

    async def tool(self) -> object:
        invocation = current_invocation()
        assert invocation is not None
        self.runs[invocation] += 1
        for act in self.case.tool:
            if act == "sleep":
                await trio.sleep(1)
            elif act == "raise":
                raise ConnectionError("no route")
            elif act == "defer":
                defer_context("by the way")
            elif act == "conclude":
                conclude_turn()
            elif act == "nest" and invocation.parent is None:
                await self.track.tools.execute([call(id=f"{invocation.call_id} within")])
            elif act == "careless":
                try:
                    await trio.sleep(3)
                finally:
                    raise LookupError("there is nothing to close")
            elif act == "odd":
                return {1: float("nan")}
        return "done"

    async def run(self) -> None:
        calls = [call(id=str(number)) for number in range(self.case.calls)]
        async with trio.open_nursery() as self.outside:
            with trio.move_on_after(self.case.cancelled):
                self.results = await self.track.tools.execute(calls, stop=self.stop if self.case.stoppable else None)
            self.outside.cancel_scope.cancel()


async def quietly(next: Next[Any]) -> None:
    try:
        await next()
    except Exception:
        return


@settings(max_examples=150)
@given(case=cases)
def test_what_holds_of_every_call(case: Case) -> None:
    play = Play(case)
    trio.run(play.run, clock=MockClock(autojump_threshold=0))
    log = play.track.log
    if play.results is not None:
        assert [result.id for result in play.results] == [str(number) for number in range(case.calls)]

    # Each has one beginning and one end, in the record and for observers; each question has one decision.
    ids = {word: [event.split(" ", 1)[1] for event in log.events if event.startswith(word)] for word in WORDS}
    assert sorted(ids["call "]) == sorted(ids["result "])
    assert sorted(ids["asked "]) == sorted(event.rsplit(" ", 1)[0] for event in ids["decided "])
    assert [settled.call for settled in play.track.results] == [settled.call for settled in log.settled]
    assert play.recorder.open == 0

    # What was asked about ran once at most, and nothing ran without a yes.
    for settled in log.settled:
        if settled.call.call_id in ids["asked "]:
            granted = f"{settled.call.call_id} allowed-once" in ids["decided "]
            assert play.runs[settled.call] <= granted

    # Whatever was said is text.
    for settled in log.settled:
        assert {type(text) for text in (settled.outcome.content, *settled.outcome.contexts)} == {str}
