"""The tools of a gateway elsewhere, as tools of this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from greenroom.actors.client import Client
from greenroom.actors.toolbox.ask import asking_tool
from greenroom.protocol.errors import ToolError
from greenroom.protocol.forms import FormSchema
from greenroom.protocol.tools import ToolFailure
from greenroom.runtime.tools import Tool

__all__ = ["gateway_tools"]


async def gateway_tools(client: Client) -> list[Tool]:
    """The tools that the client may call now, and `ask`, which asks the gateway's terminals.

    They are called there: a call that is cancelled here is cancelled at the gateway, and what fails there raises
    ToolError TOOL here, in its own words. Raises what `Client.tools` raises.
    """

    async def put(to: str, schema: FormSchema) -> dict[str, Any]:
        return await client.ask(to, schema)

    offered = [
        Tool(listed.name, _call(client, listed.name), description=listed.description, parameters=listed.parameters)
        for listed in await client.tools()
    ]
    return [asking_tool(put), *offered]


def _call(client: Client, name: str) -> Callable[[Mapping[str, Any]], Awaitable[Any]]:
    async def call(arguments: Mapping[str, Any]) -> Any:
        result = await client.call_tool(name, arguments)
        if isinstance(result, ToolFailure):
            raise ToolError("TOOL", result.error, {"tool": name})
        return result.value

    return call
