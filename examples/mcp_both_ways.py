"""A registry's tools as an MCP server, and that server's tools in another registry, with a question on the way.
`python examples/mcp_both_ways.py`"""

from functools import partial

import trio

import greenroom

FORM = {"label": "How many?", "fields": [{"control": "number", "name": "count", "rule": {"minimum": 1}}]}


async def main() -> None:
    async with greenroom.open_runtime() as runtime, trio.open_nursery() as nursery:
        runtime.terminals.add("reviewer")
        nursery.start_soon(reviewer, runtime)

        served = greenroom.ToolManager()
        served.add(greenroom.ask_tool(runtime.terminals, None))
        server = greenroom.mcp_server(served, people=["me"])

        # The server asks whoever is at its client; here that is this program, which asks the reviewer.
        tools = greenroom.ToolManager()
        async with greenroom.mount_mcp(tools, "other", server, ask=partial(runtime.ask, "reviewer")) as mounted:
            print(mounted.names)
            print(await tools.run("mcp__other__ask", {"to": "me", "schema": FORM}))


async def reviewer(runtime: greenroom.Runtime) -> None:
    await trio.sleep(0.5)  # a person takes a moment
    (form,) = runtime.terminals.pending("reviewer")
    await runtime.terminals.answer("reviewer", form.id, {"count": 3})


trio.run(main)
