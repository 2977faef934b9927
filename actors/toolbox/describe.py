"""The tool `describe`: what a tool does and how it is called, in full, for a model that has seen only its summary."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from greenroom.protocol.access import EVERYTHING, Grants
from greenroom.protocol.errors import ToolError
from greenroom.runtime.tools import Tool, ToolManager

__all__ = ["describe_tool"]

SUMMARY: Final = "Tells in full how a tool is used: give its name, as in describe('describe')."

DESCRIPTION: Final = """\
Tells in full what a tool does and how it is called. Tools are listed with one sentence each; call this before the \
first use of one whose arguments you do not know.

Arguments: `name`, the tool's name exactly as it is listed.
Example: {"name": "describe"} returns this text.
Returns the tool's description as text; its summary if it has no more than that; `<no description>` if it has neither. \
A name that no tool has is refused.
"""


class Describe(Struct):
    name: Annotated[str, Meta(min_length=1, description="The tool's name, exactly as it is listed.")]


def describe_tool(tools: ToolManager) -> Tool:
    """The tool `describe` over the tools of a registry, as they are at each call; usually added to that registry.

    Where the caller of a call is known by its `Grants`, there are only the tools that it may call.

    It raises `ToolError` (TOOL), with context `name`, for a name that no tool has.
    """

    def describe(call: Describe, caller: object = None) -> str:
        may_call = (caller if isinstance(caller, Grants) else EVERYTHING).may_call
        offered = {tool.name: tool for tool in tools.tools() if may_call(tool.name)}
        tool = offered.get(call.name)
        if tool is None:
            known = ", ".join(offered) or "none"
            raise ToolError("TOOL", f"there is no tool {call.name!r}; there are: {known}", {"name": call.name})
        texts = (tool.description, tool.summary, "<no description>")
        return next(text for text in texts if text is not None)

    return Tool("describe", describe, summary=SUMMARY, description=DESCRIPTION, parameters=Describe)
