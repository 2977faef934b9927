"""The surface: the events that a model's history is made of, and that history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

from greenroom.protocol.agents.messages import ChatMessage
from greenroom.protocol.errors import SessionError
from greenroom.protocol.sessions.events import SURFACE_TYPES, AssistantMessage, ToolCalled, ToolResulted, UserMessage
from greenroom.protocol.sessions.record import Replace, SessionEvent
from greenroom.protocol.tools import ToolCall

__all__ = ["Surface", "batch_of", "history", "message_id"]


@final
class Surface:
    """The numbers of the events that a history is made of, in order: each stands at its end, or in place of others."""

    __slots__ = ("nodes",)

    def __init__(self) -> None:
        self.nodes: list[int] = []

    def between(self, start: int, end: int) -> tuple[int, ...]:
        """The nodes from `start` to `end`, both of which have to be there. Raises SessionError ORDER."""
        try:
            first, last = self.nodes.index(start), self.nodes.index(end)
        except ValueError:
            first, last = 1, 0
        if first > last:
            raise SessionError(
                "ORDER",
                f"Nothing of the history stands from event {start} to event {end}: name two events that are in it, the "
                "earlier one first.",
                {"start": start, "end": end},
            )
        return tuple(self.nodes[first : last + 1])

    def check(self, event: SessionEvent) -> None:
        """Raise SessionError ORDER if the event cannot do to the history what it says."""
        op = event.surface_op
        if op is None:
            return
        if event.type not in SURFACE_TYPES:
            raise SessionError(
                "ORDER", f"An event of the type {event.type} is no part of the history.", {"type": event.type}
            )
        if isinstance(op, Replace) and event.source_event_seqs != self.between(op.start, op.end):
            raise SessionError(
                "ORDER",
                f"What stands in place of the events {op.start} to {op.end} has to cite all of them that are in the "
                "history.",
                {"start": op.start, "end": op.end},
            )

    def take(self, event: SessionEvent) -> None:
        """Do to the history what a checked event says."""
        op = event.surface_op
        if op is None:
            return
        if isinstance(op, Replace):
            first = self.nodes.index(op.start)
            self.nodes[first : first + len(event.source_event_seqs)] = [event.seq]
        else:
            self.nodes.append(event.seq)


def message_id(session: str, seq: int) -> str:
    """The id of the message that an event is in a history."""
    return f"{session}/{seq}"


def batch_of(result: SessionEvent, event: Callable[[int], SessionEvent]) -> int | None:
    """The number of the message whose call this `tool/result` answers. None: it answers a tool's own call."""
    for seq in result.source_event_seqs:
        cited = event(seq)
        if isinstance(cited.data, AssistantMessage):
            return cited.seq
        if isinstance(cited.data, ToolCalled) and cited.data.position is not None:
            return cited.source_event_seqs[0]
    return None


def history(session: str, events: Sequence[SessionEvent], nodes: Sequence[int]) -> list[ChatMessage]:
    """What a model is given: the messages of these nodes, the results of each answer behind it, in the order of its
    calls."""
    on_surface = set(nodes)
    answers: dict[int, list[SessionEvent]] = {}
    apart: set[int] = set()
    for seq in nodes:
        if events[seq].type == "tool/result":
            batch = batch_of(events[seq], events.__getitem__)
            if batch in on_surface:
                assert batch is not None, "None is no node"
                answers.setdefault(batch, []).append(events[seq])
                apart.add(seq)
    messages: list[ChatMessage] = []
    for seq in nodes:
        if seq not in apart:
            messages.append(_message(session, events[seq]))
            results = sorted(answers.get(seq, ()), key=lambda result: result.data.position)
            messages += [_message(session, result) for result in results]
    return messages


def _message(session: str, event: SessionEvent) -> ChatMessage:
    id, data = message_id(session, event.seq), event.data
    match data:
        case UserMessage():
            return ChatMessage(id, "user", data.content, (), data.images)
        case AssistantMessage():
            calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in data.calls)
            return ChatMessage(id, "assistant", data.content, calls)
        case ToolResulted():
            return ChatMessage(id, "tool", data.content)
        case _:
            raise TypeError(f"an event of the type {event.type} is no message")
