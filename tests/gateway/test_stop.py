"""When the server stops, or is cancelled: everybody is told, everything ends, soon."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.gateway import GatewayLimits, SocketLimits
from greenroom.actors.system import open_runtime
from greenroom.protocol.forms import Form
from greenroom.runtime.tools import Tool
from tests.gateway.conftest import ONE_FIELD, Peer, Site, accept_stream, peer, site_with
from tests.gateway.raw import UPGRADE, head, raw

SHUTDOWN: dict[str, Any] = {"jsonrpc": "2.0", "method": "system/shutdown", "params": {}}


async def ask(caller: Peer, id: int = 1) -> None:
    params = {"to": "ops", "schema": ONE_FIELD}
    await caller.send({"jsonrpc": "2.0", "id": id, "method": "terminal/ask", "params": params})


async def test_every_client_gets_its_answers_then_the_notice_then_the_close(site: Site) -> None:
    site.runtime.tools.add(Tool("wait", trio.sleep_forever))
    async with AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(peer(site.url)) for _ in range(20)]
        await ask(peers[0])
        await ask(peers[0], 2)
        await peers[1].send({"jsonrpc": "2.0", "id": "t", "method": "tool/call", "params": {"name": "wait"}})
        await peers[2].result("terminal/attach", {"terminal": "ops"})
        await site.until(lambda: len(site.parked("ops")) == 2)
        await peers[1].result("terminal/list")
        with trio.fail_after(1):
            await site.gateway.stop()
        answers = [await peers[0].receive(), await peers[0].receive()]
        assert [(answer["id"], answer["error"]["data"]["code"]) for answer in answers] == [
            (1, "SHUTDOWN"),
            (2, "SHUTDOWN"),
        ]
        assert [answer["error"]["code"] for answer in answers] == [-32002, -32002]
        assert (await peers[1].receive())["id"] == "t"
        for each in peers:
            assert await each.receive() == SHUTDOWN
            assert (await each.closed())[0] == 1001
    assert any(site.left().values()) is False


async def test_a_batch_is_answered_whole_before_the_end(site: Site, caller: Peer) -> None:
    requests: list[Any] = [
        {"jsonrpc": "2.0", "id": 1, "method": "terminal/ask", "params": {"to": "ops", "schema": ONE_FIELD}},
        {"jsonrpc": "2.0", "id": 2, "method": "terminal/list"},
        {"jsonrpc": "2.0", "method": "terminal/ask", "params": {"to": "ops", "schema": ONE_FIELD}},
    ]
    await caller.send(requests)
    await site.until(lambda: len(site.parked("ops")) == 2)
    await site.gateway.stop()
    answers = {answer["id"]: answer for answer in await caller.receive()}
    assert "result" in answers[2]
    assert answers[1]["error"]["data"]["code"] == "SHUTDOWN"
    assert await caller.receive() == SHUTDOWN


async def test_what_was_being_sent_when_it_stopped_still_arrives(site: Site, caller: Peer) -> None:
    await caller.result("terminal/attach", {"terminal": "ops"})
    ids = [await site.ops.park(Form(ONE_FIELD)) for _ in range(50)]
    await site.gateway.stop()
    assert [(await caller.receive())["params"]["form"]["id"] for _ in ids] == ids
    assert await caller.receive() == SHUTDOWN


class Served:
    """A runtime with a gateway, which is left, or cancelled, when the test says so."""

    def __init__(self, limits: GatewayLimits | None = None) -> None:
        self.limits = limits
        self.leave = trio.Event()
        self.scope = trio.CancelScope()
        self.ended = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[Site]) -> None:
        with self.scope:
            async with site_with(self.limits) as site:
                task_status.started(site)
                await self.leave.wait()
        self.ended.set()

    async def end(self, how: str) -> None:
        if how == "left":
            self.leave.set()
        else:
            self.scope.cancel()
        await self.ended.wait()


@pytest.mark.parametrize("how", ["left", "cancelled"])
async def test_a_runtime_that_ends_tells_its_clients(nursery: trio.Nursery, how: str) -> None:
    served = Served()
    site: Site = await nursery.start(served.run)
    async with peer(site.url) as caller:
        await ask(caller, 7)
        await caller.result("terminal/list")
        await served.end(how)
        assert (await caller.receive())["error"]["data"]["code"] == "SHUTDOWN"
        assert await caller.receive() == SHUTDOWN
        assert (await caller.closed())[0] == 1001


@pytest.mark.parametrize("how", ["left", "cancelled"])
async def test_a_hundred_mute_clients_do_not_hold_it_up(nursery: trio.Nursery, how: str) -> None:
    served = Served(GatewayLimits(socket=SocketLimits(close_timeout=0.3)))
    site: Site = await nursery.start(served.run)
    async with AsyncExitStack() as stack:
        for _ in range(100):
            connection = await stack.enter_async_context(raw(site.gateway.port))
            assert (await connection.get("/rpc", {"Host": "localhost", **UPGRADE})).status == 101
        for _ in range(20):
            await stack.enter_async_context(raw(site.gateway.port))
        started = trio.current_time()
        await served.end(how)
        assert trio.current_time() - started < 2


async def test_a_peer_in_the_middle_of_a_frame_is_cut_off_at_the_end_of_the_close_timeout(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_runtime() as runtime:
        terminal = runtime.terminals.add("ops")
        stream = accept_stream(runtime, lockstep=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, head("GET", "/rpc", {"Host": "localhost", **UPGRADE}))
            while b"\r\n\r\n" not in await stream.receive_some():
                pass
        text = b'{"jsonrpc":"2.0","id":1,"method":"terminal/attach","params":{"terminal":"ops"}}'
        await stream.send_all(b"\x81" + bytes([0x80 | len(text)]) + b"\0\0\0\0" + text)
        await terminal.park(Form(ONE_FIELD))
        await trio.testing.wait_all_tasks_blocked()
        started = trio.current_time()
    assert trio.current_time() - started == pytest.approx(SocketLimits().close_timeout)


async def test_stopping_twice_or_from_two_tasks_is_one_stop(site: Site, caller: Peer) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.gateway.stop)
        nursery.start_soon(site.gateway.stop)
    await site.gateway.stop()
    assert await caller.receive() == SHUTDOWN


async def test_a_connection_can_be_stopped_by_itself(site: Site) -> None:
    async with peer(site.url) as first, peer(site.url) as second:
        await first.result("terminal/list")
        await second.result("terminal/list")
        await site.runtime.tree.find("/gateway/connections/1").stop()
        assert (await first.closed())[0] == 1001
        assert "terminals" in await second.result("terminal/list")
