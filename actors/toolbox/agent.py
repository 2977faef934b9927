"""The tool `agent`: a model gives a task to another agent and waits for what it comes to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.actors.agent import AgentRegistry, ConversationStore, current_run, delegate
from greenroom.protocol.agents import AgentJob, MessageInput
from greenroom.protocol.errors import ToolError
from greenroom.protocol.lineage import tag_agent
from greenroom.runtime.lineage import Lineage, current_lineage, within
from greenroom.runtime.tools import Tool
from greenroom.runtime.tree import Tree

__all__ = ["agent_tool"]

SUMMARY: Final = "Gives a task to another agent and waits for its answer; see describe({name!r}) for what to pass."

DESCRIPTION: Final = """\
Gives one task to another agent, which works on it with tools of its own, and waits for its answer. Good for work that \
can be described in full and whose steps you need not see. Calls that you make at the same time work side by side.

Arguments:
- `task`: what is to be done, and everything that has to be known for it. The other agent sees nothing of your \
conversation: say where things are, and what its answer has to hold.
- `provider`: the model that works on it, by name; without one the usual model does.
- `tools`: the names of the tools that it may use; without the list it has the usual ones, and an empty list is none.
- `system`: what it is told to be, in place of the usual.

Example: {"task": "Read CHANGES.md and list the changes that break something, one a line."}
Returns the text of its last answer. If its turns were used up, that is all it has written until then.

The call fails, and no other agent begins, if there is no such model or tool, if that model is at work already on what \
led to this task (give it to another one, or do it yourself), or if too many agents are nested beneath each other (do \
it yourself). It also fails if the other agent does: read why, and try it another way.
"""

Name = Annotated[str, Meta(min_length=1)]


class Delegate(Struct):
    task: Annotated[str, Meta(min_length=1, description="What is to be done, in full.")]
    provider: Annotated[Name | UnsetType, Meta(description="The model that works on it.")] = UNSET
    tools: Annotated[list[Name] | UnsetType, Meta(description="The names of the tools that it may use.")] = UNSET
    system: Annotated[str | UnsetType, Meta(description="What it is told to be.")] = UNSET


def agent_tool(
    registry: AgentRegistry,
    *,
    name: str = "agent",
    description: str | None = None,
    provider: str | None = None,
    tools: Iterable[str] | None = None,
    system: str | None = None,
    limit: int | None = None,
    depth: int = 0,
    ancestry: Iterable[str] = (),
    store: ConversationStore | None = None,
    accounted: bool = False,
    tree: Tree | None = None,
) -> Tool:
    """The tool `agent`, which lets an agent of `registry` work on a task and returns the content of its result.

    `provider`, `tools` and `system` are the defaults of what a call leaves out; `limit` bounds the turns of each. The
    tool's own name is among the tools that there are, so that agents beneath may delegate in turn. `store` keeps the
    conversation of each delegation that did not fail.

    Each call is an agent at `<path of the caller>/delegations/<number>`, which ends with the call: stopping the caller,
    or cancelling the call, closes its provider's call, withdraws what it asks and ends what it has started. A caller
    outside of the tree delegates at the top of `tree`. With `accounted` it is charged to the budget of the run that
    calls, and stops with it; that run's timeout covers it in any case.

    In the lineage it is `agent:<provider>`. `ancestry` are tags that are above besides, and `depth` is how many agents
    are at least. At most eight are nested beneath the first (`MAX_DELEGATIONS`).

    It raises `ToolError`: TOOL for arguments that are none and where no provider is named, DEPTH where one more is too
    many or the provider is at work above; `AgentError` UNKNOWN for names that the registry has not; and what the run,
    or the store, fails with. Raises `ToolError` TOOL here for an `ancestry` of what are no tags.
    """
    above = Lineage.of(ancestry)
    usual_tools = None if tools is None else tuple(tools)

    async def execute(call: Delegate) -> str:
        chosen = provider if call.provider is UNSET else call.provider
        if chosen is None:
            known = ", ".join(registry.providers) or "none"
            raise ToolError("TOOL", f"say which provider works on this task; there are: {known}", {"task": call.task})
        job = AgentJob(
            provider=chosen,
            messages=(MessageInput("user", call.task),),
            system=system if call.system is UNSET else call.system,
            tools=usual_tools if call.tools is UNSET else tuple(call.tools),
            limit=limit,
        )
        with within(_beneath(above.joined(current_lineage()), chosen, depth)):
            agent = agents.build(job, id=chosen)
            run = current_run() if accounted else None
            result = await delegate(agent, tree=tree, budget=None if run is None else run.settings.budget)
        if store is not None:
            await store.set(agent.context.messages.snapshot())
        return result.content

    tool = Tool(
        name,
        execute,
        summary=SUMMARY.format(name=name),
        description=DESCRIPTION if description is None else description,
        parameters=Delegate,
    )
    agents = registry.with_tools([tool])
    return tool


def _beneath(above: Lineage, provider: str, depth: int) -> Lineage:
    """The lineage to start the provider's agent in, with at least `depth` agents nested above it.

    Raises `ToolError` DEPTH if it may not be started there.
    """
    depth = max(depth, above.delegations)
    if depth + 1 > above.max_delegations:
        raise ToolError(
            "DEPTH",
            f"{provider!r} would be agent {depth + 1} in a row of delegations, and {above.max_delegations} are allowed:"
            " do the work here instead of delegating it further.",
            {"provider": provider, "depth": depth, "max": above.max_delegations},
        )
    tag = tag_agent(provider)
    if tag in above.tags:
        raise ToolError(
            "DEPTH",
            f"Giving this to {provider!r} would be a cycle: it is at work already above ({' > '.join(above.tags)}) and"
            " waits for what comes of it. Give the task to another one, or do it here.",
            {"provider": provider, "ancestry": list(above.tags)},
        )
    missing = depth + 1 - above.extended(tag).delegations
    return above._replace(unnamed=above.unnamed + missing)
