"""The bridge's routes at a gateway's own port."""

from __future__ import annotations

from greenroom.actors.bridge import Route, RouteRequest, question_routes, terminal_routes
from greenroom.actors.gateway.http import HttpRequest, HttpResponse
from greenroom.actors.gateway.routes import Handler, Routes
from greenroom.actors.terminal import TerminalManager

__all__ = ["add_bridge"]


def add_bridge(routes: Routes, terminals: TerminalManager) -> None:
    """Serve forms at `/terminals/:name`, and the older single questions at `/questions/:name`."""
    for route in (*terminal_routes(terminals), *question_routes(terminals)):
        routes.add(route.method, route.path, _mounted(route))


def _mounted(route: Route) -> Handler:
    async def handle(request: HttpRequest, names: dict[str, str]) -> HttpResponse:
        seen = RouteRequest(params=names, headers=request.headers, query=request.query, body=request.body)
        response = await route.handler(seen)
        return HttpResponse(response.status, response.body, content_type="", headers=response.headers)

    return handle
