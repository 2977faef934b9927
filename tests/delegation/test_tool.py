"""The tool `agent`: what it takes, what it refuses, what comes of it."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from greenroom.actors.agent import Agent, AgentRegistry, ConversationStore, MemoryConversationStore
from greenroom.actors.providers.scripted import ScriptedProvider
from greenroom.actors.toolbox.agent import agent_tool
from greenroom.protocol.agents import ConversationSnapshot, ProviderResult, Usage
from greenroom.protocol.agents.usage import Budget
from greenroom.protocol.errors import AgentError, ToolError
from greenroom.runtime.lineage import beneath, current_lineage
from greenroom.runtime.provider import Provider
from greenroom.runtime.tools import Tool
from tests.agents.conftest import Stage, calling, stored, value_tool
from tests.delegation.conftest import DONE, delegating, handing, planner


def failing() -> ScriptedProvider:
    return ScriptedProvider([DONE], failure=LookupError("no such model"))


def over(stage: Stage, provider: Provider, **options: Any) -> Tool:
    """The tool over one provider, `main`, which is the usual one."""
    return agent_tool(AgentRegistry({"main": provider}), provider="main", tree=stage.runtime.tree, **options)


@pytest.mark.case("agents", 36)
@pytest.mark.parametrize(("task", "said"), [(42, "42"), ("  ", "  "), ("t", "t")])
async def test_the_task_is_the_one_message_of_the_user(stage: Stage, task: object, said: str) -> None:
    provider = ScriptedProvider([DONE])
    assert await over(stage, provider).execute({"task": task, "extra": "dropped"}) == "done"
    assert [(message.role, message.content) for message in provider.calls[0].messages] == [("user", said)]


@pytest.mark.case("agents", 36)
@pytest.mark.parametrize(
    "arguments",
    [{}, {"task": ""}, {"task": "t", "provider": None}, {"task": "t", "tools": "x"}, {"task": "t", "tools": [""]}],
)
async def test_arguments_that_are_none_are_refused_before_anything_begins(stage: Stage, arguments: Any) -> None:
    provider = ScriptedProvider([DONE])
    with pytest.raises(ToolError) as refused:
        await over(stage, provider).execute(arguments)
    assert (refused.value.code, refused.value.context) == ("TOOL", {"args": arguments})
    assert provider.started == 0


@pytest.mark.case("agents", 36)
async def test_an_empty_system_prompt_is_an_empty_system_message(stage: Stage) -> None:
    provider = ScriptedProvider([DONE])
    await over(stage, provider, system="usual").execute({"task": "t", "system": ""})
    await over(stage, provider, system="usual").execute({"task": "t"})
    assert [message.content for call in provider.calls for message in call.messages] == ["", "t", "usual", "t"]


async def test_a_list_of_tools_replaces_the_usual_ones_and_an_empty_one_is_none(stage: Stage) -> None:
    provider = ScriptedProvider([DONE])
    registry = AgentRegistry({"main": provider}, tools={name: value_tool(name) for name in ("a", "b")})
    tool = agent_tool(registry, provider="main", tools=["a"], tree=stage.runtime.tree)
    given: list[dict[str, Any]] = [{}, {"tools": ["b"]}, {"tools": []}]
    for arguments in given:
        await tool.execute({"task": "t", **arguments})
    offered = [call.tools and [tool.name for tool in call.tools] for call in provider.calls]
    assert offered == [["a"], ["b"], None]


async def test_the_turns_of_a_delegation_are_bounded(stage: Stage) -> None:
    provider = ScriptedProvider([calling("again ", "e")])
    assert await over(stage, provider, limit=3).execute({"task": "t"}) == "again " * 3


async def test_without_any_provider_the_call_says_which_there_are(stage: Stage) -> None:
    tool = agent_tool(AgentRegistry({"a": ScriptedProvider([DONE]), "b": failing()}), tree=stage.runtime.tree)
    with pytest.raises(ToolError, match="a, b") as refused:
        await tool.execute({"task": "t"})
    assert (refused.value.code, refused.value.context) == ("TOOL", {"task": "t"})


@pytest.mark.parametrize("arguments", [{"provider": "ghost"}, {"tools": ["ghost"]}])
async def test_names_that_the_registry_has_not_are_refused_as_it_does(stage: Stage, arguments: Any) -> None:
    with pytest.raises(AgentError, match="ghost") as refused:
        await over(stage, ScriptedProvider([DONE])).execute({"task": "t", **arguments})
    assert refused.value.code == "UNKNOWN"


@pytest.mark.case("agents", 37)
async def test_depth_seven_runs_and_depth_eight_is_refused_before_the_provider_is_reached(stage: Stage) -> None:
    provider = ScriptedProvider([DONE])
    assert await over(stage, provider, depth=7).execute({"task": "t"}) == "done"
    with pytest.raises(ToolError, match="8 are allowed") as refused:
        await over(stage, provider, depth=8).execute({"task": "t"})
    assert refused.value.code == "DEPTH"
    assert refused.value.context == {"provider": "main", "depth": 8, "max": 8}
    assert provider.started == 1


@pytest.mark.case("agents", 37)
async def test_who_is_above_already_is_refused_and_depth_goes_before_that(stage: Stage) -> None:
    provider = ScriptedProvider([DONE])
    with pytest.raises(ToolError, match="cycle") as refused:
        await over(stage, provider, ancestry=["agent:main"]).execute({"task": "t"})
    assert refused.value.code == "DEPTH"
    assert refused.value.context == {"provider": "main", "ancestry": ["agent:main"]}
    with pytest.raises(ToolError, match="8 are allowed"):
        await over(stage, provider, ancestry=["agent:main"], depth=8).execute({"task": "t"})
    assert provider.started == 0
    assert await over(stage, provider, ancestry=["workflow:main"]).execute({"task": "t"}) == "done"


async def test_an_ancestry_of_what_are_no_tags_is_refused_when_the_tool_is_made(stage: Stage) -> None:
    with pytest.raises(ToolError, match="'main' is no tag"):
        over(stage, ScriptedProvider([DONE]), ancestry=["main"])


@pytest.mark.case("agents", 38)
async def test_each_delegation_has_a_snapshot_of_its_own_in_the_store_also_a_partial_one(stage: Stage) -> None:
    store = MemoryConversationStore()
    await over(stage, ScriptedProvider([DONE]), store=store).execute({"task": "t"})
    await over(stage, ScriptedProvider([DONE]), store=store).execute({"task": "t"})
    assert len(set(store.ids)) == 2
    always = ScriptedProvider([calling("again ", "e")])
    assert await over(stage, always, store=store).execute({"task": "t"}) == "again " * 10
    assert len(set(store.ids)) == 3


@pytest.mark.case("agents", 38)
async def test_a_run_that_fails_is_not_stored_and_a_store_that_fails_fails_the_call(stage: Stage) -> None:
    class Full(ConversationStore):
        async def get(self, id: str) -> ConversationSnapshot | None:
            raise AssertionError("nothing is read")

        async def set(self, snapshot: ConversationSnapshot) -> None:
            raise LookupError("the disk is full")

        async def delete(self, id: str) -> None:
            raise AssertionError("nothing is deleted")

    store = MemoryConversationStore()
    with pytest.raises(LookupError, match="no such model"):
        await over(stage, failing(), store=store).execute({"task": "t"})
    assert store.ids == []
    with pytest.raises(LookupError, match="the disk is full"):
        await over(stage, ScriptedProvider([DONE]), store=Full()).execute({"task": "t"})


async def test_a_caller_outside_of_every_tree_has_to_say_where_the_agent_is_to_live() -> None:
    tool = agent_tool(AgentRegistry({"main": ScriptedProvider([DONE])}), provider="main")
    with pytest.raises(AgentError) as refused:
        await tool.execute({"task": "t"})
    assert refused.value.code == "PLACE"


@pytest.mark.case("reports/delegation", 2)
async def test_a_row_of_models_that_all_delegate_ends_after_eight_and_everybody_above_finishes(stage: Stage) -> None:
    models: dict[str, ScriptedProvider] = {
        f"p{number}": ScriptedProvider([handing(f"p{number + 1}"), DONE]) for number in range(21)
    }
    tool = delegating(dict(models))
    root = planner(stage, tool, handing("p0"), DONE)
    assert (await root.generate()).content == "done"
    assert stored(root)[-2:] == [("tool", '"done"'), ("assistant", "done")]
    assert [model.started for model in models.values()] == [2] * 8 + [0] * 13
    (_, _, refusal) = (message.content for message in models["p7"].calls[1].messages)
    assert "agent 9 in a row of delegations, and 8 are allowed" in refusal


async def test_a_model_that_always_delegates_to_itself_is_told_that_it_is_a_cycle(stage: Stage) -> None:
    model = ScriptedProvider([handing("main"), DONE])
    root = planner(stage, delegating({"main": model}), handing("main"), DONE)
    await root.generate()
    assert model.started == 2
    assert "planner > agent:main) and waits" in model.calls[1].messages[-1].content


async def test_two_names_of_one_model_are_two_parties(stage: Stage) -> None:
    model = ScriptedProvider([handing("other"), DONE])
    root = planner(stage, delegating({"main": model, "other": model}), handing("main"), DONE)
    await root.generate()
    assert (model.started, model.calls[2].messages[-1].content) == (3, '"done"')


async def test_a_bound_that_somebody_above_has_set_holds_beneath(stage: Stage) -> None:
    model = ScriptedProvider([handing("b"), DONE])
    tool = delegating({"a": model, "b": model, "c": model}, tree=stage.runtime.tree, provider="a")
    with beneath("agent:root", max_delegations=1):
        assert await tool.execute({"task": "t"}) == "done"
    assert "2 in a row of delegations, and 1 are allowed" in model.calls[1].messages[-1].content
    with beneath("agent:root", max_delegations=0), pytest.raises(ToolError, match="0 are allowed"):
        await tool.execute({"task": "t"})


async def test_the_lineage_of_the_caller_is_as_before_after_a_call(stage: Stage) -> None:
    seen = list[tuple[str, ...]]()
    look = Tool("look", lambda: seen.append(current_lineage().tags))
    tool = delegating({"main": ScriptedProvider([calling("", "look"), DONE])}, look, provider="main")
    before = current_lineage()
    root = stage.agent(handing(), calling("", "look"), DONE, id="planner", tools=[tool, look])
    await root.generate()
    assert seen == [("agent:planner", "agent:main"), ("agent:planner",)]
    assert current_lineage() == before


async def test_calls_of_one_turn_work_side_by_side_and_are_told_apart(stage: Stage) -> None:
    models = {name: ScriptedProvider([ProviderResult(name)]) for name in ("a", "b")}
    both = ProviderResult("", tools=(*(handing("a").tools or ()), *(handing("b").tools or ())))
    root = planner(stage, delegating(dict(models)), both, DONE)
    await root.generate()
    assert stored(root)[2:4] == [("tool", '"a"'), ("tool", '"b"')]


async def test_a_delegation_that_fails_is_a_failure_of_the_call_and_no_more(stage: Stage) -> None:
    root = planner(stage, delegating({"main": failing()}), handing("main"), DONE)
    assert (await root.generate()).content == "done"
    assert ("tool", "no such model") in stored(root)


async def test_tokens_of_all_beneath_are_charged_to_the_callers_budget_when_asked(stage: Stage) -> None:
    for accounted, used in ((False, 1), (True, 21)):
        below = ScriptedProvider([ProviderResult("done", usage=Usage(0, 10, 10))])
        middle = ScriptedProvider([handing("below"), ProviderResult("done", usage=Usage(0, 10, 10))])
        budget = Budget(total=1000)
        tool = delegating({"below": below, "middle": middle}, accounted=accounted)
        root = planner(stage, tool, handing("middle"), ProviderResult("d", usage=Usage(0, 1, 1)))
        await root.generate(budget=budget)
        assert budget.used.total == used
        await stage.runtime.agents.remove("planner")


async def test_an_exhausted_budget_stops_the_delegation_and_its_caller(stage: Stage) -> None:
    below = ScriptedProvider([calling("long", "e", usage=Usage(0, 50, 50))])
    tool = delegating({"below": below}, value_tool("e"), accounted=True)
    root = planner(stage, tool, handing("below"), DONE)
    result = await root.generate(budget=Budget(total=40))
    assert result.partial
    assert below.started == 1


async def test_the_callers_timeout_covers_what_it_has_delegated(stage: Stage, autojump_clock: trio.abc.Clock) -> None:
    below = ScriptedProvider([DONE], delay=100)
    root = planner(stage, delegating({"below": below}), handing("below"), DONE)
    assert (await root.generate(timeout=5)).partial
    assert trio.current_time() == 5
    assert stored(root)[-1] == ("tool", "cancelled")


async def test_agents_above_hear_of_what_all_beneath_them_do(stage: Stage) -> None:
    below = ScriptedProvider([calling("", "e"), DONE])
    middle = ScriptedProvider([handing("below"), DONE])
    tool = delegating({"below": below, "middle": middle, "broken": failing()}, value_tool("e"))
    root = planner(stage, tool, handing("middle"), handing("broken"), DONE)
    await root.generate()
    told = stage.told("progress")
    heard = [(each.path.removeprefix("/agents/planner/delegations/"), each.event, each.detail) for each in told]
    assert heard == [
        ("1", "started", ""),
        ("1", "turn", "0"),
        ("1/delegations/1", "started", ""),
        ("1/delegations/1", "turn", "0"),
        ("1/delegations/1", "tool", "e"),
        ("1/delegations/1", "turn", "1"),
        ("1/delegations/1", "finished", "done"),
        ("1", "tool", "agent"),
        ("1", "turn", "1"),
        ("1", "finished", "done"),
        ("2", "started", ""),
        ("2", "turn", "0"),
        ("2", "failed", "no such model"),
    ]
    assert [each.depth for each in told if each.event == "started"] == [1, 2, 1]


async def test_nothing_is_left_of_a_delegation_that_is_over(stage: Stage) -> None:
    root: Agent = planner(stage, delegating({"main": ScriptedProvider([DONE])}), handing("main"), DONE)
    await root.generate()
    (place,) = (root.ref.children or {}).values()
    assert (place.path, place.children) == ("/agents/planner/delegations", None)
