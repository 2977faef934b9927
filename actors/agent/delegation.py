"""Delegations: agents that work on a task beneath another party, for as long as it waits for them."""

from __future__ import annotations

from typing import final

import trio

from greenroom.actors.agent.agent import Agent
from greenroom.protocol.agents import AgentResult, Budget, Progress, ProgressEvent
from greenroom.protocol.errors import AgentError
from greenroom.protocol.tools import ToolCall, ToolResult
from greenroom.runtime.actor import Actor
from greenroom.runtime.context import current_node
from greenroom.runtime.lineage import current_lineage
from greenroom.runtime.ref import Ref
from greenroom.runtime.tree import Tree, free_place

__all__ = ["Delegations", "delegate", "host", "party"]


@final
class Delegations(Actor):
    """Parent of what one party has delegated: `/agents/planner/delegations`. It has no messages of its own."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def add(self, agent: Agent) -> Ref:
        """Let the agent live beneath it, under a number that none had before."""
        self._count += 1
        return self.spawn(agent, str(self._count))


async def delegate(agent: Agent, *, tree: Tree | None = None, budget: Budget | None = None) -> AgentResult:
    """One run of an agent that lives for it alone, at `<the caller's path>/delegations/<number>`.

    The agents above hear of it by their `progress` events. `budget` is the run's in place of the agent's own. A caller
    that is no actor delegates at the top of `tree`.

    Raises what `Agent.generate` does; ActorError STOPPED if the agent or the caller is stopped; AgentError PLACE for a
    caller outside of every tree, where none was given. However it ends, also by cancellation, nothing is left of the
    agent and of what is beneath it.
    """
    place = host(agent, party(tree))
    try:
        return await agent.generate(budget=budget)
    finally:
        with trio.CancelScope(shield=True):  # as for a nursery there is no deadline: all of it is being cancelled
            await place.stop()


def host(agent: Agent, caller: Ref) -> Ref:
    """Let the agent live at `<the caller's path>/delegations/<number>`, until it is stopped or the caller ends.

    The agents above hear of it by their `progress` events. Raises ActorError STOPPED if the caller stops or has ended.
    """
    place = _place(caller).add(agent)
    if above := [each.actor for each in caller.upward() if isinstance(each.actor, Agent)]:
        _Reporter(agent, above)
    return place


def party(tree: Tree | None) -> Ref:
    """The actor that the running code is part of, or else the root of `tree`. Raises AgentError PLACE without both."""
    node = current_node()
    caller = None if node is None else node.place
    if caller is None:
        if tree is None:
            raise AgentError(
                "PLACE",
                "This delegation would live nowhere: let an agent or another actor call, or say in which `tree`.",
            )
        return tree.root
    return caller


def _place(caller: Ref) -> Delegations:
    for child in (caller.children or {}).values():
        if isinstance(child.actor, Delegations) and child.alive:
            return child.actor
    place = Delegations()
    caller.tree.spawn(place, free_place(caller, "delegations"), parent=caller)
    return place


@final
class _Reporter:
    """Tells the agents above of what one beneath them does."""

    def __init__(self, agent: Agent, above: list[Agent]) -> None:
        self._agent = agent
        self._above = above
        self._depth = 0
        self._stopped = False
        agent.emitter.on("start", self._start)
        agent.emitter.on("turn", self._turn)
        agent.emitter.on("tool", self._tool)
        agent.emitter.on("abort", self._abort)
        agent.emitter.on("finish", self._finish)
        agent.emitter.on("error", self._fail)

    def _start(self, _id: str) -> None:
        self._depth = current_lineage().delegations
        self._tell("started")

    def _turn(self, number: int) -> None:
        self._tell("turn", str(number))

    def _tool(self, call: ToolCall, _result: ToolResult) -> None:
        self._tell("tool", call.name)

    def _abort(self, _reason: str | None) -> None:
        self._stopped = True

    def _finish(self, result: AgentResult) -> None:
        self._tell("stopped" if self._stopped else "finished", result.content)

    def _fail(self, error: Exception) -> None:
        self._tell("failed", str(error))

    def _tell(self, event: ProgressEvent, detail: str = "") -> None:
        progress = Progress(self._agent.ref.path, self._agent.id, self._depth, event, detail)
        for agent in self._above:
            agent.emitter.emit("progress", progress)
