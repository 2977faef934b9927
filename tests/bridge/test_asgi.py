"""The routes as an ASGI application, called as a server on trio calls it."""

from __future__ import annotations

import json
import math
from typing import Any
from urllib.parse import quote, unquote

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from greenroom.actors.bridge import asgi_app, question_routes, terminal_routes
from greenroom.protocol.bridge import TOKEN_HEADER
from tests.bridge.conftest import ONE_FIELD, Bridge

wait = trio.testing.wait_all_tasks_blocked


class Server:
    """One request to an application, from the server's side."""

    def __init__(self, bridge: Bridge, **options: Any) -> None:
        routes = (
            *terminal_routes(bridge.terminals, token=options.pop("token", None)),
            *question_routes(bridge.terminals),
        )
        self.app = asgi_app(routes, **options)
        self.sent: list[Any] = []
        self.to_app, self._from_client = trio.open_memory_channel[Any](math.inf)
        self.stuck: trio.Event | None = None
        self.gone = False

    async def receive(self) -> Any:
        return await self._from_client.receive()

    async def send(self, message: Any) -> None:
        await trio.lowlevel.checkpoint()
        if self.gone:
            raise BrokenPipeError
        self.sent.append(message)
        if self.stuck is not None:
            await self.stuck.wait()

    async def call(self, method: str, path: str, *pieces: bytes, raw: bool = True, **scope: Any) -> None:
        plain, _, query = path.partition("?")
        told: dict[str, Any] = {
            "type": "http",
            "method": method,
            "path": unquote(plain),
            "query_string": query.encode(),
            "headers": [],
            **scope,
        }
        if raw:
            told["raw_path"] = plain.encode()
        for number, piece in enumerate(pieces, start=1):
            self.to_app.send_nowait({"type": "http.request", "body": piece, "more_body": number < len(pieces)})
        await self.app(told, self.receive, self.send)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])


async def test_a_stream_goes_out_piece_by_piece_until_the_client_has_gone(bridge: Bridge) -> None:
    server = Server(bridge)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.call, "GET", "/terminals/ops?events=all", b"")
        await wait()
        assert server.sent == [
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [
                    (b"content-type", b"text/event-stream; charset=utf-8"),
                    (b"cache-control", b"no-cache"),
                    (b"x-accel-buffering", b"no"),
                ],
            }
        ]
        await bridge.ask()
        assert server.sent[1]["more_body"] is True
        assert server.sent[1]["body"].startswith(b"event: pending\n")
        assert bridge.terminals.subscriptions == 1
        server.to_app.send_nowait({"type": "http.disconnect"})
    assert bridge.terminals.subscriptions == 0


async def test_a_stream_that_ends_is_told_to_end(bridge: Bridge) -> None:
    server = Server(bridge)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.call, "GET", "/terminals/ops?events=all", b"")
        await wait()
        await bridge.terminals.remove("ops")
    assert server.body == b"event: shutdown\ndata: \n\n"
    assert server.sent[-1] == {"type": "http.response.body", "body": b""}


async def test_an_answer_comes_in_pieces(bridge: Bridge) -> None:
    asked = await bridge.ask()
    body = json.dumps({"id": bridge.the_id(), "values": {"x": "v"}}).encode()
    server = Server(bridge)
    await server.call("POST", "/terminals/ops", *[bytes([byte]) for byte in body])
    told = b'{"success":true,"value":{"x":"v"}}'
    assert server.sent == [
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(told)).encode())],
        },
        {"type": "http.response.body", "body": told},
    ]
    await wait()
    assert asked.values == {"x": "v"}


async def test_a_client_that_goes_before_its_answer_is_there_changes_nothing(bridge: Bridge) -> None:
    await bridge.ask()
    server = Server(bridge)
    server.to_app.send_nowait({"type": "http.request", "body": b'{"id":', "more_body": True})
    server.to_app.send_nowait({"type": "http.disconnect"})
    await server.call("POST", "/terminals/ops")
    assert server.sent == []
    assert len(bridge.terminals.pending()) == 1


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/terminals", 404),
        ("GET", "/terminals/nobody", 404),
        ("GET", "/terminals/ops/more", 404),
        ("PUT", "/terminals/ops", 405),
        ("HEAD", "/terminals/ops", 405),
        ("POST", "/terminals/ops", 400),
        ("POST", "/questions/ops", 400),
        ("GET", "/terminals/%ff", 400),
    ],
)
async def test_what_is_no_route_is_told_so(bridge: Bridge, method: str, path: str, status: int) -> None:
    server = Server(bridge)
    await server.call(method, path, b"")
    assert (server.status, server.body) == (status, b"")
    allowed = [value for name, value in server.sent[0]["headers"] if name == b"allow"]
    assert allowed == ([b"GET, POST"] if status == 405 else [])


