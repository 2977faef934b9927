"""Which calls may run, and what the model learns of those that may not."""

from __future__ import annotations

import pytest

from greenroom.protocol.agents import Authority, ProviderResult, Rule, Scope, Verdict
from greenroom.protocol.tools import ToolCall
from tests.agents.conftest import Stage, calling, stored

CALL = ToolCall("1", "delete", {})


@pytest.mark.case("agents", 23)
@pytest.mark.parametrize(
    ("reason", "told"),
    [("blocked", "denied: blocked"), ("", "denied: "), (None, "denied by authority")],
)
async def test_a_denied_call_does_not_run_and_is_told(stage: Stage, reason: str | None, told: str) -> None:
    provider = stage.script(calling("", "delete"), ProviderResult("f"))
    authority = Authority([Rule("danger", lambda call: call.name == "delete", allowed=False, reason=reason)])
    agent = stage.agent(provider, tools=[stage.tool("delete")], authority=authority)
    assert (await agent.generate()).content == "f"
    assert stage.told("deny") == [(CALL, reason)]
    assert stage.tools_run == []
    assert stored(agent)[2] == ("tool", told)
    assert provider.calls[1].messages[-1].content == told


@pytest.mark.case("agents", 23)
async def test_a_rule_that_raises_denies(stage: Stage) -> None:
    def crash(call: ToolCall) -> bool:
        raise RuntimeError("policy crashed")

    agent = stage.agent(
        calling("", "e"), ProviderResult("f"), tools=[stage.tool("e")], authority=Authority([Rule("any", crash)])
    )
    await agent.generate()
    assert stored(agent)[2] == ("tool", "denied: policy crashed")
    assert stage.tools_run == []


@pytest.mark.case("agents", 24)
async def test_a_denied_call_keeps_its_place_between_the_others(stage: Stage) -> None:
    authority = Authority([Rule("danger", lambda call: call.name == "delete", allowed=False)])
    agent = stage.agent(
        calling("", "add", "delete", "add"),
        ProviderResult("f"),
        tools=[stage.tool("add", 3), stage.tool("delete")],
        authority=authority,
    )
    await agent.generate()
    answers = [content for role, content in stored(agent) if role == "tool"]
    assert answers == ["3", "denied by authority", "3"]
    assert stage.tools_run == ["add", "add"]


async def test_two_calls_of_one_id_are_decided_each(stage: Stage) -> None:
    calls = (ToolCall("same", "delete", {}), ToolCall("same", "add", {}))
    authority = Authority([Rule("danger", lambda call: call.name == "delete", allowed=False)])
    agent = stage.agent(
        ProviderResult("", tools=calls), ProviderResult("f"), tools=[stage.tool("add")], authority=authority
    )
    await agent.generate()
    assert [content for role, content in stored(agent) if role == "tool"] == ["denied by authority", "5"]


def test_the_first_rule_that_matches_decides() -> None:
    rules = [
        Rule("read", lambda call: call.name == "get"),
        Rule("write", lambda call: True, allowed=False, reason="read only"),
    ]
    authority = Authority(rules)
    assert authority.evaluate(ToolCall("1", "get", {})) == Verdict("read")
    assert authority.evaluate(CALL) == Verdict("write", False, "read only")
    assert Authority().evaluate(CALL) == Verdict("default", True)
    assert Authority(fallback=Verdict("closed", False)).evaluate(CALL) == Verdict("closed", False)


def test_narrowing_a_scope_keeps_what_both_let_through() -> None:
    outer = Scope("outer", tools=("a", "b"), files=())
    inner = Scope("inner", instructions=("i",), tools=("c", "b", "a"))
    narrowed = outer.narrow(inner)
    assert (narrowed.name, narrowed.instructions, narrowed.tools, narrowed.files) == ("inner", ("i",), ("b", "a"), ())
    assert len({outer.id, inner.id, narrowed.id}) == 3
