"""Peers that are silent, slow or half gone: each costs its own connection, in bounded time, and nothing else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Any, TypeAlias

import pytest
import trio
import trio.testing
from trio_websocket import WebSocketConnection, wrap_client_stream

from greenroom.actors.gateway import GatewayLimits, SocketLimits
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.forms import Form
from tests.gateway.conftest import ONE_FIELD, accept_stream, peer, site_with
from tests.gateway.raw import UPGRADE, head, raw

HANDSHAKE = head("GET", "/rpc", {"Host": "localhost", **UPGRADE})
LARGE = {"fields": [{"control": "text", "name": "x", "label": "y" * 50_000}]}
Clock: TypeAlias = trio.testing.MockClock
"""A test names it as an argument, or its clock would be the real one."""


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    async with open_runtime() as runtime:
        runtime.terminals.add("ops")
        yield runtime


def left(runtime: Runtime) -> dict[str, int]:
    snapshot = runtime.snapshot()
    connections = [child for child in snapshot.root.children if child.kind == "connection"]
    return {
        "connections": len(connections),
        "subscriptions": runtime.terminals.subscriptions,
        "tickets": len(runtime.terminals.pending()),
        "waits": len(snapshot.waits),
    }


async def gone(runtime: Runtime) -> float:
    """Wait until the connection has ended; when that was."""
    for ref in list((runtime.tree.root.children or {}).values()):
        if ref.path.startswith("/connection-"):
            await ref.wait_ended()
    assert left(runtime) == {"connections": 0, "subscriptions": 0, "tickets": 0, "waits": 0}
    return trio.current_time()


async def shake(stream: trio.abc.Stream) -> None:
    """Open a WebSocket by hand: nobody answers pings on it."""
    await stream.send_all(HANDSHAKE)
    assert b" 101 " in await stream.receive_some()


async def say(stream: trio.abc.Stream, method: str, params: Any, id: int = 1) -> None:
    """Send one request as one masked frame."""
    text = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
    size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + len(text).to_bytes(2, "big")
    await stream.send_all(b"\x81" + size + b"\0\0\0\0" + text)


async def heard(stream: trio.abc.Stream, part: bytes) -> bytes:
    received = b""
    while part not in received:
        data = await stream.receive_some()
        assert data, received
        received += data
    return received


# -------------------------------------------------------------------- before the WebSocket is open


@pytest.mark.parametrize("sent", [b"", b"GET /rpc HT", HANDSHAKE[:-2]])
async def test_a_head_that_does_not_come_is_given_up_after_ten_seconds(
    runtime: Runtime, autojump_clock: Clock, sent: bytes
) -> None:
    stream = accept_stream(runtime)
    if sent:
        await stream.send_all(sent)
    assert await gone(runtime) == pytest.approx(10, abs=1.1)


async def test_a_head_that_trickles_in_is_given_up_as_a_whole(runtime: Runtime, autojump_clock: Clock) -> None:
    stream = accept_stream(runtime)
    with suppress(trio.BrokenResourceError):
        for byte in HANDSHAKE:
            await stream.send_all(bytes([byte]))
            await trio.sleep(1)
    assert await gone(runtime) <= 12


async def test_a_response_that_is_not_read_is_given_up(runtime: Runtime, autojump_clock: Clock) -> None:
    stream = accept_stream(runtime, lockstep=True)
    await stream.send_all(head("GET", "/nothing", {"Host": "localhost"}))
    assert await gone(runtime) == pytest.approx(10)


async def test_a_handshake_whose_response_is_not_read_is_given_up(runtime: Runtime, autojump_clock: Clock) -> None:
    stream = accept_stream(runtime, lockstep=True)
    await stream.send_all(HANDSHAKE)
    assert await gone(runtime) == pytest.approx(10)


async def test_with_too_many_silent_connections_the_oldest_makes_room_and_whoever_is_known_stays() -> None:
    async with site_with(GatewayLimits(waiting=3)) as site, AsyncExitStack() as stack:
        known = await stack.enter_async_context(peer(site.url))
        stream = await stack.enter_async_context(raw(site.gateway.port))
        await stream.stream.send_all(head("GET", "/terminals/ops", {"Host": "localhost"}))
        await stream.until(b"event-stream")
        silent = [await stack.enter_async_context(raw(site.gateway.port)) for _ in range(5)]
        for connection in silent[:2]:
            assert await connection.ended() == b""
        await site.until(lambda: site.gateway.connections == 5)
        assert await known.result("terminal/list")
        site.nursery.start_soon(site.runtime.ask, "ops", ONE_FIELD)
        await stream.until((await site.the_form()).encode())
        assert (await silent[-1].get("/nothing", {"Host": "localhost"})).status == 404


# -------------------------------------------------------------------- the heartbeat


async def test_a_peer_that_answers_no_ping_is_given_up_within_two_periods(
    runtime: Runtime, autojump_clock: Clock
) -> None:
    stream = accept_stream(runtime)
    await shake(stream)
    await say(stream, "terminal/attach", {"terminal": "ops"})
    await heard(stream, b"pending")
    await say(stream, "terminal/ask", {"to": "ops", "schema": ONE_FIELD}, 2)
    assert await gone(runtime) == pytest.approx(40)


async def test_a_peer_that_answers_pings_stays_for_ever(
    runtime: Runtime, autojump_clock: Clock, nursery: trio.Nursery
) -> None:
    ws = await open_ws(runtime, nursery)
    await trio.sleep(3600)
    await ws.send_message('{"jsonrpc":"2.0","id":1,"method":"terminal/list"}')
    assert "ops" in str(await ws.get_message())
    assert left(runtime)["connections"] == 1


async def test_pings_come_at_the_interval_that_was_set(runtime: Runtime, autojump_clock: Clock) -> None:
    limits = GatewayLimits(socket=SocketLimits(ping_interval=3, ping_timeout=2))
    stream = accept_stream(runtime, limits=limits)
    await shake(stream)
    assert await gone(runtime) == pytest.approx(5)


async def test_a_peer_that_pings_and_reads_nothing_is_given_up(runtime: Runtime, autojump_clock: Clock) -> None:
    stream = accept_stream(runtime, lockstep=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, HANDSHAKE)
        await heard(stream, b"\r\n\r\n")
    with suppress(trio.BrokenResourceError):
        while True:
            await stream.send_all(b"\x89\x80\0\0\0\0")
    assert await gone(runtime) <= 12


async def open_ws(
    runtime: Runtime, nursery: trio.Nursery, limits: GatewayLimits | None = None, *, lockstep: bool = False
) -> WebSocketConnection:
    stream: Any = accept_stream(runtime, limits=limits, lockstep=lockstep)
    return await wrap_client_stream(nursery, stream, "localhost", "/rpc", message_queue_size=1)


# -------------------------------------------------------------------- those who do not keep up


async def test_a_peer_that_reads_nothing_is_cut_off_after_the_send_deadline(
    runtime: Runtime, autojump_clock: Clock
) -> None:
    stream = accept_stream(runtime, lockstep=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, HANDSHAKE)
        await heard(stream, b"\r\n\r\n")
    await say(stream, "terminal/attach", {"terminal": "ops"})
    assert await gone(runtime) == pytest.approx(10)


async def test_one_slow_viewer_holds_up_neither_the_others_nor_the_terminal(
    runtime: Runtime, autojump_clock: Clock, nursery: trio.Nursery
) -> None:
    slow = await open_ws(runtime, nursery, lockstep=True)
    quick = await open_ws(runtime, nursery)
    for ws in (slow, quick):
        await ws.send_message('{"jsonrpc":"2.0","id":1,"method":"terminal/attach","params":{"terminal":"ops"}}')
        await ws.get_message()
    terminal = runtime.terminals.terminal("ops")
    assert terminal is not None
    before = trio.current_time()
    ids = [await terminal.park(Form(ONE_FIELD)) for _ in range(200)]
    for id in ids:
        assert json.loads(str(await quick.get_message()))["params"]["form"]["id"] == id
    assert trio.current_time() == before
    await terminal.stop()


@pytest.mark.parametrize("limits", [{"queued_frames": 10}, {"queued_bytes": 1 << 20}], ids=["frames", "bytes"])
async def test_a_peer_that_does_not_keep_up_is_closed_with_a_reason_and_loses_nothing(limits: dict[str, int]) -> None:
    socket = SocketLimits(close_timeout=0.2, **limits)
    async with site_with(GatewayLimits(socket=socket)) as site, raw(site.gateway.port) as connection:
        await shake(connection.stream)
        await say(connection.stream, "terminal/attach", {"terminal": "ops"})
        await heard(connection.stream, b"pending")
        while (
            site.terminals.subscriptions
        ):  # until the buffers between the two are full, and the line of frames after them
            await site.ops.park(Form(LARGE))
        parked = site.parked("ops")
        received = await connection.ended()
        close = received.rindex(b"\x88")
        assert int.from_bytes(received[close + 2 : close + 4], "big") == 1013
        assert b"connect again" in received[close:]
        assert 0 < received.count(b'"terminal/pending"') < len(parked)
        await site.until(lambda: site.gateway.connections == 0)
        async with peer(site.url) as again:
            attachment = await again.result("terminal/attach", {"terminal": "ops"})
        assert [form["id"] for form in attachment["pending"]] == parked


async def test_a_single_message_always_fits_however_large() -> None:
    async with site_with(GatewayLimits(socket=SocketLimits(queued_bytes=1000))) as site:
        for _ in range(20):
            await site.ops.park(Form(LARGE))
        async with peer(site.url) as viewer:
            assert len((await viewer.result("terminal/attach", {"terminal": "ops"}))["pending"]) == 20
