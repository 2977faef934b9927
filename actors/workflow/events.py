"""What happened in a run, numbered: the last of it in memory, what is older from a store that keeps it."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Final, TypeAlias, final

import trio

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows import WorkflowEvent

__all__ = ["EVENTS_KEPT", "EventFollower", "RunEvents"]

EVENTS_KEPT: Final = 4096
"""How many events of a run are kept in memory."""

_PAGE: Final = 500

Older: TypeAlias = Callable[[int, int], Awaitable[Sequence[WorkflowEvent]]]
"""Gives up to so many (second) events with numbers above the first, in order."""


@final
class RunEvents:
    """The events of one run. `last` is the number of the last one that happened before it was made.

    Where a store keeps them, an event is shown once it is stored: so that nobody, after a crash, has seen one that
    another one of its number has come in place of.
    """

    def __init__(self, workflow_id: str, *, last: int = 0, older: Older | None = None, kept: int = EVENTS_KEPT) -> None:
        self._id = workflow_id
        self._older = older
        self._events: deque[WorkflowEvent] = deque(maxlen=kept)
        self._more: trio.Event | None = None
        self._stored = False
        self.last: int = last
        """The number of the last event."""
        self.shown: int = last
        """The number of the last one that followers are told."""
        self.closed = False

    def go_on(self, last: int) -> None:
        """From now on they are stored, behind one of number `last`, and `show` is called. Before the first `append`."""
        self._stored = True
        self.last = self.shown = last

    def append(self, event: WorkflowEvent) -> None:
        """The next event; its number is `last + 1`."""
        self.last = event.number
        self._events.append(event)
        if not self._stored:
            self.show(event.number)

    def show(self, number: int) -> None:
        """Tell followers what has happened up to that event."""
        self.shown = number
        self._ring()

    def close(self) -> None:
        """There will be no more events; those that could not be stored are shown nevertheless."""
        self.closed = True
        self.show(self.last)

    def follow(self, after: int = 0) -> EventFollower:
        """Every event with a number above `after`, those that there are and those to come, until the run is over.

        `after` may be beyond the last event, where a run without a store has begun to count anew: everything is told
        then.
        """
        return EventFollower(self, after if after <= self.last else 0)

    async def wait(self) -> None:
        """Wait, without a deadline, until there is one more event, or there will be none."""
        if self._more is None:
            self._more = trio.Event()
        await self._more.wait()

    async def page(self, after: int) -> Sequence[WorkflowEvent]:
        """Some of the events that follow number `after`, from the next one on; none if that has not happened yet.

        Raises `WorkflowError` GAP if it is kept nowhere any more; the context says which `first` one is.
        """
        events = await self._after(after)
        if events and events[0].number > after + 1:
            raise self._gap(after, events[0].number)
        return events

    async def _after(self, after: int) -> Sequence[WorkflowEvent]:
        first = self._events[0].number if self._events else self.last + 1
        if after + 1 >= first or after >= self.shown:
            await trio.lowlevel.checkpoint()
            return list(islice(self._events, max(after + 1 - first, 0), max(self.shown + 1 - first, 0)))
        older: Sequence[WorkflowEvent] = () if self._older is None else await self._older(after, _PAGE)
        if not older:
            raise self._gap(after, first)
        return older

    def _gap(self, after: int, first: int) -> WorkflowError:
        return WorkflowError(
            "GAP",
            f"The events of workflow {self._id!r} behind {after} are not kept any more: follow it from {first - 1} on.",
            {"id": self._id, "after": after, "first": first},
        )

    def _ring(self) -> None:
        more, self._more = self._more, None
        if more is not None:
            more.set()


@final
class EventFollower:
    """The events of a run, one after another: `async for event in run.events()`.

    Raises `WorkflowError` GAP where one is kept nowhere any more. It waits for the next event without a deadline, holds
    nothing, and may be left at any time.
    """

    def __init__(self, events: RunEvents, after: int) -> None:
        self._events = events
        self._after = after
        self._page: deque[WorkflowEvent] = deque()

    def __aiter__(self) -> EventFollower:
        return self

    async def __anext__(self) -> WorkflowEvent:
        while not self._page:
            self._page.extend(await self._events.page(self._after))
            if self._page or self._after < self._events.shown:
                continue
            if self._events.closed:
                raise StopAsyncIteration
            await self._events.wait()
        event = self._page.popleft()
        self._after = event.number
        return event
