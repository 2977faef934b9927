"""The tool `workflow`: what a call of it runs, what it refuses before anything runs, and what it tells of the run."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio

from greenroom.actors.toolbox.describe import describe_tool
from greenroom.actors.toolbox.workflow import MAX_PARTS, workflow_tool
from greenroom.actors.workflow import MemoryWorkflowStore, TaskController, WorkflowRunner
from greenroom.protocol.errors import ToolError, WorkflowError
from greenroom.protocol.tools import ToolCall, ToolFailure, ToolSuccess
from greenroom.protocol.workflows import PhaseDefinition, TaskDefinition, WorkflowDefinition
from greenroom.runtime.tools import ToolManager
from greenroom.runtime.tree import Tree, run_tree

HOST = WorkflowDefinition(
    id="host",
    name="Host",
    phases=(PhaseDefinition(id="p", name="P", tasks=(TaskDefinition(id="t", name="T", behavior="one"),)),),
)


class Bench:
    """A tool with functions that write down what ran."""

    def __init__(self, tree: Tree, **options: Any) -> None:
        self.ran: list[str] = []
        self.store = MemoryWorkflowStore()
        functions: dict[str, Any] = {"one": self._one, "fails": self._fails, "42": self._one, "seen": self._seen}
        self.inputs: list[Any] = []
        self.tool = workflow_tool(HOST, WorkflowRunner(tree), store=self.store, **{"functions": functions, **options})

    def _one(self, controller: TaskController) -> int:
        self.ran.append(controller.task.id)
        return 1

    def _seen(self, controller: TaskController) -> None:
        self.inputs.append(controller.input)

    def _fails(self, controller: TaskController) -> None:
        self._one(controller)
        raise LookupError("no")

    async def __call__(self, args: Any) -> Any:
        return await self.tool.execute(args)

    async def refused(self, args: Any) -> ToolError:
        with pytest.raises(ToolError) as refused:
            await self(args)
        assert self.ran == []
        assert await self.store.list() == []
        return refused.value


def steps(*names: str, **more: Any) -> dict[str, Any]:
    return {"steps": [{"name": name} for name in names], **more}


def pairs(number: int) -> tuple[str, ...]:
    """A chain of that many workflows with an agent in each."""
    return tuple(tag for each in range(number) for tag in (f"workflow:w{each}", f"agent:a{each}"))


@pytest.mark.case("workflows", 43)
async def test_nothing_runs_the_workflow_it_was_made_for_and_steps_run_what_they_name() -> None:
    async with run_tree() as tree:
        bench = Bench(tree)
        assert await bench({}) == {"status": "completed", "count": 1, "durable": True}
        assert bench.ran == ["t"]
        assert await bench({"steps": []}) == {"status": "completed", "count": 0, "durable": True}
        assert (await bench({"steps": [{"name": 42}]}))["count"] == 1


async def test_one_call_runs_no_more_steps_or_tasks_than_anybody_would_spell() -> None:
    async with run_tree() as tree:
        bench = Bench(tree)
        calls: list[dict[str, Any]] = [
            steps(*["one"] * (MAX_PARTS + 1)),
            {"phases": [{"tasks": [{"behavior": "one"}] * (MAX_PARTS + 1)}]},
            {"phases": [{"tasks": []}] * (MAX_PARTS + 1)},
        ]
        for args in calls:
            refused = await bench.refused(args)
            assert refused.code == "TOOL"
            assert "One call may run up to 1,000" in refused.message
            assert "these are 1,001" in refused.message
        assert (await bench({"phases": [{"tasks": []}] * MAX_PARTS}))["status"] == "completed"


CYCLE: dict[str, Any] = {}
CYCLE["steps"] = [CYCLE]
PHASE = {"id": "p", "name": "p", "tasks": []}


@pytest.mark.case("workflows", 44)
@pytest.mark.parametrize(
    "args",
    [
        {"name": "x"},
        {"foo": 1},
        {"steps": "a"},
        {"steps": ["a"]},
        {"steps": [{"name": ""}]},
        {"id": "", "phases": []},
        {"id": None, "phases": []},
        {"phases": [{"tasks": [{"retries": -1}]}]},
        {"phases": [{"tasks": [{"retries": 1.5}]}]},
        {"phases": [{"tasks": [{"retries": True}]}]},
        {"bail": "true", "phases": []},
        {"bail": 1, "phases": []},
        {"phases": [{"tasks": [{"timeout": 2147483648}]}]},
        {"phases": [{"tasks": [], "concurrency": 0}]},
        [],
        None,
        "steps",
        {"phases": [], "note": math.nan},
        CYCLE,
        {"steps": [{"name": object}]},
    ],
    ids=str,
)
async def test_what_spells_no_workflow_is_refused_before_anything_runs_or_is_stored(args: Any) -> None:
    async with run_tree() as tree:
        error = await Bench(tree).refused(args)
        assert error.code == "TOOL"
        assert error.context["workflow"] == "host"


@pytest.mark.case("workflows", 45)
async def test_an_id_made_up_that_clashes_with_a_given_one_is_found_when_the_workflow_is_built() -> None:
    async with run_tree() as tree:
        bench = Bench(tree)
        with pytest.raises(WorkflowError) as clash:
            await bench({"phases": [{"id": "phase-1", "tasks": []}, {"tasks": []}]})
        assert clash.value.code == "MUTATION"
        same = {"id": "x", "behavior": "one"}
        assert (await bench({"phases": [{"tasks": [same]}, {"tasks": [same]}]}))["count"] == 2


@pytest.mark.case("workflows", 46)
async def test_a_list_of_steps_wins_over_phases_and_what_is_no_list_is_passed_over() -> None:
    async with run_tree() as tree:
        bench = Bench(tree)
        both = steps("one", phases=[{"tasks": [{"behavior": "fails"}] * 2}])
        assert (await bench(both))["count"] == 1
        assert (await bench({"steps": "a", "phases": []}))["status"] == "completed"


@pytest.mark.case("workflows", 48)
async def test_a_failed_step_ends_nothing_unless_the_workflow_bails() -> None:
    async with run_tree() as tree:
        bench = Bench(tree)
        summary = await bench(steps("fails", "one", "one"))
        assert (summary["status"], summary["count"], summary["failed"]) == ("completed", 3, 1)
        nested = {"bail": True, "phases": [{"tasks": [{"behavior": "fails"}]}, {"tasks": [{"behavior": "one"}]}]}
        summary = await bench(nested)
        assert (summary["status"], summary["count"]) == ("failed", 1)


@pytest.mark.case("workflows", 49)
async def test_the_second_run_of_a_name_replaces_what_is_stored_of_the_first() -> None:
    async with run_tree() as tree:
        bench = Bench(tree)
        await bench(steps("one", name="shared"))
        await bench(steps("one", "one", name="shared"))
        assert [run.id for run in await bench.store.list()] == ["shared"]
        snapshot = await bench.store.get("shared")
        assert snapshot is not None
        assert len(snapshot.phases) == 2


@pytest.mark.case("workflows", 51)
async def test_a_chain_of_nine_workflows_may_be_nested_and_no_tenth() -> None:
    async with run_tree() as tree:
        assert (await Bench(tree, lineage=pairs(8))(steps("one")))["status"] == "completed"
        error = await Bench(tree, lineage=pairs(9)).refused(steps("one"))
        assert (error.code, error.context["depth"], error.context["max"]) == ("DEPTH", 9, 8)


@pytest.mark.case("workflows", 52)
async def test_a_workflow_that_runs_already_in_its_chain_is_refused_before_anything_else_is_looked_at() -> None:
    async with run_tree() as tree:
        bench = Bench(tree, lineage=("workflow:w", "agent:z"), functions={"broken": 1})
        assert (await bench.refused(steps("one", name="w"))).code == "DEPTH"
        error = await bench.refused(steps("one", name="v"))
        assert (error.code, error.context["function"]) == ("TOOL", "broken")  # composed by the call, not before


@pytest.mark.case("workflows", 53)
@pytest.mark.parametrize("lineage", [("workflow:w",), ("agent:a",), "workflow:w", None])
async def test_a_lineage_that_does_not_end_with_an_agent_is_refused_at_once(lineage: Any) -> None:
    async with run_tree() as tree:
        with pytest.raises(ToolError) as refused:
            Bench(tree, lineage=lineage)
        assert refused.value.code == "TOOL"


@pytest.mark.case("workflows", 56)
@pytest.mark.parametrize("name", ["__class__", "__proto__", "get", "constructor"])
async def test_a_name_is_a_behaviour_only_if_one_was_registered_under_it(name: str) -> None:
    async with run_tree() as tree:
        with pytest.raises(WorkflowError) as unknown:
            await Bench(tree)(steps(name))
        assert unknown.value.code == "TRANSITION"
        assert (await Bench(tree, functions={name: lambda _: 1})(steps(name)))["count"] == 1


@pytest.mark.case("workflows", 55)
async def test_registries_that_change_afterwards_change_nothing() -> None:
    async with run_tree() as tree:
        functions: dict[str, Any] = {"one": lambda _: 1}
        bench = Bench(tree, functions=functions)
        functions.clear()
        assert (await bench(steps("one")))["count"] == 1
        functions["late"] = lambda _: 1
        with pytest.raises(WorkflowError):
            await bench(steps("late"))


@pytest.mark.case("tools", 31)
async def test_through_the_registry_the_summary_is_the_value_and_a_refusal_the_error() -> None:
    async with run_tree() as tree:
        tools = ToolManager()
        tools.add(Bench(tree).tool)
        result = await tools.execute(ToolCall("1", "workflow", steps("one")))
        assert isinstance(result, ToolSuccess)
        assert result.value == {"status": "completed", "count": 1, "durable": True}
        tools.add(Bench(tree, lineage=pairs(9)).tool)
        result = await tools.execute(ToolCall("1", "workflow", steps("one")))
        assert isinstance(result, ToolFailure)
        assert "9 workflows deep" in result.error


async def test_a_model_is_shown_steps_and_learns_the_rest_by_describe() -> None:
    async with run_tree() as tree:
        tools = ToolManager()
        tools.add(Bench(tree).tool)
        tools.add(describe_tool(tools))
        (shown, _) = tools.definitions()
        assert "describe('workflow')" in str(shown.description)
        text = await tools.run("describe", {"name": "workflow"})
        for word in ("steps", "phases", "tasks", "behavior", "bail", "retries", "timeout", "input"):
            assert word in text


async def test_input_on_the_wire_reaches_the_behaviour_and_what_means_nothing_is_named() -> None:
    async with run_tree() as tree:
        bench = Bench(tree)
        task = {"behavior": "seen", "input": {"channel": "beta"}, "run": "x"}
        summary = await bench({"phases": [{"tasks": [task]}]})
        assert bench.inputs == [{"channel": "beta"}]
        assert summary["ignored"] == ["phases[0].tasks[0].run"]


async def test_cancelling_the_call_stops_the_run_and_all_beneath_it() -> None:
    async with run_tree() as tree:
        started, ended = trio.Event(), list[str]()

        async def stays(controller: TaskController) -> None:
            started.set()
            try:
                await trio.sleep_forever()
            finally:
                ended.append(controller.task.id)

        bench = Bench(tree, functions={"stays": stays})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench, steps("stays", name="w"))
            await started.wait()
            nursery.cancel_scope.cancel()
        assert ended == ["phase-0-task-0"]
        snapshot = await bench.store.get("w")
        assert snapshot is not None
        assert snapshot.status == "stopped"
