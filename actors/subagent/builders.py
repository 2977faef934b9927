"""Who builds sub-agents, by name, and the building of one: what is asked of it, how deep it is, what it may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, final
from uuid import uuid4

from msgspec import Struct

from greenroom.actors.agent import Agent
from greenroom.actors.session import Session
from greenroom.actors.subagent.providers import CAPABILITIES, ChildProvider, ChildSpec
from greenroom.protocol.agents import ChildRequest
from greenroom.protocol.errors import SubagentError
from greenroom.protocol.lineage import tag_agent
from greenroom.runtime.bus import Bus
from greenroom.runtime.lineage import Lineage, current_lineage
from greenroom.runtime.seams import Seam
from greenroom.runtime.tools import Tool, ToolManager

__all__ = ["Builders", "Plan"]


class SubagentProviderAdded(Struct, frozen=True):
    """`subagent/provider-added`: sub-agents of one more kind can be begun."""

    name: str


class SubagentProviderRemoved(Struct, frozen=True):
    """`subagent/provider-removed`: no more sub-agents of that kind can be begun. Those that there are go on."""

    name: str


class Plan(NamedTuple):
    """How a sub-agent is to be built, if nothing comes between."""

    id: str
    request: ChildRequest
    parent: Agent | None
    provider: str
    """The name of who builds it."""
    builder: ChildProvider
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

    def plan(
        self,
        request: ChildRequest,
        provider: str | None,
        parent: Agent | None,
        max_depth: int,
        *,
        again: str | None = None,
        least: int = 0,
    ) -> Plan:
        """See to it that the request may be followed, by an agent that is nested `least` deep at least. Raises as
        `Subagents.run`. `again` is the id of one that is begun anew."""
        builder = self._seam.choose(provider)
        name = provider or self._seam.names[0]
        for asked in CAPABILITIES:
            if getattr(request, asked) is not None and asked not in builder.capabilities:
                raise SubagentError(
                    "UNSUPPORTED_CAPABILITY",
                    f"Sub-agents of {name} cannot be asked for `{asked}`: leave it out, or choose another provider.",
                    {"provider": name, "capability": asked, "known": sorted(builder.capabilities)},
                )
        id = again or f"{name}-{uuid4().hex[:8]}"
        if parent is not None and parent.session is not None:
            least = max(least, parent.session.header.delegation_depth + 1)
        bound = max_depth if request.max_depth is None else min(max_depth, request.max_depth)
        lineage = _beneath(parent).bounded(max_delegations=bound)
        depth = lineage.extended(tag_agent(id)).delegations
        if depth < least:
            lineage = lineage._replace(unnamed=lineage.unnamed + least - depth)
            depth = lineage.extended(tag_agent(id)).delegations
        return Plan(id, request, parent, name, builder, lineage, depth)

    def build(self, plan: Plan, session: Session | None = None) -> Agent:
        """The agent, which lives nowhere yet. Raises what its provider raises."""
        agent = plan.builder.build(ChildSpec(plan.id, plan.request, plan.parent, session))
        if agent.id != plan.id or agent.session is not session:
            raise ValueError(
                f"The provider {plan.provider} was to build {plan.id}, with its session, and not {agent.id}"
            )
        tools = ToolManager(scope=agent.context.tools.scope)
        tools.add([*agent.context.tools.tools(), self._report])
        agent.context.tools, agent.context.pinned = tools, frozenset({self._report.name})
        return agent


def _beneath(parent: Agent | None) -> Lineage:
    """The lineage of what the parent begins: in its run, which the running code may be part of, or beside it."""
    here = current_lineage()
    if parent is None or tag_agent(parent.id) in here.tags:
        return here
    parent.require_place()
    return parent.ref.lineage.extended(tag_agent(parent.id))
