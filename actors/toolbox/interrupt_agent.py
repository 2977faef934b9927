"""The tool `interrupt_agent`: an agent stops what one beneath it does now."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from greenroom.actors.subagent import Subagents
from greenroom.runtime.tools import Tool

__all__ = ["interrupt_agent_tool"]

SUMMARY: Final = "Stops what an agent beneath you does now; see describe('interrupt_agent')."

DESCRIPTION: Final = """\
Stops the turn of a sub-agent beneath you, one of your own or one of theirs. What it has done stands; what was sent to \
it and waits is kept, and read after that.

Arguments:
- `agent_id`: the id of the sub-agent; `list_agents` with the scope "descendants" lists all.

Example: {"agent_id": "reader-1f3a9c2e"}
Returns {"accepted": true}, also if it does nothing or has ended. Whoever began it is told that it has stopped.

The call fails for yourself and for an agent that is not beneath you.
"""


class Interrupt(Struct):
    agent_id: Annotated[str, Meta(min_length=1, description="The id of the sub-agent.")]


def interrupt_agent_tool(subagents: Subagents) -> Tool:
    """The tool `interrupt_agent`, which returns `accepted`. It raises what `Subagents.interrupt` does."""

    def interrupt(call: Interrupt) -> dict[str, Any]:
        subagents.interrupt(call.agent_id)
        return {"accepted": True}

    return Tool("interrupt_agent", interrupt, summary=SUMMARY, description=DESCRIPTION, parameters=Interrupt)
