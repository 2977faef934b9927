"""Writing behind: what was appended to sessions is handed to where they are kept, a fifth of a second later at most."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final, final

import trio

from greenroom.actors.session.persistence import Persistence
from greenroom.actors.session.session import Session
from greenroom.protocol.errors import SessionError
from greenroom.runtime.actor import Actor

__all__ = ["WINDOW", "Sessions", "Tail"]

WINDOW: Final = 0.2
"""Seconds from an append until it begins to be written, if nobody waits for it."""

logger = logging.getLogger("greenroom.sessions")


@final
class Tail:
    """What of one session is not written yet."""

    def __init__(self, session: Session, written: int, persistence: Persistence) -> None:
        self.session = session
        self.written = written
        """How many events are."""
        self.queued = False
        """The writer knows of it."""
        self.over = False
        """Nothing will be written any more."""
        self.urgent = trio.Event()
        """Somebody waits."""
        self._tried = trio.Event()
        """The attempt in hand, or the next one, is over."""
        self._failure: Exception | None = None
        self._writing = trio.Lock()
        self._persistence = persistence

    @property
    def behind(self) -> bool:
        """Something is not written."""
        return self.written < self.session.count

    async def caught_up(self) -> None:
        """Wait until what there is now is written. Raises why it could not be."""
        target = self.session.count
        while self.written < target:
            if self.over:
                raise SessionError(
                    "DISPOSED",
                    f"What was last appended to the session {self.session.id} was not written: the runtime has ended.",
                    {"session": self.session.id},
                )
            tried = self._tried
            self.urgent.set()
            await tried.wait()
            if self._failure is not None:
                raise self._failure

    async def write(self) -> None:
        """One attempt to write all there is, after the one in hand."""
        async with self._writing:
            events = self.session.events(self.written - 1)
            try:
                if events:
                    await self._persistence.append(self.session.header, events)
                self.written += len(events)
                self._failure = None
            except Exception as error:
                self._failure = error
                logger.error("The session %s could not be written: %s", self.session.id, error)
            finally:
                self._tried.set()
                self._tried = trio.Event()

    def give_up(self) -> None:
        """Nothing more is written: whoever waits is told."""
        self.over = True
        self._tried.set()


@final
class Sessions(Actor):
    """Writes what was appended, each session by a task of its own while it is behind. When it ends it writes what there
    is, without a deadline, since each write ends, and `ended` is called.
    """

    def __init__(self, persistence: Persistence, ended: Callable[[], None]) -> None:
        super().__init__()
        self._persistence = persistence
        self._when_ended = ended
        self._arrived = trio.Event()
        self._queue: deque[Tail] = deque()
        self._tails: dict[str, Tail] = {}
        self._ended = False
        self.ready = trio.Event()
        """From now on nothing that is appended is left behind at the end."""

    def keep(self, tail: Tail) -> None:
        """See to this session from now on."""
        self._tails[tail.session.id] = tail
        tail.over = self._ended

    def drop(self, tail: Tail) -> None:
        """Do not any more."""
        if self._tails.get(tail.session.id) is tail:
            del self._tails[tail.session.id]

    def wake(self, tail: Tail) -> None:
        """It is behind."""
        if not tail.queued:
            tail.queued = True
            self._queue.append(tail)
            self._arrived.set()

    async def on_start(self) -> None:
        self.start_soon(self._serve)

    def on_end(self, reason: str) -> None:
        self._ended = True
        self.ready.set()
        self._when_ended()

    async def _serve(self) -> None:
        self.ready.set()
        try:
            async with trio.open_nursery() as nursery:
                while True:
                    await self._arrived.wait()
                    self._arrived = trio.Event()
                    while self._queue:
                        nursery.start_soon(self._write_behind, self._queue.popleft())
        finally:
            with trio.CancelScope(shield=True):
                for tail in list(self._tails.values()):
                    if tail.behind:
                        await tail.write()
                    await self._release(tail.session.id)

    async def _release(self, id: str) -> None:
        try:
            await self._persistence.release(id)
        except Exception as error:  # the others are let go of all the same
            logger.error("The session %s could not be let go of: %s", id, error)

    async def _write_behind(self, tail: Tail) -> None:
        """Until it has caught up, or an attempt has failed: then it waits for the next append, or flush."""
        with trio.move_on_after(WINDOW):
            await tail.urgent.wait()
        tail.queued, tail.urgent = False, trio.Event()  # from here on an append is a new round
        with trio.CancelScope(shield=True):  # a write that has begun ends
            await tail.write()
