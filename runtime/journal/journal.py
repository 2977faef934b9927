"""The journal as the rest of the program sees it: write units, read and follow streams, forget what is old."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any, final

import trio

from greenroom.protocol.errors import ActorError, JournalError
from greenroom.runtime.context import current_node
from greenroom.runtime.journal.faults import closed
from greenroom.runtime.journal.file import MEMORY, JournalFile
from greenroom.runtime.journal.follower import Follower, Tails
from greenroom.runtime.journal.reader import JournalReader
from greenroom.runtime.journal.steps import SLICE, Append, Cut, Prune, Step
from greenroom.runtime.journal.tables import Table
from greenroom.runtime.journal.writer import CAPACITY, Commit, Done, Register, Writer
from greenroom.runtime.reply import Reply
from greenroom.runtime.tree import Tree

__all__ = ["Journal", "open_journal"]

_ENDED = """
SELECT name, first, coalesce((SELECT max(seq) FROM events WHERE stream = streams.id), first - 1)
FROM streams WHERE ended <= ? ORDER BY ended
"""


@final
class Journal(JournalReader):
    """The durable record of one runtime: numbered events in streams, and the tables of its stores, in one SQLite file.

    Made by `open_journal`. Any task of the run may use it at any time.

    What was acknowledged is on the disk: a process that is killed at any instant loses none of it when the file is
    opened again, and nothing is ever there by half. What was not yet acknowledged is there whole, or not at all.
    """

    __slots__ = ("_tails", "_wall_clock", "_writer")

    def __init__(self, file: JournalFile, wall_clock: Callable[[], float]) -> None:
        writing = trio.CapacityLimiter(1)
        super().__init__(file.reader, writing if file.reader is file.writer else trio.CapacityLimiter(1), file.path)
        self._tails = Tails()
        self._wall_clock = wall_clock
        self._writer = Writer(file, writing, self, self._tails, wall_clock)

    # ---------------------------------------------------------------- writing

    async def append(self, stream: str, kind: str, payload: Any) -> int:
        """Append one event and return its number once it is committed; see `Append` and `write`."""
        (number,) = await self.write(Append(stream, kind, payload))
        return number

    async def write(self, *steps: Step) -> tuple[int, ...]:
        """Commit these steps as one unit: all of them or none. Returns what each comes to, once they are committed.

        Units that are handed over while a transaction is under way share the next one. It waits without a deadline of
        its own. Raises JournalError: REFUSED, STALE or ENDED if this unit is wrong in itself; FULL, READONLY, IO,
        CORRUPT or BUSY if its transaction failed, and then the unit may be written again; CLOSED. Nothing of it is
        recorded then. (Of IO alone that is not certain: if the process dies before its next commit, the unit may turn
        out to be recorded.)

        Cancelled: the unit is recorded whole or not at all, and only reading tells which.
        """
        self._writer.require_open()
        ref = self._writer.ref
        reply = Reply(Commit(), ref, current_node(), ref)
        self._writer.accept(steps, reply)
        return await reply.wait()

    def post(self, *steps: Step, done: Done | None = None) -> None:
        """Hand over a unit without waiting: for handlers, which must not wait for a commit.

        `done(outcome)` is called once, in trio's thread: with what each step comes to, after the commit, or with the
        JournalError that `write` would raise. It must not wait; let it tell an actor. Without it a failure is logged.

        Raises JournalError, and hands nothing over: CLOSED, or BUSY if too many units wait already.
        """
        self._writer.require_open()
        if self._writer.waiting >= CAPACITY:
            raise _busy(self.path)
        self._writer.accept(steps, done)

    async def register(self, *tables: Table) -> None:
        """Bring these tables up to date, all in one transaction: create what is missing, migrate what is older.

        Raises JournalError NEWER (and changes nothing) if the file has a later version of one, and what a migration
        raises. Cancelled: it is carried out whole or not at all.
        """
        try:
            await self._writer.ref.ask(Register(tables))
        except ActorError as error:
            raise closed(self.path) if error.code == "STOPPED" else error from None

    # ---------------------------------------------------------------- following

    def follow(self, stream: str, *, after: int | None = None) -> Follower:
        """Iterate over a stream from the event that follows number `after`, and then live; see `Follower`.

        None begins with the first event that is kept, -1 with the very first. The stream need not have begun.
        """
        return Follower(stream, after, self, self._tails)

    # ---------------------------------------------------------------- forgetting

    async def prune(self, *, older_than: float, streams: Iterable[str] | None = None) -> list[str]:
        """Delete every stream that ended `older_than` seconds ago or earlier by the wall clock, or those of them that
        are named in `streams`; returns the names of the deleted ones. A stream that has not ended stays, however old it
        is.

        It goes by many small units between those of others. Raises as `write` does; then, and when cancelled, what is
        deleted is deleted, and a stream may be left without its oldest events. The file keeps its size; the room in it
        is used again.
        """
        by = self._wall_clock() - older_than
        ended = await self.select(_ENDED, (by,))
        names = None if streams is None else frozenset(streams)
        pruned: list[str] = []
        for name, first, last in ended:
            if names is None or name in names:
                for _ in range((last - first) // SLICE + 2):
                    (gone,) = await self.write(Prune(name, by))
                    if gone:
                        pruned.append(name)
                        break
        return pruned

    async def cut(self, stream: str, *, before: int) -> int:
        """Delete the events of a stream whose numbers are below `before`, and return the first number that is kept.

        No event is renumbered, and the next ones go on where they would have; see `prune` for the rest.
        """
        kept = -1
        while True:
            (now,) = await self.write(Cut(stream, before))
            if now in (kept, before):
                return now
            kept = now

    async def close(self) -> None:
        """Stop the writer: what was handed over before is committed first. Everything later raises CLOSED."""
        await self._writer.ref.stop()


def _busy(path: str) -> JournalError:
    return JournalError(
        "BUSY",
        f"{CAPACITY} units wait for the journal {path} already, so this one was not taken. Post less, or several steps "
        "as one unit; or `await journal.write(...)`, which waits.",
        {"path": path, "capacity": CAPACITY},
    )


async def open_journal(
    tree: Tree,
    path: str | os.PathLike[str] = MEMORY,
    *,
    tables: Iterable[Table] = (),
    wall_clock: Callable[[], float] = time.time,
) -> Journal:
    """Open a journal for writing and start its writer, the actor `/journal`, which ends with the tree at the latest.

    Open it before what writes to it: the tree stops the newest first. A file is made if there is none. `tables` are
    brought up to date in the transaction that does so for the journal's own. `wall_clock` dates events, in seconds
    since 1970.

    Raises JournalError: OWNED (context `pid`) if a process writes the file already, FOREIGN, NEWER or CORRUPT (nothing
    was changed then), READONLY, FULL, BUSY, IO; ActorError EXISTS if the tree has a journal. Cancelled: nothing is left
    open.
    """
    file = await trio.to_thread.run_sync(JournalFile, path, tuple(tables))
    journal = Journal(file, wall_clock)
    try:
        tree.spawn(journal._writer, "journal")  # pyright: ignore[reportPrivateUsage]  # made for it
    except BaseException:
        with trio.CancelScope(shield=True):  # without a deadline: it is a close of what was just opened
            await trio.to_thread.run_sync(file.close)
        raise
    return journal
