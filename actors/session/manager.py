"""The sessions of a runtime: opened, forked, flushed and disposed of by id."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import final

import trio
from msgspec import Struct

from greenroom.actors.session.loading import loaded
from greenroom.actors.session.persistence import MemoryPersistence, Persistence, exists_already
from greenroom.actors.session.session import Session
from greenroom.actors.session.writing import Sessions, Tail
from greenroom.protocol.errors import SessionError
from greenroom.protocol.schemas.gates import encodable
from greenroom.protocol.sessions import EndSeed, SessionEvent, SessionHeader
from greenroom.runtime.tree import Tree

__all__ = ["SessionAppended", "SessionManager", "SessionOpened"]


WITHIN: ContextVar[frozenset[trio.Event]] = ContextVar("greenroom_disposals_around", default=frozenset())
"""The ends of the disposals that wait for the running code, which is a listener then."""


@final
class SessionOpened(Struct, frozen=True, eq=False):
    """`session/created` and `session/disposed`: a session is live, or is not any more."""

    session: Session


@final
class SessionAppended(Struct, frozen=True, eq=False):
    """`session/event`: an event was appended to a live session. What was stored before is not told again."""

    session: Session
    event: SessionEvent


@final
class SessionFlushed(Struct, frozen=True, eq=False):
    """`session/flush`: a session is written; whoever keeps something of it elsewhere writes that too."""

    session: Session


@final
class SessionManager:
    """Sessions by id. Each is one agent's log, and the agent goes by the same id.

    `persistence` is where they are kept (memory, if nothing is said). `wall_clock` dates events, in seconds since 1970.
    """

    def __init__(
        self, tree: Tree, *, persistence: Persistence | None = None, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._tree = tree
        self.persistence: Persistence = MemoryPersistence() if persistence is None else persistence
        self._wall_clock = wall_clock
        self._live: dict[str, Tail] = {}
        self._busy: dict[str, trio.Event] = {}
        """Ids with which something is done that takes time."""
        self._writer: Sessions | None = None
        bus = tree.bus
        self.created, self._announce_created = bus.declare("session/created", SessionOpened, veto=True)
        self.disposed, self._announce_disposed = bus.declare("session/disposed", SessionOpened)
        self.appended, self._announce_appended = bus.declare("session/event", SessionAppended)
        self.flushing, self._announce_flush = bus.declare("session/flush", SessionFlushed, mode="parallel")
        if self.persistence.durable:
            self._writing()  # at once: what stands earlier in the tree ends later

    def get(self, id: str) -> Session | None:
        """The live one of that id, if there is one."""
        tail = self._live.get(id)
        return None if tail is None else tail.session

    @property
    def live(self) -> list[Session]:
        """All live ones, in the order in which they were opened."""
        return [tail.session for tail in self._live.values()]

    async def list(self) -> list[SessionHeader]:
        """The headers of all sessions, live or kept, by id. Raises what the persistence raises."""
        headers = {header.id: header for header in await self.persistence.list()}
        headers |= {tail.session.id: tail.session.header for tail in self._live.values()}
        return [headers[id] for id in sorted(headers)]

    async def open(
        self,
        id: str,
        *,
        cwd: str | None = None,
        origin: str | None = None,
        parent_session: str | None = None,
        delegation_depth: int = 0,
        agent_preset: str | None = None,
    ) -> Session:
        """The session of that id: the live one; or else one that goes on from what is kept; or else a new one, of which
        the other arguments say more.

        A log whose process ended in a turn is repaired by events that are appended to it: see `repair`. Listeners to
        `session/created` are told of one that becomes live, and may refuse it by raising; `session/disposed` is told of
        it then, and nothing is left. A new session is kept from its first event on.

        Raises SessionError INVALID for an id that is no text, UNSUPPORTED, CORRUPT, OWNED, what the persistence raises,
        and what a listener of `session/created` does. Cancelled: nothing of it is left open.
        """
        _check_id(id)
        async with self._alone(id):
            if (live := self.get(id)) is not None:
                return live
            await self._writing().ready.wait()
            stored = await self.persistence.claim(id)
            try:
                if stored is None:
                    header = SessionHeader(
                        id=id,
                        created_at=self._now(),
                        cwd=cwd,
                        origin=origin,
                        parent_session=parent_session,
                        delegation_depth=delegation_depth,
                        agent_preset=agent_preset,
                    )
                    return self._publish(header, [], written=0)
                events, added = loaded(stored)
                return self._publish(stored.header, [*events, *added], written=len(events))
            except BaseException:
                await self._let_go(id)
                raise

    async def read(self, id: str) -> Session:
        """A session for looking at: a copy, repaired in memory alone, to which nothing is told or written.

        Raises SessionError SESSION_NOT_FOUND, UNSUPPORTED, CORRUPT, and what the persistence raises.
        """
        if (live := self.get(id)) is not None:
            return Session(live.header, live.events())
        stored = await self.persistence.read(id)
        if stored is None:
            raise await self._not_found(id)
        events, added = loaded(stored)
        return Session(stored.header, [*events, *added], wall_clock=self._wall_clock)

    async def fork(self, source: str, at: int, *, id: str) -> Session:
        """A new session that begins with what the live session `source` holds up to event number `at`, that one
        included, and goes its own way from there.

        Raises SessionError: SESSION_NOT_FOUND, SESSION_NOT_LIVE; SESSION_ALREADY_EXISTS; INVALID_BOUNDARY for a number
        that no event has; OPEN_TURN if a turn is not over there; and as `open` does. Cancelled: it was not made.
        """
        _check_id(id)
        origin = self.get(source)
        if origin is None:
            if any(header.id == source for header in await self.list()):
                raise SessionError(
                    "SESSION_NOT_LIVE", f"The session {source} is not open: open it first.", {"session": source}
                )
            raise await self._not_found(source)
        if not 0 <= at <= origin.last:
            raise SessionError(
                "INVALID_BOUNDARY",
                f"The session {source} has the events 0 to {origin.last}, and none of the number {at}."
                if origin.count
                else f"The session {source} has no events that could be taken over.",
                {"session": source, "at": at, "last": origin.last},
            )
        events = origin.events()[: at + 1]
        boundary = _checked_boundary(origin, events)
        async with self._alone(id):
            if self.get(id) is not None or await self.persistence.read(id) is not None:
                raise exists_already(id)
            await self._writing().ready.wait()
            if await self.persistence.claim(id) is not None:
                await self._let_go(id)
                raise exists_already(id)
            try:
                header = SessionHeader(
                    id=id,
                    created_at=self._now(),
                    cwd=origin.header.cwd,
                    parent_session=source,
                    seed_length=boundary,
                    delegation_depth=origin.header.delegation_depth,
                    agent_preset=origin.header.agent_preset,
                )
                seed = SessionEvent(type="session/end-seed", seq=boundary, time=self._now(), data=EndSeed())
                return self._publish(header, [*events, seed], written=0)
            except BaseException:
                await self._let_go(id)
                raise

    async def flush(self, session: Session) -> bool:
        """Write what was appended by now, and let all listeners of `session/flush` write what they keep.

        Whether anybody keeps anything. All are waited for, without a deadline, and then the first failure is raised,
        that of the log before the listeners'; what could not be written is tried again by the next flush or append.
        Cancelled: the log is written all the same.
        """
        failure: Exception | None = None
        try:
            await session.flush()
        except Exception as error:
            failure = error
        listeners = self.flushing.heard
        try:
            await self._announce_flush(SessionFlushed(session))
        except ExceptionGroup as group:
            failure = failure or group.exceptions[0]
        if failure is not None:
            raise failure
        return self.persistence.durable or listeners

    async def dispose(self, session: Session) -> None:
        """Write what there is, and let go of the session: it takes no more events, and may be opened anew.

        One that was disposed of stays so, and nothing happens. Raises what `flush` raises, and then the session is live
        as before. Cancelled: the same, or it is disposed of.
        """
        async with self._alone(session.id):
            tail = self._live.get(session.id)
            if tail is None or tail.session is not session:
                return
            token = WITHIN.set(WITHIN.get() | {self._busy[session.id]})
            try:
                await self.flush(session)
            finally:
                WITHIN.reset(token)
            while tail.behind:  # somebody has appended meanwhile
                await session.flush()
            self._retire(tail)
            await self._let_go(session.id)

    # ---------------------------------------------------------------- within

    def _publish(self, header: SessionHeader, events: Sequence[SessionEvent], *, written: int) -> Session:
        """Make it live, without a checkpoint. Raises what a listener of `session/created` raises; it is gone then."""
        session = Session(
            header,
            events,
            wall_clock=self._wall_clock,
            appended=self._on_append,
            drain=partial(self._drain, header.id),
            durable=self.persistence.durable,
        )
        writer = self._writing()
        tail = self._live[header.id] = Tail(session, written, self.persistence)
        writer.keep(tail)
        try:
            self._announce_created(SessionOpened(session))
        except BaseException:
            self._retire(tail)
            raise
        if tail.behind:
            writer.wake(tail)
        return session

    def _retire(self, tail: Tail) -> None:
        tail.session.disposed = True
        del self._live[tail.session.id]
        if self._writer is not None:
            self._writer.drop(tail)
        tail.give_up()
        self._announce_disposed(SessionOpened(tail.session))

    def _all_over(self) -> None:
        """The runtime ends, and everything that could be written is."""
        for tail in [*self._live.values()]:
            self._retire(tail)

    def _on_append(self, session: Session, event: SessionEvent) -> None:
        tail = self._live[session.id]
        if not tail.queued and self._writer is not None:
            self._writer.wake(tail)
        if self.appended.heard:
            self._announce_appended(SessionAppended(session, event))

    async def _drain(self, id: str) -> None:
        tail = self._live.get(id)
        if tail is None:
            return
        while tail.behind:
            self._writing().wake(tail)
            await tail.caught_up()

    def _writing(self) -> Sessions:
        if self._writer is None:
            self._writer = Sessions(self.persistence, self._all_over)
            self._tree.spawn(self._writer, "sessions")
        return self._writer

    @asynccontextmanager
    async def _alone(self, id: str) -> AsyncGenerator[None]:
        """One at a time for each id: the others wait, without a deadline, and look again then.

        Raises SessionError REENTRANT for a listener that would wait for what waits for it.
        """
        while (busy := self._busy.get(id)) is not None:
            if busy in WITHIN.get():
                raise SessionError(
                    "REENTRANT",
                    f"The session {id} is being disposed of, which waits for this listener: let it tell an actor, "
                    "which goes on afterwards.",
                    {"session": id},
                )
            await busy.wait()
        self._busy[id] = done = trio.Event()
        try:
            yield
        finally:
            del self._busy[id]
            done.set()

    async def _let_go(self, id: str) -> None:
        with trio.CancelScope(shield=True):  # without a deadline: it closes a file
            await self.persistence.release(id)

    async def _not_found(self, id: str) -> SessionError:
        known = [header.id for header in await self.list()]
        shown = ", ".join(known[:20]) or "none"
        return SessionError(
            "SESSION_NOT_FOUND",
            f"There is no session {id}; known are {shown}. `open` makes one.",
            {"session": id, "known": known[:20]},
        )

    def _now(self) -> int:
        return int(self._wall_clock() * 1000)


def _check_id(id: str) -> None:
    if not isinstance(id, str) or not id or not encodable(id):  # pyright: ignore[reportUnnecessaryIsInstance]  # it may come from anywhere
        raise SessionError("INVALID", f"The id of a session is a text that is not empty, not {id!r}.")


def _checked_boundary(origin: Session, events: tuple[SessionEvent, ...]) -> int:
    """How many events are taken over. Raises SessionError OPEN_TURN."""
    turns = [event for event in events if event.type in ("turn/start", "turn/end")]
    if turns and turns[-1].type == "turn/start":
        raise SessionError(
            "OPEN_TURN",
            f"At event {len(events) - 1} of the session {origin.id} a turn is open, which began with event "
            f"{turns[-1].seq}: fork before that, or behind its end.",
            {"session": origin.id, "at": len(events) - 1, "turn": turns[-1].seq},
        )
    return len(events)
