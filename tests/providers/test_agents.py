"""Agents over a server on a real socket: what their tools do is in the next request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from greenroom.actors.agent import Agent
from greenroom.actors.providers.anthropic import AnthropicProvider
from greenroom.actors.providers.http import HttpProvider
from greenroom.actors.providers.openai import OpenAIProvider
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.agents import MessageInput
from greenroom.protocol.errors import ProviderError
from greenroom.runtime.tools import Tool
from tests.providers import test_anthropic as messages
from tests.providers import test_openai as completions
from tests.providers.server import ModelServer, sse


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    async with open_runtime() as runtime:
        yield runtime


def agent_over(runtime: Runtime, provider: HttpProvider, ran: list[Any]) -> Agent:
    """One with a tool `e` that writes its arguments down and returns how many there are by then."""

    def execute(args: dict[str, Any]) -> int:
        ran.append(args)
        return len(ran)

    agent = runtime.agents.add(Agent(provider, system="S", tools=[Tool("e", execute)]))
    agent.context.messages.add(MessageInput("user", "go"))
    return agent


@pytest.mark.case("reports/providers", 1)
async def test_calls_with_arguments_that_are_none_are_answered_and_their_siblings_run(
    runtime: Runtime, server: ModelServer, openai: OpenAIProvider
) -> None:
    texts = ["", None, "  ", "null", "[]", "{}", '"{}"', '{"v":1}']
    fragments = [completions.call(text, index=at, id=f"c{at}", name="e") for at, text in enumerate(texts)]
    final = sse(completions.chunk("stop", content="done"), completions.DONE)
    server.plays(completions.calls(*fragments), final)
    ran: list[Any] = []
    assert (await agent_over(runtime, openai, ran).generate()).content == "done"
    assert ran == [{}, {}, {}, {}, {"v": 1}]
    _, second = server.received
    answers = {each["tool_call_id"]: each["content"] for each in second.body["messages"] if each["role"] == "tool"}
    assert [answers[f"c{at}"] for at in (3, 4, 6)] == [
        f"malformed arguments: they are {kind}, not an object" for kind in ("null", "a list", "a text")
    ]
    assert [answers[f"c{at}"] for at in (0, 1, 2, 5, 7)] == ["1", "2", "3", "4", "5"]


async def test_messages_carry_tools_too(runtime: Runtime, server: ModelServer, anthropic: AnthropicProvider) -> None:
    calling = messages.events(
        messages.START, *messages.use(0, "a", '{"v":1}'), messages.ended("tool_use"), messages.STOP
    )
    final = messages.events(messages.START, *messages.text(0, "done"), messages.ended(), messages.STOP)
    server.plays(calling, final)
    ran: list[Any] = []
    result = await agent_over(runtime, anthropic, ran).generate()
    assert (result.content, ran) == ("done", [{"v": 1}])
    assert result.usage is not None
    assert result.usage.completion == 14
    assert server.received[1].body["system"] == "S"
    assert server.received[1].body["messages"][-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "1"}
    ]


async def test_a_failed_answer_fails_the_run_and_leaves_the_conversation_as_it_was(
    runtime: Runtime, server: ModelServer, openai: OpenAIProvider
) -> None:
    server.plays(sse(completions.chunk(content="half")))
    agent = agent_over(runtime, openai, [])
    with pytest.raises(ProviderError) as failed:
        await agent.generate()
    assert failed.value.kind == "truncated"
    assert failed.value.context["partial"] == "half"
    assert [message.content for message in agent.context.messages.messages()] == ["go"]
    assert agent.status == "error"
