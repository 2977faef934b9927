"""Streams of remote services as a client reads them: items in order, until they end or their reader has enough."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Generic, Protocol, TypeVar, final

import msgspec
import trio

from greenroom.actors.client.pending import PendingCall
from greenroom.protocol.errors import GreenroomError, RemoteError, RpcError
from greenroom.protocol.rpc import (
    CLOSE_STREAM,
    OPEN_STREAM,
    CloseStream,
    Failure,
    Method,
    OpenStream,
    RequestId,
    StreamEnd,
    StreamEvent,
    StreamItem,
    StreamOpened,
    error_of,
)

__all__ = ["ClientStreams", "OpenedStream"]

T = TypeVar("T")


@final
class OpenedStream(Generic[T]):
    """Made by `Client.open_stream`. Iterating it gives the items of a stream, until that ends.

    ::

        async with client.open_stream("release/watch", {"project": "a"}, Step) as steps:
            async for step in steps:
                ...

    Iterating raises what the stream fails with: RemoteError, among them `stream/overflow` when more items than
    `buffer` wait to be taken here or one has waited too long at the server; and RpcError: RESULT for an item that is
    none of its type, CLOSED when the connection was lost. A stream is not taken up again on another one, since what it
    told meanwhile is told to nobody: open it again, behind the last item if it takes such a position.
    """

    def __init__(self, name: str, item_type: type[T], buffer: int, close: Callable[[], object]) -> None:
        self.name = name
        self._type = item_type
        self._buffer = buffer
        self._close = close
        self._items: deque[T] = deque()
        self._error: GreenroomError | None = None
        self.over = False
        """Nothing more comes but what waits to be taken."""
        self._bell = trio.Event()

    def __aiter__(self) -> OpenedStream[T]:
        return self

    async def __anext__(self) -> T:
        """The next item, waiting without a deadline but the connection's. Cancelled: none is lost."""
        await trio.lowlevel.checkpoint()
        while not self._items:
            if self._error is not None:
                raise self._error
            if self.over:
                raise StopAsyncIteration
            self._bell = trio.Event()
            await self._bell.wait()
        return self._items.popleft()

    def take(self, event: StreamEvent) -> None:
        """Something came. Called by the client."""
        if self.over:
            return
        if isinstance(event, StreamItem):
            self._take_item(event.value)
        elif isinstance(event, StreamEnd):
            self.end(None)
        else:
            self.end(error_of(Failure(0, event.error.message, event.error)))
        self._bell.set()

    def _take_item(self, value: object) -> None:
        try:
            item = msgspec.convert(value, self._type)
        except msgspec.ValidationError as problem:
            self._give_up(
                RpcError("RESULT", f"An item of {self.name} has another shape than was asked for: {problem}.")
            )
            return
        if len(self._items) >= self._buffer:
            self._give_up(
                RemoteError(
                    "stream/overflow",
                    f"{self._buffer} items of {self.name} wait to be taken, as many as may. Take them faster, or open "
                    "it with a larger buffer.",
                    {"buffer": self._buffer},
                )
            )
            return
        self._items.append(item)

    def _give_up(self, error: GreenroomError) -> None:
        self.end(error)
        self._close()

    def end(self, error: GreenroomError | None) -> None:
        """Nothing more comes. Called by the client."""
        if not self.over:
            self.over = True
            self._error = error
            self._bell.set()


class Calls(Protocol):
    """What a client can do for its streams."""

    def post(self, method: Method[Any, Any], params: object) -> tuple[RequestId, PendingCall[Any]]:
        """Send a request, now or when there is a connection again."""
        ...

    def drop(self, id: RequestId) -> None:
        """Take a request back: its answer is not waited for."""
        ...

    def notify(self, method: Method[Any, Any], params: object) -> None:
        """Send a notification, if there is a connection."""
        ...


@final
class ClientStreams:
    """Those that one client has open, by the ids of the requests that opened them."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._open: dict[RequestId, OpenedStream[Any]] = {}
        self._answered: set[RequestId] = set()

    @asynccontextmanager
    async def open(
        self, name: str, args: Mapping[str, Any], item_type: type[T], buffer: int
    ) -> AsyncGenerator[OpenedStream[T], None]:
        """See `Client.open_stream`."""
        await trio.lowlevel.checkpoint_if_cancelled()
        id, pending = self._calls.post(OPEN_STREAM, OpenStream(name=name, args=dict(args)))
        stream = self._open[id] = OpenedStream(name, item_type, buffer, lambda: self._close(id))

        def answered(_: StreamOpened) -> None:
            self._answered.add(id)

        pending.answered = answered
        try:
            await pending.settled.wait()
            pending.result()
            yield stream
        finally:
            self._calls.drop(id)
            if not stream.over:
                stream.end(None)
                self._close(id)
            del self._open[id]
            self._answered.discard(id)

    def _close(self, id: RequestId) -> None:
        self._calls.notify(CLOSE_STREAM, CloseStream(stream=id))

    def hear(self, event: StreamEvent) -> None:
        """Something came for a stream."""
        if (stream := self._open.get(event.stream)) is not None:
            stream.take(event)

    def lose(self) -> None:
        """The connection is lost, and with it every stream that was open on it."""
        for id in self._answered:
            stream = self._open[id]
            stream.end(
                RpcError(
                    "CLOSED",
                    f"The connection was lost, and with it the stream {stream.name}: open it again, behind the last "
                    "item if it takes such a position.",
                    {"stream": stream.name},
                )
            )
