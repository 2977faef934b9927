"""The agents of a runtime that were given a place at its top."""

from __future__ import annotations

from functools import partial
from typing import final

from greenroom.actors.agent.agent import Agent
from greenroom.protocol.errors import AgentError
from greenroom.runtime.actor import Actor
from greenroom.runtime.ref import Ref
from greenroom.runtime.tree import Tree, free_place

__all__ = ["AgentManager"]


@final
class Agents(Actor):
    """Parent of every agent at the top; it has no messages of its own."""

    __slots__ = ()


@final
class AgentManager:
    """Agents by id, in order of adding. They live beneath `/agents`; one that ends is forgotten."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._ref: Ref | None = None
        self._agents: dict[str, Agent] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._agents)

    def agent(self, id: str) -> Agent | None:
        """The one of that id, if there is one."""
        return self._agents.get(id)

    def agents(self) -> list[Agent]:
        """All of them."""
        return list(self._agents.values())

    def add(self, agent: Agent) -> Agent:
        """Let the agent live, at `/agents/<its id>`. Raises AgentError EXISTS for an id that is taken."""
        if agent.id in self._agents:
            raise AgentError(
                "EXISTS",
                f"There is an agent {agent.id} already: remove it first, or choose another id.",
                {"agent": agent.id},
            )
        if self._ref is None:
            self._ref = self._tree.spawn(Agents(), "agents")
        place = self._tree.spawn(agent, free_place(self._ref, agent.id), parent=self._ref)
        self._agents[agent.id] = agent
        place.watch(partial(self._forget, agent))
        return agent

    async def remove(self, id: str) -> bool:
        """Stop the agent, its runs and all beneath them; whether it was there. Nothing of it is left then."""
        agent = self._agents.get(id)
        if agent is None:
            return False
        await agent.ref.stop(reason="removed")
        return True

    def _forget(self, agent: Agent, _place: Ref) -> None:
        if self._agents.get(agent.id) is agent:
            del self._agents[agent.id]
