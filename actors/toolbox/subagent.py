"""The tool `subagent`: an agent has a sub-agent work on a task, and waits for it or is told of it later."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from greenroom.actors.subagent import Subagents
from greenroom.protocol.agents import ChildRequest, ChildResult
from greenroom.protocol.errors import SubagentError
from greenroom.runtime.background import Background
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.tools import Tool

__all__ = ["subagent_tool"]

SUMMARY: Final = "Has a sub-agent work on a task{how}; see describe({name!r}) for what to pass."

DESCRIPTION: Final = """\
Begins a sub-agent that works on one task with tools of its own{how}. Good for work that can be described in full and \
whose steps you need not see. Calls that you make at the same time work side by side.

Arguments:
- `description`: a few words by which it is known, to you and to people.
- `prompt`: the whole task, and everything that has to be known for it: where things are, and what the answer has to \
hold.

Example: {{"description": "breaking changes", "prompt": "Read CHANGES.md and list the changes that break something."}}
{returns}

The call fails, and no sub-agent begins, if too many are nested beneath each other (do the work here), or too many are \
at work (wait for one).{fails} A sub-agent can ask no person: what it would ask, it reports to you.
"""

ONE_SHOT: Final = {
    "how": " and waits for its answer",
    "returns": 'Returns {"runId", "output"}: what it said at last, as a list that is empty if it said nothing.',
    "fails": " It also fails if the sub-agent ends before it is done: read why, and what there is of its answer.",
}
CONTINUABLE: Final = {
    "how": ", and goes on meanwhile",
    "returns": 'Returns {"subagentId"} at once. You are told when it has finished, and can give it more then.',
    "fails": "",
}


class Begin(Struct):
    description: Annotated[str, Meta(min_length=1, description="A few words for the task.")]
    prompt: Annotated[str, Meta(min_length=1, description="The whole task.")]


def subagent_tool(
    subagents: Subagents,
    *,
    name: str = "subagent",
    provider: str | None = None,
    continuable: bool = False,
    background: Background | None = None,
    description: str | None = None,
) -> Tool:
    """The tool `subagent`, over the `provider` of that name (None: the only one there is).

    Without `continuable` a call lasts as long as the sub-agent, and returns `runId` and `output`; one that ends before
    it is done is `SubagentError` NOT_COMPLETED (context `stopReason`, `diagnostic`, `output`). With a `background`
    (`runtime.jobs`) it may go on as a job, whose end is the sub-agent's. If it is continuable, a call returns
    `subagentId` as soon as the task is taken, for `send_message` and `interrupt_agent`; the agent that called is told
    of the end by its inbox.

    It raises what `Subagents.run` and `Subagents.start` do.
    """

    async def wait(call: Begin) -> dict[str, Any]:
        result = await subagents.run(_request(call), provider=provider)
        if result.stop_reason != "completed":
            raise _incomplete(call, result)
        return {"runId": result.run_id, "output": list(result.output)}

    async def begin(call: Begin) -> dict[str, Any]:
        accepted = await subagents.start(_request(call), provider=provider)
        return {"subagentId": accepted.child_id}

    words = CONTINUABLE if continuable else ONE_SHOT
    return Tool(
        name,
        begin if continuable else wait,
        summary=SUMMARY.format(name=name, how=words["how"]),
        description=DESCRIPTION.format(**words) if description is None else description,
        parameters=Begin,
        background=None if continuable else background,
        handling=Handling(concurrent=True),
    )


def _request(call: Begin) -> ChildRequest:
    return ChildRequest(description=call.description, prompt=call.prompt)


def _incomplete(call: Begin, result: ChildResult) -> SubagentError:
    said = "\n".join(result.output)
    message = f"The sub-agent ended before it was done ({result.stop_reason}): {result.diagnostic}."
    return SubagentError(
        "NOT_COMPLETED",
        f"{message}\nWhat there is of its answer:\n{said}" if said else f"{message} It has said nothing.",
        {
            "description": call.description,
            "stopReason": result.stop_reason,
            "diagnostic": result.diagnostic,
            "output": list(result.output),
        },
    )
