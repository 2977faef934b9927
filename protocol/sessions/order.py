"""In which order events may stand: turns, in them steps, in these one answer, its calls and their results."""

from __future__ import annotations

from typing import NoReturn, final

from msgspec import Struct

from greenroom.protocol.errors import SessionError
from greenroom.protocol.sessions.events import (
    ApprovalAsked,
    ApprovalDecided,
    AssistantMessage,
    CallBlock,
    ToolCalled,
    ToolResulted,
)
from greenroom.protocol.sessions.record import Replace, SessionEvent, SessionHeader
from greenroom.protocol.sessions.surface import Surface

__all__ = ["Batch", "OpenCall", "Order"]


@final
class OpenCall(Struct, eq=False):
    """A call that has begun, and is not over."""

    seq: int
    data: ToolCalled
    asking: str | None = None
    """The id of the question about it that nobody has decided."""
    refused: bool = False
    """It was asked about, and not allowed."""


@final
class Batch(Struct, eq=False):
    """The calls of the answer of the open step."""

    seq: int
    """Of the answer."""
    calls: tuple[CallBlock, ...]
    begun: dict[int, int]
    """By position: the number of its `tool/call`."""
    over: set[int]
    """The positions that have a result."""

    @property
    def owed(self) -> list[int]:
        """The positions that have none."""
        return [position for position in range(len(self.calls)) if position not in self.over]


