"""Routes that are called by hand: requests without a network, and streams that a task reads."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.bridge import ByteStream, Route, RouteRequest, RouteResponse, terminal_routes
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.terminal import Terminal
from greenroom.protocol.bridge import TOKEN_HEADER
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.forms import Form
from greenroom.protocol.sse import SSEEvent, SSEParser

__all__ = ["ONE_FIELD", "Asked", "Bridge", "Pieces", "Reader", "said"]

ONE_FIELD: dict[str, Any] = {"fields": [{"control": "text", "name": "x", "rule": {"required": True}}]}
"""A form with one required text `x`."""


class Pieces:
    """A body that arrives in these pieces, and calls `between` before each."""

    def __init__(self, pieces: Iterable[bytes], between: Callable[[], object] | None = None) -> None:
        self._pieces = iter(list(pieces))
        self._between = between

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await trio.lowlevel.checkpoint()
        for piece in self._pieces:
            if self._between is not None:
                self._between()
            return piece
        raise StopAsyncIteration


class Reader:
    """What came on a stream."""

    def __init__(self, body: ByteStream) -> None:
        self.body = body
        self.bytes = b""
        self.ended = False
        self.scope = trio.CancelScope()

    async def run(self) -> None:
        with self.scope:
            async for piece in self.body:
                self.bytes += piece
            self.ended = True

    @property
    def events(self) -> list[SSEEvent]:
        return SSEParser().parse(self.bytes.decode())

    def new(self) -> bytes:
        """What came since the last time."""
        came, self.bytes = self.bytes, b""
        return came


class Asked:
    """An ask that runs beside the test, and what became of it."""

    def __init__(self) -> None:
        self.values: dict[str, Any] | None = None
        self.error: GreenroomError | None = None
        self.scope = trio.CancelScope()


class Bridge:
    """A runtime with a terminal `ops` and its routes."""

    def __init__(self, runtime: Runtime, nursery: trio.Nursery) -> None:
        self.runtime = runtime
        self.terminals = runtime.terminals
        self.nursery = nursery
        self.routes(terminal_routes(self.terminals))
        self.terminals.add("ops")

    def routes(self, routes: tuple[Route, Route]) -> None:
        self.get_route, self.post_route = routes

    @property
    def ops(self) -> Terminal:
        terminal = self.terminals.terminal("ops")
        assert terminal is not None
        return terminal

    def the_id(self) -> str:
        (record,) = self.terminals.pending("ops")
        return record.id

    async def get(self, name: str = "ops", token: str | None = None, *, query: str = "") -> RouteResponse:
        headers = () if token is None else ((TOKEN_HEADER, token),)
        return await self.get_route.handler(RouteRequest(params={"name": name}, headers=headers, query=query))

    async def connect(self, name: str = "ops", token: str | None = None, *, query: str = "") -> Reader:
        """Open a stream, and read it beside the test."""
        response = await self.get(name, token, query=query)
        assert response.status == 200
        assert not isinstance(response.body, bytes)
        reader = Reader(response.body)
        self.nursery.start_soon(reader.run)
        await trio.testing.wait_all_tasks_blocked()
        return reader

    async def post(self, posted: Any, name: str = "ops", token: str | None = None, **options: Any) -> tuple[int, Any]:
        """Post bytes as they are (or a list of them, piece by piece), anything else as JSON; status and response."""
        body = posted if isinstance(posted, bytes | list) else json.dumps(posted).encode()
        headers = () if token is None else ((TOKEN_HEADER, token),)
        request = RouteRequest(
            params={"name": name}, headers=headers, body=Pieces(body if isinstance(body, list) else [body], **options)
        )
        response = await self.post_route.handler(request)
        assert isinstance(response.body, bytes)
        await trio.testing.wait_all_tasks_blocked()
        return response.status, said(response)

    async def ask(self, schema: Any = ONE_FIELD, to: str = "ops", from_: str | None = "a", **options: Any) -> Asked:
        """Begin an ask and let it come as far as it gets without the clock."""
        asked = Asked()

        async def run() -> None:
            with asked.scope:
                try:
                    form = schema if isinstance(schema, Form) else Form(schema)
                    asked.values = await self.terminals.ask(from_, to, form, **options)
                except GreenroomError as error:
                    asked.error = error

        self.nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        return asked


def said(response: RouteResponse) -> Any:
    """The JSON, the text, or None for nothing, that a response holds."""
    assert isinstance(response.body, bytes)
    kind = dict(response.headers).get("Content-Type")
    if kind == "application/json":
        return json.loads(response.body)
    return response.body.decode() or None


@pytest.fixture
async def bridge() -> AsyncIterator[Bridge]:
    async with open_runtime() as runtime, trio.open_nursery() as nursery:
        yield Bridge(runtime, nursery)
        nursery.cancel_scope.cancel()
