"""Agents that are built from a job, by names."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from greenroom.actors.agent import AgentRegistry, MemoryConversationStore, settle_job
from greenroom.actors.providers import ScriptedProvider
from greenroom.protocol.agents import AgentJob, Authority, MessageInput, ProviderResult, Rule, Usage
from greenroom.protocol.errors import AgentError, AgentJobError
from greenroom.runtime.cancel import Cancel
from tests.agents.conftest import Stage, calling, value_tool


def job(**fields: Any) -> AgentJob:
    return msgspec.convert({"provider": "p", "messages": [{"role": "user", "content": "go"}], **fields}, AgentJob)


async def test_a_job_has_all_that_it_names(stage: Stage) -> None:
    provider = ScriptedProvider([calling("c", "e", usage=Usage(1, 4, 5))])
    store = MemoryConversationStore()
    registry = AgentRegistry(
        {"p": provider},
        tools={"e": value_tool("e"), "f": value_tool("f")},
        authorities={"none": Authority([Rule("all", lambda call: True, allowed=False)])},
        store=store,
    )
    agent = registry.build(job(tools=["e"], system="S", authority="none", budget=6, limit=5, timeout=60_000))
    stage.runtime.agents.add(agent)
    result = await agent.generate()
    assert result.partial
    assert provider.started == 2
    assert [message.content for message in provider.calls[0].messages] == ["S", "go"]
    assert [tool.name for tool in provider.calls[0].tools or ()] == ["e"]
    assert agent.context.messages.messages()[2].content == "denied by authority"
    assert await agent.context.conversations.save(agent.context.messages.id)
    assert store.ids == [agent.context.messages.id]


@pytest.mark.parametrize("kind", ["provider", "tool", "authority", "scheduler"])
async def test_an_unknown_name_is_refused_with_the_known_ones(kind: str) -> None:
    registry = AgentRegistry({"p": ScriptedProvider([ProviderResult("f")])})
    with pytest.raises(AgentError, match=f"unknown {kind}: x") as refused:
        registry.build(job(**{"tools": ["x"]} if kind == "tool" else {kind: "x"}))
    assert refused.value.code == "UNKNOWN"


async def test_the_provider_is_looked_up_first() -> None:
    with pytest.raises(AgentError, match="unknown provider: p"):
        AgentRegistry({}).build(job(tools=["x"]))


async def test_a_job_that_ends_before_it_is_done_is_an_error_unless_that_is_allowed(stage: Stage) -> None:
    registry = AgentRegistry({"p": ScriptedProvider([calling("c", "e")])}, tools={"e": value_tool("e")})
    agent = stage.runtime.agents.add(registry.build(job(tools=["e"], limit=1)))
    with pytest.raises(AgentJobError) as ended:
        await settle_job(agent)
    assert ended.value.partial is not None
    assert ended.value.partial.content == "c"
    assert (await settle_job(agent, allow_partial=True)).partial


async def test_a_job_s_token_stops_its_agent(stage: Stage) -> None:
    cancel = Cancel()
    cancel.set("no more")
    agent = AgentRegistry({"p": ScriptedProvider([ProviderResult("f")])}).build(job(), cancel)
    assert (await stage.runtime.agents.add(agent).generate()).partial


def test_a_job_is_json() -> None:
    whole = job(children=[{"provider": "q", "messages": []}], timeout=5)
    assert msgspec.json.decode(msgspec.json.encode(whole), type=AgentJob) == whole
    assert whole.messages == (MessageInput("user", "go"),)
    with pytest.raises(msgspec.ValidationError):
        job(provider="")
