"""What every wire of a terminal shares: who may pass, which terminal is meant, the stream, and reading a body."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any, Final, cast, final

from greenroom.actors.bridge.connection import Frames, Removals, TerminalConnection
from greenroom.actors.bridge.route import Handler, RouteRequest, RouteResponse
from greenroom.actors.bridge.token import Token, admits
from greenroom.actors.terminal import Terminal, TerminalManager
from greenroom.protocol.bridge import TOKEN_HEADER, read_json
from greenroom.protocol.schemas.gates import encodable

__all__ = ["LIMIT", "Endpoint", "Refusal", "has_utf8", "refusing"]

LIMIT: Final = 1_048_576
"""Bytes of a posted body."""

_STREAM_HEADERS: Final = (
    ("Content-Type", "text/event-stream; charset=utf-8"),
    ("Cache-Control", "no-cache"),
    ("Connection", "keep-alive"),
    ("X-Accel-Buffering", "no"),  # to proxies that would hold pieces back
)


@final
class Refusal(Exception):
    """A request that ends with this status, and no words."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.response = RouteResponse(status)


@final
class Endpoint:
    """The terminals of a manager, behind a token. `name` is the parameter of the path that names the terminal."""

    def __init__(self, terminals: TerminalManager, path: str, *, token: Token, keepalive: float, limit: float) -> None:
        names = [segment[1:] for segment in path.split("/") if segment.startswith(":")]
        if not path.startswith("/") or names != ["name"]:
            raise ValueError(f"the path of these routes has one segment `:name`, as in /terminals/:name, not {path!r}")
        if not keepalive > 0:
            raise ValueError(f"a keepalive is more than 0 seconds, not {keepalive}")
        self.terminals = terminals
        self._token: Token = token
        self._keepalive = keepalive
        self._limit = max(0, math.floor(limit)) if math.isfinite(limit) else LIMIT
        self._removals = Removals()

    def enter(self, request: RouteRequest) -> Terminal:
        """The terminal that is meant. Raises Refusal: 401, which tells nothing else, or 404."""
        if not self._admits(request):
            raise Refusal(401)
        terminal = self.terminals.terminal(request.params["name"])
        if terminal is None:
            raise Refusal(404)
        return terminal

    def stream(self, request: RouteRequest, frames: Frames, *, until_removed: bool = False) -> RouteResponse:
        """The response that is a stream of that terminal. Raises Refusal."""
        connection = TerminalConnection(
            self.terminals,
            self.enter(request),
            frames,
            admitted=lambda: self._admits(request) and request.admitted(),
            keepalive=self._keepalive,
            removals=self._removals if until_removed else None,
        )
        return RouteResponse(200, connection, _STREAM_HEADERS)

    async def read(self, request: RouteRequest) -> Any:
        """The body as JSON. Raises Refusal: 413 once more than the limit was read, 401 for whoever sent it and is not
        admitted any more, 400 for what is no JSON.

        How long the body may take is up to whoever gives it.
        """
        body = bytearray()
        async for piece in request.body:
            body += piece
            if len(body) > self._limit:
                raise Refusal(413)
        if not request.admitted():
            raise Refusal(401)
        try:
            return read_json(bytes(body))
        except ValueError:
            raise Refusal(400) from None

    def _admits(self, request: RouteRequest) -> bool:
        return admits(self._token, request.values(TOKEN_HEADER))


def has_utf8(*values: object) -> bool:
    """Whether every text among the values, or in a list of texts, has a UTF-8 form: half of a surrogate pair has none.

    Such text could neither be shown to anybody nor be kept.
    """
    lists = (cast("list[object]", value) for value in values if isinstance(value, list))
    return all(encodable(text) for text in chain(values, *lists) if isinstance(text, str))


def refusing(handler: Handler) -> Handler:
    """The handler, with its refusals as responses."""

    async def handle(request: RouteRequest) -> RouteResponse:
        try:
            return await handler(request)
        except Refusal as refusal:
            return refusal.response

    return handle
