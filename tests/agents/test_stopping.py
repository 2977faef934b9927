"""How a run is stopped, what it comes to then, and that nothing of it is left."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.agent import Agent
from greenroom.actors.providers.scripted import ScriptedTurn
from greenroom.actors.system import open_runtime
from greenroom.protocol.agents import AgentResult, Budget, Delta, ProviderResult, TokenChunk, Usage, Window
from greenroom.protocol.errors import ActorError, AgentError
from greenroom.protocol.tree import ActorSnapshot
from greenroom.runtime.cancel import Cancel, CancelToken
from greenroom.runtime.lineage import beneath, current_lineage
from greenroom.runtime.tools import Tool
from tests.agents.conftest import Stage, U, calling, stored, value_tool
from tests.cancelling import Doomed, at_every_step
from tests.kernel.cast import Do, Player

SLOW = ScriptedTurn(ProviderResult("part of it"), deltas=("part", " of it"), pause=10.0)
"""An answer whose second piece takes a while."""

FORM = {"fields": [{"control": "text", "name": "x", "rule": {"required": True}}]}


@pytest.mark.case("agents", 4)
async def test_a_stopped_run_has_what_all_its_turns_wrote(stage: Stage, autojump_clock: trio.testing.MockClock) -> None:
    agent = stage.agent(
        calling("one", "e"),
        ScriptedTurn(ProviderResult("two"), deltas=("tw", "o"), pause=10.0),
        tools=[value_tool("e")],
    )
    async with agent.stream() as run:
        async for chunk in run.events:
            if chunk == TokenChunk("tw"):
                run.abort("why")
                run.abort("later")
        assert await run.result() == AgentResult(content="onetw", partial=True)
    assert stage.events[-2:] == [("abort", "why"), ("finish", AgentResult(content="onetw", partial=True))]
    assert stored(agent)[-1] == ("tool", "5")
    assert agent.status == "done"


class Fragile:
    """An answer that never comes, and that cannot say how far it is."""

    def __aiter__(self) -> Fragile:
        return self

    async def __anext__(self) -> Delta:
        await trio.sleep_forever()

    @property
    def partial(self) -> ProviderResult:
        raise ValueError("half a call is no JSON")

    result = partial


async def fail_when_stopped() -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise OSError("the connection is gone")


async def fail_within() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail_when_stopped)
        await trio.sleep_forever()


class FragileModel:
    """A model whose answer is held open by a task that fails when it is stopped."""

    id = name = "fragile"
    format = None

    async def generate(
        self, messages: Any, cancel: CancelToken, tools: Any = None, options: Any = None
    ) -> ProviderResult:
        raise NotImplementedError

    @asynccontextmanager
    async def stream(
        self, messages: Any, cancel: CancelToken, tools: Any = None, options: Any = None
    ) -> AsyncGenerator[Fragile]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_when_stopped)
            yield Fragile()


@pytest.mark.parametrize("timeout", [5.0, None])
async def test_what_fails_by_a_stop_makes_no_failure_of_it(
    stage: Stage, timeout: float | None, autojump_clock: trio.testing.MockClock
) -> None:
    agents = [
        stage.runtime.agents.add(Agent(FragileModel(), id="fragile")),
        stage.agent(calling("", "t"), tools=[Tool("t", fail_within)]),
    ]
    for agent in agents:
        async with agent.stream(timeout=timeout) as run:
            await trio.testing.wait_all_tasks_blocked()
            if timeout is None:
                run.abort()
            assert await run.result() == AgentResult(content="", partial=True)
        assert agent.status == "done"
    assert stored(agents[1])[-1] == ("tool", "cancelled")


async def test_a_run_is_started_once_whoever_comes_at_the_same_time(stage: Stage) -> None:
    agent = stage.agent(ProviderResult("whole"))
    run = agent.stream()
    ended: list[object] = []

    async def enter() -> None:
        try:
            async with run:
                ended.append((await run.result()).content)
        except RuntimeError as error:
            ended.append(type(error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(enter)
        nursery.start_soon(enter)
    assert sorted(map(str, ended)) == ["<class 'RuntimeError'>", "whole"]
    assert (agent.status, agent.ref.alive) == ("done", True)


async def test_what_the_model_said_of_a_turn_that_was_cut_off_counts(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    agent = stage.agent(
        ScriptedTurn(ProviderResult("a", "because"), pause=3.0),
        timeout=5.0,
        budget=(budget := Budget()),
    )
    assert await agent.generate() == AgentResult(content="a", thinking="because", partial=True)
    assert budget.used == Usage(0, 1, 1)
    assert stored(agent) == [("user", "go")]


@pytest.mark.case("agents", 8)
@pytest.mark.parametrize("place", ["agent", "run"])
async def test_a_token_that_was_set_before_lets_no_model_be_asked(stage: Stage, place: str) -> None:
    cancel = Cancel()
    cancel.set("early")
    provider = stage.script(ProviderResult("never"))
    agent = stage.agent(provider, cancel=cancel if place == "agent" else None)
    assert await agent.generate(cancel=cancel if place == "run" else None) == AgentResult(content="", partial=True)
    assert stage.names == ["start", "turn", "abort", "finish"]
    assert stage.told("abort") == ["early"]
    assert provider.started == 0


@pytest.mark.case("agents", 10)
async def test_a_tool_that_stops_its_run_is_told_of_and_the_run_is_no_exhausted_one(stage: Stage) -> None:
    cancel = Cancel()
    agent = stage.agent(calling("", "e"), tools=[Tool("e", lambda: cancel.set("enough"))])
    assert (await agent.generate(limit=1, cancel=cancel)).partial
    assert stage.names == ["start", "turn", "tool", "abort", "finish"]
    assert stored(agent)[-1] == ("tool", "null")


async def test_a_bare_event_will_do_as_a_token(stage: Stage, autojump_clock: trio.testing.MockClock) -> None:
    agent, event = stage.agent(SLOW), trio.Event()
    async with agent.stream(cancel=event) as run:
        await anext(run.events)
        event.set()
        assert (await run.result()).content == "part"
    assert stage.told("abort") == [None]
    before = trio.lowlevel.current_statistics().tasks_living
    await agent.generate(cancel=trio.Event())
    await trio.testing.wait_all_tasks_blocked()
    assert trio.lowlevel.current_statistics().tasks_living == before


@pytest.mark.case("agents", 15)
async def test_an_answer_that_uses_up_the_budget_is_whole(stage: Stage) -> None:
    agent = stage.agent(ProviderResult("hi", usage=Usage(0, 100, 100)), budget=Budget(completion=50))
    assert (await agent.generate()) == AgentResult(content="hi", usage=Usage(0, 100, 100), partial=False)


@pytest.mark.case("agents", 16)
async def test_a_budget_that_is_used_up_stops_the_run_after_its_turn(stage: Stage) -> None:
    provider = stage.script(calling("one", "e", usage=U))
    agent = stage.agent(provider, tools=[value_tool("e")], budget=Budget(total=12))
    assert await agent.generate() == AgentResult(content="one", usage=U, partial=True)
    assert provider.started == 1
    assert stage.told("abort") == ["budget"]


@pytest.mark.case("agents", 17)
async def test_an_empty_budget_lets_no_model_be_asked(stage: Stage) -> None:
    provider = stage.script(ProviderResult("never"))
    assert await stage.agent(provider).generate(budget=Budget(total=0)) == AgentResult(content="", partial=True)
    assert provider.started == 0


async def test_a_budget_goes_on_from_run_to_run_and_from_child_to_parent(stage: Stage) -> None:
    parent = Budget(total=30)
    child = Budget(total=20, parent=parent)
    agent = stage.agent(ProviderResult("hi", usage=U), budget=child)
    await agent.generate()
    await agent.generate()
    assert (child.used, parent.used) == (U + U, U + U)
    assert (await agent.generate()).partial
    child.clear()
    assert not (await agent.generate()).partial
    assert parent.exhausted
    assert (await agent.generate()).partial


async def test_a_parent_s_budget_stops_a_run_that_charges_its_own(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    parent = Budget(total=30)
    agent = stage.agent(SLOW, budget=Budget(parent=parent))
    async with agent.stream() as run:
        await anext(run.events)
        parent.consume(Usage(0, 0, 30))
        assert (await run.result()).partial
    assert autojump_clock.current_time() < 1


async def test_a_timeout_is_a_stop(stage: Stage, autojump_clock: trio.testing.MockClock) -> None:
    agent = stage.agent(SLOW, timeout=60.0)
    assert (await agent.generate(timeout=5.0)).content == "part"
    assert autojump_clock.current_time() == pytest.approx(5.0)
    assert stage.told("abort") == ["timeout"]
    assert (await agent.generate()).content == "part of it"


async def test_a_patient_timeout_stands_still_while_a_person_is_asked(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    runtime = stage.runtime
    reviewer = runtime.terminals.add("reviewer", timeout=None)

    async def ask() -> Any:
        return await runtime.ask("reviewer", FORM, from_="planner")

    async def review() -> None:
        await trio.sleep(3600)
        for form in reviewer.pending():
            await runtime.terminals.answer("reviewer", form.id, {"x": "yes"})

    slow = ScriptedTurn(calling("", "ask", "ask"), delay=4.0)
    agent = stage.agent(slow, ProviderResult("f"), tools=[Tool("ask", ask)], timeout=5.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(review)
        assert (await agent.generate(patience=True)).content == "f"
        assert autojump_clock.current_time() == pytest.approx(3600)
    stage.events.clear()
    agent = stage.agent(slow, ProviderResult("f"), tools=[Tool("ask", ask)], timeout=5.0)
    assert (await agent.generate()).partial
    assert stage.told("abort") == ["timeout"]
    assert reviewer.count == 0


@pytest.mark.case("agents", 21)
async def test_each_run_is_stopped_by_itself_or_all_by_their_agent(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    agent = stage.agent(SLOW)
    async with agent.stream() as first, agent.stream() as second:
        await anext(first.events)
        await anext(second.events)
        first.abort()
        assert await first.result() == AgentResult(content="part", partial=True)
        assert agent.status == "running"
        assert await second.result() == AgentResult(content="part of it", partial=False)
    async with agent.stream() as first, agent.stream() as second:
        agent.abort("all")
        assert (await first.result()).partial
        assert (await second.result()).partial


@pytest.mark.case("agents", 22)
@pytest.mark.parametrize("shared", ["budget", "window"])
async def test_runs_that_would_share_a_budget_or_a_window_do_not_overlap(
    stage: Stage, shared: str, autojump_clock: trio.testing.MockClock
) -> None:
    options: dict[str, Any] = {"budget": Budget()} if shared == "budget" else {"window": Window(1000)}
    agent = stage.agent(SLOW, **options)
    async with agent.stream() as run:
        with pytest.raises(AgentError) as refused:
            await agent.generate(budget=None if shared == "budget" else Budget())
        assert refused.value.code == "CONCURRENCY"
        assert stage.names.count("start") == 1
        await run.result()
    assert not (await agent.generate()).partial


@pytest.mark.case("agents", 22)
async def test_a_run_with_a_budget_of_its_own_may_overlap(stage: Stage, autojump_clock: trio.testing.MockClock) -> None:
    agent = stage.agent(SLOW, budget=Budget())
    async with agent.stream() as first, agent.stream(budget=Budget()) as second:
        assert not (await first.result()).partial
        assert not (await second.result()).partial


# -------------------------------------------------------------------- tools


async def test_a_stop_ends_the_calls_that_go_on_and_answers_each(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    agent = stage.agent(
        calling("", "quick", "slow"), tools=[value_tool("quick", 1), Tool("slow", trio.sleep_forever)], timeout=5.0
    )
    result = await agent.generate()
    assert result.partial
    assert stored(agent)[-2:] == [("tool", "1"), ("tool", "cancelled")]
    assert stage.names == ["start", "turn", "tool", "tool", "abort", "finish"]


async def test_stopping_the_agent_ends_its_runs_their_calls_and_what_these_ask(stage: Stage) -> None:
    terminals = stage.runtime.terminals
    reviewer = terminals.add("reviewer")

    async def ask() -> Any:
        return await stage.runtime.ask("reviewer", FORM, from_="planner")

    agent = stage.agent(calling("", "ask"), tools=[Tool("ask", ask)], id="planner")
    ended: list[Exception] = []

    async def wait() -> None:
        try:
            await agent.generate()
        except ActorError as error:
            ended.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        assert reviewer.count == 1
        await stage.runtime.agents.remove("planner")
        assert reviewer.count == 0
    assert [error.code for error in ended if isinstance(error, ActorError)] == ["STOPPED"]
    assert stored(agent)[-1] == ("tool", "cancelled")
    assert stage.told("abort") == ["stopped"]
    assert stage.names[-1] == "finish"
    assert stage.runtime.agents.count == 0
    assert stage.runtime.snapshot().waits == ()


async def test_a_stopped_agent_starts_nothing(stage: Stage) -> None:
    agent = stage.agent(ProviderResult("never"), id="planner")
    assert await stage.runtime.agents.remove("planner") == ("/agents/planner",)
    with pytest.raises(ActorError) as refused:
        await agent.generate()
    assert refused.value.code == "STOPPED"
    assert await stage.runtime.agents.remove("planner") == ()


async def test_an_agent_that_lives_nowhere_starts_nothing(stage: Stage) -> None:
    agent = Agent(stage.script(ProviderResult("never")))
    with pytest.raises(AgentError) as refused:
        await agent.generate()
    assert refused.value.code == "PLACE"


async def test_an_option_that_there_is_not_is_refused(stage: Stage) -> None:
    agent = stage.agent(ProviderResult("never"))
    options: Any = {"temperature": 0}
    with pytest.raises(TypeError, match="temperature"):
        await agent.generate(**options)
    assert agent.status == "idle"


async def test_two_agents_cannot_have_one_id(stage: Stage) -> None:
    stage.agent(ProviderResult("a"), id="planner")
    with pytest.raises(AgentError) as refused:
        stage.agent(ProviderResult("b"), id="planner")
    assert refused.value.code == "EXISTS"


# -------------------------------------------------------------------- waiting


async def test_an_agent_that_would_wait_for_itself_over_another_is_refused(stage: Stage) -> None:
    agents: dict[str, Agent] = {}

    def to(name: str) -> Tool:
        async def delegate() -> str:
            return (await agents[name].generate()).content

        return Tool(f"to-{name}", delegate)

    agents["a"] = stage.agent(calling("", "to-b"), ProviderResult("a is done"), tools=[to("b")], id="a")
    agents["b"] = stage.agent(calling("", "to-a"), ProviderResult("b is done"), tools=[to("a")], id="b")
    assert (await agents["a"].generate()).content == "a is done"
    (role, refusal) = stored(agents["b"])[2]
    assert role == "tool"
    assert "/agents/b -> /agents/a -> /agents/b" in refusal
    assert stage.names.count("start") == 2


async def test_a_run_is_started_once(stage: Stage) -> None:
    run = stage.agent(ProviderResult("f")).stream()
    with pytest.raises(RuntimeError, match="not started"):
        await run.result()
    async with run:
        await run.result()
    with pytest.raises(RuntimeError, match="once"):
        await run.__aenter__()


async def test_an_agent_cannot_ask_the_terminal_that_it_operates(stage: Stage) -> None:
    async def ask() -> Any:
        return await stage.runtime.ask("planner", FORM)

    agent = stage.agent(calling("", "ask"), ProviderResult("f"), tools=[Tool("ask", ask)], id="planner")
    stage.runtime.terminals.add("planner", operator=agent.ref)
    assert (await agent.generate()).content == "f"
    assert "planner -> planner" in stored(agent)[2][1]


async def test_waiting_for_a_run_s_pieces_is_a_wait_too(stage: Stage) -> None:
    agent: Agent

    async def read(_: Any) -> None:
        async with agent.stream() as run:
            await anext(run.events)

    reader = stage.runtime.spawn(Player(), "reader")
    agent = stage.agent(
        calling("", "look"), ProviderResult("f"), tools=[Tool("look", lambda: reader.ask(Do(read)))], id="a"
    )
    assert (await agent.generate()).content == "f"
    assert "/reader -> /agents/a -> /reader" in stored(agent)[2][1]


async def test_an_agent_is_not_at_work_beneath_itself(stage: Stage) -> None:
    agent: Agent

    async def look() -> None:
        async with agent.stream():
            pass

    agent = stage.agent(calling("", "look"), ProviderResult("f"), tools=[Tool("look", look)], id="a")
    assert (await agent.generate()).content == "f"
    assert "'agent:a' is at work already above" in stored(agent)[2][1]


async def test_what_runs_beneath_an_agent_knows_it(stage: Stage) -> None:
    seen: list[tuple[str, ...]] = []
    inner: Agent

    def look() -> None:
        seen.append(current_lineage().tags)

    async def delegate() -> None:
        await inner.generate()

    outer = stage.agent(calling("", "delegate"), ProviderResult("f"), tools=[Tool("delegate", delegate)], id="outer")
    with beneath("workflow:w"):
        inner = stage.agent(calling("", "look"), ProviderResult("f"), tools=[Tool("look", look)], id="inner")
        await outer.generate()
    assert seen == [("workflow:w", "agent:outer", "agent:inner")]
    assert current_lineage().tags == ()


async def test_agents_are_nested_only_so_deep(stage: Stage) -> None:
    agents: list[Agent] = []

    def to(number: int) -> Tool:
        async def delegate() -> str:
            return (await agents[number].generate()).content

        return Tool("delegate", delegate)

    provider = stage.script(calling("", "delegate"))
    agents += [stage.agent(provider, tools=[to(number + 1)], id=f"a{number}", limit=1) for number in range(12)]
    await agents[0].generate()
    assert provider.started == 9
    assert "agents deep, and 8 are allowed" in stored(agents[8])[2][1]


async def test_a_wait_for_a_run_shows_in_the_snapshot(stage: Stage) -> None:
    inner = stage.agent(SLOW, id="inner")
    outer = stage.agent(
        calling("", "delegate"), ProviderResult("f"), tools=[Tool("delegate", lambda: inner.generate())], id="outer"
    )
    async with outer.stream():
        await trio.testing.wait_all_tasks_blocked()
        (wait,) = [each for each in stage.runtime.snapshot().waits if each.from_]
        assert (wait.from_, wait.to, wait.message) == (("/agents/outer",), "/agents/inner", "generation")
    assert stage.runtime.snapshot().waits == ()


async def test_a_caller_that_is_cancelled_stops_its_run_and_gets_no_result(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    agent = stage.agent(SLOW)
    with trio.move_on_after(5) as scope:
        await agent.generate()
    assert scope.cancelled_caught
    assert stage.names[-2:] == ["abort", "finish"]
    assert stage.told("abort") == ["cancelled"]
    assert agent.status == "done"


async def test_whenever_the_caller_is_cancelled_the_run_has_settled_and_nothing_is_left(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with open_runtime() as runtime:
            stage = Stage(runtime)
            agent = stage.agent(
                calling("c", "e", "slow"), ProviderResult("f"), tools=[value_tool("e"), Tool("slow", pause)]
            )
            ended = await doomed(agent.generate)
            assert ended.cancelled or ended.value.content == "f"
            assert agent.status in ("idle", "done")
            assert stage.names.count("start") == stage.names.count("finish") <= 1
            calls = [call for message in agent.context.messages.messages() for call in message.calls]
            answers = [role for role, _ in stored(agent) if role == "tool"]
            assert len(answers) == len(calls)
            await trio.testing.wait_all_tasks_blocked()
            assert runtime.snapshot().waits == ()

    assert await at_every_step(scenario) > 10


async def pause() -> None:
    await trio.lowlevel.checkpoint()
    await trio.lowlevel.checkpoint()


async def test_whenever_the_agent_is_stopped_every_call_has_its_answer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    for steps in range(40):
        async with open_runtime() as runtime:
            stage = Stage(runtime)
            agent = stage.agent(calling("c", "slow"), ProviderResult("f"), tools=[Tool("slow", pause)], id="a")
            outcomes: list[Any] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_outcome, agent, outcomes)
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                await runtime.agents.remove("a")
            assert len(outcomes) == 1
            calls = [call for message in agent.context.messages.messages() for call in message.calls]
            assert len(calls) == len([role for role, _ in stored(agent) if role == "tool"])
            assert "/agents/a" not in _paths(runtime.snapshot().root)
            assert stage.names.count("start") == stage.names.count("finish")


async def _outcome(agent: Agent, outcomes: list[Any]) -> None:
    try:
        outcomes.append(await agent.generate())
    except ActorError as error:
        outcomes.append(error)


def _paths(place: ActorSnapshot) -> list[str]:
    return [place.path, *(path for child in place.children for path in _paths(child))]
