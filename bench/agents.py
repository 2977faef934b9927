"""Agents: turns of a run, delegations from one agent to another, and the stop of many in a deep tree."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import trio
import trio.testing

from bench.harness import cost, times
from greenroom import (
    ActorError,
    Agent,
    AgentRegistry,
    MessageInput,
    ProviderResult,
    ScriptedProvider,
    Tool,
    ToolCall,
    agent_tool,
    open_runtime,
)

TURNS = 200
DELEGATIONS = 100
LEVELS = 8
AGENTS = 1_000

CALLING = ProviderResult("I look it up.", tools=(ToolCall("1", "look", {"name": "x"}),))
DELEGATING = ProviderResult("I let it be done.", tools=(ToolCall("1", "agent", {"task": "Do it."}),))
GO = MessageInput("user", "Begin.")


@cost("agents/turn")
async def turn() -> float:
    """A turn with an answer in two pieces, one tool call, and its result in the conversation."""
    provider = ScriptedProvider([CALLING], deltas_of=lambda text: (text[:5], text[5:]), record=False)
    async with open_runtime() as runtime:
        agent = runtime.agents.add(Agent(provider, tools=[Tool("look", lambda: {"found": True})]))
        agent.context.messages.add(GO)
        start = time.perf_counter()
        result = await agent.generate(limit=TURNS)
        taken = time.perf_counter() - start
        assert result.partial
        assert provider.started == TURNS
    return taken / TURNS


@cost("agents/delegation")
async def delegation() -> float:
    """A turn that gives a task to another agent, which answers once and is gone."""
    below = ScriptedProvider([ProviderResult("Done.")], record=False)
    tool = agent_tool(AgentRegistry({"p": below}), provider="p")
    async with open_runtime() as runtime:
        agent = runtime.agents.add(Agent(ScriptedProvider([DELEGATING], record=False), tools=[tool]))
        start = time.perf_counter()
        await agent.generate(limit=DELEGATIONS)
        taken = time.perf_counter() - start
        assert below.started == DELEGATIONS
    return taken / DELEGATIONS


@times("agents/stop-1000-in-8-levels")
async def stop() -> float:
    """The seconds in which a tree of agents ends, each of which waits in a tool call for those beneath it."""
    async with open_runtime(tune_gc=True) as runtime, trio.open_nursery() as nursery:
        waiting = ScriptedProvider([ProviderResult("", tools=(ToolCall("1", "wait", {}),))], record=False)
        root = runtime.agents.add(_waiting_agent(waiting, "root"))
        nursery.start_soon(_hold, root)
        level = [root]
        for size in _sizes():
            await trio.testing.wait_all_tasks_blocked()  # an actor starts nothing before it has begun
            below: list[Agent] = []
            for number in range(size):
                parent = level[number % len(level)]
                child = _waiting_agent(waiting, f"agent-{number}")
                parent.spawn(child, child.id)
                parent.start_soon(_hold, child)
                below.append(child)
            level = below
        await trio.testing.wait_all_tasks_blocked()
        assert waiting.started == AGENTS
        start = time.perf_counter()
        await runtime.agents.remove("root")
        taken = time.perf_counter() - start
        nursery.cancel_scope.cancel()
    return taken


def _sizes() -> Iterator[int]:
    """How many agents each level below the root has; all levels together have AGENTS."""
    left = AGENTS - 1
    for level in range(LEVELS - 1, 0, -1):
        size = left // level
        left -= size
        yield size


def _waiting_agent(provider: ScriptedProvider, id: str) -> Agent:
    return Agent(provider, id=id, tools=[Tool("wait", trio.sleep_forever)])


async def _hold(agent: Agent) -> None:
    with contextlib.suppress(ActorError):  # it is stopped
        await agent.generate()
