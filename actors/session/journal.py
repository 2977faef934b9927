"""Sessions in the journal: each log is a stream, its header the first entry of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from trio.lowlevel import checkpoint

from greenroom.actors.session.persistence import Stored
from greenroom.protocol.errors import JournalError, SessionError
from greenroom.protocol.sessions import SessionEvent, SessionHeader
from greenroom.protocol.sessions.codec import decode_event, decode_header, encode
from greenroom.runtime.journal import Append, Event, Journal, JournalReader
from greenroom.runtime.journal.file import MEMORY

__all__ = ["JournalLogs", "JournalPersistence"]

PREFIX: Final = "sessions/"
HEADER: Final = "session/header"
"""The kind of the first entry; those of the others are the types of the events. Event n is entry n + 1."""

PAGE: Final = 1000
"""How many entries are read at a time."""


@final
class JournalLogs:
    """The logs that a journal holds, for looking at, whether a process writes it or not. Raises what the journal
    raises."""

    def __init__(self, reader: JournalReader) -> None:
        self._reader = reader

    async def read(self, id: str, after: int = -1) -> Stored | None:
        """The log of that id with the events that follow number `after`; None if there is none."""
        stream = PREFIX + id
        first = await self._reader.read(stream, after=-1, limit=1)
        if not first:
            return None
        header = decode_header(first[0].payload, id)
        events: list[SessionEvent] = []
        at = after + 1
        while page := await self._page(stream, at):
            events += [decode_event(entry.payload) for entry in page]
            at = page[-1].seq
        return Stored(header, events)

    async def _page(self, stream: str, after: int) -> list[Event]:
        try:
            return await self._reader.read(stream, after=after, limit=PAGE)
        except JournalError as error:
            if error.code == "GAP" and error.context["last"] < after:
                return []  # there is nothing behind the last one
            raise

    async def list(self) -> list[SessionHeader]:
        """The headers of all of them that can be read, by id."""
        headers: list[SessionHeader] = []
        last = ""
        while page := await self._reader.streams(PREFIX, after=last, limit=PAGE):
            last = page[-1].name
            for stream in page:
                header = await self._header(stream.name)
                if header is not None:
                    headers.append(header)
        return headers

    async def _header(self, stream: str) -> SessionHeader | None:
        try:
            (first,) = await self._reader.read(stream, after=-1, limit=1)
            return decode_header(first.payload, stream.removeprefix(PREFIX))
        except (SessionError, JournalError, ValueError):
            return None


@final
class JournalPersistence:
    """Sessions in the file of a runtime's journal, which one process writes at a time."""

    def __init__(self, journal: Journal) -> None:
        self.durable: Final = journal.path != MEMORY
        self._journal = journal
        self._logs = JournalLogs(journal)
        self._kept: dict[str, int] = {}
        """How many events of each claimed log are there; not where a failed write leaves that open."""

    async def claim(self, id: str) -> Stored | None:
        stored = await self._logs.read(id)
        self._kept[id] = 0 if stored is None else len(stored.events)
        return stored

    async def read(self, id: str, after: int = -1) -> Stored | None:
        return await self._logs.read(id, after)

    async def list(self) -> list[SessionHeader]:
        return await self._logs.list()

    async def append(self, header: SessionHeader, events: Sequence[SessionEvent]) -> None:
        id = header.id
        kept = self._kept.pop(id, None)
        if kept is None:  # a write has failed, and it may be there all the same
            stored = await self._logs.read(id)
            kept = 0 if stored is None else len(stored.events)
        steps = [Append(PREFIX + id, event.type, encode(event)) for event in events if event.seq >= kept]
        if not kept:
            steps.insert(0, Append(PREFIX + id, HEADER, encode(header)))
        numbers = await self._journal.write(*steps)
        self._kept[id] = numbers[-1]

    async def release(self, id: str) -> None:
        await checkpoint()
        self._kept.pop(id, None)
