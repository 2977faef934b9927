"""A session's log as it is kept: its header, and events in a numbered row."""

from __future__ import annotations

from typing import Any, Final, Literal, final

import msgspec
from msgspec import Struct

from greenroom.protocol.errors import SessionError
from greenroom.protocol.sessions.events import DATA

__all__ = ["VERSION", "Replace", "SessionEvent", "SessionHeader", "read_data"]

VERSION: Final = 1
"""Of the format. A log of another version is not read."""


@final
class SessionHeader(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What is fixed of a session when it is made."""

    version: int = msgspec.field(default_factory=lambda: VERSION)  # no constant: those are left out of the JSON
    id: str
    created_at: int
    """Milliseconds since 1970."""
    cwd: str | None = None
    """The folder that it works in."""
    parent_session: str | None = None
    """The session that it was forked off, or that delegated to it."""
    seed_length: int | None = None
    """How many events were taken over from that one."""
    origin: str | None = None
    """Who has begun it."""
    delegation_depth: int = 0
    """How many sessions that delegated are above it."""
    agent_preset: str | None = None


@final
class Replace(Struct, frozen=True, tag_field="op", tag="replace"):
    """An event stands in the history in place of those from number `start` to number `end`, which it cites."""

    start: int
    end: int


@final
class SessionEvent(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One event."""

    type: str
    seq: int
    """Its number: 0 for the first, and each next one is one more."""
    time: int
    """Milliseconds since 1970."""
    data: Any
    """The struct of its type (see `DATA`); of a type that is unknown and ignorable, the JSON as it stands."""
    source_event_seqs: tuple[int, ...] = ()
    """The events that it rests on."""
    surface_op: Literal["append"] | Replace | None = None
    """What it does to the history that a model is given. None: nothing."""
    ignorable: bool = False
    """Who does not know the type may pass it over."""


def read_data(kind: str, value: object, *, ignorable: bool) -> Any:
    """The struct that frozen JSON spells for an event of this type, or the JSON itself for one that is ignorable.

    Raises SessionError UNSUPPORTED for an unknown type, INVALID for data that is none of its type.
    """
    known = DATA.get(kind)
    if known is None:
        if ignorable:
            return value
        raise SessionError(
            "UNSUPPORTED",
            f"No event of a session has the type {kind!r}; there are {', '.join(DATA)}. One of your own is marked as "
            "ignorable; if it stands in a stored log, a newer greenroom wrote it: use that one.",
            {"type": kind, "known": list(DATA)},
        )
    try:
        return msgspec.convert(value, known)
    except msgspec.ValidationError as error:
        raise SessionError("INVALID", f"This is no {kind}: {error}.", {"type": kind, "reason": str(error)}) from None
