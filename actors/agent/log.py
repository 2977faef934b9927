"""What a run writes into its agent's session: a turn, its steps, what is said, calls and their results."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import final

from trio.lowlevel import Task, current_task

from greenroom.actors.session import Session
from greenroom.protocol.agents import ChatMessage
from greenroom.protocol.errors import GreenroomError, InvariantError
from greenroom.protocol.sessions import (
    ApprovalAsked,
    ApprovalDecided,
    AssistantMessage,
    CallBlock,
    ErrorInfo,
    StepEnd,
    StepStart,
    ToolCalled,
    ToolResulted,
    TurnEnd,
    TurnEndReason,
    TurnStart,
    UserMessage,
    message_id,
    repair,
)
from greenroom.protocol.sessions.repair import UNKNOWN
from greenroom.runtime.pipeline.approvals import ApprovalMode, ApprovalRequest, Decision
from greenroom.runtime.pipeline.execution import ABORTED_BEFORE
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.outcomes import Outcome, ToolFail, error_text, legible

__all__ = ["TurnLog"]


@final
class TurnLog:
    """The log of one run, which is one turn. Without a session every method does nothing and gives None.

    Nothing here waits but `saved`, so that a cancelled run is logged to its end.
    """

    def __init__(self, session: Session | None) -> None:
        self._session = session
        self._began = False
        self._task: Task | None = None
        """The run's own, in which calls of its batches begin."""
        self._batch = -1
        """The number of the answer whose calls are carried out."""
        self._calls: Sequence[CallBlock] = ()
        self._due: deque[int] = deque()
        """The positions of calls that are given to the pipeline and have not begun."""
        self._open: dict[Invocation, int] = {}
        """Calls that have begun, with the numbers of their events."""
        self._asked: set[str] = set()
        self._results: dict[int, int] = {}
        """By position: the number of the result."""

    @property
    def session(self) -> Session | None:
        """Where it is written."""
        return self._session

    async def saved(self) -> None:
        """Wait until what was written outlives the process, if it is to. Raises why it does not."""
        if self._session is not None and self._session.durable:
            await self._session.flush()

    # ---------------------------------------------------------------- turns and steps

    def open(self) -> None:
        """The turn begins. Raises SessionError ORDER if another agent has one open in the session."""
        self._task = current_task()
        if self._session is not None:
            self._session.append("turn/start", TurnStart())
            self._began = True

    def close(self, reason: TurnEndReason, cause: str | None = None, error: Exception | None = None) -> None:
        """The turn is over, if it has begun."""
        session = self._session
        if session is not None and self._began:
            self._settle(session)
            session.append(
                "turn/end",
                TurnEnd(reason, _optional(cause), None if error is None else _info(error)),
            )

    @contextmanager
    def step(self) -> Generator[None]:
        """A step, for as long as the block lasts."""
        if self._session is None:
            yield
            return
        self._session.append("step/start", StepStart())
        try:
            yield
        finally:
            self._settle(self._session)

    def _settle(self, session: Session) -> None:
        """End what is open of a step: also calls that outlive it, which a tool has let go of."""
        self._open.clear()
        self._asked.clear()
        order = session.order
        if order.calls or order.asked or (order.batch is not None and order.batch.owed):
            for event in repair(order, session.events()):
                if event.type not in ("turn/end", "step/end"):
                    session.append(event.type, event.data, sources=event.source_event_seqs)
        if order.step is not None:
            session.append("step/end", StepEnd())

    # ---------------------------------------------------------------- what is said

    def told(self, text: str, source: str | None) -> ChatMessage | None:
        """Somebody else than the user tells the agent something."""
        if self._session is None:
            return None
        seq = self._session.append("user/message", UserMessage(text, source=source)).seq
        return ChatMessage(message_id(self._session.id, seq), "user", text)

    def cut_off(self, text: str) -> None:
        """An answer was stopped, or failed, when this much of it could be seen."""
        if self._session is not None and text and self._session.order.batch is None:
            self._session.append("assistant/message", AssistantMessage(legible(text), interrupted=True))

    # ---------------------------------------------------------------- calls

    def batch(self, due: Iterable[int]) -> None:
        """The answer that was logged last asks for calls; those at the positions `due` are given to the pipeline."""
        if self._session is not None:
            batch = self._session.order.batch
            assert batch is not None, "the answer was logged"
            self._batch, self._calls, self._results = batch.seq, batch.calls, {}
            self._due = deque(due)

    def refused(self, position: int, error: str) -> None:
        """A call that the pipeline is not given."""
        if self._session is not None:
            self._pair(self._session, position, ErrorInfo("DENIED", legible(error)))

    def result(self, position: int, outcome: Outcome | None) -> ChatMessage | None:
        """The message with which the call is answered; one that never began is answered now.

        Raises InvariantError if the pipeline has carried it out and told nobody of it.
        """
        session = self._session
        if session is None:
            return None
        if position not in self._results:
            if outcome is not None:
                raise InvariantError(
                    "INVARIANT",
                    f"A call of {self._calls[position].name} was not recorded: do not replace the recorder of the "
                    "runtime's pipeline, wrap it in one that passes on what it is told.",
                    {"call": self._calls[position].id},
                )
            if position in self._due:
                self._due.remove(position)
                self._pair(session, position, ErrorInfo(ABORTED_BEFORE.code, ABORTED_BEFORE.message))
            else:  # its result could not be logged
                assert session.order.batch is not None, "its step is open"
                self._end(session, session.order.batch.begun[position], f"Error: {UNKNOWN.message}", UNKNOWN)
        event = session.event(self._results[position])
        return ChatMessage(message_id(session.id, event.seq), "tool", event.data.content)

    def _pair(self, session: Session, position: int, error: ErrorInfo) -> None:
        self._end(session, self._begin(session, position), f"Error: {error.message}", error)

    def _begin(self, session: Session, position: int) -> int:
        call = self._calls[position]
        data = ToolCalled(call.id, call.name, call.arguments, position)
        return session.append("tool/call", data, sources=[self._batch]).seq

    def _end(self, session: Session, seq: int, content: str, error: ErrorInfo | None) -> None:
        begun: ToolCalled = session.event(seq).data
        result = ToolResulted(begun.call_id, begun.name, content, error, begun.position)
        event = session.append("tool/result", result, sources=[seq])
        if begun.position is not None:
            self._results[begun.position] = event.seq

    # ---------------------------------------------------------------- for the recorder

    def called(self, call: Invocation) -> int | None:
        """A call begins: one of the batch, or one that is made in the tool of a logged one. Its number."""
        session = self._session
        if session is None:
            return None
        if self._due and call.parent is None and current_task() is self._task:
            self._open[call] = self._begin(session, self._due.popleft())
        elif call.parent in self._open:
            data = ToolCalled(call.call_id, call.name, call.arguments)
            self._open[call] = session.append("tool/call", data, sources=[self._open[call.parent]]).seq
        return self._open.get(call)

    @property
    def approval_mode(self) -> ApprovalMode | None:
        """What the last `approval/policy` of the session says, if there is one."""
        events = () if self._session is None else self._session.events()
        return next((event.data.mode for event in reversed(events) if event.type == "approval/policy"), None)

    def asked(self, request: ApprovalRequest) -> None:
        """Somebody is asked about a logged call."""
        seq = self._open.get(request.call)
        if self._session is not None and seq is not None:
            data = ApprovalAsked(request.id, request.call.name, request.reason)
            self._session.append("approval/asked", data, sources=[seq])
            self._asked.add(request.id)

    def decided(self, request: ApprovalRequest, decision: Decision) -> None:
        """What was decided of it."""
        if self._session is not None and request.id in self._asked:
            self._asked.remove(request.id)
            data = ApprovalDecided(request.id, decision.kind, _optional(decision.text), decision.person)
            self._session.append("approval/decided", data)

    def ended(self, call: Invocation, outcome: Outcome) -> None:
        """A logged call is over."""
        seq = self._open.pop(call, None)
        if self._session is None or seq is None:
            return  # it has outlived its step
        error = ErrorInfo(outcome.code, outcome.message) if isinstance(outcome, ToolFail) else None
        self._end(self._session, seq, outcome.content or "", error)


def _info(error: Exception) -> ErrorInfo:
    code = error.code if isinstance(error, GreenroomError) else type(error).__name__
    return ErrorInfo(code, error_text(error))


def _optional(text: str | None) -> str | None:
    return None if text is None else legible(text)
