"""`greenroom mcp`: tools for MCP clients, such as the desktop programs of models' makers."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import trio
from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console as Screen

from greenroom.actors.cli.composing import open_composition, open_door, read_access, read_settings
from greenroom.actors.cli.leaving import race, until_signalled
from greenroom.actors.cli.offering import named_files
from greenroom.actors.cli.options import Seconds
from greenroom.actors.cli.reach import reach
from greenroom.actors.config import override
from greenroom.actors.mcp import mcp_endpoint, mcp_server, serve_stdio
from greenroom.actors.mcp.remote import gateway_tools
from greenroom.actors.toolbox.ask import ask_tool
from greenroom.runtime.tools import ToolManager

__all__ = ["mcp"]


async def mcp(
    *,
    config: Path | None = None,
    url: str | None = None,
    person: Annotated[list[str] | None, Parameter(negative=())] = None,
    terminal: Annotated[list[str] | None, Parameter(negative=())] = None,
    workspace: Annotated[list[Path] | None, Parameter(negative=())] = None,
    database: Annotated[list[str] | None, Parameter(negative=())] = None,
    data: Path | None = None,
    timeout: Seconds | None = None,
    http: Annotated[bool, Parameter(negative=())] = False,
    port: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65_535))] = None,
    tokens: Path | None = None,
) -> int:
    """Serve tools to the MCP client that starts this command, over standard input and output; or with --http to any.

    What a model asks `person` with the tool `ask` is put into the client's own dialog, if it has one and the dialog can
    hold the form; otherwise it is asked at the terminal, in a browser, and the result says so.

        greenroom mcp --person me --workspace .

    In a client's configuration: {"command": "greenroom", "args": ["mcp", "--workspace", "/home/me/notes"]}.

    Exits with 0 when the client has closed its end, and 1 when it has gone in the middle of something, when there is
    no gateway at the URL, or without the package mcp: `pip install 'greenroom[mcp]'`.

    Parameters
    ----------
    config
        A TOML file that says all of this; flags win over it. `greenroom config explain` lists its keys.
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
        Seconds until an unanswered form expires (300); 0 means never.
    http
        Serve streamable HTTP at /mcp of this machine instead, and print the address; until Ctrl-C or SIGTERM.
    port
        The port to listen on, for HTTP and for people's browsers; a free one if neither it nor the file says.
    tokens
        A TOML file of access tokens, as `greenroom serve` takes it; a client sends its own as a bearer. Without it
        every program of this machine may call every tool.
    """
    people = person or ["person"]
    file = await read_settings(config)
    names = dict.fromkeys((*people, *(file.terminals.names if terminal is None else terminal)))
    settings = override(
        file,
        gateway={"tokens": tokens, "port": 0 if port is None and file.gateway.port is None else port},
        terminals={"names": list(names), "timeout": timeout},
        journal={"data": data},
        workspaces={"roots": workspace},
        databases={"files": None if database is None else named_files(database)},
    )
    limit = settings.terminals.timeout or None
    access = await read_access(settings)

    async def serve() -> int:
        async with AsyncExitStack() as stack:
            elsewhere = None if url is None else await gateway_tools(await stack.enter_async_context(reach(url)))
            others = [tool.name for tool in elsewhere or ()]
            runtime = await stack.enter_async_context(open_composition(settings, others=others))
            if elsewhere is None:
                tools = runtime.tools
                tools.add(ask_tool(runtime.terminals, None))
            else:  # the policies of this process hold for them too, whoever calls
                tools = ToolManager(pipeline=runtime.pipeline)
                tools.add(elsewhere)
            if http:
                where = f" of the gateway at {url}" if url is not None else " (in a browser, at this server's address)"
                endpoint = mcp_endpoint(mcp_server(tools, people=people, timeout=limit, place=where))
                runtime.spawn(endpoint, "mcp")
                gateway = await open_door(runtime, settings, access=access, mounts=[endpoint.mount])
                print(f"http://{gateway.authority}/mcp", flush=True)
                await trio.sleep_forever()
            place = f" of the gateway at {url}"
            if url is None:
                gateway = await open_door(runtime, settings, access=access)
                place = f" (http://{gateway.authority}/)"
                Screen(stderr=True).print(f"Forms are answered at http://{gateway.authority}/ too.", style="dim")
            await serve_stdio(mcp_server(tools, people=people, timeout=limit, place=place))
        return 0

    return await race(serve, until_signalled)
