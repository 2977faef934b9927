"""The bridge's routes at a gateway's own port."""

from __future__ import annotations

import trio

from greenroom.actors.bridge import Route, RouteRequest, question_routes, terminal_routes
from greenroom.actors.gateway.access import Access, presented_token
from greenroom.actors.gateway.http import HttpRequest, HttpResponse
from greenroom.actors.gateway.routes import Handler, Routes
from greenroom.actors.terminal import TerminalManager
from greenroom.protocol.bridge import TOKEN_HEADER

__all__ = ["add_bridge"]


def add_bridge(routes: Routes, terminals: TerminalManager, access: Access, rate: float) -> None:
    """Serve forms at `/terminals/:name`, and the older single questions at `/questions/:name`.

    The gateway's own tokens hold here: in the bridge's header, or as a bearer (RFC 6750). `rate` is how many requests a
    second the holders of one may send; five times as many may come at once.
    """
    for route in (*terminal_routes(terminals), *question_routes(terminals)):
        routes.add(route.method, route.path, _mounted(route, access, rate))


def _mounted(route: Route, access: Access, rate: float) -> Handler:
    async def handle(request: HttpRequest, names: dict[str, str]) -> HttpResponse:
        caller = access.identify(presented_token(request.values("authorization"), (), request.values(TOKEN_HEADER)))
        if caller is None:
            return HttpResponse(401, content_type="")
        if caller.token is not None and not caller.usage.requests.spend(trio.current_time(), rate, 5 * rate):
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
        return HttpResponse(response.status, response.body, content_type="", headers=response.headers)

    return handle
