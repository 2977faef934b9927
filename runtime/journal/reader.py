"""Reading what is committed, beside a writer or without one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

import msgspec
import trio

from greenroom.protocol.errors import JournalError
from greenroom.runtime.journal.faults import closed, fault, refused, typed
from greenroom.runtime.journal.file import inspect, resolve

__all__ = ["Event", "JournalReader", "Page", "StreamInfo", "open_reader"]

R = TypeVar("R")


class Event(msgspec.Struct, frozen=True):
    """One entry of a stream."""

    stream: str
    seq: int
    """Its number: 0 for the first, and each next one is one more."""
    time: float
    """When its transaction began, in seconds since 1970."""
    kind: str
    payload: bytes


class StreamInfo(msgspec.Struct, frozen=True):
    """One stream as it is recorded. Times are in seconds since 1970."""

    name: str
    first: int
    """The lowest number that is kept; where nothing is kept, the next one to be given."""
    last: int
    """The number of the last event; `first - 1` where nothing is kept."""
    began: float
    ended: float | None


class Page(NamedTuple):
    """Some successive events of a stream."""

    events: list[Event]
    after: int
    """The cursor before them."""
    complete: bool
    """There are none, and never will be."""
    life: int | None
    """Which stream of that name it was: another number after it was pruned and begun anew, None where there is none."""


_STREAM = "SELECT id, first, ended FROM streams WHERE name = ?"
_LAST = "SELECT max(seq) FROM events WHERE stream = ?"
_EVENTS = "SELECT seq, time, kind, payload FROM events WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?"
_STREAMS = """
SELECT name, first, coalesce((SELECT max(seq) FROM events WHERE stream = streams.id), first - 1), began, ended
FROM streams WHERE name > ? AND substr(name, 1, length(?)) = ? ORDER BY name LIMIT ?
"""


class JournalReader:
    """Reads a journal through a connection of its own, one query at a time, in a worker thread: it sees what is
    committed and waits for no writer. (A journal in memory has one connection, and its reads take turns with its
    transactions.)

    Every read raises JournalError: CLOSED, CORRUPT, IO, and REFUSED for what SQLite cannot take, such as an integer
    beyond 64 bits; a cancelled one waits for its query to end.
    """

    __slots__ = ("_connection", "_limiter", "closed", "path")

    def __init__(self, connection: sqlite3.Connection, limiter: trio.CapacityLimiter, path: str) -> None:
        self._connection = connection
        self._limiter = limiter
        self.closed = False
        """Every read raises CLOSED from now on."""
        self.path = path

    async def read(self, stream: str, *, after: int | None = None, limit: int = 1000) -> list[Event]:
        """At most `limit` events of a stream, in order: those that follow number `after`, or the first that are kept.

        With a number nothing is passed over: if the next one is not kept, or was never given, this raises JournalError
        GAP (context `stream`, `after`, `first`, `last`). -1 stands before all. A stream that never began has no events.
        """
        return (await self.page(stream, after, limit)).events

    async def streams(self, prefix: str = "", *, after: str = "", limit: int = 1000) -> list[StreamInfo]:
        """At most `limit` streams whose names begin with `prefix`, by name, from the one that follows `after`."""
        rows = await self.select(_STREAMS, (after, prefix, prefix, limit))
        return [StreamInfo(*row) for row in rows]

    async def select(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of one parameterized SELECT on registered tables: bound it with LIMIT. JournalError REFUSED if it is
        wrong."""
        return await self._run(lambda: self._connection.execute(sql, parameters).fetchall())

    async def page(
        self, stream: str, after: int | None, limit: int, size: int | None = None, life: int | None = None
    ) -> Page:
        """What `read` returns, cut off once the payloads have `size` bytes together. GAP also if it is not this
        `life`."""
        return await self._run(lambda: self._page(stream, after, limit, size, life))

    def _page(self, stream: str, after: int | None, limit: int, size: int | None, life: int | None) -> Page:
        execute = self._connection.execute
        execute("BEGIN")  # both queries must see one state, or a cut between them would look like the stream's end
        try:
            row = execute(_STREAM, (stream,)).fetchone()
            number, first, ended = row or (None, 0, None)
            before = first - 1 if after is None else after
            events: list[Event] = []
            rows = execute(_EVENTS, (number, before, limit))
            for row in rows:
                events.append(Event(stream, *row))
                if size is not None and (size := size - len(events[-1].payload)) <= 0:
                    break
            rows.close()
            another = life is not None and life != number
            if another or before + 1 < first or (not events and before >= 0):
                (last,) = execute(_LAST, (number,)).fetchone()
                last = first - 1 if last is None else last
                if another or before > last:
                    raise _gap(stream, before, first, last, _ANEW)
                if before + 1 < first:
                    raise _gap(stream, before, first, last, _CUT)
        finally:
            self._connection.rollback()
        return Page(events, before, ended is not None and not events, number)

    async def _run(self, query: Callable[[], R]) -> R:
        if self.closed:
            raise closed(self.path)
        try:
            return await trio.to_thread.run_sync(typed()(query), limiter=self._limiter)
        except sqlite3.Error as error:
            raise refused(error) or fault(error, self.path) from error

    async def close_reader(self) -> None:
        """Close the connection after the queries that wait already; later ones raise CLOSED. A checkpoint."""
        if not self.closed:
            self.closed = True
            await trio.to_thread.run_sync(self._connection.close, limiter=self._limiter)


@asynccontextmanager
async def open_reader(path: str | os.PathLike[str]) -> AsyncGenerator[JournalReader, None]:
    """A journal for looking at only, whether a process writes it or not: it takes no ownership and changes nothing.

    Raises JournalError FOREIGN, NEWER, CORRUPT or IO.
    """
    resolved = await trio.to_thread.run_sync(resolve, path)
    connection = await trio.to_thread.run_sync(inspect, resolved)
    reader = JournalReader(connection, trio.CapacityLimiter(1), resolved)
    try:
        yield reader
    finally:
        with trio.CancelScope(shield=True):  # without a deadline: queries end, and closing is short
            await reader.close_reader()


_ANEW = "{stream} is not the stream any more of which {after} was read: it was deleted. Start again without a cursor."
_CUT = (
    "What follows number {after} of {stream} was deleted; the first number that is kept is {first}. Go on from there."
)


def _gap(stream: str, after: int, first: int, last: int, why: str) -> JournalError:
    context = {"stream": stream, "after": after, "first": first, "last": last}
    return JournalError("GAP", why.format(**context), context)
