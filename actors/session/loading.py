"""A stored log as it is read: each event checked, and what is added if its process ended in a turn."""

from __future__ import annotations

import msgspec

from greenroom.actors.session.persistence import Stored
from greenroom.protocol.errors import SessionError
from greenroom.protocol.schemas import NotJson
from greenroom.protocol.sessions import Order, SessionEvent, read_data, repair
from greenroom.protocol.sessions.events import EventData
from greenroom.runtime.pipeline.snapshot import snapshot

__all__ = ["loaded", "restored"]


def restored(stored: SessionEvent) -> SessionEvent:
    """An event that was read from somewhere, with its data frozen and read. Raises SessionError INVALID,
    UNSUPPORTED."""
    if isinstance(stored.data, EventData):
        return stored  # it was kept as it was
    data = snapshot(stored.data)
    if isinstance(data, NotJson):
        raise SessionError("INVALID", f"This is no {stored.type}: {data}.", {"type": stored.type, "reason": str(data)})
    read = read_data(stored.type, data, ignorable=stored.ignorable)
    return msgspec.structs.replace(stored, data=read)


def loaded(stored: Stored) -> tuple[list[SessionEvent], list[SessionEvent]]:
    """The events of a stored log, and what repairs it. Raises SessionError UNSUPPORTED, CORRUPT."""
    order = Order(stored.header)
    events: list[SessionEvent] = []
    for event in stored.events:
        try:
            read = restored(event)
            order.check(read)
        except SessionError as error:
            if error.code == "UNSUPPORTED":
                raise
            raise SessionError(
                "CORRUPT",
                f"The log of the session {stored.header.id} is damaged at event {event.seq}: {error.message} Put a "
                "copy in its place, or open a session of another id.",
                {"session": stored.header.id, "seq": event.seq},
            ) from None
        order.take(read)
        events.append(read)
    seed = stored.header.seed_length
    if seed is not None and not 0 <= seed < len(events):
        raise SessionError(
            "CORRUPT",
            f"The log of the session {stored.header.id} is damaged: it was forked off with {seed} events, and has "
            f"{len(events)}. Put a copy in its place, or open a session of another id.",
            {"session": stored.header.id, "seed": seed},
        )
    return events, repair(order, events)
