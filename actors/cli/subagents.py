"""The agents that the agent of `greenroom chat` may give work to, as a configuration says."""

from __future__ import annotations

from collections.abc import Mapping

from greenroom.actors.agent import AgentRegistry
from greenroom.actors.cli.providers import chosen, made
from greenroom.actors.config import SubagentsTable
from greenroom.actors.subagent import ChildProvider, ForkProvider
from greenroom.actors.system import Runtime
from greenroom.actors.toolbox.interrupt_agent import interrupt_agent_tool
from greenroom.actors.toolbox.list_agents import list_agents_tool
from greenroom.actors.toolbox.send_message import send_message_tool
from greenroom.actors.toolbox.subagent import subagent_tool
from greenroom.protocol.agents import AgentJob
from greenroom.runtime.provider import Provider
from greenroom.runtime.tools import Tool

__all__ = ["forking", "offer_subagents"]

MODEL = "chat"
"""The name of the model, for those who build agents."""


def forking(_registry: AgentRegistry, job: AgentJob) -> ChildProvider:
    """Builds agents that know what their parent knows, with the tools of the job."""
    return ForkProvider(tools=job.tools)


async def offer_subagents(
    runtime: Runtime, model: Provider, tools: Mapping[str, Tool], table: SubagentsTable
) -> list[Tool]:
    """The tools for having agents, each of which gets `tools` and talks to `model`.

    Raises `SeamError` NO_PROVIDER, DUPLICATE_PROVIDER and BROKEN_PROVIDER.
    """
    registry = AgentRegistry({MODEL: model}, tools=tools)
    job = AgentJob(provider=MODEL, messages=(), tools=tuple(tools))
    seam, make = await chosen("subagents", table.provider)
    subagents = runtime.subagents
    subagents.max_depth = table.max_depth
    subagents.add(table.provider, made(seam, table.provider, lambda: make(registry, job), "build"))
    offered = [subagent_tool(subagents, continuable=table.continuable)]
    if table.continuable:
        offered += [send_message_tool(subagents), interrupt_agent_tool(subagents), list_agents_tool(subagents)]
    return offered
