"""Agents and tasks of workflows that do what they are told, step by step, and wait for that in between."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, final

import trio

from greenroom.actors.agent import Agent, AgentRegistry
from greenroom.actors.system import Runtime
from greenroom.actors.toolbox.agent import agent_tool
from greenroom.actors.toolbox.ask import ask_tool
from greenroom.actors.toolbox.workflow import workflow_tool
from greenroom.actors.workflow import TaskController, WorkflowRunner
from greenroom.protocol.agents import (
    AgentResult,
    ChatMessage,
    Delta,
    MessageInput,
    PromptFormat,
    ProviderOptions,
    ProviderResult,
)
from greenroom.protocol.tools import ToolDefinition, ToolResult, ToolSuccess
from greenroom.protocol.workflows import WorkflowDefinition
from greenroom.runtime.cancel import CancelToken
from greenroom.runtime.context import current_actor
from greenroom.runtime.lineage import Lineage, within
from greenroom.runtime.tools import ToolManager

__all__ = ["Directs", "Provider", "Puppet", "Stage"]

TURNS = 1000
"""More than anybody takes."""
HOST = WorkflowDefinition(id="host", name="Host", phases=())


@final
class Puppet:
    """A party that waits to be told what to do next."""

    def __init__(self, path: str, name: str, outcomes: list[str]) -> None:
        self.path = path
        self.name = name
        self.outcomes = outcomes
        """What came of the calls that it was told to make the last time, in their order."""
        self._told = trio.Event()
        self._said: ProviderResult | Exception = ProviderResult()

    def tell(self, said: ProviderResult | Exception) -> None:
        """Let it say this: make calls, come to an end, or fail."""
        self._said = said
        self._told.set()

    async def wait(self) -> ProviderResult:
        await self._told.wait()
        if isinstance(self._said, Exception):
            raise self._said
        return self._said


@final
class Stage:
    """A runtime with agents at its top, and with more that these may call upon."""

    def __init__(self, runtime: Runtime, names: Sequence[str], bounds: Lineage) -> None:
        self.runtime = runtime
        self.ready: dict[str, Puppet] = {}
        """Who waits to be told, by path."""
        self.in_flight = 0
        """How many calls of a provider are open."""
        self.tools = ToolManager()
        self._bounds = bounds
        runner = WorkflowRunner(runtime.tree)
        ask = ask_tool(runtime.terminals, None)
        nest = workflow_tool(HOST, runner, functions={"work": self._work})
        registry = AgentRegistry({name: Provider(self, name) for name in names}, tools={ask.name: ask, nest.name: nest})
        self.tools.add([ask, nest, agent_tool(registry, tools=("agent", "ask", "workflow"), limit=TURNS)])

    def add(self, name: str) -> None:
        """Let an agent live at the top, which operates the terminal of its name."""
        agent = self.runtime.agents.add(Agent(Provider(self, name), id=name, tools=self.tools.tools()))
        self.runtime.terminals.add(name, operator=agent.ref)

    async def run(self, name: str) -> AgentResult:
        agent = self.runtime.agents.agent(name)
        assert agent is not None
        agent.context.messages.add(MessageInput("user", "go"))
        with within(self._bounds):
            return await agent.generate(limit=TURNS)

    async def told(self, name: str, outcomes: list[str]) -> ProviderResult:
        """What the running party is told to say."""
        actor = current_actor()
        assert actor is not None
        path = actor.ref.path
        assert path not in self.ready, f"{path} waits twice"
        puppet = self.ready[path] = Puppet(path, name, outcomes)
        try:
            return await puppet.wait()
        finally:
            del self.ready[path]

    async def _work(self, controller: TaskController) -> str:
        outcomes = list[str]()
        while True:
            said = await self.told(controller.task.workflow.id, outcomes)
            if not said.tools:
                return said.content
            outcomes = [_text(result) for result in await self.tools.execute(list(said.tools))]


def _text(result: ToolResult) -> str:
    return json.dumps(result.value, separators=(",", ":")) if isinstance(result, ToolSuccess) else result.error


class Directs(Protocol):
    """Whoever tells models what to say."""

    in_flight: int

    async def told(self, name: str, outcomes: list[str]) -> ProviderResult: ...


@final
class Provider:
    """A model that says what it is told to."""

    format: PromptFormat | None = None

    def __init__(self, stage: Directs, name: str) -> None:
        self.id = self.name = name
        self._stage = stage

    async def generate(
        self,
        messages: Sequence[ChatMessage],
        cancel: CancelToken,
        tools: Sequence[ToolDefinition] | None = None,
        options: ProviderOptions | None = None,
    ) -> ProviderResult:
        raise AssertionError("agents stream")

    @asynccontextmanager
    async def stream(
        self,
        messages: Sequence[ChatMessage],
        cancel: CancelToken,
        tools: Sequence[ToolDefinition] | None = None,
        options: ProviderOptions | None = None,
    ) -> AsyncGenerator[Said]:
        outcomes = list[str]()
        for message in reversed(messages):
            if message.role != "tool":
                break
            outcomes.insert(0, message.content)
        self._stage.in_flight += 1
        try:
            yield Said(await self._stage.told(self.name, outcomes))
        finally:
            self._stage.in_flight -= 1


@final
class Said:
    """An answer in one piece."""

    partial = ProviderResult()

    def __init__(self, result: ProviderResult) -> None:
        self.result = result

    async def __aiter__(self) -> AsyncIterator[Delta]:
        await trio.lowlevel.checkpoint()
        if self.result.content:
            yield Delta("content", self.result.content)


def fields() -> list[dict[str, Any]]:
    """The fields of the forms that are asked."""
    return [{"control": "text", "name": "v"}]
