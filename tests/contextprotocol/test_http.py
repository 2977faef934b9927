"""MCP over streamable HTTP at a gateway's port, with the package's own client and with none."""

from __future__ import annotations

import gc
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import pytest
import trio
from mcp import Client

from greenroom import Access, AccessToken, Gateway, Grants, Runtime, ToolError, ToolManager, mcp_endpoint, mcp_server
from greenroom import mount_mcp as mount
from tests.contextprotocol.conftest import FORM, Mode, accept, answering, texts

# The package's client leaves iterators of its HTTP library to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What the client left is collected within its own test, where nobody minds."""
    yield
    for _ in range(3):
        gc.collect()


ADA, BOB = "ada-" + "a" * 20, "bob-" + "b" * 20


@asynccontextmanager
async def serving(runtime: Runtime, access: Access | None = None) -> AsyncGenerator[str]:
    """The address of the runtime's tools."""
    endpoint = mcp_endpoint(mcp_server(runtime.tools, people=["me"]))
    ref = runtime.spawn(endpoint, "mcp")
    gateway: Gateway = await runtime.serve(access=access, mounts=[endpoint.mount])
    with trio.fail_after(30):
        yield f"http://{gateway.authority}/mcp"
        await gateway.stop()
        await ref.stop()


async def test_a_client_lists_calls_and_is_asked(runtime: Runtime, mode: Mode) -> None:
    elicit, asked = answering(accept(ship=True))
    async with serving(runtime) as url, Client(url, mode=mode, elicitation_callback=elicit) as mcp:
        assert [tool.name for tool in (await mcp.list_tools()).tools] == ["ask", "describe"]
        result = await mcp.call_tool("ask", {"to": "me", "schema": FORM})
    assert (result.structured_content, len(asked)) == ({"ship": True}, 1)


async def test_a_cancelled_call_takes_its_form_back(runtime: Runtime) -> None:
    async with serving(runtime) as url, Client(url, mode="legacy") as mcp:
        with trio.move_on_after(0.5):
            await mcp.call_tool("ask", {"to": "ops", "schema": FORM})
        with trio.move_on_after(5):
            while runtime.terminals.pending("ops"):  # noqa: ASYNC110 - when the client's word has come
                await trio.sleep(0.05)
        assert runtime.terminals.pending("ops") == []


async def test_a_token_is_needed_and_shows_what_it_grants(runtime: Runtime) -> None:
    access = Access([AccessToken.of("ada", ADA, Grants(tools=("describe",)))])
    tools = ToolManager()
    async with serving(runtime, access) as url:
        with pytest.raises(ToolError, match="cannot be mounted"):
            async with mount(tools, "s", url, token=BOB):
                raise AssertionError("it was let in")
        async with mount(tools, "s", url, token=ADA) as mounted:
            assert mounted.names == ("mcp__s__describe",)
            assert await tools.run("mcp__s__describe", {"name": "describe"})


@pytest.mark.parametrize("headers", ["Host: evil.example\r\n", "Host: {}\r\nOrigin: http://evil.example\r\n"])
async def test_who_comes_from_elsewhere_is_refused(runtime: Runtime, headers: str) -> None:
    async with serving(runtime) as url:
        where = url.removeprefix("http://").removesuffix("/mcp")
        host, _, port = where.partition(":")
        stream = await trio.open_tcp_stream(host, int(port))
        async with stream:
            await stream.send_all(f"POST /mcp HTTP/1.1\r\n{headers.format(where)}Content-Length: 0\r\n\r\n".encode())
            assert (await stream.receive_some(100)).startswith(b"HTTP/1.1 403 ")


async def test_what_is_no_message_is_an_error(runtime: Runtime) -> None:
    async with serving(runtime) as url:
        where = url.removeprefix("http://").removesuffix("/mcp")
        host, _, port = where.partition(":")
        for body in (b"", b"no JSON", b"[]", b'{"jsonrpc": "2.0"}'):
            async with await trio.open_tcp_stream(host, int(port)) as stream:
                head = f"POST /mcp HTTP/1.1\r\nHost: {where}\r\nContent-Type: application/json\r\n"
                head += f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
                await stream.send_all(head.encode() + body)
                assert (await stream.receive_some(100)).startswith(b"HTTP/1.1 4")
        async with Client(url) as mcp:
            assert texts(await mcp.call_tool("describe", {"name": "ask"}))


async def test_a_session_is_its_opener_s_alone(runtime: Runtime) -> None:
    tokens = [AccessToken.of(name, token, Grants(tools=("*",))) for name, token in (("ada", ADA), ("bob", BOB))]
    hello = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", '
    hello += b'"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}'
    async with serving(runtime, Access(tokens)) as url:
        where = url.removeprefix("http://").removesuffix("/mcp")
        host, _, port = where.partition(":")

        async def post(token: str, body: bytes, session: str = "") -> bytes:
            head = f"POST /mcp HTTP/1.1\r\nHost: {where}\r\nContent-Type: application/json\r\n{session}"
            head += f"Authorization: Bearer {token}\r\nAccept: application/json, text/event-stream\r\n"
            async with await trio.open_tcp_stream(host, int(port)) as stream:
                await stream.send_all(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                return bytes(await stream.receive_some(4096))

        opened = await post(ADA, hello)
        (session,) = [line for line in opened.decode().split("\r\n") if line.lower().startswith("mcp-session-id")]
        note = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'
        assert (await post(BOB, note, f"{session}\r\n")).startswith(b"HTTP/1.1 404 ")
        assert (await post(ADA, note, f"{session}\r\n")).startswith(b"HTTP/1.1 202 ")
