"""The tool `list_agents`: an agent sees which agents work beneath it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, to_builtins

from greenroom.actors.subagent import Subagents
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.tools import Tool

__all__ = ["list_agents_tool"]

SUMMARY: Final = "Lists the sub-agents beneath you; see describe('list_agents')."

DESCRIPTION: Final = """\
Lists the sub-agents beneath you, as they are at this moment.

Arguments:
- `scope`: "children" (your own, which is what is meant without it) or "descendants" (theirs too).

Returns a list of {"id", "label", "status"}; of descendants also "parent" and "depth". The status is "running" (at \
work, or waiting for sub-agents of its own), "idle" (it has finished, and can be given more by `send_message`) or \
"ready" (likewise, but it is only stored). One that is stored and cannot be read is {"id", "reason"}.
"""


class ListAgents(Struct):
    scope: Annotated[Literal["children", "descendants"], Meta(description="Whose are listed.")] = "children"


def list_agents_tool(subagents: Subagents) -> Tool:
    """The tool `list_agents`, which returns a list of objects; see `Subagents.all_children`."""

    async def listed(call: ListAgents) -> list[dict[str, Any]]:
        return [to_builtins(each) for each in await subagents.all_children(call.scope)]

    return Tool(
        "list_agents",
        listed,
        summary=SUMMARY,
        description=DESCRIPTION,
        parameters=ListAgents,
        handling=Handling(concurrent=True),
    )
