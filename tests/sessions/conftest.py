"""A runtime with agents that have sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from greenroom.actors.agent import Agent, AgentRecorder
from greenroom.actors.providers.scripted import Script, ScriptedProvider
from greenroom.actors.session import Session
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.agents import MessageInput
from greenroom.runtime.policies import CheckedRecorder

__all__ = ["Desk"]


class Desk:
    """Agents over scripts, each with a session of its own."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.recorder = CheckedRecorder(AgentRecorder())
        runtime.pipeline.recorder = self.recorder

    async def agent(self, *turns: Script, id: str = "a", say: str | None = "go", **options: Any) -> Agent:
        session = await self.runtime.sessions.open(id)
        agent = self.runtime.agents.add(Agent(ScriptedProvider(turns), session=session, **options))
        if say is not None:
            agent.context.messages.add(MessageInput("user", say))
        return agent

    async def again(self, agent: Agent, *turns: Script, say: str | None = "go on", **options: Any) -> Agent:
        """The agent on its session, both opened anew."""
        await self.runtime.agents.remove(agent.id)
        await self.runtime.sessions.dispose(session_of(agent))
        return await self.agent(*turns, id=agent.id, say=say, **options)


def session_of(agent: Agent) -> Session:
    assert agent.session is not None
    return agent.session


def told(agent: Agent) -> list[tuple[str, str]]:
    """What its model was last given: roles and contents."""
    provider = agent.provider
    assert isinstance(provider, ScriptedProvider)
    return [(message.role, message.content) for message in provider.calls[-1].messages]


def shown(agent: Agent) -> list[str]:
    """Its log, a word or two for each event."""
    return [_word(event.type, event.data) for event in session_of(agent).events()]


def _word(kind: str, data: Any) -> str:
    match kind:
        case "turn/end":
            return f"turn/end {data.reason}" + (f" {data.cause}" if data.cause else "")
        case "user/message" | "assistant/message":
            return f"{kind.partition('/')[0]} {data.content}" + (" ..." if getattr(data, "interrupted", False) else "")
        case "tool/call":
            return f"call {data.name} {data.position}"
        case "tool/result":
            return f"result {data.name} {data.position} {data.error.code if data.error else data.content}"
        case "approval/decided":
            return f"decided {data.decision}"
        case _:
            return kind


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_runtime() as runtime:
        yield Desk(runtime)
