"""Whoever calls a tool, the same policies have a say."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import greenroom
from greenroom import (
    Agent,
    Deny,
    Invocation,
    MessageInput,
    Next,
    ProviderResult,
    Runtime,
    ScriptedProvider,
    Tool,
    ToolCall,
    ToolFailure,
    ToolManager,
    Verdict,
    WorkflowRunner,
    tool_function,
)

DENIED = "The call was not run: nothing is opened at night"


@pytest.fixture
async def night() -> AsyncIterator[tuple[Runtime, list[str | None]]]:
    """A runtime in which nobody opens anything, and who has tried."""
    tried: list[str | None] = []

    async def closed(call: Invocation, next: Next[Verdict]) -> Verdict:
        if call.name != "open":
            return await next()
        tried.append(call.agent)
        return Deny("nothing is opened at night")

    async with greenroom.open_runtime() as runtime:
        runtime.bus.on("tools/pre-execute", closed)
        runtime.tools.add(door())
        yield runtime, tried


def door() -> Tool:
    def opened() -> None:
        raise AssertionError("it was opened")

    return Tool("open", opened)


Night = tuple[Runtime, list[str | None]]


async def test_a_program(night: Night) -> None:
    runtime, tried = night
    assert await runtime.tools.execute(ToolCall("1", "open", {})) == ToolFailure(id="1", name="open", error=DENIED)
    assert tried == [None]


async def test_a_peer_over_json_rpc(night: Night) -> None:
    runtime, tried = night
    gateway = await runtime.serve()
    async with greenroom.connect(gateway.url) as client:
        result = await client.call_tool("open", {})
    assert isinstance(result, ToolFailure)
    assert result.error == DENIED
    assert len(tried) == 1


async def test_an_agent_with_tools_of_its_own(night: Night) -> None:
    runtime, tried = night
    calling = ProviderResult("", tools=(ToolCall("1", "open", {}),))
    agent = Agent(ScriptedProvider([calling, ProviderResult("It is closed.")]), id="ada", tools=[door()])
    runtime.agents.add(agent).context.messages.add(MessageInput("user", "Open it."))
    assert (await agent.generate()).content == "It is closed."
    assert [message.content for message in agent.context.messages.view() if message.role == "tool"] == [
        f"Error: {DENIED}"
    ]
    assert tried == ["/agents/ada"]


async def test_a_task_of_a_workflow(night: Night) -> None:
    runtime, tried = night
    tools = ToolManager()
    tools.add(door())
    task = {"id": "t", "name": "T", "behavior": "open"}
    definition = {"id": "w", "name": "W", "phases": [{"id": "p", "name": "P", "tasks": [task]}]}
    runner = WorkflowRunner(runtime.tree)
    result = await runner.execute(definition, functions={"open": tool_function(tools, "open")})
    assert DENIED in str(result)
    (path,) = tried
    assert path is not None
    assert path.startswith("/workflows/")
