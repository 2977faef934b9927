"""The agents of a runtime that were given a place at its top."""

from __future__ import annotations

from functools import partial
from typing import final

from greenroom.actors.agent.agent import Agent
from greenroom.protocol.errors import AgentError
from greenroom.runtime.actor import Actor
from greenroom.runtime.ref import Ref
from greenroom.runtime.tree import ActorEnded, Tree, free_place

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

    async def remove(self, id: str) -> tuple[str, ...]:
        """Stop the agent, its runs and all beneath them; the paths of what has ended by that, its own the last.

        Empty if there is no such agent. Nothing of it is left when this returns. Cancelled: it ends all the same.
        """
        agent = self._agents.get(id)
        if agent is None:
            return ()
        path, ended = agent.ref.path, list[str]()

        def note(each: ActorEnded) -> None:
            if each.path == path or each.path.startswith(f"{path}/"):
                ended.append(each.path)

        unheard = self._tree.bus.on("actor/ended", note)
        try:
            await agent.ref.stop(reason="removed")
        finally:
            unheard()
        return tuple(ended)

    def _forget(self, agent: Agent, _place: Ref) -> None:
        if self._agents.get(agent.id) is agent:
            del self._agents[agent.id]
