"""The logs of agents, as programs outside read them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Final, TypeAlias, final

import trio
from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.actors.remote import remote, remote_stream
from greenroom.actors.session import Session, SessionAppended, SessionManager, SessionOpened
from greenroom.protocol.errors import RemoteError, SessionError
from greenroom.protocol.sessions import SessionEvent, SessionHeader
from greenroom.runtime.bus import Bus, closing_all

__all__ = ["SessionPage", "SessionService", "session_refusal"]

PAGE: Final = 500
"""How many events are given at once, where nothing else is said."""

Position: TypeAlias = Annotated[int, Meta(ge=-1)]
"""The number of an event; -1 stands before the first."""


class SessionPage(Struct, frozen=True, kw_only=True, rename="camel"):
    """Some of the events of a session."""

    header: SessionHeader
    events: tuple[SessionEvent, ...]
    last: int
    """The number of the last event that the session has; -1 if it has none."""
    live: bool
    """It is open, and further events come."""


@final
class SessionService:
    """The namespace `session`."""

    def __init__(self, sessions: SessionManager, bus: Bus) -> None:
        self._sessions = sessions
        self._bus = bus

    @remote("list", repeatable=True)
    async def list(self) -> tuple[SessionHeader, ...]:
        """The headers of all sessions, open ones and kept ones, by id."""
        return tuple(await self._sessions.list())

    @remote("read", repeatable=True)
    async def read(
        self,
        session: str,
        after_seq: Position | UnsetType = UNSET,
        limit: Annotated[int, Meta(ge=1, le=10_000)] | UnsetType = UNSET,
    ) -> SessionPage:
        """The events of a session that follow number `afterSeq`, in order, 500 of them unless `limit` says otherwise.

        A log whose process ended in the middle is shown as it would be repaired. Refused with `session/not-found`, and
        with `session/unsupported` or `session/corrupt` for one that cannot be read.
        """
        found = await self._read(session)
        after = -1 if isinstance(after_seq, UnsetType) else after_seq
        most = PAGE if isinstance(limit, UnsetType) else limit
        return SessionPage(
            header=found.header,
            events=found.events(after)[:most],
            last=found.last,
            live=self._sessions.get(session) is not None,
        )

    @remote_stream("follow")
    async def follow(self, session: str, after_seq: Position | UnsetType = UNSET) -> AsyncIterator[SessionEvent]:
        """The events of an open session that follow number `afterSeq`, and each further one, until it is disposed of.

        Refused with `session/not-found`, and with `session/not-live` for one that is kept and not open.
        """
        found = self._sessions.get(session)
        if found is None:
            await self._read(session)
            raise RemoteError("session/not-live", f"The session {session} is not open; read what is kept of it.")
        bell = trio.Event()

        def ring(told: SessionAppended | SessionOpened) -> None:
            if told.session is found:
                bell.set()

        unheard = closing_all(self._bus.on(self._sessions.appended, ring), self._bus.on(self._sessions.disposed, ring))
        at = -1 if isinstance(after_seq, UnsetType) else after_seq
        try:
            while True:
                for event in found.events(at):
                    at = event.seq
                    yield event
                if found.last > at:
                    continue
                if found.disposed:
                    return
                bell = trio.Event()
                await bell.wait()
        finally:
            unheard()

    async def _read(self, session: str) -> Session:
        try:
            return await self._sessions.read(session)
        except SessionError as error:
            raise session_refusal(error) from None


def session_refusal(error: SessionError) -> RemoteError:
    """What a caller is told of what a session refuses."""
    reason = error.code.lower().removeprefix("session_").replace("_", "-")
    return RemoteError(f"session/{reason}", error.message, error.context)
