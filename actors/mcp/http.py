"""MCP over streamable HTTP, at a gateway's own port: behind its fence, its tokens and its limits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final, final

import trio
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from greenroom.actors.gateway.access import Access, Caller, presented_token
from greenroom.actors.gateway.http import HttpRequest, HttpResponse, text_response
from greenroom.actors.gateway.routes import Routes
from greenroom.actors.mcp.serving import GRANTS
from greenroom.protocol.bridge import TOKEN_HEADER
from greenroom.protocol.errors import ActorError
from greenroom.runtime.actor import Actor

__all__ = ["MCP_PATH", "McpEndpoint"]

MCP_PATH: Final = "/mcp"

BODY: Final = 4 << 20
"""The most bytes of a request's body."""
QUEUED: Final = 16
"""Pieces of a response that may wait to be read."""


@final
class McpEndpoint(Actor):
    """Serves an MCP server to whoever the gateway lets in; sessions and requests are its work, and end with it.

    A caller is shown the tools that its token grants. A session belongs to the token that opened it. When a client
    leaves in the middle of a response its call is cancelled, as far as the protocol has it so; before a response has
    begun, which takes the package 15 s at most, nobody looks.
    """

    def __init__(self, server: Server[Any]) -> None:
        super().__init__()
        self._manager = StreamableHTTPSessionManager(server, session_idle_timeout=1800.0)
        self._ready = trio.Event()

    async def on_start(self) -> None:
        self.start_soon(self._run)

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await trio.sleep_forever()

    def mount(self, routes: Routes, access: Access) -> None:
        """Serve at `MCP_PATH` of a gateway with these tokens."""

        async def handle(request: HttpRequest, names: dict[str, str]) -> HttpResponse:
            token = presented_token(request.values("authorization"), (), request.values(TOKEN_HEADER))
            caller = access.identify(None if access.open else token)
            if caller is None:
                return text_response(401, "A token is needed here.", ("WWW-Authenticate", "Bearer"))
            return await self._respond(request, caller)

        for method in ("GET", "POST", "DELETE"):
            routes.add(method, MCP_PATH, handle)

    async def _respond(self, request: HttpRequest, caller: Caller) -> HttpResponse:
        body = bytearray()
        async for piece in request.body:
            body += piece
            if len(body) > BODY:
                return text_response(413, f"The body of a request has at most {BODY} bytes.")
        await self._ready.wait()  # no deadline: it is set as the actor's first act
        exchange = _Exchange(bytes(body))
        scope = _scope(request, caller)
        try:
            self.start_soon(self._carry_out, scope, exchange)
        except (ActorError, RuntimeError):  # it takes no work any more
            return text_response(503, "The server stops.")
        return await exchange.response()

    async def _carry_out(self, scope: dict[str, Any], exchange: _Exchange) -> None:
        try:
            await self._manager.handle_request(scope, exchange.receive, exchange.send)
        except trio.BrokenResourceError:
            pass  # its reader has gone
        finally:
            exchange.end()


@final
class _Exchange:
    """One request and its response between an ASGI application, in a task of its own, and the gateway.

    It is the body of the response too, where that comes in pieces.
    """

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._gone = trio.Event()
        self._begun = trio.Event()
        self._status = 500
        self._headers: tuple[tuple[str, str], ...] = ()
        self._whole: bytes | None = None
        self._pieces, self._read = trio.open_memory_channel[bytes](QUEUED)

    async def receive(self) -> dict[str, Any]:
        """The request, and then, once its reader has gone, that it has."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        """Take a part of the response. Raises BrokenResourceError when nobody reads it any more."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = tuple(
                (name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]
            )
            return
        piece, more = bytes(message.get("body", b"")), message.get("more_body", False)
        if not self._begun.is_set() and not more:
            self._whole = piece
        self._begun.set()
        if self._whole is None and piece:
            await self._pieces.send(piece)
        if not more:
            self._pieces.close()

    def end(self) -> None:
        """The application is done, whatever it has sent."""
        self._begun.set()
        self._pieces.close()

    async def response(self) -> HttpResponse:
        """The response as far as it has come. Cancelled: the application is told that its reader has gone."""
        try:
            await self._begun.wait()
        except trio.Cancelled:
            self.close()
            raise
        headers = tuple(header for header in self._headers if header[0].lower() not in _FRAMING)
        kind = next((value for name, value in self._headers if name.lower() == "content-type"), "")
        body = self if self._whole is None else self._whole
        return HttpResponse(self._status, body, content_type=kind, headers=headers)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self._read.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            raise StopAsyncIteration from None

    def close(self) -> None:
        """Its reader has gone."""
        self._gone.set()
        self._read.close()


_FRAMING: Final = frozenset({"content-type", "content-length", "connection", "transfer-encoding"})
"""What the gateway says itself."""


def _scope(request: HttpRequest, caller: Caller) -> dict[str, Any]:
    """The request as ASGI has it (version 3)."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": request.version,
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": request.query.encode(),
        "root_path": "",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers],
        # The package lets a session be used by whoever opened it, and by nobody else. It is told no token.
        "user": AuthenticatedUser(AccessToken(token="", client_id=caller.name, scopes=[])),
        GRANTS: caller.grants,
    }
