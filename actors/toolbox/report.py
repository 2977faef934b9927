"""The tool `report`: a sub-agent tells the agent that it works for something, before it is done."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from greenroom.actors.subagent import Subagents
from greenroom.runtime.tools import Tool

__all__ = ["report_tool"]

SUMMARY: Final = "Tells the agent that you work for something before you are done; see describe('report')."

DESCRIPTION: Final = """\
Tells the agent that gave you your task something at once: what you have found, that you are stuck, or a question that \
only it can answer, or have answered. Your last answer reaches it in any case; do not report that as well.

Arguments:
- `output`: what it is told.

Example: {"output": "The tests need a database password, which I have not. Shall I leave them out?"}
Returns {"messageId"} at once, and nothing else: go on with what can be done without an answer.

The call fails if nobody gave you your task, or if that agent has ended.
"""


class Report(Struct):
    output: Annotated[str, Meta(min_length=1, description="What it is told.")]


def report_tool(subagents: Subagents) -> Tool:
    """The tool `report`, which every sub-agent has, whatever else it may use. It returns `messageId`, and raises what
    `Subagents.report` does."""

    def report(call: Report) -> dict[str, Any]:
        return {"messageId": subagents.report(call.output)}

    return Tool("report", report, summary=SUMMARY, description=DESCRIPTION, parameters=Report)
