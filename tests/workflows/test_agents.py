"""Agents that work on the tasks of a workflow, and the workflows that they nest."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from msgspec import UNSET

from greenroom.actors.agent import Agent
from greenroom.actors.providers.scripted import ScriptedProvider
from greenroom.actors.system import open_runtime
from greenroom.actors.toolbox.workflow import agent_function, workflow_functions
from greenroom.actors.workflow import MemoryWorkflowStore, TaskController, WorkflowRunner
from greenroom.protocol.agents import ProviderResult, Usage
from greenroom.protocol.errors import ToolError
from greenroom.protocol.workflows import TaskResult
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.tools import Tool, tool_function
from greenroom.runtime.tree import run_tree
from tests.agents.conftest import Stage, calling
from tests.workflows.trees import definition


def one(behavior: str, id: str = "w", **members: Any) -> dict[str, Any]:
    """A workflow with one task."""
    return {**definition({}), "id": id, "phases": [{"id": "p", "name": "p", "tasks": [task(behavior)]}], **members}


def task(behavior: str, id: str = "t") -> dict[str, Any]:
    return {"id": id, "name": id, "behavior": behavior}


def error_of(result: TaskResult) -> str:
    assert not result.result.success
    assert result.result.error is not UNSET
    return result.result.error.message


class Fake:
    """An agent that comes to what it is told to."""

    def __init__(self, outcome: object = None, id: str = "fake") -> None:
        self.id = id
        self.outcome = {"content": "c", "partial": False} if outcome is None else outcome
        self.calls = 0

    async def generate(self) -> object:
        self.calls += 1
        await trio.lowlevel.checkpoint()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


async def test_an_agent_is_what_a_task_does_and_its_result_the_tasks_value() -> None:
    async with open_runtime() as runtime:
        stage = Stage(runtime)
        agent = stage.agent(ProviderResult("done", usage=Usage(1, 2, 3)), id="a")
        result = await WorkflowRunner(runtime.tree).execute(one("a"), functions={"a": agent_function(agent)})
        assert result.status == "completed"
        (only,) = result.results
        assert only.result.success
        assert only.result.value == {
            "content": "done",
            "partial": False,
            "usage": {"prompt": 1, "completion": 2, "total": 3},
        }


def chain(workflows: int) -> tuple[str, ...]:
    tags = [tag for each in range(workflows - 1) for tag in (f"workflow:w{each}", f"agent:a{each}")]
    return (*tags, "workflow:w")


@pytest.mark.case("workflows", 51)
@pytest.mark.case("agents", 39)
async def test_an_agent_beneath_nine_workflows_works_and_beneath_ten_its_provider_is_never_reached() -> None:
    async with run_tree() as tree:
        for number, calls in ((9, 1), (10, 0)):
            agent = Fake()
            functions = {"a": agent_function(agent, lineage=chain(number))}
            (result,) = (await WorkflowRunner(tree).execute(one("a"), functions=functions)).results
            assert agent.calls == calls
            assert result.result.success is bool(calls)
        assert "10 workflows deep" in error_of(result) or "9 workflows deep" in error_of(result)


@pytest.mark.case("workflows", 53)
@pytest.mark.parametrize("lineage", [("workflow:w", "agent:a"), ("agent:a",), "workflow:w"])
async def test_a_lineage_that_does_not_end_with_a_workflow_is_refused_at_once(lineage: Any) -> None:
    async with run_tree() as tree:
        runner = WorkflowRunner(tree)
        with pytest.raises(ToolError, match="lineage"):
            agent_function(Fake(), lineage=lineage)
        with pytest.raises(ToolError, match="lineage"):
            workflow_functions(runner, lineage=lineage)


@pytest.mark.case("workflows", 55)
async def test_a_registry_takes_functions_as_functions_and_agents_as_agents() -> None:
    async with run_tree() as tree:
        runner = WorkflowRunner(tree)
        for functions, agents in (
            ({"x": print}, {"x": Fake()}),
            ({"x": agent_function(Fake())}, {}),
            ({"x": 1}, {}),
        ):
            with pytest.raises(ToolError) as refused:
                workflow_functions(runner, functions=functions, agents=agents)
            assert refused.value.code == "TOOL"
        agents = {"a": Fake()}
        composed = workflow_functions(runner, functions={"f": print}, agents=agents)
        agents.clear()
        assert list(composed) == ["f", "a"]


@pytest.mark.case("agents", 39)
async def test_an_agent_that_was_told_to_stop_comes_to_nothing_and_its_provider_is_not_reached() -> None:
    async with open_runtime() as runtime:
        cancel = Cancel()
        cancel.set()
        provider = ScriptedProvider([ProviderResult("never")])
        function = agent_function(Stage(runtime).agent(provider, id="a", cancel=cancel))
        (only,) = (await WorkflowRunner(runtime.tree).execute(one("a"), functions={"a": function})).results
        assert only.result.success
        assert only.result.value == {"content": "", "partial": True}
        assert provider.started == 0


@pytest.mark.case("agents", 39)
@pytest.mark.parametrize("outcome", ["text", {"content": "c"}, {"content": 1, "partial": False}, 7])
async def test_what_is_no_result_of_an_agent_fails_its_task(outcome: object) -> None:
    async with run_tree() as tree:
        (result,) = (
            await WorkflowRunner(tree).execute(one("a"), functions={"a": agent_function(Fake(outcome))})
        ).results
        assert "'fake'" in error_of(result)


async def test_what_the_agent_raises_is_what_the_task_fails_with() -> None:
    async with run_tree() as tree:
        function = agent_function(Fake(LookupError("no such model")))
        (result,) = (await WorkflowRunner(tree).execute(one("a"), functions={"a": function})).results
        assert error_of(result) == "no such model"


async def test_an_agent_of_another_workflow_is_refused_before_it_does_anything() -> None:
    async with run_tree() as tree:
        agent = Fake()
        function = agent_function(agent, lineage=("workflow:other",))
        (result,) = (await WorkflowRunner(tree).execute(one("a"), functions={"a": function})).results
        assert "workflow:other" in error_of(result)
        assert agent.calls == 0


async def test_an_agent_runs_a_workflow_beneath_its_task_with_the_same_names() -> None:
    async with open_runtime() as runtime:
        stage, ran = Stage(runtime), list[str]()

        def step(controller: TaskController) -> None:
            ran.append(controller.key)

        agent = stage.agent(
            calling("", "workflow", steps=[{"name": "step"}], name="inner"), ProviderResult("f"), id="a"
        )
        runner, store = WorkflowRunner(runtime.tree), MemoryWorkflowStore()
        functions = workflow_functions(runner, functions={"step": step}, agents={"a": agent}, store=store)
        assert (await runner.execute(one("a"), functions=functions)).status == "completed"
        assert ran == ["inner/phase-0/phase-0-task-0"]
        assert [run.id for run in await store.list()] == ["inner"]
        assert agent.context.tools.tool("workflow") is not None


@pytest.mark.case("workflows", 52)
async def test_a_bound_tool_that_is_called_with_nothing_would_run_its_own_workflow_and_is_refused() -> None:
    async with open_runtime() as runtime:
        stage = Stage(runtime)
        agent = stage.agent(calling("", "workflow"), ProviderResult("f"), id="a")
        runner = WorkflowRunner(runtime.tree)
        await runner.execute(one("a"), functions=workflow_functions(runner, agents={"a": agent}))
        (_, _, answer, _) = agent.context.messages.messages()
        assert "cannot run inside itself" in answer.content


@pytest.mark.case("workflows", 54)
@pytest.mark.parametrize("through", ["a", "b", "alias"])
async def test_an_agent_that_would_work_beneath_itself_fails_that_inner_task_only(through: str) -> None:
    async with open_runtime() as runtime:
        stage = Stage(runtime)

        def nesting(id: str, name: str) -> Agent:
            return stage.agent(
                calling("", "workflow", steps=[{"name": name}], name=f"beneath-{id}"), ProviderResult("f"), id=id
            )

        a, b = nesting("A", through), nesting("B", "a")
        runner, store = WorkflowRunner(runtime.tree), MemoryWorkflowStore()
        agents = {"a": a, "b": b, "alias": a}
        result = await runner.execute(one("a"), functions=workflow_functions(runner, agents=agents, store=store))
        assert result.status == "completed"
        innermost = await store.get("beneath-B" if through == "b" else "beneath-A")
        assert innermost is not None
        (refused,) = innermost.phases[0].tasks
        assert refused.status == "failed"
        assert [message.content for message in a.context.messages.messages()][-1] == "f"


@pytest.mark.case("workflows", 58)
@pytest.mark.case("agents", 39)
async def test_an_agent_works_on_one_task_at_a_time_and_keeps_its_first_binding() -> None:
    async with open_runtime() as runtime:
        stage, bound = Stage(runtime), list[Tool | None]()
        gate = trio.Event()

        async def hold(_: object) -> None:
            bound.append(agent.context.tools.tool("workflow"))
            gate.set()
            await released.wait()

        released = trio.Event()
        agent = stage.agent(
            calling("", "hold"), ProviderResult("f"), id="a", tools=[Tool("hold", hold, description="waits")]
        )
        runner = WorkflowRunner(runtime.tree)
        functions = workflow_functions(runner, agents={"a": agent})

        async def first() -> None:
            assert (await runner.execute(one("a"), functions=functions)).results[0].result.success

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            await gate.wait()
            other = workflow_functions(runner, agents={"a": agent})
            (second,) = (await runner.execute(one("a", id="v"), functions=other)).results
            assert "at work already" in error_of(second)
            assert agent.context.tools.tool("workflow") is bound[0]
            released.set()


@pytest.mark.case("workflows", 57)
async def test_a_tool_as_a_function_fails_its_task_with_what_the_tool_raises() -> None:
    async with open_runtime() as runtime:
        tools = runtime.tools
        tools.add([Tool("raises", broken), Tool("odd", lambda: object())])
        for name, said in (("raises", "the tool's own"), ("odd", "'odd'"), ("missing", "missing")):
            functions = {"x": tool_function(tools, name)}
            (result,) = (await WorkflowRunner(runtime.tree).execute(one("x"), functions=functions)).results
            assert said in error_of(result)
        with pytest.raises(ToolError) as reserved:
            tool_function(tools, "workflow")
        assert reserved.value.code == "TOOL"


def broken() -> None:
    raise LookupError("the tool's own")


async def test_stopping_the_outer_run_ends_the_agent_and_the_runs_beneath_it() -> None:
    async with open_runtime() as runtime:
        stage, ended = Stage(runtime), list[str]()
        started = trio.Event()

        async def stays(controller: TaskController) -> None:
            started.set()
            try:
                await trio.sleep_forever()
            finally:
                ended.append(controller.key)

        agent = stage.agent(calling("", "workflow", steps=[{"name": "stays"}], name="inner"), id="a")
        runner, store = WorkflowRunner(runtime.tree), MemoryWorkflowStore()
        functions = workflow_functions(runner, functions={"stays": stays}, agents={"a": agent}, store=store)
        cancel = trio.Event()

        async def outer() -> None:
            result = await runner.execute(one("a"), functions=functions, cancel=cancel)
            assert result.status == "stopped"
            assert ended == ["inner/phase-0/phase-0-task-0"]

        async with trio.open_nursery() as nursery:
            nursery.start_soon(outer)
            await started.wait()
            cancel.set()
        inner = await store.get("inner")
        assert inner is not None
        assert inner.status == "stopped"
        assert agent.status == "done"
