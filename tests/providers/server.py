"""A model's server on a real socket that answers, and misbehaves, as it is told to."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any, TypeAlias, final

import h11
import trio
from msgspec import Struct

__all__ = ["Act", "Gesture", "ModelServer", "Received", "event", "model_server", "sse"]


class Gesture(Enum):
    """What else it can do within an answer."""

    CUT = "close the connection in the middle of the body"
    HANG = "send nothing more"


Piece: TypeAlias = bytes | float | Gesture
"""Bytes to send, seconds to wait, or a gesture."""


@final
class Act(Struct, frozen=True):
    """One answer."""

    pieces: tuple[Piece, ...] = ()
    status: int = 200
    headers: dict[str, str] = {}
    type: str = "text/event-stream"


@final
class Received(Struct, frozen=True):
    """One request."""

    path: str
    headers: dict[str, str]
    body: Any


@final
class ModelServer:
    """Plays one act a request, and the last one again and again."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.acts: list[Act] = []
        self.received: list[Received] = []
        self.at: list[float] = []
        """When each request came, in trio's time."""
        self.connections = 0
        self.open = 0
        """How many connections are open."""

    def plays(self, *acts: Act | Sequence[Piece] | bytes) -> None:
        """From now on these."""
        self.acts = [_act(act) for act in acts]

    async def serve(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        self.open += 1
        try:
            async with stream:
                await self._converse(stream, h11.Connection(h11.SERVER))
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
            pass  # the client has gone
        finally:
            self.open -= 1

    async def _converse(self, stream: trio.SocketStream, peer: h11.Connection) -> None:
        while (received := await _request(stream, peer)) is not None:
            self.received.append(received)
            self.at.append(trio.current_time())
            act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
            if not await _play(stream, peer, act):
                return
            peer.start_next_cycle()


async def _request(stream: trio.SocketStream, peer: h11.Connection) -> Received | None:
    head: h11.Request | None = None
    body = b""
    while True:
        happened = peer.next_event()
        if happened is h11.NEED_DATA:
            peer.receive_data(await stream.receive_some())
        elif isinstance(happened, h11.Request):
            head = happened
        elif isinstance(happened, h11.Data):
            body += bytes(happened.data)
        elif isinstance(happened, h11.EndOfMessage):
            assert head is not None
            headers = {name.decode(): value.decode() for name, value in head.headers}
            return Received(head.target.decode(), headers, json.loads(body))
        else:
            return None


async def _play(stream: trio.SocketStream, peer: h11.Connection, act: Act) -> bool:
    """Play the act; whether the connection can go on."""

    async def send(what: Any) -> None:
        if data := peer.send(what):
            await stream.send_all(data)

    headers = {"content-type": act.type, **act.headers}
    await send(h11.Response(status_code=act.status, headers=list(headers.items())))
    for piece in act.pieces:
        match piece:
            case bytes():
                await send(h11.Data(data=piece))
            case float() | int():
                with trio.move_on_after(piece):
                    await _gone(stream)
                    return False
            case Gesture.HANG:
                await _gone(stream)
                return False
            case Gesture.CUT:
                return False
    await send(h11.EndOfMessage())
    return True


async def _gone(stream: trio.SocketStream) -> None:
    """Wait until the client closes its end."""
    while await stream.receive_some():
        pass


def _act(act: Act | Sequence[Piece] | bytes) -> Act:
    if isinstance(act, Act):
        return act
    return Act((act,)) if isinstance(act, bytes) else Act(tuple(act))


def event(data: Any, name: str = "") -> bytes:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def sse(*data: Any) -> bytes:
    """Several of them."""
    return b"".join(map(event, data))


@asynccontextmanager
async def model_server() -> AsyncGenerator[ModelServer]:
    """A server for the length of a block; nothing of it is left afterwards."""
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server = ModelServer(listeners[0].socket.getsockname()[1])
        nursery.start_soon(trio.serve_listeners, server.serve, listeners)
        yield server
        nursery.cancel_scope.cancel()