@pytest.mark.parametrize("name", ["a/b", "a?x=1", "..", "50%", "{other}", "ü😀"])
async def test_a_name_is_one_segment(bridge: Bridge, name: str) -> None:
    bridge.terminals.add(name)
    server = Server(bridge)
    await server.call("POST", f"/terminals/{quote(name, safe='')}", b"[]")
    assert server.status == 422
    if "/" not in name:  # which a server that decodes the path as a whole cannot tell from a step
        server = Server(bridge)
        await server.call("POST", f"/terminals/{quote(name, safe='')}", b"[]", raw=False)
        assert server.status == 422


@pytest.mark.parametrize("raw", [True, False])
async def test_it_may_be_mounted_beneath_a_path(bridge: Bridge, raw: bool) -> None:
    for path in ("/beneath/this/terminals/ops", "/terminals/ops"):  # servers differ in what they tell
        server = Server(bridge)
        await server.call("POST", path, b"[]", raw=raw, root_path="/beneath/this")
        assert server.status == 422


async def test_the_token_comes_from_a_header(bridge: Bridge) -> None:
    for presented, status in ((b"s\xe9", 422), (b"s", 401)):
        server = Server(bridge, token="s\xe9")
        await server.call("POST", "/terminals/ops", b"[]", headers=[(TOKEN_HEADER.upper().encode(), presented)])
        assert server.status == status


async def test_a_client_that_takes_nothing_is_given_up(bridge: Bridge, autojump_clock: MockClock) -> None:
    await bridge.ask(timeout=None)
    server = Server(bridge, send_timeout=10)
    server.stuck = trio.Event()
    with trio.fail_after(30):
        await server.call("GET", "/terminals/ops", b"")
    assert trio.current_time() == pytest.approx(10)
    server.stuck.set()
    server.sent.clear()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.call, "GET", "/terminals/ops", b"")
        await trio.sleep(1)
        server.stuck = trio.Event()
        await trio.sleep(30)
        assert bridge.terminals.subscriptions == 0


async def test_a_server_that_says_that_its_client_has_gone_is_believed(bridge: Bridge) -> None:
    server = Server(bridge)
    server.gone = True
    await server.call("GET", "/terminals/ops", b"")
    await server.call("POST", "/terminals/ops", b"[]")
    server.gone = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.call, "GET", "/terminals/ops", b"")
        await wait()
        server.gone = True
        await bridge.ask()
    assert bridge.terminals.subscriptions == 0


async def test_a_cancelled_request_leaves_nothing(bridge: Bridge) -> None:
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Server(bridge).call, "GET", "/terminals/ops", b"")
            await wait()
            assert bridge.terminals.subscriptions == 1
            scope.cancel()
    assert bridge.terminals.subscriptions == 0


async def test_the_servers_start_and_stop_are_answered(bridge: Bridge) -> None:
    server = Server(bridge)
    for event in ("startup", "shutdown"):
        server.to_app.send_nowait({"type": f"lifespan.{event}"})
    await server.app({"type": "lifespan"}, server.receive, server.send)
    assert server.sent == [{"type": "lifespan.startup.complete"}, {"type": "lifespan.shutdown.complete"}]


async def test_a_websocket_is_turned_away(bridge: Bridge) -> None:
    server = Server(bridge)
    server.to_app.send_nowait({"type": "websocket.connect"})
    await server.app({"type": "websocket"}, server.receive, server.send)
    assert [message["type"] for message in server.sent] == ["websocket.close"]


async def test_a_form_with_one_field_is_served_at_the_older_path_too(bridge: Bridge) -> None:
    await bridge.ask(ONE_FIELD)
    await bridge.ask({"fields": [{"control": "confirm", "name": "value", "label": "Go?"}]}, from_="b")
    server = Server(bridge)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.call, "GET", "/questions/ops", b"")
        await wait()
        assert server.body.count(b"event: pending") == 1
        nursery.cancel_scope.cancel()
