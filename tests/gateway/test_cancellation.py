"""Cancelled at every step: no call, form, subscription, wait, connection or descriptor is left."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from greenroom.actors.client import Client, connect
from greenroom.actors.gateway import GatewayLimits, SocketLimits
from greenroom.protocol.forms import Form
from greenroom.protocol.terminals import AnswerSuccess
from tests.cancelling import Doomed, at_every_step
from tests.gateway.conftest import ONE_FIELD, Site, site_with
from tests.gateway.raw import UPGRADE, frame, raw

QUICK = GatewayLimits(socket=SocketLimits(close_timeout=0.5))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def attach(site: Site, client: Client) -> None:
    async with client.attach("ops") as terminal:
        await site.ops.park(Form(ONE_FIELD))
        await terminal.__anext__()


async def ask(site: Site, client: Client) -> None:
    async def answer() -> None:
        await site.terminals.answer("ops", await site.the_form(), {"x": "y"})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        assert await client.ask("ops", ONE_FIELD, from_="me") == {"x": "y"}


async def look(site: Site, client: Client) -> None:
    await client.terminals()
    await client.tree()


@pytest.mark.parametrize("act", [attach, ask, look])
async def test_a_cancelled_call_leaves_nothing_and_the_connection_goes_on(
    act: Callable[[Site, Client], Awaitable[None]],
) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with site_with(QUICK) as site, connect(site.url, reconnect=False) as client:
            await doomed(act, site, client)
            await client.terminals()
            await site.ops.stop()
            nothing = dict.fromkeys(site.left(), 0)
            await site.until(lambda: site.left() == {**nothing, "connections": 1})
            assert client.open

    assert await at_every_step(scenario) > 10


async def test_a_cancelled_answer_counted_or_it_did_not() -> None:
    counted: set[bool] = set()

    async def scenario(doomed: Doomed) -> None:
        async with site_with(QUICK) as site, connect(site.url, reconnect=False) as client:
            id = await site.ops.park(form := Form(ONE_FIELD))
            ended = await doomed(client.answer, "ops", id, {"x": "y"})
            if not ended.cancelled:
                assert ended.value == AnswerSuccess(value={"x": "y"})
            await client.terminals()
            assert (form.status == "settled") == (site.parked("ops") == [])
            counted.add(form.status == "settled")
            await site.ops.stop()
            await site.until(lambda: not site.left()["tickets"])

    await at_every_step(scenario)
    assert counted == {False, True}


async def test_a_cancelled_client_leaves_nothing_at_either_end() -> None:
    async def everything(url: str) -> None:
        async with connect(url, reconnect=False) as client, trio.open_nursery() as nursery:
            nursery.start_soon(lambda: client.ask("ops", ONE_FIELD))
            async with client.attach("ops"):
                nursery.cancel_scope.cancel()

    async def scenario(doomed: Doomed) -> None:
        async with site_with(QUICK) as site:
            await doomed(everything, site.url)
            await site.until_nothing_is_left()

    before = descriptors()
    assert await at_every_step(scenario) > 20
    assert descriptors() == before


async def test_a_cancelled_server_leaves_nothing() -> None:
    async def serve() -> None:
        async with (
            site_with(QUICK) as site,
            connect(site.url, reconnect=False) as client,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(lambda: client.ask("ops", ONE_FIELD))
            await site.the_form()
            nursery.cancel_scope.cancel()

    async def scenario(doomed: Doomed) -> None:
        await doomed(serve)

    before = descriptors()
    assert await at_every_step(scenario) > 20
    assert descriptors() == before


@pytest.mark.parametrize("attached", [True, False])
async def test_fifty_clients_that_drop_their_sockets_leave_nothing(site: Site, attached: bool) -> None:
    attaching, asking = (
        json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode()
        for method, params in (
            ("terminal/attach", {"terminal": "ops"}),
            ("terminal/ask", {"to": "ops", "schema": ONE_FIELD}),
        )
    )

    async def vanish() -> None:
        async with raw(site.gateway.port) as connection:
            await connection.get("/rpc", {"Host": "localhost", **UPGRADE})
            if attached:
                await connection.stream.send_all(frame(0x81, attaching) + frame(0x81, asking))
                await connection.until(b"terminal/pending")

    await vanish()
    await site.until_nothing_is_left()
    tasks, files = trio.lowlevel.current_statistics().tasks_living, descriptors()
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(vanish)
    await site.until_nothing_is_left()
    await site.ops.park(Form(ONE_FIELD))
    await trio.testing.wait_all_tasks_blocked()
    assert trio.lowlevel.current_statistics().tasks_living == tasks
    assert descriptors() == files
