"""What ends a delegation, and that nothing beneath it outlives it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest
import trio
import trio.testing

from greenroom.actors.agent import Agent, AgentRegistry
from greenroom.actors.providers.scripted import ScriptedProvider, ScriptedTurn
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.toolbox.agent import agent_tool
from greenroom.actors.toolbox.ask import ask_tool
from greenroom.actors.toolbox.workflow import workflow_tool
from greenroom.actors.workflow import TaskController, WorkflowRunner
from greenroom.protocol.agents import ProviderResult
from greenroom.protocol.errors import ActorError
from greenroom.protocol.tools import ToolCall
from greenroom.protocol.workflows import WorkflowDefinition
from greenroom.runtime.tools import Tool
from tests.agents.conftest import Stage, calling, stored
from tests.delegation.conftest import DONE, delegating, handing
from tests.workflows.test_agents import one

FORM = {"fields": [{"control": "confirm", "name": "go"}]}
ASKING = ToolCall("1", "ask", {"to": "person", "schema": FORM})
NEVER = ScriptedTurn(DONE, delay=float("inf"))


class Three:
    """A delegates to B, and that to C, which counts and asks a person at the same time."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.counted = 0
        self.b = ScriptedProvider([handing("C")])
        self.c = ScriptedProvider([ProviderResult("", tools=(ASKING, ToolCall("2", "count", {})))])
        runtime.terminals.add("person")
        tools = (ask_tool(runtime.terminals, None), Tool("count", self._count))
        self.a = Agent(ScriptedProvider([handing("B")]), id="A", tools=[delegating({"B": self.b, "C": self.c}, *tools)])
        runtime.agents.add(self.a)

    async def _count(self) -> None:
        while True:
            self.counted += 1
            await trio.sleep(0.01)

    async def work(self) -> None:
        with suppress(ActorError):
            await self.a.generate()

    @property
    def asked(self) -> int:
        return len(self.runtime.terminals.pending("person"))


@asynccontextmanager
async def working() -> AsyncGenerator[Three]:
    """All three at work for a second."""
    async with open_runtime() as runtime, trio.open_nursery() as nursery:
        three = Three(runtime)
        nursery.start_soon(three.work)
        await trio.sleep(1)
        assert three.counted >= 100
        assert three.asked == 1
        yield three


B = "/agents/A/delegations/1"
C = f"{B}/delegations/1"


@pytest.mark.case("reports/delegation", 1)
async def test_stopping_an_agent_ends_all_beneath_it_before_the_stop_returns(autojump_clock: trio.abc.Clock) -> None:
    async with working() as three:
        ended = await three.runtime.agents.remove("A")
        counted = three.counted
        assert ended == (C, f"{B}/delegations", B, "/agents/A/delegations", "/agents/A")
        assert three.asked == 0
        assert three.runtime.snapshot().waits == ()
        await trio.sleep(1)
        assert three.counted == counted
        assert (three.b.started, three.c.started) == (1, 1), "a stopped agent has asked its model once more"


@pytest.mark.case("reports/delegation", 1)
async def test_cancelling_the_block_that_an_agent_lives_in_leaves_as_little(autojump_clock: trio.abc.Clock) -> None:
    all_three = list[Three]()
    with trio.CancelScope() as scope:
        async with working() as three:
            all_three.append(three)
            scope.cancel()
            await trio.sleep_forever()
    (three,) = all_three
    counted = three.counted
    await trio.sleep(1)
    assert three.counted == counted
    assert three.runtime.snapshot().root.children == ()
    assert three.runtime.snapshot().waits == ()
    assert (three.b.in_flight, three.c.in_flight) == (0, 0)


async def test_aborting_a_run_ends_what_it_has_delegated_before_the_run_settles(autojump_clock: trio.abc.Clock) -> None:
    async with working() as three:
        async with three.a.stream() as run:
            await trio.sleep(1)
            assert three.asked == 2
            run.abort("enough")
            assert (await run.result()).partial
            assert three.asked == 1
            (place,) = (three.a.ref.children or {}).values()
            assert list(place.children or ()) == ["1"], "the first run's goes on"
        await three.runtime.agents.remove("A")


