"""Durable asks over the wire: whose they are, how they are found again, and what the older bridge sees of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio

from greenroom.actors.client import Client, connect
from greenroom.actors.gateway import Access, AccessToken
from greenroom.actors.system import open_runtime
from greenroom.protocol.access import EVERYTHING
from greenroom.protocol.bridge import pending_event
from greenroom.protocol.errors import ConfigError, JournalError, RpcError, TerminalError
from greenroom.protocol.terminals import AnswerSuccess
from tests.durable.stage import refusing
from tests.gateway.conftest import ONE_FIELD, Site, until

ID = "a-client-of-the-test"


@asynccontextmanager
async def recording(**options: Any) -> AsyncGenerator[Site]:
    """A site with a journal."""
    async with open_runtime(data=":memory:") as runtime, trio.open_nursery() as nursery:
        gateway = await runtime.serve(**options)
        runtime.terminals.add("ops")
        yield Site(runtime, gateway, nursery)
        nursery.cancel_scope.cancel()


async def begin(site: Site, client: Client, durable: str = "k") -> str:
    """Let the client ask, and go on: the form's id."""
    site.nursery.start_soon(ignoring, client, durable)
    await site.until(lambda: site.ops.pending())
    (record,) = site.ops.pending()
    return record.id


async def ignoring(client: Client, durable: str) -> None:
    with suppress(RpcError):  # it leaves before there is an answer
        await client.ask("ops", ONE_FIELD, durable=durable)


async def test_a_client_that_comes_again_finds_its_ask() -> None:
    async with recording() as site:
        async with connect(site.url, id=ID) as client:
            id = await begin(site, client)
        assert [record.id for record in site.ops.pending()] == [id], "it outlives the client"
        assert await site.ops.answer(id, {"x": "go"}) == AnswerSuccess(value={"x": "go"})
        async with connect(site.url, id=ID) as client:
            assert await client.ask("ops", ONE_FIELD, durable="k") == {"x": "go"}
            assert await client.release("k") is True
            assert await client.release("k") is False


async def test_nobody_else_gets_the_answer() -> None:
    tokens = {name: f"the secret token of {name}" for name in ("ada", "eve")}
    access = Access(AccessToken.of(name, token, EVERYTHING) for name, token in tokens.items())
    async with recording(access=access) as site:
        async with connect(site.url, id=ID, token=tokens["ada"]) as ada:
            id = await begin(site, ada)
            await site.ops.answer(id, {"x": "for ada"})
        await until(lambda: not (site.runtime.tree.find("/clients").children or {}))
        async with connect(site.url, id=ID, token=tokens["eve"]) as eve:
            assert await eve.release("k") is False, "the same id with another token is another client"
        async with connect(site.url, id="another-client", token=tokens["ada"]) as other:
            assert await other.release("k") is False


async def test_a_durable_ask_needs_a_client_that_said_hello() -> None:
    async with recording() as site:
        for method, params in (
            ("terminal/ask", {"to": "ops", "schema": ONE_FIELD, "durable": "k"}),
            ("terminal/release", {"durable": "k"}),
        ):
            with pytest.raises(RpcError) as refused:
                async with connect(site.url, reconnect=False) as client:
                    await client.call(method, params, dict[str, Any])
            assert refused.value.code == "HELLO"


async def test_refusals_are_raised_as_what_they_are() -> None:
    async with recording() as site, connect(site.url, id=ID) as client:
        secret = {"fields": [{"control": "password", "name": "pin"}]}
        with pytest.raises(TerminalError) as undurable:
            await client.ask("ops", secret, durable="k")
        assert (undurable.value.code, undurable.value.context) == ("DURABLE", {"fields": ["pin"]})
        with refusing(site.runtime), pytest.raises(JournalError) as full:
            await client.ask("ops", ONE_FIELD, durable="k")
        assert full.value.code == "READONLY"
        id = await begin(site, client)
        with refusing(site.runtime), pytest.raises(JournalError):
            await client.answer("ops", id, {"x": "go"})
        assert [record.id for record in await client.pending("ops")] == [id]
        with pytest.raises(TerminalError) as taken:
            await client.ask("ops", {"fields": []}, durable="k")
        assert taken.value.code == "TAKEN"


def test_an_id_that_cannot_be_is_refused_before_anything_is_sent() -> None:
    async def main() -> None:
        async with connect("ws://127.0.0.1:1/rpc", id="too short"):
            pass

    with pytest.raises(ConfigError) as refused:
        trio.run(main)
    assert refused.value.code == "CLIENT"


async def test_the_bridge_does_not_say_that_a_form_is_durable() -> None:
    async with recording() as site, connect(site.url, id=ID) as client:
        await begin(site, client)
        (record,) = site.ops.pending()
        assert record.durable
        assert b"durable" not in pending_event(record)
