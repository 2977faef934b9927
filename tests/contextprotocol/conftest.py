"""A runtime whose tools an MCP client calls, in memory; of both eras of the protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal, TypeAlias

import pytest
from mcp import Client, types
from mcp.client import ClientRequestContext
from mcp.client.session import ElicitationFnT

from greenroom import Runtime, ask_tool, describe_tool, mcp_server, open_runtime

Mode: TypeAlias = Literal["auto", "legacy"]
Connect: TypeAlias = Callable[..., AbstractAsyncContextManager[Client]]

FORM: dict[str, Any] = {
    "label": "Release 2.4",
    "fields": [
        {"control": "confirm", "name": "ship", "label": "Ship it today?", "rule": {"required": True}},
        {"control": "number", "name": "copies", "rule": {"minimum": 3}},
    ],
}
SECRET: dict[str, Any] = {"fields": [{"control": "password", "name": "pin", "label": "PIN"}]}


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> Mode:
    """How the client takes up the protocol: without a handshake (2026-07-28), or with one (2025-11-25)."""
    found: Mode = request.param
    return found


@pytest.fixture
async def runtime() -> AsyncGenerator[Runtime]:
    """With the terminal `me`, of the person at the client, and `ops`, of somebody else."""
    async with open_runtime() as runtime:
        runtime.terminals.add("me")
        runtime.terminals.add("ops")
        runtime.tools.add((ask_tool(runtime.terminals, None), describe_tool(runtime.tools)))
        yield runtime


@pytest.fixture
def client(runtime: Runtime, mode: Mode) -> Connect:
    """Opens a client of the runtime's tools; `elicit` is its dialog, without it it has none."""

    @asynccontextmanager
    async def connect(elicit: ElicitationFnT | None = None) -> AsyncGenerator[Client]:
        server = mcp_server(runtime.tools, people=["me"], place=" (at the desk)")
        async with Client(server, mode=mode, elicitation_callback=elicit) as client:
            yield client

    return connect


def answering(*answers: types.ElicitResult) -> tuple[ElicitationFnT, list[types.ElicitRequestFormParams]]:
    """A dialog in which these answers are given one after another, and what it was asked."""
    asked: list[types.ElicitRequestFormParams] = []
    left = list(answers)

    async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        asked.append(params)
        return left.pop(0)

    return elicit, asked


def accept(**content: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=content)


def texts(result: types.CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, types.TextContent)]
