"""The tool `describe`: what a tool does and how it is called, in full, for a model that has seen only its summary."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

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

    It raises `ToolError` (TOOL), with context `name`, for a name that no tool has.
    """

    def describe(call: Describe) -> str:
        tool = tools.tool(call.name)
        if tool is None:
            known = ", ".join(each.name for each in tools.tools()) or "none"
            raise ToolError("TOOL", f"there is no tool {call.name!r}; there are: {known}", {"name": call.name})
        texts = (tool.description, tool.summary, "<no description>")
        return next(text for text in texts if text is not None)

    return Tool("describe", describe, summary=SUMMARY, description=DESCRIPTION, parameters=Describe)
