"""Repair of a log whose process ended in a turn: what is added to it so that nothing is open any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from greenroom.protocol.sessions.events import (
    ApprovalDecided,
    ErrorInfo,
    EventData,
    StepEnd,
    ToolResulted,
    TurnEnd,
)
from greenroom.protocol.sessions.order import OpenCall, Order
from greenroom.protocol.sessions.record import SessionEvent

__all__ = ["UNKNOWN", "repair"]

NOT_STARTED: Final = ErrorInfo(
    "TOOL_NOT_STARTED",
    "This call had not started when its turn was cut off: it did not run, and nobody refused it. It may be made again.",
)
UNKNOWN: Final = ErrorInfo(
    "TOOL_OUTCOME_UNKNOWN",
    "This call was under way when its turn was cut off: it may have taken effect, wholly or in part. Look what has "
    "become of it before it is made again.",
)


def repair(order: Order, events: Sequence[SessionEvent]) -> list[SessionEvent]:
    """What is to be appended to these events, of which `order` knows what is open; nothing, if no turn is.

    A question that nobody decided is cancelled. Each call without a result gets one: TOOL_NOT_STARTED if it had not
    begun, or was not yet allowed to; TOOL_OUTCOME_UNKNOWN if it may have run. Then the step and the turn end. All of
    it bears the time of the last event. The same events give the same repair, and a repaired log needs none.
    """
    if order.turn is None:
        return []
    added: list[SessionEvent] = []
    time = events[-1].time

    def add(kind: str, data: EventData, *sources: int, surface: Literal["append"] | None = None) -> None:
        seq = order.next + len(added)
        added.append(
            SessionEvent(type=kind, seq=seq, time=time, data=data, source_event_seqs=sources, surface_op=surface)
        )

    def close(call: OpenCall) -> None:
        data = call.data
        error = NOT_STARTED if call.asking is not None or call.refused else UNKNOWN
        result = ToolResulted(data.call_id, data.name, f"Error: {error.message}", error, data.position)
        add("tool/result", result, call.seq, surface=None if data.position is None else "append")

    for id, call in order.asked.items():
        cites = () if call is None else (_asking(events, id),)
        add("approval/decided", ApprovalDecided(id, "cancelled", "its turn was cut off"), *cites)
    for inner in reversed(order.calls.values()):
        if inner.data.position is None:
            close(inner)
    batch = order.batch
    for position in () if batch is None else batch.owed:
        assert batch is not None, "else it owes nothing"
        if position in batch.begun:
            close(order.calls[batch.begun[position]])
        else:
            asked = batch.calls[position]
            never = ToolResulted(asked.id, asked.name, f"Error: {NOT_STARTED.message}", NOT_STARTED, position)
            add("tool/result", never, batch.seq, surface="append")
    if order.step is not None:
        add("step/end", StepEnd())
    add("turn/end", TurnEnd("interrupted"))
    return added


def _asking(events: Sequence[SessionEvent], id: str) -> int:
    return next(event.seq for event in reversed(events) if event.type == "approval/asked" and event.data.id == id)
