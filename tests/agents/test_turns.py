"""A run from its first turn to its last: what is announced, what is given out, what is remembered."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio

from greenroom.actors.providers.scripted import ScriptedTurn
from greenroom.protocol.agents import AgentResult, Budget, ProviderOptions, ProviderResult, Scope, Usage
from greenroom.protocol.tools import ToolCall, ToolFailure
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.tools import Tool
from tests.agents.conftest import Stage, U, calling, heard, kinds, stored, value_tool


@pytest.mark.case("agents", 1)
async def test_one_answer_is_one_turn(stage: Stage) -> None:
    agent = stage.agent(ProviderResult("hi", usage=U))
    assert await heard(agent) == (["token", "usage"], AgentResult(content="hi", usage=U, partial=False))
    assert stage.events[:2] == [("start", agent.id), ("turn", 0)]
    assert stage.names == ["start", "turn", "usage", "finish"]
    assert agent.status == "done"


@pytest.mark.case("agents", 2)
async def test_a_tool_s_value_goes_back_to_the_model(stage: Stage) -> None:
    agent = stage.agent(calling("calling", "e"), ProviderResult("final"), tools=[value_tool("e")])
    result = await agent.generate()
    assert result == AgentResult(content="final", partial=False)
    assert stored(agent) == [("user", "go"), ("assistant", "calling"), ("tool", "5"), ("assistant", "final")]
    assert agent.context.messages.messages()[1].calls == (ToolCall("1", "e", {}),)


@pytest.mark.case("agents", 3)
async def test_pieces_come_in_the_order_in_which_things_happen(stage: Stage) -> None:
    agent = stage.agent(
        ScriptedTurn(calling("calling", "e", usage=U), deltas=("call", "ing")),
        ScriptedTurn(ProviderResult("final", usage=U), deltas=("fin", "al")),
        tools=[value_tool("e")],
    )
    pieces, result = await heard(agent)
    assert pieces == ["token", "token", "usage", "tool", "token", "token", "usage"]
    assert result.usage == Usage(10, 14, 24)


@pytest.mark.case("agents", 5)
async def test_a_run_whose_last_turn_wants_tools_is_exhausted(stage: Stage) -> None:
    agent = stage.agent(ScriptedTurn(calling("x", "e"), deltas=()), tools=[value_tool("e")])
    assert await agent.generate(limit=1) == AgentResult(content="", partial=True)
    assert stage.names == ["start", "turn", "tool", "exhaust", "finish"]
    assert stage.told("exhaust") == [1]


@pytest.mark.case("agents", 6)
async def test_a_run_that_ends_in_its_last_turn_is_whole(stage: Stage) -> None:
    agent = stage.agent(calling("c", "e"), ProviderResult("f"), tools=[value_tool("e")], limit=2)
    assert await agent.generate() == AgentResult(content="f", partial=False)
    assert "exhaust" not in stage.names


@pytest.mark.case("agents", 7)
@pytest.mark.parametrize("fired", [False, True])
async def test_a_run_of_no_turns_asks_no_model(stage: Stage, fired: bool) -> None:
    provider = stage.script(ProviderResult("never"))
    agent = stage.agent(provider)
    cancel = Cancel()
    if fired:
        cancel.set("early")
    assert await agent.generate(limit=0, cancel=cancel) == AgentResult(content="", partial=False)
    assert stage.names == ["start", "finish"]
    assert provider.started == 0


@pytest.mark.case("agents", 9)
async def test_ten_turns_are_the_default(stage: Stage) -> None:
    provider = stage.script(calling("c", "e"))
    result = await stage.agent(provider, tools=[value_tool("e")]).generate()
    assert provider.started == 10
    assert result.partial


@pytest.mark.case("agents", 11)
@pytest.mark.parametrize(
    ("value", "content"),
    [(None, "null"), ("str", '"str"'), (ValueError("kaboom"), "kaboom"), ({"a": [1]}, '{"a":[1]}')],
)
async def test_values_are_told_as_compact_json_and_failures_bare(stage: Stage, value: Any, content: str) -> None:
    agent = stage.agent(calling("", "e"), ProviderResult("f"), tools=[value_tool("e", value)])
    await agent.generate()
    assert stored(agent)[2] == ("tool", content)


@pytest.mark.case("agents", 12)
async def test_an_unknown_tool_is_told_to_the_model(stage: Stage) -> None:
    agent = stage.agent(calling("", "ghost"), ProviderResult("f"))
    assert (await agent.generate()).content == "f"
    assert stored(agent)[2] == ("tool", "tool not found: ghost")


@pytest.mark.case("agents", 12)
async def test_an_empty_list_of_calls_is_an_answer(stage: Stage) -> None:
    assert not (await stage.agent(ProviderResult("f", tools=())).generate()).partial
    assert stage.told("turn") == [0]


@pytest.mark.case("agents", 13)
async def test_reasoning_is_joined_and_never_remembered(stage: Stage) -> None:
    agent = stage.agent(
        ProviderResult("", "a", calling("", "e").tools),
        ProviderResult("", "", calling("", "e").tools),
        ProviderResult("f", "b"),
        tools=[value_tool("e")],
    )
    pieces, result = await heard(agent)
    assert result.thinking == "a\n\nb"
    assert pieces.count("think") == 2
    assert all("a" not in content and "b" not in content for _, content in stored(agent) if content != "f")
    assert (await stage.agent(ProviderResult("f")).generate()).thinking is None


@pytest.mark.case("agents", 14)
async def test_figures_of_usage_are_made_sound(stage: Stage) -> None:
    agent = stage.agent(ProviderResult("f", usage=Usage(-5, math.nan, 12.7)))
    assert (await agent.generate()).usage == Usage(0, 0, 12)


@pytest.mark.case("agents", 18)
async def test_a_budget_is_charged_as_the_text_comes_and_to_the_reported_sum(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    budget = Budget()
    answer = ProviderResult("hello world", usage=Usage(20, 30, 50))
    agent = stage.agent(ScriptedTurn(answer, deltas=("hello ", "world"), pause=1.0), budget=budget)
    charged: list[Usage] = []
    async with agent.stream() as run:
        async for _ in run.events:
            charged.append(budget.used)
        assert (await run.result()).usage == Usage(20, 30, 50)
    assert charged == [Usage(0, 2, 2), Usage(0, 3, 3), Usage(20, 30, 50)]


@pytest.mark.case("agents", 19)
async def test_a_failing_model_fails_the_run_and_keeps_what_was(stage: Stage) -> None:
    failure = RuntimeError("no model")
    agent = stage.agent(calling("c", "e"), ScriptedTurn(failure=failure), tools=[value_tool("e")])
    async with agent.stream() as run:
        with pytest.raises(RuntimeError) as read:
            await kinds(run)
        with pytest.raises(RuntimeError) as awaited:
            await run.result()
    assert read.value is awaited.value is failure
    assert agent.status == "error"
    assert stage.told("error") == [failure]
    assert "finish" not in stage.names
    assert stored(agent)[-1] == ("tool", "5")


async def test_an_agent_that_never_ran_is_idle(stage: Stage) -> None:
    assert stage.agent(ProviderResult("hi")).status == "idle"


async def test_a_failed_run_that_nobody_looks_at_raises_nothing(stage: Stage) -> None:
    agent = stage.agent(ScriptedTurn(failure=RuntimeError("no model")))
    async with agent.stream():
        await trio.testing.wait_all_tasks_blocked()
    assert agent.status == "error"


@pytest.mark.case("agents", 20)
async def test_a_run_nobody_reads_settles(stage: Stage) -> None:
    agent = stage.agent(ScriptedTurn(ProviderResult("hi"), deltas=("h", "i")))
    async with agent.stream() as run:
        assert (await run.result()).content == "hi"


@pytest.mark.case("agents", 20)
async def test_leaving_the_block_early_stops_the_run(stage: Stage) -> None:
    provider = stage.script(calling("one", "e"))
    agent = stage.agent(provider, tools=[value_tool("e")])
    async with agent.stream() as run:
        async for _ in run.events:
            break
    assert run.outcome().partial
    assert provider.started < 10
    assert agent.status == "done"
    assert stage.names[-2:] == ["abort", "finish"]


async def test_closing_the_events_early_stops_the_run_too(stage: Stage) -> None:
    agent = stage.agent(calling("one", "e"), tools=[value_tool("e")])
    async with agent.stream() as run:
        await anext(run.events)
        await run.events.aclose()
        assert run.settled
        assert (await run.result()).partial


async def test_calls_start_and_results_stand_in_their_order(stage: Stage) -> None:
    started: list[str] = []

    async def slow() -> str:
        started.append("slow")
        await trio.testing.wait_all_tasks_blocked()
        return "slow"

    async def fast() -> str:
        started.append("fast")
        return "fast"

    agent = stage.agent(
        calling("", "slow", "fast"), ProviderResult("f"), tools=[Tool("slow", slow), Tool("fast", fast)]
    )
    await agent.generate()
    assert [content for role, content in stored(agent) if role == "tool"] == ['"slow"', '"fast"']
    assert started == ["slow", "fast"]


async def test_two_calls_of_one_id_have_a_result_each(stage: Stage) -> None:
    calls = (ToolCall("same", "echo", {"v": 1}), ToolCall("same", "echo", {"v": 2}))
    agent = stage.agent(
        ProviderResult("", tools=calls), ProviderResult("f"), tools=[Tool("echo", lambda args: args["v"])]
    )
    await agent.generate()
    assert [content for role, content in stored(agent) if role == "tool"] == ["1", "2"]


@pytest.mark.case("agents", 25)
async def test_a_tool_that_was_added_in_a_turn_is_offered_in_the_next(stage: Stage) -> None:
    provider = stage.script(calling("", "grow"), ProviderResult("f"))
    agent = stage.agent(provider)
    agent.context.tools.add(Tool("grow", lambda: agent.context.tools.add(value_tool("new"))))
    await agent.generate()
    assert [[tool.name for tool in call.tools or ()] for call in provider.calls] == [["grow"], ["grow", "new"]]


@pytest.mark.case("agents", 25)
async def test_a_scope_without_tools_offers_none_and_lets_none_run(stage: Stage) -> None:
    provider = stage.script(calling("", "e"), ProviderResult("f"))
    agent = stage.agent(provider, tools=[stage.tool("e")], scope=Scope("bare", tools=()))
    await agent.generate()
    assert provider.calls[0].tools is None
    assert stage.tools_run == []
    assert stored(agent)[2] == ("tool", "tool not found: e")


@pytest.mark.case("agents", 25)
async def test_the_scheduler_is_asked_between_turns(stage: Stage) -> None:
    class Counting:
        count = 0

        async def yield_(self) -> None:
            self.count += 1

    scheduler = Counting()
    agent = stage.agent(
        calling("", "e"), calling("", "e"), ProviderResult("f"), tools=[value_tool("e")], scheduler=scheduler
    )
    await agent.generate()
    assert scheduler.count == 2


@pytest.mark.case("agents", 26)
async def test_a_raising_listener_changes_nothing(stage: Stage) -> None:
    raised: list[Any] = []
    failure = RuntimeError("listener")

    def listener(*told: Any) -> None:
        raise failure

    agent = stage.agent(
        calling("", "e"),
        ProviderResult("f"),
        tools=[value_tool("e")],
        on={"tool": listener},
        error=lambda error, event: raised.append((error, event)),
    )
    assert (await agent.generate()).content == "f"
    assert raised == [(failure, "tool")]


@pytest.mark.case("agents", 27)
@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"think": False}, ProviderOptions(think=False)),
        ({"schema": {"type": "object"}}, ProviderOptions(schema={"type": "object"})),
        ({}, None),
    ],
)
async def test_options_hold_what_was_set(stage: Stage, given: Any, options: ProviderOptions | None) -> None:
    provider = stage.script(ProviderResult("f"))
    await stage.agent(provider).generate(**given)
    assert provider.calls[0].options == options


async def test_a_value_that_is_no_json_fails_its_call_alone(stage: Stage) -> None:
    tools = [value_tool("bad", math.inf), value_tool("good", 1)]
    agent = stage.agent(calling("", "bad", "good"), ProviderResult("f"), tools=tools)
    assert (await agent.generate()).content == "f"
    (_, failure), (_, success) = stage.told("tool")
    assert isinstance(failure, ToolFailure)
    assert "no JSON" in failure.error
    assert success.value == 1


async def test_a_call_with_arguments_that_cannot_be_read_is_answered_and_not_run(stage: Stage) -> None:
    call = ToolCall("1", "e", {}, invalid="they are cut off")
    agent = stage.agent(ProviderResult("", tools=(call,)), ProviderResult("f"), tools=[stage.tool("e")])
    await agent.generate()
    assert stored(agent)[2] == ("tool", "malformed arguments: they are cut off")
    assert stage.tools_run == []
