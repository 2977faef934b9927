"""The Model Context Protocol, both ways: a registry's tools for its clients, and outside servers' tools in a registry.

The package mcp does the protocol (the extra `mcp`). It takes a while to import, and so is imported by the first of
these functions that is called; without it they raise ConfigError EXTRA, which says what to install.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from greenroom.actors.mcp.extra import needing_mcp
from greenroom.runtime.tools import ToolManager

if TYPE_CHECKING:
    from mcp.server import Server

__all__ = ["mcp_server", "serve_stdio"]


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
