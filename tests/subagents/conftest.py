"""Agents with sub-agents beneath them, all over scripts, and what the bus tells of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from greenroom.actors.agent import Agent, AgentRegistry
from greenroom.actors.providers.scripted import Script, ScriptedProvider
from greenroom.actors.subagent import SpawnProvider, Subagents
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.agents import AgentJob, ChildRequest, ProviderResult
from greenroom.protocol.tools import ToolCall
from greenroom.runtime.tools import Tool
from tests.agents.conftest import Stage

__all__ = ["DONE", "Family", "beginning", "request", "told"]

DONE = ProviderResult("done")


def request(prompt: str = "Do it.", **options: Any) -> ChildRequest:
    return ChildRequest(description="a task", prompt=prompt, **options)


def beginning(*names: str, **arguments: Any) -> ProviderResult:
    """An answer that calls `subagent`, or the tools of these names."""
    given = arguments or {"description": "a task", "prompt": "Do it."}
    calls = [ToolCall(str(at), name, given) for at, name in enumerate(names or ("subagent",), 1)]
    return ProviderResult("", tools=tuple(calls))


class Family(Stage):
    """A stage with providers of sub-agents."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.starts: list[Any] = []
        self.ends: list[Any] = []
        runtime.bus.on("subagent/start", self.starts.append)
        runtime.bus.on("subagent/end", self.ends.append)

    @property
    def subagents(self) -> Subagents:
        return self.runtime.subagents

    def offer(self, name: str, *turns: Script, tools: tuple[Tool, ...] = (), **job: Any) -> ScriptedProvider:
        """Let sub-agents be had under that name that answer with these turns, each going on where the last one was."""
        model = ScriptedProvider(turns)
        registry = AgentRegistry({"main": model}, tools={tool.name: tool for tool in tools})
        names = tuple(tool.name for tool in tools)
        self.subagents.add(name, SpawnProvider(registry, AgentJob(provider="main", messages=(), tools=names, **job)))
        return model

    def only(self) -> Agent:
        """The one sub-agent that there is."""
        (info,) = self.subagents.children("descendants")
        agent = self.subagents.agent(info.id)
        assert agent is not None
        return agent

    @property
    def places(self) -> list[str]:
        """The paths of all agents that live."""
        found: list[str] = []
        left = [self.runtime.snapshot().root]
        while left:
            each = left.pop()
            left.extend(each.children)
            if each.kind == "agent":
                found.append(each.path)
        return sorted(found)


def told(agent: Agent) -> list[str]:
    """What it has read as messages of the user."""
    return [message.content for message in agent.context.messages.messages() if message.role == "user"]


@pytest.fixture
async def family() -> AsyncIterator[Family]:
    async with open_runtime() as runtime:
        yield Family(runtime)
