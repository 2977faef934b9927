"""A runtime with a gateway on a real port, and peers that send whatever a test likes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio
import trio.testing
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_client_stream

from greenroom.actors.gateway import Gateway, GatewayLimits, Services
from greenroom.actors.gateway.access import Access
from greenroom.actors.gateway.connection import Connection, Front
from greenroom.actors.gateway.doorstep import Doorstep
from greenroom.actors.gateway.fence import Fence
from greenroom.actors.gateway.routes import Routes
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.terminal import Terminal

__all__ = ["ONE_FIELD", "Peer", "Site", "accept_stream", "peer", "site_with", "until"]

ONE_FIELD: dict[str, Any] = {"fields": [{"control": "text", "name": "x", "rule": {"required": True}}]}
"""A form with one required text `x`."""


async def until(condition: Callable[[], object]) -> None:
    """Wait for what no event of the server announces; five seconds are more than enough."""
    with trio.fail_after(5):
        while not condition():  # noqa: ASYNC110  # real sockets: there is nothing to be woken by
            await trio.sleep(0.01)


class Site:
    """A runtime, its gateway, and a nursery beside them."""

    def __init__(self, runtime: Runtime, gateway: Gateway, nursery: trio.Nursery) -> None:
        self.runtime = runtime
        self.terminals = runtime.terminals
        self.gateway = gateway
        self.nursery = nursery
        self._changed = trio.Event()
        for event in ("pending", "answer", "expire", "withdraw"):
            self.terminals.emitter.on(event, self._pulse)
        runtime.bus.on("actor/ended", self._pulse)

    def _pulse(self, *_: object) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until a form or an actor has made it true; five seconds are more than enough."""
        with trio.fail_after(5):
            while not condition():
                await self._changed.wait()

    @property
    def ops(self) -> Terminal:
        """The terminal that every site has."""
        terminal = self.terminals.terminal("ops")
        assert terminal is not None
        return terminal

    @property
    def url(self) -> str:
        return self.gateway.url

    def parked(self, terminal: str) -> list[str]:
        """The ids of the forms that are parked there."""
        return [form.id for form in self.terminals.pending(terminal)]

    def left(self) -> dict[str, int]:
        """What a connection may leave behind."""
        snapshot = self.runtime.snapshot()
        return {
            "tickets": len(self.terminals.pending()),
            "subscriptions": self.terminals.subscriptions,
            "waits": len(snapshot.waits),
            "deadlines": snapshot.deadlines,
            "connections": self.gateway.connections,
        }

    async def the_form(self, terminal: str = "ops") -> str:
        """The id of the one form there, once it is parked."""
        await self.until(lambda: self.parked(terminal))
        (id,) = self.parked(terminal)
        return id

    async def until_nothing_is_left(self) -> None:
        """Wait until no connection has left anything."""
        await self.until(lambda: not any(self.left().values()))


class Peer:
    """A client without manners: it sends what it is given, and shows what came back."""

    def __init__(self, ws: WebSocketConnection) -> None:
        self.ws = ws

    async def send(self, message: Any) -> None:
        """Send a text or bytes as they are, anything else as JSON."""
        await self.ws.send_message(message if isinstance(message, str | bytes) else json.dumps(message))

    async def receive(self) -> Any:
        with trio.fail_after(5):
            return json.loads(await self.ws.get_message())

    async def call(self, method: str, params: Any = None, id: Any = 1) -> Any:
        """One request and the next message."""
        await self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})
        return await self.receive()

    async def result(self, method: str, params: Any = None) -> Any:
        answer = await self.call(method, params)
        assert "error" not in answer, answer
        return answer["result"]

    async def closed(self) -> tuple[int, str | None]:
        """Wait until the other side has closed; its code and reason."""
        with trio.fail_after(5), suppress(ConnectionClosed):
            while True:
                await self.ws.get_message()
        assert self.ws.closed is not None
        return self.ws.closed.code, self.ws.closed.reason


@asynccontextmanager
async def peer(url: str) -> AsyncGenerator[Peer, None]:
    host, _, port = url.removeprefix("ws://").removesuffix("/rpc").rpartition(":")
    stream = await trio.open_tcp_stream(host, int(port))
    try:
        async with trio.open_nursery() as nursery:
            ws = await wrap_client_stream(
                nursery, stream, f"{host}:{port}", "/rpc", message_queue_size=64, max_message_size=64 << 20
            )
            yield Peer(ws)
            with trio.move_on_after(2):
                await ws.aclose()
            nursery.cancel_scope.cancel()
    finally:  # the library leaves it open when the other side was the first to close
        await trio.aclose_forcefully(stream)


def accept_stream(
    runtime: Runtime,
    *,
    limits: GatewayLimits | None = None,
    routes: Routes | None = None,
    lockstep: bool = False,
) -> trio.abc.HalfCloseableStream:
    """A connection of `runtime` over a pair of streams in memory, for tests that move the clock; the client's end.

    `lockstep`: neither end takes bytes before the other reads them.
    """
    pair = trio.testing.lockstep_stream_pair() if lockstep else trio.testing.memory_stream_pair()
    services = Services(runtime.terminals, runtime.tools, runtime.workflows, runtime.snapshot, runtime.remote)
    limits = limits or GatewayLimits()
    doorstep = Doorstep(limits.waiting)
    front = Front(runtime.tree, services, Fence(), Access(), routes or Routes(), limits, None, doorstep)
    number = len(runtime.tree.root.children or ())
    runtime.spawn(Connection(pair[1], front), f"connection-{number}")
    return pair[0]


@asynccontextmanager
async def site_with(limits: GatewayLimits | None = None, **options: Any) -> AsyncGenerator[Site, None]:
    async with open_runtime() as runtime, trio.open_nursery() as nursery:
        gateway = await runtime.serve(limits=limits, **options)
        runtime.terminals.add("ops")
        yield Site(runtime, gateway, nursery)
        nursery.cancel_scope.cancel()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with site_with() as site:
        yield site


@pytest.fixture
async def caller(site: Site) -> AsyncIterator[Peer]:
    async with peer(site.url) as caller:
        yield caller
