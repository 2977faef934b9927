"""What a registry adds to a call by MCP: the package's own client in memory, beside the same tool of the package alone.

Both check the arguments by the types that are declared, and answer with the same content.
"""

# pyright: reportCallIssue=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# To pyright, for which this folder is a root, the package mcp is this very module.

from __future__ import annotations

import time
from typing import Any

import msgspec
from mcp import Client
from mcp.server import Server
from mcp.server.mcpserver import MCPServer

from bench.harness import times
from greenroom import Tool, ToolManager, mcp_server

CALLS = 400


class Add(msgspec.Struct):
    """Two numbers."""

    a: int
    b: int


async def _add(numbers: Add) -> dict[str, int]:
    return {"sum": numbers.a + numbers.b}


_TOOL = Tool("add", _add, description="Adds two numbers.", parameters=Add)


async def _rate(server: Server[Any] | MCPServer) -> float:
    """Calls per second, one after another."""
    async with Client(server) as client:
        await client.list_tools()
        start = time.perf_counter()
        for number in range(CALLS):
            result = await client.call_tool("add", {"a": number, "b": 1})
            assert result.structured_content == {"sum": number + 1}
        return CALLS / (time.perf_counter() - start)


async def bare() -> float:
    """The package alone."""
    server = MCPServer("bare")

    @server.tool(description="Adds two numbers.")
    async def add(a: int, b: int) -> dict[str, int]:
        return {"sum": a + b}

    return await _rate(server)


@times("mcp/call-in-memory", against=bare)
async def call_in_memory() -> float:
    """A registry's tool, its arguments checked."""
    tools = ToolManager()
    tools.add(_TOOL)
    return await _rate(mcp_server(tools))
