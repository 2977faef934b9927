"""A run as a client that follows it is told of it: its events, in order, each once."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, final

import trio

from greenroom.protocol.rpc import Followed, FollowRun, RequestId
from greenroom.protocol.workflows import Status, WorkflowEvent

if TYPE_CHECKING:
    from greenroom.actors.client.client import Client
    from greenroom.actors.client.pending import PendingCall

__all__ = ["FollowedRun"]


@final
class FollowedRun:
    """Made by `Client.follow_run`. Iterating it gives the events of a run, until it is over or suspended.

    ::

        async with client.follow_run("release", after=seen) as events:
            async for event in events:
                seen = event.number

    After a lost connection it goes on behind the last event that came, so that each is told once. No more than `buffer`
    events wait to be taken: when there are more, the server is told to stop, and asked for the rest when they have been
    taken. Iterating raises what the server refuses to follow the run with, and RpcError CLOSED.
    """

    def __init__(self, client: Client, run: str, after: int, buffer: int) -> None:
        self._client = client
        self.run = run
        self.last = after
        """The number of the last event that came."""
        self.status: Status | None = None
        """What the run came to, once all is told."""
        self._buffer = buffer
        self._events: deque[WorkflowEvent] = deque()
        self._call: tuple[RequestId, PendingCall[Followed]] | None = None
        """Under which the events come; None while they are not wanted."""
        self._bell = trio.Event()

    def __aiter__(self) -> FollowedRun:
        return self

    async def __anext__(self) -> WorkflowEvent:
        """The next event, waiting without a deadline. Cancelled: none is lost."""
        await trio.lowlevel.checkpoint()
        while not self._events:
            if self.status is not None:
                raise StopAsyncIteration
            if self._call is None:
                self.begin()
                continue
            _, pending = self._call
            if pending.settled.is_set():
                self._call = None
                self.status = pending.result().status
                continue
            self._bell = trio.Event()
            await self._bell.wait()
        return self._events.popleft()

    # ---------------------------------------------------------------- what the client calls

    def begin(self) -> None:
        """Ask for the events behind the last one that came. Raises RpcError CLOSED."""
        self._call = self._client.follow(self)

    def params(self) -> FollowRun:
        """What the server is asked for, now or when the connection is back."""
        return FollowRun(run=self.run, after=self.last)

    def take(self, event: WorkflowEvent) -> None:
        """Something happened in the run."""
        self.last = event.number
        self._events.append(event)
        if len(self._events) >= self._buffer:
            self.end()
        self.ring()

    def ring(self) -> None:
        """There is something new."""
        self._bell.set()

    def end(self) -> None:
        """Ask for no more events."""
        if self._call is not None:
            id, _ = self._call
            self._call = None
            self._client.unfollow(id)
