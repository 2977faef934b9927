"""The opening handshake of a WebSocket, at either end, under a deadline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol, cast, final

import trio
from trio_websocket import (
    ConnectionClosed,
    ConnectionRejected,
    WebSocketConnection,
    wrap_client_stream,
    wrap_server_stream,
)
from wsproto import ConnectionType
from wsproto.handshake import H11Handshake

from greenroom.actors.client.metering import MeteredStream
from greenroom.actors.client.socket import FrameSocket, SocketLimits
from greenroom.actors.client.stream import GuardedStream
from greenroom.protocol.access import PROTOCOL

__all__ = ["HandshakeFailed", "accept", "dial"]

_QUEUE: Final = 16
"""How many messages the library reads ahead. While it cannot, it answers no pings."""
_RECEIVE: Final = 16_384
_DONE: Final = H11Handshake(ConnectionType.SERVER)
"""Stands for every handshake that is over; it has nothing to tell."""


class Starter(Protocol):
    """What runs tasks: a nursery, or an actor."""

    def start_soon(self, function: Callable[..., Awaitable[object]], /, *args: Any) -> object: ...


class HandshakeFailed(Exception):
    """No WebSocket came about: the peer was too slow, broke the protocol, or answered with the HTTP `status`."""

    def __init__(self, status: int | None = None) -> None:
        super().__init__(status)
        self.status = status


async def accept(starter: Starter, stream: GuardedStream, limits: SocketLimits) -> FrameSocket:
    """The server's side of a handshake whose request the stream begins with. No extension is agreed on.

    Raises `HandshakeFailed`, with the stream killed. `starter` must run tasks until the socket is closed.
    """

    async def shake(library: _Library, metered: MeteredStream) -> WebSocketConnection:
        request = await wrap_server_stream(
            library.as_nursery(), metered, _QUEUE, limits.message_size, receive_buffer_size=_RECEIVE
        )
        return await request.accept(subprotocol=PROTOCOL if PROTOCOL in request.proposed_subprotocols else None)

    return await _open(starter, stream, limits, shake)


async def dial(
    nursery: trio.Nursery,
    stream: GuardedStream,
    host: str,
    resource: str,
    limits: SocketLimits,
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> FrameSocket:
    """The client's side of a handshake. Raises `HandshakeFailed`, with the stream killed.

    `nursery` must stay open until the socket is closed.
    """

    async def shake(library: _Library, metered: MeteredStream) -> WebSocketConnection:
        return await wrap_client_stream(
            library.as_nursery(),
            cast("Any", metered),  # any stream will do; it is declared for sockets
            host,
            resource,
            extra_headers=list(headers),
            message_queue_size=_QUEUE,
            max_message_size=limits.message_size,
            receive_buffer_size=_RECEIVE,
        )

    return await _open(nursery, stream, limits, shake)


async def _open(
    starter: Starter,
    stream: GuardedStream,
    limits: SocketLimits,
    shake: Callable[[_Library, MeteredStream], Awaitable[WebSocketConnection]],
) -> FrameSocket:
    library, metered = _Library(starter), MeteredStream(stream, limits)
    ws: WebSocketConnection | None = None
    try:
        with trio.move_on_after(limits.handshake_timeout) as scope:
            library.ended = scope.cancel  # its reader has given up: there is nothing to wait for
            ws = await shake(library, metered)
    except ConnectionClosed:
        pass
    finally:
        library.ended = _nothing
        if ws is None:
            library.scope.cancel()
            await stream.kill()
    if ws is None:
        status = library.failure.status_code if isinstance(library.failure, ConnectionRejected) else None
        raise HandshakeFailed(status)
    # It is asked for what it has to tell for as long as the connection lasts, and its parser takes three kilobytes.
    ws._wsproto.handshake = _DONE  # pyright: ignore[reportPrivateUsage]
    socket = FrameSocket(ws, stream, limits, library.scope.cancel)
    metered.watch(socket.end)
    return socket


@final
class _Library:
    """Stands where trio-websocket wants a nursery, for the one task that it starts: its reader.

    The reader must outlive a cancellation of everything else, for only it can hear the peer's part of the closing
    handshake; and what it raises must not take the nursery down.
    """

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self.scope = trio.CancelScope(shield=True)
        self.ended: Callable[[], object] = _nothing
        """Called when the reader has ended, by itself or cancelled."""
        self.failure: Exception | None = None

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: object) -> None:
        self._starter.start_soon(self._run, function, args)

    async def _run(self, function: Callable[..., Awaitable[object]], args: Sequence[object]) -> None:
        with self.scope:
            try:
                await function(*args)
            except Exception as error:
                self.failure = error
            self.ended()

    def as_nursery(self) -> trio.Nursery:
        return cast("trio.Nursery", self)  # it is asked for nothing but `start_soon`


def _nothing() -> None:
    pass
