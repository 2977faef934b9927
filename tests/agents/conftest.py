"""A runtime a test, with agents in it whose models answer by script and whose events are written down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from greenroom.actors.agent import AGENT_EVENTS, Agent, AgentRun
from greenroom.actors.providers.scripted import Script, ScriptedProvider
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.agents import AgentResult, MessageInput, ProviderResult, Usage
from greenroom.protocol.tools import ToolCall
from greenroom.runtime.tools import Tool

__all__ = ["GO", "Stage", "U", "calling", "value_tool"]

U = Usage(5, 7, 12)
GO = MessageInput("user", "go")


def calling(content: str, *names: str, usage: Usage | None = None, **arguments: Any) -> ProviderResult:
    """An answer that calls these tools, with ids 1, 2 ..."""
    calls = tuple(ToolCall(str(index), name, arguments) for index, name in enumerate(names, 1))
    return ProviderResult(content, tools=calls, usage=usage)


def value_tool(name: str, value: Any = 5) -> Tool:
    """A tool that returns this value, or raises it."""

    def execute() -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return Tool(name, execute)


class Stage:
    """A runtime, and what its agents announce."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.events: list[Any] = []
        self.tools_run: list[str] = []

    @property
    def names(self) -> list[str]:
        """The events without what they told."""
        return [event[0] for event in self.events]

    def told(self, event: str) -> list[Any]:
        """What an event told, each time."""
        return [each[1:] if len(each) > 2 else each[1] for each in self.events if each[0] == event]

    def script(self, *turns: Script, **options: Any) -> ScriptedProvider:
        return ScriptedProvider(turns, **options)

    def agent(self, *turns: Script | ScriptedProvider, seed: MessageInput | None = GO, **options: Any) -> Agent:
        """An agent over a script, at the top of the tree, with `seed` in its conversation."""
        provider = turns[0] if isinstance(turns[0], ScriptedProvider) else self.script(*turns)  # type: ignore[arg-type]
        on: dict[str, Callable[..., object]] = {name: partial(self._note, name) for name in AGENT_EVENTS}
        agent = Agent(provider, on=on | options.pop("on", {}), **options)
        if seed is not None:
            agent.context.messages.add(seed)
        return self.runtime.agents.add(agent)

    def tool(self, name: str, value: Any = 5) -> Tool:
        """A tool that writes down that it ran."""

        def execute() -> Any:
            self.tools_run.append(name)
            return value

        return Tool(name, execute)

    def _note(self, name: str, *told: Any) -> None:
        self.events.append((name, *told))


async def kinds(run: AgentRun) -> list[str]:
    """The types of all pieces of a run."""
    return [msgspec.to_builtins(chunk)["type"] async for chunk in run.events]


def stored(agent: Agent) -> list[tuple[str, str]]:
    """Roles and contents of its conversation."""
    return [(message.role, message.content) for message in agent.context.messages.messages()]


async def heard(agent: Agent, **options: Any) -> tuple[list[str], AgentResult]:
    """One run: the types of its pieces, and its result."""
    async with agent.stream(**options) as run:
        return await kinds(run), await run.result()


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with open_runtime() as runtime:
        yield Stage(runtime)