async def test_who_waits_beneath_is_ended_where_the_delegation_is_stopped_by_itself(
    autojump_clock: trio.abc.Clock,
) -> None:
    async with working() as three:
        await three.runtime.tree.find(C).stop()
        assert three.asked == 0
        await trio.testing.wait_all_tasks_blocked()
        assert "delegations/1 has stopped" in three.b.calls[1].messages[-1].content
        await three.runtime.agents.remove("A")


async def test_a_call_of_the_provider_is_closed_with_the_agent(stage: Stage) -> None:
    below = ScriptedProvider([NEVER])
    root = stage.agent(handing("below"), DONE, id="A", tools=[delegating({"below": below})])
    async with trio.open_nursery() as nursery:

        async def work() -> None:
            with pytest.raises(ActorError) as stopped:
                await root.generate()
            assert stopped.value.code == "STOPPED"

        nursery.start_soon(work)
        await trio.testing.wait_all_tasks_blocked()
        assert below.in_flight == 1
        await stage.runtime.agents.remove("A")
        assert below.in_flight == 0


async def test_a_run_of_a_workflow_beneath_a_delegation_ends_with_the_agent_above(stage: Stage) -> None:
    ended = list[str]()

    async def stays(controller: TaskController) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(controller.key)

    runner = WorkflowRunner(stage.runtime.tree)
    nested = workflow_tool(WorkflowDefinition(id="h", name="h", phases=()), runner, functions={"stays": stays})
    below = ScriptedProvider([calling("", "workflow", steps=[{"name": "stays"}], name="w")])
    root = stage.agent(handing("below"), DONE, id="A", tools=[delegating({"below": below}, nested)])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(root.generate)
        await trio.testing.wait_all_tasks_blocked()
        root.abort()
    assert ended == ["w/phase-0/phase-0-task-0"]
    assert stage.runtime.snapshot().waits == ()


async def test_a_delegation_from_the_task_of_a_workflow_lives_beneath_it_and_ends_with_it(stage: Stage) -> None:
    registry = AgentRegistry({"below": ScriptedProvider([NEVER])})
    tool = agent_tool(registry, provider="below")
    cancel = trio.Event()

    async def task(_: TaskController) -> object:
        return await tool.execute({"task": "t"})

    async def run() -> None:
        result = await stage.runtime.workflows.run(one("t"), functions={"t": task}, cancel=cancel)
        assert result.status == "stopped"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        assert stage.runtime.tree.find("/workflows/w/t/delegations/1").alive
        cancel.set()
    assert stage.runtime.snapshot().waits == ()


@pytest.mark.parametrize("routed", [False, True])
@pytest.mark.case("reports/delegation", 3)
async def test_a_question_of_an_agent_that_works_for_another_goes_upward_unless_it_is_routed(
    stage: Stage, routed: bool
) -> None:
    """A person looks at the root's terminal only."""
    terminals = stage.runtime.terminals
    terminals.add("person")
    grandchild = ScriptedProvider([ProviderResult("", tools=(ASKING,)), ProviderResult("I have to know: go?")])
    child = ScriptedProvider([handing("grandchild"), lambda messages, _: ProviderResult(messages[-1].content)])
    tool = delegating({"child": child, "grandchild": grandchild}, ask_tool(terminals, None, delegated=routed))
    root = stage.agent(handing("child"), DONE, id="root", tools=[tool])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(root.generate)
        await trio.testing.wait_all_tasks_blocked()
        for form in terminals.pending("person"):
            assert routed
            await terminals.answer("person", form.id, {"go": True})
    told = grandchild.calls[1].messages[-1].content
    if routed:
        assert told == '{"go":true}'
    else:
        assert "nobody was asked" in told
        assert "refuse" not in told
    assert "I have to know: go?" in stored(root)[-2][1]


async def test_an_agent_at_the_root_asks_by_a_tool_that_takes_no_questions_of_others(stage: Stage) -> None:
    terminals = stage.runtime.terminals
    terminals.add("person")
    root = stage.agent(
        ProviderResult("", tools=(ASKING,)), DONE, id="root", tools=[ask_tool(terminals, None, delegated=False)]
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(root.generate)
        await trio.testing.wait_all_tasks_blocked()
        (form,) = terminals.pending("person")
        await terminals.answer("person", form.id, {"go": True})
    assert stored(root)[-2][1] == '{"go":true}'
