"""The actor of a database: it alone uses the storage, one message at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, TypeVar, final

import trio

from greenroom.actors.database.job import Job, Perform, in_thread
from greenroom.actors.database.session import Happening, Session
from greenroom.actors.database.storage import Stop, Storage
from greenroom.protocol.database import KeyFunction, Layout
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.reply import Reply

__all__ = ["DatabaseActor", "Databases", "Hold", "Holder"]

R = TypeVar("R")


class Holder(Protocol):
    """Who holds a database for itself for a while: a transaction."""

    def begin(self) -> None:
        """It holds the database from now on."""
        ...

    async def wait_ended(self) -> None:
        """Until it no longer does."""
        ...

    def lose(self) -> None:
        """The database ends under it: it must use the storage no more."""
        ...


class Hold(Perform[R], frozen=True):
    """Do a job, and then take no further message until the holder lets go of the database."""

    holder: Holder


@final
class Databases(Actor):
    """Parent of the actors of all databases; it has no messages of its own."""

    __slots__ = ()


@final
class DatabaseActor(Actor):
    """Opens the storage at its first message and closes it when it ends. Blocking work is done in worker threads, never
    two at a time."""

    __slots__ = ("_announce", "_generate", "_opened", "_storage", "_strict", "_version", "layouts", "limiter")

    def __init__(
        self,
        storage: Storage,
        layouts: Mapping[str, Layout],
        *,
        version: int | float | None,
        generate: KeyFunction,
        strict: bool,
        announce: Callable[[Iterable[Happening]], None],
    ) -> None:
        super().__init__()
        self.layouts: Final = layouts
        self.limiter: Final = trio.CapacityLimiter(1)
        self._storage = storage
        self._version = version
        self._generate = generate
        self._strict = strict
        self._announce = announce
        self._opened = False

    async def on_start(self) -> None:
        """Nothing is opened before it is needed; but what was opened is closed, however this ends."""
        self.start_soon(self._close_at_end)

    def on_end(self, reason: str) -> None:
        """Tell that it is over."""
        self._announce((Happening(None, "close"),))

    @handles(Perform)
    async def perform(self, message: Perform[Any]) -> None:
        """Do a job and answer with its result."""
        await self._do(message.job, self.take_reply())

    @handles(Hold)
    async def hold(self, message: Hold[Any]) -> None:
        """Do a job, answer, and stand still for its holder. Others wait in the mailbox."""
        holder = message.holder
        if await self._do(message.job, self.take_reply(), holder.begin):
            try:
                await holder.wait_ended()
            finally:
                holder.lose()

    def session(self, stop: Stop, *, bound: bool = False) -> Session:
        """A session for one job."""
        return Session(self._storage, self.layouts, self._generate, stop, strict=self._strict, bound=bound)

    def commit(self) -> None:
        """End the storage's transaction, in a worker thread."""
        self._storage.commit()

    def rollback(self) -> None:
        """Undo the storage's transaction, in a worker thread."""
        self._storage.rollback()

    async def _do(self, job: Job[Any], reply: Reply[Any], then: Callable[[], None] = lambda: None) -> bool:
        """Whether it went well, and `then` was called. The reply is given in the step in which the thread ends, so that
        it is never lost."""
        job.begun = True
        result = await in_thread(lambda: self._run(job), self.limiter)
        self._announce(job.happened)
        try:
            done = reply.answer(result.unwrap())
        except Exception as error:
            return not reply.fail(error)
        if done:
            then()
        return done

    def _run(self, job: Job[R]) -> R:
        """In the worker thread."""
        if not self._opened:
            self._storage.stop = job.stop
            migration = self._storage.open(self.layouts, self._version)
            self._opened = True
            job.happened.append(Happening(None, "open"))
            if migration is not None:
                job.happened.append(Happening(None, "migrate", (migration,)))
        session = self.session(job.stop)
        try:
            return job.work(session)
        finally:
            job.happened += session.happened

    async def _close_at_end(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            # Without a deadline: what is left of a job's thread ends soon, and then a file is closed.
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._storage.close, limiter=self.limiter)
