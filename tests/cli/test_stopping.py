"""A server that is told to stop while many look, wait and call."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from greenroom.actors.client import Client, connect
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.rpc import FormWithdrawn
from tests.cli.conftest import SECONDS, Server, begin

ONE_FIELD = {"fields": [{"control": "text", "name": "x", "rule": {"required": True}}]}


@pytest.mark.case("reports/clients", 6)
async def test_sigterm_tells_everybody_and_ends_in_time_also_when_it_comes_twice(server: Server) -> None:
    port = int(server.url.rpartition(":")[2].removesuffix("/rpc"))
    ends: list[str] = []
    streams: list[bytes] = []

    async def look(started: trio.Event) -> None:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        async with stream:
            await stream.send_all(b"GET /terminals/reviewer HTTP/1.1\r\nHost: localhost\r\n\r\n")
            data = await stream.receive_some()
            assert data.startswith(b"HTTP/1.1 200")
            started.set()
            while more := await stream.receive_some():
                data += more
        streams.append(data)

    async def call(client: Client, method: str, params: dict[str, Any]) -> None:
        try:
            await client.call(method, params, dict[str, Any])
        except GreenroomError as error:
            ends.append(error.code)

    with trio.fail_after(SECONDS):
        async with trio.open_nursery() as nursery, trio.open_nursery() as sockets:
            events = [trio.Event() for _ in range(20)]
            for event in events:
                nursery.start_soon(look, event)
            clients: list[Client] = []
            for _ in range(20):
                clients.append(await sockets.start(_stay_connected, server.url))
            for client in clients[:4]:
                nursery.start_soon(call, client, "terminal/ask", {"to": "ops", "schema": ONE_FIELD})
            for event in events:
                await event.wait()
            while len(await clients[-1].pending("ops")) < 4:
                await trio.lowlevel.checkpoint()
            started = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            await trio.sleep(0.2)
            server.process.send_signal(signal.SIGTERM)
            code = await trio.to_thread.run_sync(server.process.wait, abandon_on_cancel=True)
            assert code == 0
            assert time.monotonic() - started < 2
            sockets.cancel_scope.cancel()
    assert ends == ["SHUTDOWN"] * 4
    assert len(streams) == 20
    assert all(data.endswith(b"0\r\n\r\n") for data in streams)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_no_further_signal_than_ctrl_c_ends_a_server_that_is_stopping(server: Server, number: signal.Signals) -> None:
    server.process.send_signal(signal.SIGTERM)
    while server.process.poll() is None:
        server.process.send_signal(number)
        time.sleep(0.001)
    assert server.process.returncode == 0
    assert server.process.stderr is not None
    assert "Stopping." in server.process.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_at_an_asker_takes_its_form_back_at_once(
    patient_server: Server, number: signal.Signals, tmp_path: Path
) -> None:
    form = tmp_path / "form.json"
    form.write_text(json.dumps(ONE_FIELD))
    asker = begin("ask", "ops", str(form), url=patient_server.url)
    try:
        with trio.fail_after(SECONDS):
            async with connect(patient_server.url) as client, client.attach("ops") as ops:
                if not ops.pending:
                    await anext(ops)
                asker.send_signal(number)
                gone = await anext(ops)
                assert isinstance(gone, FormWithdrawn)
                assert await trio.to_thread.run_sync(asker.wait) == 128 + number
                (place,) = (child for child in (await client.tree()).root.children if child.path == "/clients")
                assert len(place.children) == 1, "there is nobody but who looks"
    finally:
        asker.kill()
        asker.communicate()


async def _stay_connected(url: str, *, task_status: trio.TaskStatus[Client]) -> None:
    async with connect(url, reconnect=False) as client:
        task_status.started(client)
        await trio.sleep_forever()
