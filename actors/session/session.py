"""The live session: one agent's log in memory, appended to without waiting."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, cast, final

from greenroom.protocol.agents import ChatMessage, ChildRequest, InboxMessage
from greenroom.protocol.errors import SessionError
from greenroom.protocol.schemas import NotJson
from greenroom.protocol.schemas.gates import encodable
from greenroom.protocol.sessions import (
    TODOS,
    TURNS,
    Order,
    Projection,
    ProjectionSnapshot,
    Replace,
    SessionEvent,
    SessionHeader,
    history,
    project,
    read_data,
)
from greenroom.protocol.sessions.events import SURFACE_TYPES, EventData
from greenroom.runtime.pipeline.snapshot import snapshot

__all__ = ["Session"]

Appended = Callable[["Session", SessionEvent], None]
"""Hears of each event that was appended, without waiting."""


@final
class Session:
    """The log of one agent: events in a row, numbered from 0.

    ::

        session = await runtime.sessions.open("planner")
        event = session.append("todo/write", {"todos": [{"content": "Read the plan", "status": "pending"}]})
        assert session.last == event.seq

    Made by `SessionManager.open`; one that is made directly is in memory alone. Appending waits for nothing and is
    whole or not at all; what is appended is written behind it, and `flush` waits until it is.
    """

    __slots__ = (
        "_appended",
        "_drain",
        "_events",
        "_history",
        "_notifying",
        "_order",
        "_wall_clock",
        "disposed",
        "durable",
        "header",
        "id",
    )

    def __init__(
        self,
        header: SessionHeader,
        events: Iterable[SessionEvent] = (),
        *,
        wall_clock: Callable[[], float] = time.time,
        appended: Appended | None = None,
        drain: Callable[[], Awaitable[None]] | None = None,
        durable: bool = False,
    ) -> None:
        self.header: Final = header
        self.id: Final = header.id
        self.durable: Final = durable
        """What was flushed outlives the process."""
        self.disposed = False
        """Nothing is appended any more."""
        self._events: list[SessionEvent] = []
        self._order = Order(header)
        self._wall_clock = wall_clock
        self._appended = appended
        self._drain = drain
        self._notifying = False
        self._history: tuple[int, list[ChatMessage]] = (0, [])
        for event in events:
            self._order.check(event)
            self._commit(event)

    def __repr__(self) -> str:
        return f"<Session {self.id}>"

    # ---------------------------------------------------------------- reading

    @property
    def count(self) -> int:
        """How many events there are."""
        return len(self._events)

    @property
    def last(self) -> int:
        """The number of the last event; -1 if there is none."""
        return len(self._events) - 1

    @property
    def order(self) -> Order:
        """What is open in it. To be read only."""
        return self._order

    def event(self, seq: int) -> SessionEvent:
        """The event of that number. Raises IndexError."""
        if seq < 0:
            raise IndexError(seq)
        return self._events[seq]

    def events(self, after: int = -1) -> tuple[SessionEvent, ...]:
        """The events that follow number `after`; all, if nothing is said."""
        return tuple(self._events[max(after, -1) + 1 :])

    def live_events(self) -> tuple[SessionEvent, ...]:
        """Those that were not taken over from the session that this one was forked off."""
        seed = self.header.seed_length
        return self.events(-1 if seed is None else seed)

    def history(self) -> list[ChatMessage]:
        """What a model is given: the messages on the surface of the log."""
        made, messages = self._history
        if made != len(self._events):
            messages = history(self.id, self._events, self._order.surface.nodes)
            self._history = (len(self._events), messages)
        return list(messages)

    def snapshot(self, projections: Iterable[Projection[Any]] = (TODOS, TURNS)) -> ProjectionSnapshot:
        """What the log comes to now."""
        return project(projections, self._events)

    # ---------------------------------------------------------------- appending

    def append(
        self,
        kind: str,
        data: object,
        *,
        sources: Iterable[int] = (),
        replace: tuple[int, int] | None = None,
        ignorable: bool = False,
    ) -> SessionEvent:
        """Append an event, and return it as it stands in the log.

        `data` is the struct of the type, or JSON that spells one; a copy of it is kept, so that what happens to the
        value later changes nothing. `sources` are the numbers of the events that it rests on. Messages are part of the
        history, at its end, or with `replace` in place of what stands from the first of the two events to the second
        (these are its sources then). A type of one's own has to be `ignorable`.

        There is no checkpoint, so that it cannot be torn. `session/event` is told of it then; what a listener raises
        changes nothing. Raises SessionError, and appends nothing: INVALID, UNSUPPORTED, ORDER, DISPOSED; REENTRANT
        while a notification of this session is given, in which a listener tells an actor that may append later.
        """
        if self._notifying:
            raise SessionError(
                "REENTRANT",
                f"The session {self.id} tells of an event just now and takes none meanwhile: let the listener tell an "
                "actor, which appends afterwards.",
                {"session": self.id},
            )
        if self.disposed:
            raise SessionError(
                "DISPOSED", f"The session {self.id} was disposed of; open it again.", {"session": self.id}
            )
        event = self._made(kind, data, tuple(sources), replace, ignorable)
        self._order.check(event)
        self._commit(event)
        if self._appended is not None:
            self._notifying = True
            try:
                self._appended(self, event)
            finally:
                self._notifying = False
        return event

    def _made(
        self, kind: str, data: object, sources: tuple[int, ...], replace: tuple[int, int] | None, ignorable: bool
    ) -> SessionEvent:
        if type(kind) is not str or not encodable(kind):
            raise SessionError("INVALID", f"The type of an event is a text, not {kind!r}.")
        frozen = snapshot(_plain(data) if isinstance(data, EventData) else data)
        if isinstance(frozen, NotJson):
            raise SessionError("INVALID", f"This is no {kind}: {frozen}.", {"type": kind, "reason": str(frozen)})
        read = read_data(kind, frozen, ignorable=ignorable)
        op: Any = None
        if replace is not None:
            op = Replace(*replace)
            sources = self._order.surface.between(*replace)
        elif kind in SURFACE_TYPES and not (kind == "tool/result" and read.position is None):
            op = "append"
        return SessionEvent(
            type=kind,
            seq=len(self._events),
            time=int(self._wall_clock() * 1000),
            data=read,
            source_event_seqs=sources,
            surface_op=op,
            ignorable=ignorable,
        )

    def _commit(self, event: SessionEvent) -> None:
        self._order.take(event)
        self._events.append(event)

    async def flush(self) -> None:
        """Wait until what was appended is written, and raise why it could not be. Without a deadline: a write ends.

        Cancelled: it is written all the same. One in memory alone is not written.
        """
        if self._drain is not None:
            await self._drain()


def _plain(data: EventData | InboxMessage | ChildRequest) -> object:
    """The JSON that a struct stands for; what it holds of anything else is left as it is, and refused then."""
    names = zip(data.__struct_encode_fields__, data.__struct_fields__, strict=True)
    return {encoded: _plain_member(getattr(data, name)) for encoded, name in names}


def _plain_member(value: object) -> object:
    if isinstance(value, EventData | InboxMessage | ChildRequest):
        return _plain(value)
    if isinstance(value, tuple):
        return [_plain_member(each) for each in cast("tuple[object, ...]", value)]
    return value
