"""The routes as an ASGI application (version 3), for servers on trio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeAlias, final
from urllib.parse import unquote_to_bytes

import trio

from greenroom.actors.bridge.route import ByteStream, Route, RouteRequest, RouteResponse, match_path

__all__ = ["asgi_app"]

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


def asgi_app(routes: Iterable[Route], *, send_timeout: float = 10.0) -> App:
    """An application that serves these routes, and answers 404 or 405 to anything else.

    It runs in the trio program that its terminals live in, so its server has to be one that runs on trio. It may be
    mounted beneath a path (`root_path`). Where the server tells `raw_path`, a terminal's name may hold a slash. A
    stream ends when its client has gone, or takes no piece within `send_timeout` seconds.
    """
    table = tuple(routes)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await _serve(table, scope, receive, send, send_timeout)
        elif scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    return app


async def _live(receive: Receive, send: Send) -> None:
    """Say yes to the server's start and stop: there is nothing of its own to open or to close."""
    while True:
        event = (await receive())["type"]
        await send({"type": f"{event}.complete"})
        if event == "lifespan.shutdown":
            return


async def _serve(table: tuple[Route, ...], scope: Scope, receive: Receive, send: Send, send_timeout: float) -> None:
    try:
        response = await _respond(table, scope, receive)
    except _ClientGone:
        return
    # Connections are the server's own affair: that header has no meaning in an application, nor in HTTP/2.
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in response.headers
        if name != "Connection"
    ]
    if isinstance(response.body, bytes):
        headers.append((b"content-length", str(len(response.body)).encode()))
    start: Message = {"type": "http.response.start", "status": response.status, "headers": headers}
    if not await _sent(start, send, send_timeout):
        if not isinstance(response.body, bytes):
            response.body.close()
    elif isinstance(response.body, bytes):
        await _sent({"type": "http.response.body", "body": response.body}, send, send_timeout)
    else:
        await _stream(response.body, receive, send, send_timeout)


async def _stream(body: ByteStream, receive: Receive, send: Send, send_timeout: float) -> None:
    async def until_the_client_has_gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        body.close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(until_the_client_has_gone)
        try:
            async for piece in body:
                message: Message = {"type": "http.response.body", "body": piece, "more_body": True}
                if not await _sent(message, send, send_timeout):
                    break
            else:
                await _sent({"type": "http.response.body", "body": b""}, send, send_timeout)
        finally:
            body.close()
        nursery.cancel_scope.cancel()


async def _sent(message: Message, send: Send, seconds: float) -> bool:
    """Whether the client took it, as far as its server can tell."""
    with trio.move_on_after(seconds):
        try:
            await send(message)
        except OSError:  # it has gone, in the words of ASGI 2.4
            return False
        return True
    return False


async def _respond(table: tuple[Route, ...], scope: Scope, receive: Receive) -> RouteResponse:
    try:
        segments = _segments(scope)
    except UnicodeDecodeError:
        return RouteResponse(400)
    allowed: list[str] = []
    for route in table:
        params = match_path(route.path.split("/")[1:], segments)
        if params is not None and route.method == scope["method"]:
            return await route.handler(_request(scope, params, receive))
        if params is not None:
            allowed.append(route.method)
    return RouteResponse(405, headers=(("Allow", ", ".join(allowed)),)) if allowed else RouteResponse(404)


def _segments(scope: Scope) -> tuple[str, ...]:
    """The decoded segments of the path beneath the one at which this application is mounted."""
    raw: bytes | None = scope.get("raw_path")
    if raw is None:
        segments = scope["path"].split("/")[1:]
    else:
        segments = [unquote_to_bytes(part).decode() for part in raw.partition(b"?")[0].split(b"/")[1:]]
    root = [part for part in scope.get("root_path", "").split("/") if part]
    return tuple(segments[len(root) :] if root and segments[: len(root)] == root else segments)


def _request(scope: Scope, params: dict[str, str], receive: Receive) -> RouteRequest:
    return RouteRequest(
        params=params,
        headers=tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]),
        query=scope.get("query_string", b"").decode("latin-1"),
        body=_Body(receive),
    )


class _ClientGone(Exception):
    """The client went away before its request was there."""


@final
class _Body:
    """What is posted, piece by piece."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._ended:
            raise StopAsyncIteration
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise _ClientGone
        self._ended = not message.get("more_body", False)
        piece: bytes = message.get("body", b"")
        return piece
