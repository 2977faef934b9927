"""The tool `send_message`: an agent gives a sub-agent of its own more to do."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from greenroom.actors.subagent import Subagents
from greenroom.runtime.tools import Tool

__all__ = ["send_message_tool"]

SUMMARY: Final = "Gives a sub-agent of yours more to do; see describe('send_message')."

DESCRIPTION: Final = """\
Gives a sub-agent that you have begun, and that goes on by itself, more to do. It reads the message in a turn of its \
own, once it has finished what it was given before, and knows what it has done until then.

Arguments:
- `subagent_id`: the id that `subagent` returned; `list_agents` lists them.
- `message`: what it is to do, or to know.

Example: {"subagent_id": "reader-1f3a9c2e", "message": "Now list what was only renamed."}
Returns {"messageId"} at once. You are told when it has finished.

The call fails if the sub-agent has ended, or works for another agent. To change what it does now, stop it first by \
`interrupt_agent`.
"""


class Send(Struct):
    subagent_id: Annotated[str, Meta(min_length=1, description="The id of the sub-agent.")]
    message: Annotated[str, Meta(min_length=1, description="What it is given.")]


def send_message_tool(subagents: Subagents) -> Tool:
    """The tool `send_message`, which returns `messageId`. It raises what `Subagents.send` does."""

    async def send(call: Send) -> dict[str, Any]:
        return {"messageId": await subagents.send(call.subagent_id, call.message)}

    return Tool("send_message", send, summary=SUMMARY, description=DESCRIPTION, parameters=Send)
