"""What the holders of a token may have in use at a time, how that ends with the token, and what they lack."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.client import Client, connect
from greenroom.actors.gateway import Access, AccessToken, GatewayLimits, SocketLimits
from greenroom.actors.toolbox import describe_tool
from greenroom.protocol.access import Grants
from greenroom.protocol.errors import RpcError
from greenroom.protocol.forms import Form
from greenroom.protocol.tools import ToolFailure, ToolSuccess
from greenroom.runtime.tools import Tool
from tests.gateway.conftest import ONE_FIELD, until
from tests.gateway.raw import head, raw
from tests.gateway.test_access import ADA, OPS, ROOT, guarded, tokens

BOT = "the token of a program that asks"

# -------------------------------------------------------------------- what the holders of a token may have at once


async def hello(client: Client, name: str) -> None:
    await client.call("rpc/hello", {"client": f"client-{name}"}, dict[str, Any])


async def test_a_token_has_so_many_clients_those_that_are_away_included() -> None:
    async with guarded(limits=GatewayLimits(clients=2)) as site:
        for name in ("one", "two"):
            async with connect(site.url, reconnect=False, token=OPS) as client:
                await hello(client, name)
        async with connect(site.url, reconnect=False, token=OPS) as client:
            with pytest.raises(RpcError) as more:
                await hello(client, "three")
            assert (more.value.code, more.value.context["most"]) == ("BUSY", 2)
            await hello(client, "two")  # it is back, and no third one
            async with connect(site.url, reconnect=False, token=ROOT) as root:
                await hello(root, "of-root")
            await client.call("rpc/bye", {}, dict[str, Any])
        await site.until(lambda: site.gateway.connections == 0)
        async with connect(site.url, reconnect=False, token=OPS) as client:
            await hello(client, "three")


async def test_a_client_that_is_away_ends_with_its_token() -> None:
    access = Access(tokens())
    limits = GatewayLimits(socket=SocketLimits(ping_interval=0.05))
    async with guarded(access=access, limits=limits) as site:
        async with connect(site.url, reconnect=False, token=ADA) as ada:

            async def ask() -> None:
                with pytest.raises(RpcError):
                    await ada.call("terminal/ask", {"to": "ops", "schema": ONE_FIELD, "key": "k"}, dict[str, Any])

            await hello(ada, "of-ada")
            site.nursery.start_soon(ask)
            await site.the_form()
        await site.until(lambda: site.gateway.connections == 0)
        assert site.ops.count == 1
        access.replace(tokens()[1:])
        await site.until(lambda: not site.ops.count)  # not after the grace of 30 s


async def test_an_event_stream_counts_as_a_connection_and_as_a_subscription() -> None:
    for limits in (GatewayLimits(connections=1), GatewayLimits(subscriptions=1)):
        async with guarded(limits=limits) as site, raw(site.gateway.port) as one, raw(site.gateway.port) as two:
            get = head("GET", "/terminals/ops", {"Host": "localhost", "x-orkestrel-token": OPS})
            await one.stream.send_all(get)
            await one.until(b"event-stream")
            await two.stream.send_all(get)
            assert (await two.response()).status == 429
            await one.stream.aclose()
            await site.until(lambda: site.gateway.connections == 1)
            await two.stream.send_all(get)
            await two.until(b"event-stream")


async def test_an_answer_whose_token_ended_while_it_came_in_is_refused() -> None:
    access = Access(tokens())
    async with guarded(access=access) as site, raw(site.gateway.port) as connection:
        id = await site.ops.park(Form(ONE_FIELD))
        body = json.dumps({"id": id, "values": {"x": "late"}}).encode()
        headers = {"Host": "localhost", "x-orkestrel-token": OPS, "Content-Length": str(len(body))}
        await connection.stream.send_all(head("POST", "/terminals/ops", headers) + body[:-1])
        await until(lambda: site.runtime.tree.find("/gateway/connections").children)
        await trio.testing.wait_all_tasks_blocked(0.05)
        access.replace([])
        await connection.stream.send_all(body[-1:])
        assert (await connection.response("POST")).status == 401
        assert site.parked("ops") == [id]


# -------------------------------------------------------------------- what a token lets see, and what it lacks


async def test_tools_that_may_not_be_called_are_described_to_nobody() -> None:
    async with guarded() as site, connect(site.url, token=OPS) as ops, connect(site.url, token=ROOT) as root:
        site.runtime.tools.add([describe_tool(site.runtime.tools), Tool("launch", print, description="Secret.")])
        assert [tool.name for tool in await ops.tools()] == ["describe"]
        hidden = await ops.call_tool("describe", {"name": "launch"})
        assert isinstance(hidden, ToolFailure)
        assert hidden.error == "there is no tool 'launch'; there are: describe"
        assert "describe" in str(await ops.call_tool("describe", {"name": "describe"}))
        shown = await root.call_tool("describe", {"name": "launch"})
        assert isinstance(shown, ToolSuccess)
        assert shown.value == "Secret."


@pytest.mark.parametrize(
    ("token", "method", "params", "grant"),
    [
        (OPS, "terminal/ask", {"to": "ops", "schema": ONE_FIELD}, "ask"),
        (ADA, "terminal/ask", {"to": "ops", "schema": ONE_FIELD, "from": "root"}, "ask_as"),
        (ADA, "terminal/answer", {"terminal": "ops", "id": "x", "values": {}}, "answer"),
        (BOT, "terminal/attach", {"terminal": "ops"}, "attach"),
        (BOT, "terminal/pending", {"terminal": "ops"}, "attach"),
        (ADA, "system/tree", {}, "tree"),
    ],
)
async def test_at_a_terminal_that_may_be_seen_a_refusal_names_the_missing_grant(
    token: str, method: str, params: dict[str, Any], grant: str
) -> None:
    access = Access([*tokens(), AccessToken.of("bot", BOT, Grants(ask=("ops",)))])
    async with guarded(access=access) as site, connect(site.url, token=token) as client:
        with pytest.raises(RpcError) as denied:
            await client.call(method, params, dict[str, Any])
        assert (denied.value.code, denied.value.context) == ("DENIED", {"grant": grant})
        assert f"`{grant}`" in denied.value.message
