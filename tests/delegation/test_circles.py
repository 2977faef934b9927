"""One graph: delegations, runs of workflows and asks are waits of one kind, and never close a circle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from msgspec import UNSET

from greenroom.actors.agent import Agent
from greenroom.actors.providers.scripted import ScriptedProvider
from greenroom.actors.toolbox.ask import ask_tool
from greenroom.actors.toolbox.workflow import agent_function, workflow_functions, workflow_tool
from greenroom.actors.workflow import TaskController, WorkflowRunner
from greenroom.protocol.agents import ProviderResult
from greenroom.protocol.errors import TerminalDeadlock
from greenroom.protocol.forms import Form
from greenroom.protocol.workflows import WorkflowDefinition
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.messages import Request
from greenroom.runtime.tools import Tool
from tests.agents.conftest import Stage, calling, stored
from tests.delegation.conftest import DONE, delegating, handing
from tests.workflows.test_agents import one
from tests.workflows.trees import definition

FORM = {"fields": [{"control": "text", "name": "v"}]}


def asking(to: str) -> ProviderResult:
    return calling("", "ask", to=to, schema=FORM)


def desk(stage: Stage, name: str, agent: Agent) -> None:
    """A terminal that the agent operates."""
    stage.runtime.terminals.add(name, operator=agent.ref)


async def run_aside(nursery: trio.Nursery, *agents: Agent) -> None:
    """Let agents run, one after another, until each waits."""
    for agent in agents:
        nursery.start_soon(agent.generate)
        await trio.testing.wait_all_tasks_blocked()


def refusal(agent: Agent, path: str) -> str:
    """What an agent was told whose ask was refused; it names the path, and a way out."""
    told = stored(agent)[-2][1]
    assert f"a circle of waiting, {path}." in told
    assert "or decide without asking" in told
    return told


async def test_an_agent_beneath_another_cannot_ask_it(stage: Stage) -> None:
    helper = ScriptedProvider([asking("planner"), DONE])
    tool = delegating({"helper": helper}, ask_tool(stage.runtime.terminals, None))
    planner = stage.agent(handing("helper"), DONE, id="planner", tools=[tool])
    desk(stage, "planner", planner)
    assert (await planner.generate()).content == "done"
    told = helper.calls[1].messages[-1].content
    assert "a circle of waiting, /agents/planner/delegations/1 -> planner -> /agents/planner/delegations/1." in told
    assert stage.runtime.terminals.count == 1
    assert stage.runtime.terminals.pending("planner") == []


async def test_an_agent_three_delegations_beneath_another_cannot_ask_it(stage: Stage) -> None:
    models = {
        "a": ScriptedProvider([handing("b"), DONE]),
        "b": ScriptedProvider([handing("c"), DONE]),
        "c": ScriptedProvider([asking("planner"), DONE]),
    }
    tool = delegating(dict(models), ask_tool(stage.runtime.terminals, None))
    planner = stage.agent(handing("a"), DONE, id="planner", tools=[tool])
    desk(stage, "planner", planner)
    await planner.generate()
    told = models["c"].calls[1].messages[-1].content
    one, two, three = (f"/agents/planner{'/delegations/1' * depth}" for depth in (1, 2, 3))
    assert f"{three} -> planner -> {one} -> {two} -> {three}." in told


async def test_a_task_of_a_workflow_that_an_agent_runs_cannot_ask_it(stage: Stage) -> None:
    async def ask(_: TaskController) -> Any:
        with pytest.raises(TerminalDeadlock) as refused:
            await stage.runtime.terminals.ask(None, "planner", Form(FORM))
        return refused.value.path

    runner = WorkflowRunner(stage.runtime.tree)
    tool = workflow_tool(WorkflowDefinition(id="host", name="Host", phases=()), runner, functions={"ask": ask})
    planner = stage.agent(
        calling("", "workflow", steps=[{"name": "ask"}], name="inner"), DONE, id="planner", tools=[tool]
    )
    desk(stage, "planner", planner)
    await planner.generate()
    assert '"status":"completed"' in stored(planner)[-2][1]


async def test_agents_that_wait_for_each_other_over_a_delegation_are_a_circle(stage: Stage) -> None:
    """The first asks the second, which has delegated; who works there asks the first."""
    ask = ask_tool(stage.runtime.terminals, None)
    helper = ScriptedProvider([asking("first"), DONE])
    first = stage.agent(asking("second"), DONE, id="first", tools=[ask])
    second = stage.agent(handing("helper"), DONE, id="second", tools=[delegating({"helper": helper}, ask)])
    desk(stage, "first", first)
    desk(stage, "second", second)
    async with trio.open_nursery() as nursery:
        await run_aside(nursery, first)
        await second.generate()
        told = helper.calls[1].messages[-1].content
        below = "/agents/second/delegations/1"
        assert f"{below} -> first -> second -> {below}." in told
        assert [form.to for form in stage.runtime.terminals.pending("second")] == ["second"]
        first.abort()


async def test_the_later_of_two_asks_is_the_one_that_is_refused(stage: Stage) -> None:
    """As before, but who works for the second asks first."""
    ask = ask_tool(stage.runtime.terminals, None)
    helper = ScriptedProvider([asking("first"), DONE])
    first = stage.agent(asking("second"), DONE, id="first", tools=[ask])
    second = stage.agent(handing("helper"), DONE, id="second", tools=[delegating({"helper": helper}, ask)])
    desk(stage, "first", first)
    desk(stage, "second", second)
    async with trio.open_nursery() as nursery:
        await run_aside(nursery, second)
        await first.generate()
        refusal(first, "first -> second -> /agents/second/delegations/1 -> first")
        (form,) = stage.runtime.terminals.pending("first")
        assert (await stage.runtime.terminals.answer("first", form.id, {"v": "x"})).success


async def test_agents_that_wait_for_each_other_over_a_workflow_are_a_circle(stage: Stage) -> None:
    """The second runs a workflow, whose task asks the first; then the first asks the second."""
    terminals, runner = stage.runtime.terminals, WorkflowRunner(stage.runtime.tree)

    async def ask(_: TaskController) -> Any:
        return await terminals.ask(None, "first", Form(FORM))

    tool = workflow_tool(WorkflowDefinition(id="host", name="Host", phases=()), runner, functions={"ask": ask})
    first = stage.agent(asking("second"), DONE, id="first", tools=[ask_tool(terminals, None)])
    second = stage.agent(calling("", "workflow", steps=[{"name": "ask"}], name="w"), DONE, id="second", tools=[tool])
    desk(stage, "first", first)
    desk(stage, "second", second)
    async with trio.open_nursery() as nursery:
        await run_aside(nursery, second)
        await first.generate()
        refusal(first, "first -> second -> /agents/second/w -> /agents/second/w/phase-0-task-0 -> first")
        second.abort()


async def test_agents_on_tasks_delegations_and_terminals_make_one_way(stage: Stage) -> None:
    """A run waits for an agent on its task, that for who works for it, and that asks who waits for the run."""
    terminals, runner = stage.runtime.terminals, WorkflowRunner(stage.runtime.tree)
    helper = ScriptedProvider([asking("boss"), DONE])
    worker = stage.agent(
        handing("helper"), DONE, id="worker", tools=[delegating({"helper": helper}, ask_tool(terminals, None))]
    )

    class Boss(Actor):
        async def on_start(self) -> None:
            self.start_soon(self.work)

        async def work(self) -> None:
            functions = workflow_functions(runner, agents={"worker": worker})
            outcomes.append(await runner.execute(one("worker"), functions=functions))
            done.set()

    outcomes, done = list[Any](), trio.Event()
    terminals.add("boss", operator=stage.runtime.spawn(Boss(), "boss"))
    await done.wait()
    told = helper.calls[1].messages[-1].content
    assert "/agents/worker/delegations/1 -> boss -> " in told
    assert " -> /agents/worker -> /agents/worker/delegations/1." in told
    assert outcomes[0].status == "completed"


class Read(Request[str], frozen=True):
    pass


class Board(Actor):
    """Its work waits for an agent, and it answers meanwhile."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self._do = work
        self.done = trio.Event()

    async def on_start(self) -> None:
        self.start_soon(self._work_on)

    async def _work_on(self) -> None:
        await self._do()
        self.done.set()

    @handles(Read)
    def read(self, _: Read) -> str:
        return "written"


