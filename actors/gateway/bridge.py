"""The bridge's routes at a gateway's own port."""

from __future__ import annotations

from greenroom.actors.bridge import Route, RouteRequest, question_routes, terminal_routes
from greenroom.actors.gateway.access import Access
from greenroom.actors.gateway.http import HttpRequest, HttpResponse
from greenroom.actors.gateway.routes import Handler, Routes
from greenroom.actors.terminal import TerminalManager
from greenroom.protocol.bridge import TOKEN_HEADER

__all__ = ["add_bridge"]


def add_bridge(routes: Routes, terminals: TerminalManager, access: Access) -> None:
    """Serve forms at `/terminals/:name`, and the older single questions at `/questions/:name`."""

    def admits(presented: str | None) -> bool:
        return access.identify(presented) is not None

    token = None if access.open else admits
    for route in (*terminal_routes(terminals, token=token), *question_routes(terminals, token=token)):
        routes.add(route.method, route.path, _mounted(route, access))


def _mounted(route: Route, access: Access) -> Handler:
    async def handle(request: HttpRequest, names: dict[str, str]) -> HttpResponse:
        presented = request.values(TOKEN_HEADER)
        caller = access.identify(presented[0] if len(presented) == 1 else None)
        if caller is not None:  # whoever is not let in is refused by the route itself
            may = caller.grants.may_attach if route.method == "GET" else caller.grants.may_answer
            if not may(names["name"]):
                return HttpResponse(404, content_type="")
        seen = RouteRequest(params=names, headers=request.headers, query=request.query, body=request.body)
        response = await route.handler(seen)
        return HttpResponse(response.status, response.body, content_type="", headers=response.headers)

    return handle
