"""Agents that delegate: registries over scripts, and the runtime of each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from greenroom.actors.agent import Agent, AgentRegistry
from greenroom.actors.providers.scripted import ScriptedProvider
from greenroom.actors.system import open_runtime
from greenroom.actors.toolbox.agent import agent_tool
from greenroom.protocol.agents import ProviderResult
from greenroom.runtime.provider import Provider
from greenroom.runtime.tools import Tool
from tests.agents.conftest import Stage, calling

__all__ = ["DONE", "delegating", "handing", "planner"]

DONE = ProviderResult("done")


def handing(provider: str | None = None, **arguments: Any) -> ProviderResult:
    """An answer that delegates a task, by default to the usual provider."""
    if provider is not None:
        arguments["provider"] = provider
    return calling("", "agent", task="do it", **arguments)


def delegating(providers: dict[str, Provider], *tools: Tool, **options: Any) -> Tool:
    """The tool over these providers. Each agent beneath may use these tools, and delegate."""
    registry = AgentRegistry(providers, tools={tool.name: tool for tool in tools})
    return agent_tool(registry, tools=("agent", *(tool.name for tool in tools)), **options)


def planner(stage: Stage, tool: Tool, *turns: ProviderResult, **options: Any) -> Agent:
    """An agent at the top of the tree that has the tool, and answers with these turns."""
    return stage.agent(ScriptedProvider(turns), id="planner", tools=[tool], **options)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with open_runtime() as runtime:
        yield Stage(runtime)
