"""An MCP server over a tool registry: lists its tools, calls them, and asks the person at the client."""

from __future__ import annotations

from importlib import metadata
from typing import Any, Final, TypeAlias, final

import msgspec
import trio
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from mcp_types import Tool as McpTool

from greenroom.actors.mcp.people import Answered, AtTerminal, People
from greenroom.protocol import wire
from greenroom.protocol.access import EVERYTHING, Grants
from greenroom.protocol.errors import ToolError
from greenroom.protocol.text import well_formed
from greenroom.protocol.tools import ToolCall, ToolDefinition, ToolFailure
from greenroom.runtime.tools import ToolManager

__all__ = ["GRANTS", "ToolServer"]

GRANTS: Final = "greenroom.grants"
"""Where a request over HTTP carries what its token grants; one that carries nothing is this process's own."""

HEARTBEAT: Final = 5.0
"""Seconds between two notifications of the progress of a call whose client wants them."""

Context: TypeAlias = ServerRequestContext[Any, Any]


@final
class ToolServer:
    """Serves a registry as it is at each call.

    A call runs in a task of its own beneath the server; when the client cancels it, or leaves, it is cancelled, and
    what it asked is withdrawn. What a tool raises comes back as a result that is an error, in its own words. A client
    that wants progress is told every few seconds that the call goes on.
    """

    def __init__(self, tools: ToolManager, people: People, *, name: str, place: str) -> None:
        self._tools = tools
        self._people = people
        self._place = place
        """Where a form is answered that the client cannot ask, as a person is told it."""
        self.server: Server[Any] = Server(
            name, version=metadata.version("greenroom"), on_list_tools=self._list_tools, on_call_tool=self._call_tool
        )

    async def _list_tools(self, context: Context, page: PaginatedRequestParams | None) -> ListToolsResult:
        grants = _grants(context)
        return ListToolsResult(tools=[_shown(tool) for tool in self._tools.definitions() if grants.may_call(tool.name)])

    async def _call_tool(self, context: Context, call: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        if not _grants(context).may_call(call.name):
            return _failure(f"tool not found: {call.name}")
        if context.meta is None or context.meta.get("progress_token") is None:
            return await self._carry_out(context, call)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_report, context, call.name)
            result = await self._carry_out(context, call)
            nursery.cancel_scope.cancel()
        return result

    async def _carry_out(self, context: Context, call: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        note: list[str] = []
        question = self._people.question(call)
        if question is not None:
            try:
                asked = await self._people.ask(context, call, question)
            except ToolError as error:
                return _failure(error.message)
            if isinstance(asked, InputRequiredResult):
                return asked
            if isinstance(asked, Answered):
                return _success(asked.values)
            note = [await self._tell(context, call, asked)]
        wanted = ToolCall(str(context.request_id), call.name, call.arguments or {}, caller=_grants(context))
        result = await self._tools.execute(wanted)
        if isinstance(result, ToolFailure):
            return _failure(result.error, *note)
        try:
            return _success(result.value, *note, text=self._rendered(wanted, result.value))
        except (TypeError, ValueError, RecursionError) as error:
            return _failure(f"the tool {call.name!r} returned what JSON cannot hold: {error}", *note)

    def _rendered(self, call: ToolCall, value: object) -> str | None:
        """What the tool itself makes of its value for a model, if it makes anything."""
        tool = self._tools.tool(call.name)
        if tool is None or tool.handling.render is None:
            return None
        return self._tools.rendered(call, value)

    async def _tell(self, context: Context, call: CallToolRequestParams, asked: AtTerminal) -> str:
        """Say, at once and with the result, that the form is asked at its terminal, and why."""
        to = (call.arguments or {}).get("to")
        note = f"This was asked at the terminal {to!r}{self._place}, since {asked.reason}."
        await context.session.report_progress(0.0, None, note)
        return note


async def _report(context: Context, name: str) -> None:
    began = trio.current_time()
    while True:
        await trio.sleep(HEARTBEAT)
        seconds = round(trio.current_time() - began)
        await context.session.report_progress(seconds, None, f"{name} goes on; {seconds} s so far.")


def _grants(context: Context) -> Grants:
    """What the caller may do."""
    if context.request is None:
        return EVERYTHING
    granted: Grants = context.request.scope.get(GRANTS, EVERYTHING)
    return granted


def _shown(tool: ToolDefinition) -> McpTool:
    return McpTool(
        name=tool.name,
        description=None if tool.description is None else well_formed(tool.description),
        input_schema=tool.parameters or {"type": "object", "properties": {}},
    )


def _success(value: object, *notes: str, text: str | None = None) -> CallToolResult:
    """A value as text, by default as JSON, and as structured content too where it is an object. Raises what
    `wire.encode` does."""
    encoded = value if isinstance(value, str) else wire.encode(value, surrogates="replace").decode()
    structured = None if isinstance(value, str) else msgspec.json.decode(encoded)
    return CallToolResult(
        content=_texts(encoded if text is None else text, *notes),
        structured_content=structured if isinstance(structured, dict) else None,
    )


def _failure(error: str, *notes: str) -> CallToolResult:
    return CallToolResult(content=_texts(error, *notes), is_error=True)


def _texts(*texts: str) -> list[ContentBlock]:
    """Blocks of text. Half a character, as in the name of a file that is no UTF-8, would end the whole session."""
    return [TextContent(text=well_formed(text)) for text in texts]
