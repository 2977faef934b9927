"""The bridge's routes at a gateway's own port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import final

import trio

from greenroom.actors.bridge import Route, RouteRequest, question_routes, terminal_routes
from greenroom.actors.bridge.route import ByteStream
from greenroom.actors.gateway.access import Access, Usage, presented_token
from greenroom.actors.gateway.connection import GatewayLimits
from greenroom.actors.gateway.http import HttpRequest, HttpResponse
from greenroom.actors.gateway.routes import Handler, Routes
from greenroom.actors.terminal import TerminalManager
from greenroom.protocol.bridge import TOKEN_HEADER

__all__ = ["add_bridge"]


def add_bridge(routes: Routes, terminals: TerminalManager, access: Access, limits: GatewayLimits) -> None:
    """Serve forms at `/terminals/:name`, and the older single questions at `/questions/:name`.

    The gateway's own tokens hold here: in the bridge's header, or as a bearer (RFC 6750). So do their limits: a stream
    counts as a connection and as a subscription.
    """
    for route in (*terminal_routes(terminals), *question_routes(terminals)):
        routes.add(route.method, route.path, _mounted(route, access, limits))


def _mounted(route: Route, access: Access, limits: GatewayLimits) -> Handler:
    async def handle(request: HttpRequest, names: dict[str, str]) -> HttpResponse:
        caller = access.identify(presented_token(request.values("authorization"), (), request.values(TOKEN_HEADER)))
        if caller is None:
            return HttpResponse(401, content_type="")
        if caller.token is not None and not _has_room(caller.usage, limits, route.method):
            return HttpResponse(429, content_type="")
        may = caller.grants.may_attach if route.method == "GET" else caller.grants.may_answer
        if not may(names["name"]):
            return HttpResponse(404, content_type="")
        seen = RouteRequest(
            params=names,
            headers=request.headers,
            query=request.query,
            body=request.body,
            admitted=lambda: access.admits(caller),
        )
        response = await route.handler(seen)
        body = response.body if isinstance(response.body, bytes) else _CountedStream(response.body, caller.usage)
        return HttpResponse(response.status, body, content_type="", headers=response.headers)

    return handle


def _has_room(usage: Usage, limits: GatewayLimits, method: str) -> bool:
    """Whether one more request fits within the limits, and one more stream, which is what GET asks for."""
    if not usage.requests.spend(trio.current_time(), limits.requests, 5 * limits.requests):
        return False
    return method != "GET" or (usage.connections < limits.connections and usage.subscriptions < limits.subscriptions)


@final
class _CountedStream:
    """A stream that is in use by the holders of a token until it is closed."""

    def __init__(self, stream: ByteStream, usage: Usage) -> None:
        self._stream = stream
        self._usage: Usage | None = usage
        usage.connections += 1
        usage.subscriptions += 1

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        return await self._stream.__anext__()

    def close(self) -> None:
        usage, self._usage = self._usage, None
        if usage is not None:
            usage.connections -= 1
            usage.subscriptions -= 1
        self._stream.close()
