"""The Model Context Protocol, both ways: a registry's tools for its clients, and outside servers' tools in a registry.

The package mcp does the protocol (the extra `mcp`). It takes a while to import, and so is imported by the first of
these functions that is called; without it they raise ConfigError EXTRA, which says what to install.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from greenroom.actors.mcp.extra import needing_mcp
from greenroom.protocol.errors import ToolError
from greenroom.runtime.tools import ToolManager

if TYPE_CHECKING:
    from mcp.server import Server

    from greenroom.actors.mcp.http import McpEndpoint
    from greenroom.actors.mcp.mounting import Ask, Endpoint, MountedServer

__all__ = ["mcp_endpoint", "mcp_server", "mount_mcp", "serve_stdio"]


def mcp_server(
    tools: ToolManager,
    *,
    people: Iterable[str] = (),
    ask: str = "ask",
    timeout: float | None = 300.0,
    name: str = "greenroom",
    place: str = "",
) -> Server[Any]:
    """An MCP server that offers the tools of a registry as they are at each moment, for any transport of the package.

    `people` are terminals whose person sits at the client: what a client asks them with the tool `ask` is put into its
    own dialog (an elicitation), and `timeout` is how many seconds that may stay open (None: as long as the client is
    there). A form that no dialog can hold, or that a client without one asks, goes to the terminal; the result says so,
    and `place` is where people find it (such as " (http://127.0.0.1:8642)").

    A call that the client cancels is cancelled here, and what it asked is withdrawn. What a tool raises is a result
    that is an error.
    """
    with needing_mcp():
        from greenroom.actors.mcp.people import People
        from greenroom.actors.mcp.serving import ToolServer
    served = ToolServer(tools, People(frozenset(people), tool=ask, timeout=timeout), name=name, place=place)
    return served.server


async def serve_stdio(server: Server[Any], *, stdin: int = 0, stdout: int = 1) -> None:
    """Serve the MCP client that started this program, over these descriptors, until it closes its end.

    What is printed meanwhile goes to standard error. Raises BrokenPipeError if the client has gone in the middle of a
    message, RpcError SIZE for one that is too long. Cancelled: calls under way are cancelled.
    """
    with needing_mcp():
        from greenroom.actors.mcp.stdio import run_stdio
    await run_stdio(server, stdin=stdin, stdout=stdout)


def mcp_endpoint(server: Server[Any]) -> McpEndpoint:
    """An actor that serves MCP clients over streamable HTTP, at `/mcp` of gateways: spawn it, and then

    `runtime.serve(mounts=[endpoint.mount])`. The gateway's fence and tokens hold there; a token's grants say which
    tools are shown and called.
    """
    with needing_mcp():
        from greenroom.actors.mcp.http import McpEndpoint
    return McpEndpoint(server)


@asynccontextmanager
async def mount_mcp(
    tools: ToolManager,
    name: str,
    server: Endpoint,
    *,
    ask: Ask | None = None,
    timeout: float | None = 60.0,
    connect_timeout: float = 30.0,
    token: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> AsyncGenerator[MountedServer]:
    """The tools of an outside MCP server, in a registry for the length of the block, as `mcp__<name>__<tool>`.

    `server` is the URL of a streamable HTTP server (`token` goes with each request, as a bearer), or a command and its
    words, which is started with `environment` beside a few variables of this process's (PATH, HOME ...) and ended with
    the block, or a server of the package in this process.

    Arguments and results are checked against the tool's own schemas. A call takes `timeout` seconds at most (None: as
    long as it takes). What the server wants to know of a person is put to `ask` as a form, such as
    `partial(runtime.ask, "reviewer")`; while somebody is asked, the clock of the server's calls stands still. Without
    `ask` the server is told that nobody can be asked.

    Entering raises ToolError TOOL for a server that cannot be reached or does not speak MCP within `connect_timeout`
    seconds. Calls raise ToolError: TOOL for what fails, for a server that breaks its own schema, and for one that has
    gone; TOOL_TIMEOUT. A call that is cancelled is cancelled at the server. Nothing is left when the block ends.
    """
    with needing_mcp():
        from greenroom.actors.mcp.mounting import MountedServer

    mounted = MountedServer(tools, name, server, timeout=timeout, ask=ask, token=token, environment=environment)
    failure: BaseException | None = None
    async with trio.open_nursery() as nursery:
        try:
            with trio.move_on_after(connect_timeout) as connecting:
                await nursery.start(mounted.run)
            if connecting.cancelled_caught:
                raise ToolError(
                    "TOOL",
                    f"The MCP server {name!r} did not speak MCP within {connect_timeout:g} s.",
                    {"server": name},
                )
            yield mounted
        except BaseException as error:  # outside of the nursery it comes out as it is, not as a group
            failure = error
        finally:
            mounted.unmount()
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
