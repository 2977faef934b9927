"""Following a stream: what is recorded of it, then each event as it is committed."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import final
from weakref import WeakValueDictionary

from trio.lowlevel import ParkingLot, checkpoint

from greenroom.runtime.journal.faults import closed
from greenroom.runtime.journal.reader import Event, JournalReader, Page

__all__ = ["Follower", "Tails"]

EVENTS = 256
"""How many events a follower holds, and how many a tail keeps, at most."""
BYTES = 2**20
"""How large their payloads are together, at most; a larger event is held alone."""


@final
class Tail:
    """The newest events of a stream that somebody follows, shared by all who do. It is only a short cut: who is behind
    it reads the file. It goes with its last follower, so a follower that is simply dropped leaves nothing."""

    __slots__ = ("__weakref__", "_size", "births", "changes", "complete", "events", "lot")

    def __init__(self) -> None:
        self.events: deque[Event] = deque()
        """In order and without gaps."""
        self.complete = False
        """The stream ended after them."""
        self.births = 0
        """How often the stream began: with the second time it is another one."""
        self.changes = 0
        """Tells a follower whether something happened while it read."""
        self.lot = ParkingLot()
        self._size = 0

    def add(self, event: Event) -> None:
        """One event was committed."""
        events = self.events
        if event.seq == 0:
            events.clear()
            self._size = 0
            self.births += 1
            self.complete = False
        events.append(event)
        self._size += len(event.payload)
        while len(events) > EVENTS or (self._size > BYTES and len(events) > 1):
            self._size -= len(events.popleft().payload)
        self.wake()

    def end(self) -> None:
        """The stream has ended."""
        self.complete = True
        self.wake()

    def wake(self) -> None:
        """Let all followers look again."""
        self.changes += 1
        self.lot.unpark_all()

    def page(self, after: int) -> Page | None:
        """What follows the cursor, or None if that is not all here."""
        events = self.events
        if not events or not events[0].seq - 1 <= after <= events[-1].seq:
            return None
        newer = list(islice(events, after + 1 - events[0].seq, None))
        return Page(newer, after, self.complete and not newer, None)


@final
class Tails:
    """The tails of the streams that are followed."""

    __slots__ = ("_tails", "closed")

    def __init__(self) -> None:
        self._tails: WeakValueDictionary[str, Tail] = WeakValueDictionary()
        self.closed = False

    def __bool__(self) -> bool:
        return bool(self._tails)

    def get(self, stream: str) -> Tail | None:
        """The tail of a stream, if it is followed."""
        return self._tails.get(stream)

    def share(self, stream: str) -> Tail:
        """The tail of a stream, for one more follower."""
        tail = self._tails.get(stream)
        if tail is None:
            tail = self._tails[stream] = Tail()
        return tail

    def close(self) -> None:
        """No follower gets anything more."""
        self.closed = True
        for tail in list(self._tails.values()):
            tail.wake()


@final
class Follower:
    """An async iterator over the events of one stream: first those that are recorded, then each one when it is
    committed, in order, without a gap or a repetition. It waits without a deadline, and ends when the stream has ended.

    It holds a page of events at most, however far it is behind: who is slow reads the file. A cancelled step has taken
    nothing, and the iteration may go on. One task at a time. It need not be closed.

    A step raises JournalError: GAP if what comes next was deleted meanwhile (see `JournalReader.read`), CLOSED.
    """

    __slots__ = ("_births", "_life", "_page", "_reader", "_tail", "_tails", "cursor", "stream")

    def __init__(self, stream: str, cursor: int | None, reader: JournalReader, tails: Tails) -> None:
        self.stream = stream
        self.cursor = cursor
        """The number of the event that was given last; at first where it begins, None for the first that is kept."""
        self._reader = reader
        self._tails = tails
        self._tail = tails.share(stream)
        self._page: deque[Event] = deque()
        self._life: int | None = None
        self._births = 0
        """Of the tail, before the file said which life it is: with any other number the file is to be asked again."""

    def __aiter__(self) -> Follower:
        return self

    async def __anext__(self) -> Event:
        if self._page:
            await checkpoint()
        else:
            await self._turn()
        event = self._page.popleft()
        self.cursor = event.seq
        return event

    async def _turn(self) -> None:
        """Fetch the next page, waiting for it to be written if need be."""
        while True:
            if self._tails.closed:
                raise closed(self._reader.path)
            tail = self._tail
            changes, births = tail.changes, tail.births
            page = None
            if self.cursor is not None and self._life is not None and self._births == births:
                page = tail.page(self.cursor)
            if page is not None:
                await checkpoint()
            else:
                page = await self._reader.page(self.stream, self.cursor, EVENTS, BYTES, self._life)
                self._life, self._births = page.life, births
            self.cursor = page.after
            if page.events:
                self._page.extend(page.events)
                return
            if page.complete:
                raise StopAsyncIteration
            if tail.changes == changes:
                await tail.lot.park()
