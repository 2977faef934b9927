"""What is at which path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias, final

from greenroom.actors.bridge.route import match_path
from greenroom.actors.gateway.http import HttpRequest, HttpResponse, text_response

__all__ = ["Handler", "Routes"]

Handler: TypeAlias = Callable[[HttpRequest, dict[str, str]], Awaitable[HttpResponse]]
"""Answers a request; the second argument holds what stood in the place of the pattern's `:names`, decoded."""


@final
class Routes:
    """A table of paths, each with its methods.

    ::

        routes.add("GET", "/terminals/:name", show)

    A segment `:name` stands for any one segment, also one with an encoded slash; the first pattern that fits is taken.
    """

    def __init__(self) -> None:
        self._table: dict[tuple[str, ...], dict[str, Handler]] = {}

    def add(self, method: str, pattern: str, handler: Handler) -> None:
        """Let `handler` answer requests of that method at paths of that pattern."""
        self._table.setdefault(tuple(pattern.split("/")[1:]), {})[method] = handler

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """What the route answers: 404 where there is none, 405 with the allowed methods where it has another method."""
        try:
            segments = request.segments
        except UnicodeDecodeError:
            return text_response(400, "The path is not UTF-8.")
        for pattern, methods in self._table.items():
            names = match_path(pattern, segments)
            if names is None:
                continue
            handler = methods.get(request.method)
            if handler is None:
                return text_response(405, "This path has no such method.", ("Allow", ", ".join(sorted(methods))))
            return await handler(request, names)
        return text_response(404, "There is nothing at this path.")
