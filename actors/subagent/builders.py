"""Who builds sub-agents, by name, and the building of one: what is asked of it, how deep it is, what it may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, final
from uuid import uuid4

from msgspec import Struct

from greenroom.actors.agent import Agent
from greenroom.actors.subagent.providers import CAPABILITIES, ChildProvider, ChildSpec
from greenroom.protocol.agents import ChildRequest
from greenroom.protocol.errors import SubagentError
from greenroom.protocol.lineage import tag_agent
from greenroom.runtime.bus import Bus
from greenroom.runtime.lineage import Lineage, current_lineage
from greenroom.runtime.seams import Seam
from greenroom.runtime.tools import Tool, ToolManager

__all__ = ["Builders", "Built"]


class SubagentProviderAdded(Struct, frozen=True):
    """`subagent/provider-added`: sub-agents of one more kind can be begun."""

    name: str


class SubagentProviderRemoved(Struct, frozen=True):
    """`subagent/provider-removed`: no more sub-agents of that kind can be begun. Those that there are go on."""

    name: str


class Built(NamedTuple):
    """An agent that lives nowhere yet."""

    agent: Agent
    provider: str
    """The name of who has built it."""
    lineage: Lineage
    """What it is to live beneath."""
    depth: int
    """How many agents will be nested beneath the root with it."""


@final
class Builders:
    """The providers of sub-agents of one runtime. Each agent that they build has `report` besides what they give it."""

    def __init__(self, bus: Bus, report: Tool) -> None:
        self._report = report
        self._seam = Seam[ChildProvider]("subagents")
        self._added = bus.declare("subagent/provider-added", SubagentProviderAdded)[1]
        self._removed = bus.declare("subagent/provider-removed", SubagentProviderRemoved)[1]

    @property
    def names(self) -> tuple[str, ...]:
        """Of all providers."""
        return self._seam.names

    def add(self, name: str, provider: ChildProvider) -> Callable[[], None]:
        """See `Subagents.add`."""
        close = self._seam.provide(name, provider)
        self._added(SubagentProviderAdded(name))
        there = True

        def remove() -> None:
            nonlocal there
            if there:
                there = False
                close()
                self._removed(SubagentProviderRemoved(name))

        return remove

    def build(self, request: ChildRequest, provider: str | None, parent: Agent | None, max_depth: int) -> Built:
        """Build an agent for the request, unless that is refused first; see `Subagents.run`."""
        chosen = self._seam.choose(provider)
        name = provider or self._seam.names[0]
        for asked in CAPABILITIES:
            if getattr(request, asked) is not None and asked not in chosen.capabilities:
                raise SubagentError(
                    "UNSUPPORTED_CAPABILITY",
                    f"Sub-agents of {name} cannot be asked for `{asked}`: leave it out, or choose another provider.",
                    {"provider": name, "capability": asked, "known": sorted(chosen.capabilities)},
                )
        id = f"{name}-{uuid4().hex[:8]}"
        bound = max_depth if request.max_depth is None else min(max_depth, request.max_depth)
        lineage = _beneath(parent).bounded(max_delegations=bound)
        depth = lineage.extended(tag_agent(id)).delegations
        agent = chosen.build(ChildSpec(id, request, parent))
        if agent.id != id:
            raise ValueError(f"The provider {name} was to build an agent with the id {id}, not {agent.id}")
        tools = ToolManager(scope=agent.context.tools.scope)
        tools.add([*agent.context.tools.tools(), self._report])
        agent.context.tools, agent.context.pinned = tools, frozenset({self._report.name})
        return Built(agent, name, lineage, depth)


def _beneath(parent: Agent | None) -> Lineage:
    """The lineage of what the parent begins: in its run, which the running code may be part of, or beside it."""
    here = current_lineage()
    if parent is None or tag_agent(parent.id) in here.tags:
        return here
    parent.require_place()
    return parent.ref.lineage.extended(tag_agent(parent.id))