async def test_who_answers_while_its_work_waits_is_not_refused(stage: Stage) -> None:
    async def read() -> str:
        return await place.ask(Read())

    helper = ScriptedProvider([calling("", "read"), DONE])
    tool = delegating({"helper": helper}, Tool("read", read))
    board = Board(lambda: tool.execute({"task": "t", "provider": "helper"}))
    place = stage.runtime.spawn(board, "board")
    await board.done.wait()
    assert helper.calls[1].messages[-1].content == '"written"'


async def test_two_agents_may_ask_one_that_waits_for_neither(stage: Stage) -> None:
    ask = ask_tool(stage.runtime.terminals, None)
    helper = ScriptedProvider([asking("person"), DONE])
    first = stage.agent(asking("person"), DONE, id="first", tools=[ask])
    second = stage.agent(handing("helper"), DONE, id="second", tools=[delegating({"helper": helper}, ask)])
    terminals = stage.runtime.terminals
    terminals.add("person")
    async with trio.open_nursery() as nursery:
        await run_aside(nursery, first, second)
        for form in terminals.pending("person"):
            assert (await terminals.answer("person", form.id, {"v": "x"})).success
    assert stored(first)[-2][1] == '{"v":"x"}'
    assert helper.calls[1].messages[-1].content == '{"v":"x"}'


async def test_an_agent_function_that_asks_who_runs_the_workflow_fails_its_task_only(stage: Stage) -> None:
    terminals, runner = stage.runtime.terminals, WorkflowRunner(stage.runtime.tree)
    worker = stage.agent(asking("planner"), DONE, id="worker", tools=[ask_tool(terminals, None)])
    functions = {"worker": agent_function(worker)}

    async def work() -> None:
        result = await runner.execute({**definition({}), **one("worker")}, functions=functions)
        assert result.results[0].result.error is UNSET

    board = Board(work)
    terminals.add("planner", operator=stage.runtime.spawn(board, "planner"))
    await board.done.wait()
    refusal(worker, "/agents/worker -> planner -> /planner/w -> /planner/w/t -> /agents/worker")
