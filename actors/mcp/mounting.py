"""Tools of an outside MCP server in a registry: the session with the server, and the calls over it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any, Final, TypeAlias, cast, final

import mcp_types as types
import msgspec
import trio
from mcp import Client, StdioServerParameters
from mcp.client import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.shared._httpx_utils import create_mcp_http_client

from greenroom.actors.mcp.elicited import elicited_form
from greenroom.actors.mcp.names import mounted_name
from greenroom.protocol import wire
from greenroom.protocol.errors import GreenroomError, ToolError
from greenroom.protocol.forms import FormSchema
from greenroom.protocol.schemas import REFUSED, Contract, fault_text
from greenroom.runtime.tools import Tool, ToolManager

__all__ = ["Ask", "Endpoint", "MountedServer"]

logger = logging.getLogger("greenroom.mcp")

MOST_TOOLS: Final = 1024
"""Of one server; one that lists more is refused, as is one whose list has no end."""
Endpoint: TypeAlias = str | Sequence[str] | Server[Any]
Ask: TypeAlias = Callable[[FormSchema], Awaitable[Mapping[str, Any]]]


@final
class MountedServer:
    """One outside server, for as long as its session lasts."""

    def __init__(
        self,
        tools: ToolManager,
        name: str,
        endpoint: Endpoint,
        *,
        timeout: float | None,
        ask: Ask | None,
        token: str | None,
        environment: Mapping[str, str] | None,
    ) -> None:
        self.name = name
        self.names: tuple[str, ...] = ()
        """What its tools are called in the registry, in the order in which the server lists them."""
        self._tools = tools
        self._own: list[Tool] = []
        self._timeout = inf if timeout is None else timeout
        self._ask = ask
        self._connect = _connector(endpoint, token, environment)
        self._client: Client | None = None
        self._clock = _Clock()
        self._ended = "it was unmounted"

    @property
    def alive(self) -> bool:
        """The session is open, as far as this side knows."""
        return self._client is not None

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Hold the session, until cancelled or until it breaks; the tools are in the registry once it has started.

        Raises ToolError TOOL only before it has started. Later failures are what calls are told.
        """
        started = False
        try:
            async with self._connect(None if self._ask is None else self._elicited) as client:
                # The package checks results with an engine for patterns that a server can make run for ever.
                client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]
                listed = await self._list(client)
                self._client = client
                self._mount(listed)
                started = True
                task_status.started()
                await trio.sleep_forever()
        except Exception as error:  # whatever the package raises of a server that breaks off
            self._ended = f"its session broke off ({_text(error)})"
            if not started:
                raise self._failed(f"cannot be mounted: {_text(error)}") from error
            logger.warning("The MCP server %s is gone: %s", self.name, _text(error))
        except BaseExceptionGroup as group:  # it broke off, and was unmounted before all of it had ended
            _, rest = group.split(Exception)
            assert rest is not None, "else it would be an ExceptionGroup"
            raise rest from None
        finally:
            self._client = None
            self._clock.cancel()

    def unmount(self) -> None:
        """Take its tools out of the registry, those that are still its own."""
        self._tools.remove([name for name in self.names if self._tools.tool(name) in self._own])

    async def _list(self, client: Client) -> list[types.Tool]:
        listed: list[types.Tool] = []
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
            listed += page.tools
            cursor = page.next_cursor
            if len(listed) > MOST_TOOLS or not (page.tools or cursor is None):
                raise ValueError(f"its list of tools has no end, or more than {MOST_TOOLS} entries")
            if cursor is None:
                return listed

    def _mount(self, listed: Iterable[types.Tool]) -> None:
        """Add all of its tools, or none.

        One whose schema no model can be shown, or that is listed again, is left out, and the log says so.
        """
        own: dict[str, Tool] = {}
        probe = ToolManager()
        taken = {tool.name for tool in self._tools.tools()}
        seen: set[str] = set()
        for tool in listed:
            if tool.name in seen:
                logger.warning(
                    "The MCP server %s lists the tool %s again; it can be called once.", self.name, tool.name
                )
                continue
            seen.add(tool.name)
            name = mounted_name(self.name, tool.name, taken)
            try:
                mounted = self._tool(name, tool)
                probe.add(mounted)
            except ToolError as error:
                logger.warning("The tool %s of the MCP server %s is left out: %s", tool.name, self.name, error)
                continue
            own[name] = mounted
            taken.add(name)
        self._own = list(own.values())
        self._tools.add(self._own)
        self.names = tuple(own)

    def _tool(self, name: str, tool: types.Tool) -> Tool:
        takes = Contract(tool.input_schema)
        gives = None if tool.output_schema is None else Contract(tool.output_schema)

        async def call(arguments: dict[str, Any]) -> Any:
            read = takes.parse(arguments)
            if read is REFUSED:
                faults = " ".join(fault_text(fault) for fault in takes.explain(arguments))
                raise ToolError("TOOL", f"malformed {name} call: {faults}", {"tool": name})
            try:
                wire.encode(read)
            except (TypeError, ValueError, RecursionError) as error:  # the package would end the session over it
                raise ToolError("TOOL", f"malformed {name} call: it is no JSON: {error}", {"tool": name}) from None
            result = await self._call(tool.name, read)
            if gives is not None and not gives.check(result.structured_content):
                faults = " ".join(fault_text(fault) for fault in gives.explain(result.structured_content))
                raise self._failed(f"returned what its own schema refuses: {faults}", tool.name)
            return _value(result)

        return Tool(name, call, description=tool.description, parameters=tool.input_schema)

    async def _call(self, tool: str, arguments: dict[str, Any]) -> types.CallToolResult:
        client = self._client
        if client is None:
            raise self._failed(f"does not answer: {self._ended}", tool)
        with self._clock.running(self._timeout) as scope:
            try:
                result = await client.call_tool(tool, arguments)
            except Exception as error:  # the package's own, those of its transports, of a callback
                raise self._failed(f"failed: {_text(error)}", tool) from error
            if result.is_error:
                raise ToolError("TOOL", _text_of(result) or "it failed without a word", {"tool": tool})
            return result
        if self._client is None:
            raise self._failed(f"does not answer: {self._ended}", tool)
        assert scope.cancel_called
        raise ToolError(
            "TOOL_TIMEOUT",
            f"The MCP server {self.name!r} has not answered {tool} within {self._timeout:g} s; what it had done by then"
            " may stand.",
            {"server": self.name, "tool": tool, "seconds": self._timeout},
        )

    async def _elicited(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Ask the person what the server wants to know; meanwhile the clock of its calls stands still."""
        assert self._ask is not None
        if not isinstance(params, types.ElicitRequestFormParams):
            return types.ElicitResult(action="decline")  # a page of somebody else's, that nobody here has looked at
        schema = elicited_form(self.name, params.message, params.requested_schema)
        if schema is None:
            return types.ErrorData(code=types.INVALID_PARAMS, message="This is no form of an elicitation.")
        with self._clock.stopped():
            try:
                values = await self._ask(schema)
            except GreenroomError:
                return types.ElicitResult(action="cancel")
        content = msgspec.json.decode(wire.encode(dict(values), surrogates="replace"))
        return types.ElicitResult(action="accept", content=content)

    def _failed(self, what: str, tool: str | None = None) -> ToolError:
        context = {"server": self.name} | ({} if tool is None else {"tool": tool})
        return ToolError("TOOL", f"The MCP server {self.name!r} {what}", context)


@final
class _Clock:
    """The deadlines of a server's calls, which stand still together while it has a person asked.

    Which call an elicitation belongs to is not said on the wire.
    """

    def __init__(self) -> None:
        self._rests: dict[trio.CancelScope, float] = {}
        """Seconds that are left to each call, as of when the clock was stopped last."""
        self._stops = 0

    @contextmanager
    def running(self, seconds: float) -> Generator[trio.CancelScope]:
        with trio.CancelScope() as scope:
            self._rests[scope] = seconds
            if not self._stops:
                scope.deadline = trio.current_time() + seconds
            try:
                yield scope
            finally:
                del self._rests[scope]

    @contextmanager
    def stopped(self) -> Generator[None]:
        self._stops += 1
        if self._stops == 1:
            for scope in self._rests:
                self._rests[scope] = scope.deadline - trio.current_time()
                scope.deadline = inf
        try:
            yield
        finally:
            self._stops -= 1
            if not self._stops:
                for scope, rest in self._rests.items():
                    scope.deadline = trio.current_time() + rest

    def cancel(self) -> None:
        """Cancel every call."""
        for scope in self._rests:
            scope.cancel()


async def _unchecked(name: str, result: types.CallToolResult) -> None:
    """Results are checked by the tools themselves."""


def _connector(endpoint: Endpoint, token: str | None, environment: Mapping[str, str] | None) -> Callable[[Any], Client]:
    """How a session is opened; taken apart here, so that what cannot be one is refused before anything begins."""
    if isinstance(endpoint, Server):
        return lambda elicit: Client(endpoint, elicitation_callback=elicit)
    if isinstance(endpoint, str):
        headers = None if token is None else {"Authorization": f"Bearer {token}"}
        return lambda elicit: Client(
            streamable_http_client(endpoint, http_client=create_mcp_http_client(headers=headers)),
            elicitation_callback=elicit,
        )
    command, *words = endpoint
    started = StdioServerParameters(
        command=command, args=words, env=dict(environment or {}), encoding_error_handler="replace"
    )
    return lambda elicit: Client(started, elicitation_callback=elicit)


def _value(result: types.CallToolResult) -> Any:
    """What a tool gives back: structured content where there is some, else its text, else its blocks as they are."""
    if result.structured_content is not None:
        return result.structured_content
    if all(isinstance(block, types.TextContent) for block in result.content):
        return _text_of(result)
    return [block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in result.content]


def _text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def _text(error: BaseException) -> str:
    """The message of an error, of the first leaf if it is a group."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return str(error) or type(error).__name__