@final
class Order:
    """What is open in a log, and so what may come next.

    - A turn begins where none is open, and ends where no step of it is open. A step begins in a turn where none is
      open, has one answer of the model (beside what was cut off), and ends when each call of it has a result.
    - A call cites the answer that asks for it, or the call in whose tool it was made, and begins once. A result cites
      its call, or the answer if its call never began. Each call has one result.
    - An approval is asked in a turn, and decided once.
    - What was taken over from another session ends with `session/end-seed`, where the header says so.
    - What stands in the history is appended to it, or replaces events that are in it; see `Surface`.
    """

    __slots__ = ("_header", "asked", "batch", "calls", "next", "step", "surface", "turn")

    def __init__(self, header: SessionHeader) -> None:
        self._header = header
        self.next = 0
        """The number of the next event."""
        self.turn: int | None = None
        """The number of the event with which the open turn began."""
        self.step: int | None = None
        self.batch: Batch | None = None
        self.calls: dict[int, OpenCall] = {}
        """By the number of their `tool/call`."""
        self.asked: dict[str, OpenCall | None] = {}
        """The questions that are open, by id, with the call that each is about."""
        self.surface = Surface()

    def check(self, event: SessionEvent) -> None:
        """Raise SessionError ORDER if the event cannot come next."""
        seed = self._header.seed_length
        if event.seq != self.next:
            _refuse(event, f"it has the number {event.seq}, and the next one is {self.next}")
        cited = event.source_event_seqs
        if any(type(seq) is not int or not 0 <= seq < self.next for seq in cited):
            _refuse(event, f"it rests on an event that is not there: {cited}")
        ends = event.type == "session/end-seed"
        if ends != (seed == self.next) and (not ends or seed is None or seed < self.next):  # one may be taken over
            _refuse(event, "the events that were taken over end where the header says, and nowhere else")
        match event.type:
            case "turn/start":
                if self.turn is not None:
                    _refuse(event, "a turn is open")
            case "turn/end":
                if self.turn is None or self.step is not None:
                    _refuse(event, "no turn is open" if self.turn is None else "a step of the turn is open")
            case "step/start":
                if self.turn is None or self.step is not None:
                    _refuse(event, "no turn is open" if self.turn is None else "a step is open already")
            case "step/end":
                if self.step is None or self.calls or (self.batch is not None and self.batch.owed):
                    _refuse(event, "no step is open" if self.step is None else "a call of the step has no result")
            case "assistant/message":
                self._check_answer(event, event.data)
            case "tool/call":
                self._check_call(event, event.data)
            case "tool/result":
                self._check_result(event, event.data)
            case "approval/asked":
                self._check_asked(event, event.data)
            case "approval/decided":
                if event.data.id not in self.asked:
                    _refuse(event, f"no question {event.data.id} is open")
            case _:
                pass
        if event.surface_op is not None:
            self.surface.check(event)

    def take(self, event: SessionEvent) -> None:
        """Let a checked event be the last one."""
        self.next += 1
        match event.data:
            case AssistantMessage() as data if not data.interrupted and not isinstance(event.surface_op, Replace):
                self.batch = Batch(event.seq, data.calls, {}, set())
            case ToolCalled() as data:
                self.calls[event.seq] = OpenCall(event.seq, data)
                if data.position is not None and self.batch is not None:
                    self.batch.begun[data.position] = event.seq
            case ToolResulted() as data:
                self.calls.pop(event.source_event_seqs[0], None)
                if data.position is not None and self.batch is not None:
                    self.batch.over.add(data.position)
            case ApprovalAsked() as data:
                call = next((self.calls[seq] for seq in event.source_event_seqs), None)
                self.asked[data.id] = call
                if call is not None:
                    call.asking = data.id
            case ApprovalDecided() as data:
                call = self.asked.pop(data.id)
                if call is not None:
                    call.asking = None
                    call.refused = data.decision != "allowed-once"
            case _:
                self._turn(event)
        if event.surface_op is not None:
            self.surface.take(event)

    def _turn(self, event: SessionEvent) -> None:
        match event.type:
            case "turn/start":
                self.turn = event.seq
            case "turn/end":
                self.turn = None
            case "step/start":
                self.step = event.seq
            case "step/end":
                self.step = self.batch = None
            case _:
                pass

    # ---------------------------------------------------------------- the rules of one type each

    def _check_answer(self, event: SessionEvent, data: AssistantMessage) -> None:
        if isinstance(event.surface_op, Replace):
            if data.calls:
                _refuse(event, "what stands in place of older messages asks for no calls")
        elif self.step is None:
            _refuse(event, "no step is open")
        elif self.batch is not None:
            _refuse(event, "the step has its answer")
        elif data.interrupted and data.calls:
            _refuse(event, "what was cut off asks for no calls")

    def _check_call(self, event: SessionEvent, data: ToolCalled) -> None:
        batch = self.batch
        (cited,) = event.source_event_seqs if len(event.source_event_seqs) == 1 else (-1,)
        if data.position is None:
            if cited not in self.calls:
                _refuse(event, "it cites no call that is open")
            return
        if batch is None or cited != batch.seq:
            _refuse(event, "it does not cite the answer of the open step")
        if data.position in batch.begun or data.position in batch.over:
            _refuse(event, f"the call at position {data.position} has begun already")
        _check_position(event, batch, data)

    def _check_result(self, event: SessionEvent, data: ToolResulted) -> None:
        (cited,) = event.source_event_seqs if len(event.source_event_seqs) == 1 else (-1,)
        if (call := self.calls.get(cited)) is not None:
            begun = call.data
            if (begun.call_id, begun.name, begun.position) != (data.call_id, data.name, data.position):
                _refuse(event, "it is no result of the call that it cites")
        elif self.batch is None or cited != self.batch.seq or data.position is None:
            _refuse(event, "it cites neither a call that is open nor the answer of the open step")
        elif data.position in self.batch.begun or data.position in self.batch.over:
            _refuse(event, f"the call at position {data.position} has begun, or is over")
        else:
            _check_position(event, self.batch, data)
        if (data.position is None) != (event.surface_op is None):
            _refuse(event, "results of a model's calls stand in the history, and those of a tool's do not")

    def _check_asked(self, event: SessionEvent, data: ApprovalAsked) -> None:
        if self.turn is None:
            _refuse(event, "no turn is open")
        if data.id in self.asked:
            _refuse(event, f"the question {data.id} is open already")
        if any(seq not in self.calls for seq in event.source_event_seqs):
            _refuse(event, "it cites no call that is open")


def _check_position(event: SessionEvent, batch: Batch, data: ToolCalled | ToolResulted) -> None:
    position = data.position
    if position is None or not 0 <= position < len(batch.calls):
        _refuse(event, f"the answer has no call at position {position}")
    asked = batch.calls[position]
    if (asked.id, asked.name) != (data.call_id, data.name):
        _refuse(event, f"the answer asks for another call at position {position}")


def _refuse(event: SessionEvent, reason: str) -> NoReturn:
    raise SessionError(
        "ORDER", f"No {event.type} can come here: {reason}. Nothing was appended.", {"type": event.type, "why": reason}
    )
