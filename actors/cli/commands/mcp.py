"""`greenroom mcp`: tools for MCP clients, such as the desktop programs of models' makers."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console as Screen

from greenroom.actors.cli.leaving import race, until_signalled
from greenroom.actors.cli.offering import named_files, offer_tools
from greenroom.actors.cli.options import Seconds
from greenroom.actors.cli.reach import reach
from greenroom.actors.mcp import mcp_server, serve_stdio
from greenroom.actors.mcp.remote import gateway_tools
from greenroom.actors.system import open_runtime
from greenroom.actors.toolbox.ask import ask_tool
from greenroom.runtime.tools import ToolManager

__all__ = ["mcp"]


async def mcp(
    *,
    url: str | None = None,
    person: Annotated[list[str] | None, Parameter(negative=())] = None,
    terminal: Annotated[list[str] | None, Parameter(negative=())] = None,
    workspace: Annotated[list[Path] | None, Parameter(negative=())] = None,
    database: Annotated[list[str] | None, Parameter(negative=())] = None,
    data: Path | None = None,
    timeout: Seconds = 300.0,
) -> int:
    """Serve tools to the MCP client that starts this command, over standard input and output.

    What a model asks `person` with the tool `ask` is put into the client's own dialog, if it has one and the dialog can
    hold the form; otherwise it is asked at the terminal, in a browser, and the result says so.

        greenroom mcp --person me --workspace .

    In a client's configuration: {"command": "greenroom", "args": ["mcp", "--workspace", "/home/me/notes"]}.

    Exits with 0 when the client has closed its end, and 1 when it has gone in the middle of something, when there is
    no gateway at the URL, or without the package mcp: `pip install 'greenroom[mcp]'`.

    Parameters
    ----------
    url
        The gateway whose tools and terminals are served; without it this command has its own. Its token is taken from
        GREENROOM_TOKEN.
    person
        The terminal whose person sits at the client; once for each name that they go by.
    terminal
        A further terminal that can be asked; once for each.
    workspace
        A folder whose files the tool `workspace` reads and changes; once for each.
    database
        A database of the tool `database` and the file that keeps it, as in shop=shop.db; once for each.
    data
        The file in which durable asks are recorded.
    timeout
        Seconds until an unanswered form expires; 0 means never.
    """
    people = person or ["person"]
    limit = timeout or None

    async def serve() -> int:
        async with AsyncExitStack() as stack:
            tools, place = ToolManager(), f" of the gateway at {url}"
            if url is not None:
                tools = await gateway_tools(await stack.enter_async_context(reach(url)))
            else:
                runtime = await stack.enter_async_context(open_runtime(data=data, timeout=limit, tune_gc=True))
                for name in dict.fromkeys((*people, *(terminal or ()))):
                    runtime.terminals.add(name)
                tools = runtime.tools
                tools.add(ask_tool(runtime.terminals, None))
                await offer_tools(runtime, map(str, workspace or ()), named_files(database or ()))
                gateway = await runtime.serve()
                place = f" (http://{gateway.authority}/)"
                Screen(stderr=True).print(f"Forms are answered at http://{gateway.authority}/ too.", style="dim")
            await serve_stdio(mcp_server(tools, people=people, timeout=limit, place=place))
        return 0

    return await race(serve, until_signalled)
