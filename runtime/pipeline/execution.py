"""One call on its way through the stages, from the verdict to its one result.

::

    admit      2 recorded, 4 verdict (tools/pre-execute), 5 approval, 6 guards
    perform    7 around (tools/execute), 8 the tool
    conclude   9 review (tools/post-execute), 10 normalization, 11 finalizer, 12 tools/result, 13 recorded

A raise at 4 to 7 and at 9 goes to 10 and skips 9. A denial skips 7 and 8. Whatever happens, 10 to 13 are passed once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, final

import trio
from msgspec import UNSET, structs

from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.schemas import NotJson
from greenroom.runtime.context import current_actor
from greenroom.runtime.pipeline.handling import Handling, call_card
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.outcomes import (
    MalformedOutcome,
    Outcome,
    ToolFail,
    ToolOk,
    failure,
    legible,
    plain,
    plain_all,
)
from greenroom.runtime.pipeline.snapshot import snapshot, thaw
from greenroom.runtime.pipeline.verdicts import Accept, Allow, Ask, Block, Deny, Review, Verdict

if TYPE_CHECKING:
    from greenroom.runtime.actor import Actor
    from greenroom.runtime.pipeline.pipeline import Pipeline
    from greenroom.runtime.pipeline.recorder import Recorder

__all__ = ["Execution", "conclude_turn", "current_invocation", "defer_context"]

Body = Callable[[Any], Awaitable[Any]]
"""Runs the tool with arguments of its own."""

ABORTED_BEFORE = ToolFail("The call was stopped before it ran.", "ABORTED_BEFORE_DISPATCH")
ABORTED = ToolFail("The call was stopped while it ran: what it had done by then may stand.", "ABORTED")
SPENT = ToolFail(
    "The call was not run again: the approval was for one run. Make the call anew to ask again.", "GRANT_SPENT"
)

_RUNNING: ContextVar[Execution | None] = ContextVar("greenroom_tool_execution", default=None)


@final
class Execution:
    """The three parts are called in this order, each once, or `abandon` in place of what is left."""

    __slots__ = (
        "_actor",
        "_body",
        "_called",
        "_contexts",
        "_grant",
        "_handling",
        "_made",
        "_outcome",
        "_parent",
        "_pipeline",
        "_recorder",
        "_reviewed",
        "call",
        "concluding",
        "state",
    )

    def __init__(self, pipeline: Pipeline, call: Invocation, handling: Handling, body: Body, flaw: str | None) -> None:
        self.call = call
        self.state: Literal["new", "begun", "running", "over"] = "new"
        """`running`: the tool was entered."""
        self.concluding = False
        """The tool has said that the turn ends with this batch."""
        self._pipeline = pipeline
        self._handling = handling
        self._body = body
        self._actor: Actor | None = current_actor()
        self._parent = running()
        self._recorder: Recorder | None = None
        """Whoever takes it down, from its beginning to its end."""
        self._called: Any = None
        self._grant: Literal["none", "given", "spent"] = "none"
        self._contexts: list[str] = []
        self._made: list[Outcome] = []
        """What the tool itself came to; what else comes out of stage 7 is checked first."""
        self._outcome: Outcome | None = None if flaw is None else ToolFail(flaw, "INVALID_ARGS")
        self._reviewed = flaw is not None
        """Stage 9 is skipped, or over."""

    @property
    def overlapping(self) -> bool:
        """Whether it may run beside its neighbours in a batch."""
        return self._outcome is None and self._handling.may_overlap(self.call.arguments)

    @property
    def outcome(self) -> Outcome:
        """What it came to. It is there once it is over."""
        assert self._outcome is not None, "it is over"
        return self._outcome

    async def run(self) -> Outcome:
        """All stages; what the call came to. Raises what `admit` and `conclude` raise."""
        try:
            await self.admit()
            await self.perform()
            return await self.conclude()
        finally:
            self.abandon()

    # ---------------------------------------------------------------- 2 to 6

    async def admit(self) -> None:
        """Come to know whether it may run. Raises only what the recorder raises, and then nothing has happened."""
        recorder = self._pipeline.recorder
        if recorder is not None:
            self._called = recorder.called(self.call)
            self._recorder = recorder
        self.state = "begun"
        if self._outcome is not None:
            return
        if self.call.stopped:
            self._skip_to_the_end(ABORTED_BEFORE)
            return
        try:
            self._outcome = await self._denial()
        except Exception as error:
            self._skip_to_the_end(failure(error))

    async def _denial(self) -> Outcome | None:
        verdict: Verdict = await self._pipeline.decide(self.call, _allow)
        if isinstance(verdict, Ask):
            decision = await self._pipeline.approvals.decide(
                self.call, verdict.reason, lambda: call_card(self._handling, self.call), self._recorder
            )
            if decision.kind == "cancelled" and self.call.stopped:
                return ABORTED_BEFORE
            if decision.kind != "allowed-once":
                return ToolFail(decision.refusal(), "DENIED")
            self._grant = "given"
            if decision.text:
                self._contexts.append(f"Whoever allowed {self.call.name} said: {legible(decision.text)}")
        elif isinstance(verdict, Deny):
            return ToolFail(f"The call was not run: {verdict.reason}", "DENIED")
        elif not isinstance(verdict, Allow):
            raise MalformedOutcome("INVALID_VERDICT", f"a policy on {self.call.name} gave what is no verdict")
        reason = self._pipeline.guards.reason(self.call)
        return None if reason is None else ToolFail(f"The call was not run: {reason}", "DENIED")

    # ---------------------------------------------------------------- 7 and 8

    async def perform(self) -> None:
        """Run the tool, with what is wrapped around it, unless it may not run."""
        if self._outcome is not None:
            return
        if self.call.stopped:
            self._outcome = ABORTED_BEFORE
            return
        try:
            if self._recorder is not None:
                await self._recorder.saved(self.call)
            self._outcome = self._checked(await self._pipeline.around(self.call, self._run))
        except Exception as error:
            self._skip_to_the_end(failure(error))

    async def _run(self) -> Outcome:
        """Innermost: the tool, whose own errors are outcomes. Raises GreenroomError NEXT_MISUSE once stage 7 is over: a
        policy has let those beneath it run on in a task of their own."""
        if self._outcome is not None:
            event = self._pipeline.execute.name
            raise GreenroomError(
                "NEXT_MISUSE",
                f"next() of a listener to {event} was called after the outermost one had returned; await what is"
                " beneath before you return.",
                {"event": event},
            )
        if self.call.stopped:
            return self._remember(ABORTED_BEFORE if self.state == "begun" else ABORTED)
        if self._grant == "spent":
            return self._remember(SPENT)
        if self._grant == "given":
            self._grant = "spent"
        self.state = "running"
        self.concluding = False  # what an earlier attempt has said went with it
        token = _RUNNING.set(self)
        try:
            arguments = thaw(self.call.arguments)  # its own, so that it cannot change what was approved
            value = await (self._body(arguments) if self.call.stop is None else self._run_until_stopped(arguments))
            outcome = value if value is ABORTED else self._valid(ToolOk(value, concludes_turn=self.concluding))
            return self._remember(outcome)
        except Exception as error:
            return self._remember(failure(error))
        finally:
            _RUNNING.reset(token)

    async def _run_until_stopped(self, arguments: Any) -> Any:
        with trio.CancelScope() as scope:
            close = self.call.on_stop(scope.cancel)
            try:
                return await self._body(arguments)
            finally:
                close()
        return ABORTED

    def _remember(self, outcome: Outcome) -> Outcome:
        self._made.append(outcome)
        return outcome

    def _checked(self, outcome: Outcome) -> Outcome:
        """What came out of stage 7: the tool's own outcome, or one that is no worse."""
        if any(outcome is made for made in self._made):
            return outcome
        contexts = plain_all(outcome.contexts) if isinstance(outcome, (ToolOk, ToolFail)) else None
        if contexts is None:
            raise MalformedOutcome("INVALID_OUTCOME", f"a policy around {self.call.name} gave what is no outcome")
        outcome = structs.replace(outcome, contexts=contexts)
        return self._valid(outcome) if isinstance(outcome, ToolOk) else outcome

    def _valid(self, outcome: ToolOk) -> Outcome:
        """With the value as a snapshot of the type that the tool returns, and its text. Raises `MalformedOutcome`."""
        value = snapshot(outcome.value)
        if isinstance(value, NotJson):
            raise MalformedOutcome("INVALID_TOOL_OUTPUT", f"the tool returned what it should not: {value}")
        rendered = self._handling.rendered(self.call.arguments, value)
        return structs.replace(outcome, value=value, content=rendered if outcome.content is None else outcome.content)

    # ---------------------------------------------------------------- 9 to 14

    async def conclude(self) -> Outcome:
        """Come to its one result. Raises only what the recorder raises, and an `InvariantError` of an observer."""
        if not self._reviewed:
            try:
                review = await self._pipeline.review(Settled(self.call, self.outcome), _accept)
                self._outcome = self._after(review)
            except Exception as error:
                self._skip_to_the_end(failure(error))
        return self._end()

    def _after(self, review: Review) -> Outcome:
        outcome = self.outcome
        contexts = plain_all(review.contexts) if isinstance(review, (Accept, Block)) else None
        if contexts is None:
            raise MalformedOutcome("INVALID_REVIEW", f"a policy on {self.call.name} gave what is no review")
        if isinstance(review, Block):
            self._contexts.clear()
            return ToolFail(review.feedback, "BLOCKED", contexts=contexts)
        assert isinstance(review, Accept), "there is no third one"
        if review.value is not UNSET:
            if review.content is not None or not isinstance(outcome, ToolOk):
                what = "both a value and a text" if review.content is not None else "a value for a call that failed"
                raise MalformedOutcome("INVALID_REVIEW", f"a policy on {self.call.name} gave {what}")
            outcome = self._valid(structs.replace(outcome, value=review.value, content=None))
        elif review.content is not None:
            outcome = structs.replace(outcome, content=review.content)
        return structs.replace(outcome, contexts=(*outcome.contexts, *contexts))

    def _skip_to_the_end(self, outcome: Outcome) -> None:
        self._outcome, self._reviewed = outcome, True

    def abandon(self) -> None:
        """The task was cancelled: no policy is waited for any more, and what must be told is told at once.

        Does nothing for a call that has not begun, or is over.
        """
        if self.state in ("begun", "running"):
            if self._outcome is None or isinstance(self._outcome, ToolOk):
                self._outcome = ABORTED if self.state == "running" else ABORTED_BEFORE
            self._end()

    def _end(self) -> Outcome:
        """Without a checkpoint, so that nothing tears it."""
        outcome = self._outcome = self._finalized(self._normal(self.outcome))
        self.state = "over"
        settled = Settled(self.call, outcome)
        try:
            self._pipeline.announce(settled)
        finally:
            if self._recorder is not None:
                self._recorder.ended(settled, self._called)
        if self._parent is not None:
            self._parent.defer(outcome.contexts)
        return outcome

    def _normal(self, outcome: Outcome) -> Outcome:
        """With all contexts and a text, none of which is anything but plain text."""
        if self.call.stopped and isinstance(outcome, ToolOk):
            outcome = structs.replace(ABORTED, contexts=outcome.contexts)
        contexts = plain_all((*self._contexts, *outcome.contexts))
        message: str | None = ""
        code: str | None = ""
        if isinstance(outcome, ToolFail):
            message, code = plain(outcome.message), plain(outcome.code)
        content = plain(f"Error: {message}" if outcome.content is None else outcome.content)
        if contexts is None or message is None or code is None or content is None:
            return _unreadable("a policy or the tool", ())
        outcome = structs.replace(outcome, content=content, contexts=contexts)
        return structs.replace(outcome, message=message, code=code) if isinstance(outcome, ToolFail) else outcome

    def _finalized(self, outcome: Outcome) -> Outcome:
        if self._handling.finalize is None:
            return outcome
        try:
            content = plain(self._handling.finalize(self.call, outcome))
        except Exception as error:
            failed = failure(error)
            return structs.replace(failed, content=f"Error: {failed.message}", contexts=outcome.contexts)
        if content is None:
            return _unreadable("the tool's finalizer", outcome.contexts)
        return structs.replace(outcome, content=content)

    # ---------------------------------------------------------------- what the tool says meanwhile

    def defer(self, contexts: tuple[str, ...]) -> None:
        """Let these texts go with the result."""
        if self.state == "running":
            self._contexts.extend(contexts)

    @property
    def here(self) -> bool:
        """Whether the running code is the tool's own: not that of an actor which the tool has spawned."""
        return self.state == "running" and current_actor() is self._actor


def running() -> Execution | None:
    """The call in whose tool the code runs."""
    execution = _RUNNING.get()
    return execution if execution is not None and execution.here else None


def current_invocation() -> Invocation | None:
    """The call in whose tool the code runs. None: in no tool, or no policy is registered."""
    execution = running()
    return None if execution is None else execution.call


def defer_context(text: str) -> None:
    """Within a tool: give the model this text before its next step, after the results of the batch. It is given also if
    the tool fails afterwards. Raises GreenroomError NO_CALL where no call runs under policy."""
    _here().defer((text,))


def conclude_turn() -> None:
    """Within a tool: if it succeeds, the model is not asked again after this batch. Raises GreenroomError NO_CALL where
    no call runs under policy."""
    _here().concluding = True


def _here() -> Execution:
    execution = running()
    if execution is None:
        raise GreenroomError("NO_CALL", "No tool call runs under policy here: call this within a tool.")
    return execution


async def _allow() -> Verdict:
    return Allow()


async def _accept() -> Review:
    return Accept()


def _unreadable(who: str, contexts: tuple[str, ...]) -> ToolFail:
    message = f"what {who} said is no plain text"
    return ToolFail(message, "INVALID_OUTCOME", content=f"Error: {message}", contexts=contexts)
