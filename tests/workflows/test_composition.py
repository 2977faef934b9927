"""One registry of functions and agents, and a run in short."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec
import pytest

from greenroom.protocol.errors import ToolError
from greenroom.protocol.workflows import (
    PersistenceFault,
    WorkflowFunction,
    WorkflowResult,
    compose_functions,
    summarize_workflow,
)
from tests.workflows.trees import a_workflow, task


def adapt(agent: str, lineage: tuple[str, ...]) -> WorkflowFunction:
    return lambda _: (agent, lineage)


def test_functions_come_first_and_agents_are_adapted_beneath_the_lineage() -> None:
    composed = compose_functions({"f": print}, {"g": "agent"}, adapt, lineage=["workflow:w"])
    assert list(composed) == ["f", "g"]
    assert composed["g"](None) == ("agent", ("workflow:w",))


def test_a_registry_is_a_copy_that_nobody_writes_and_that_makes_nothing_up() -> None:
    functions: defaultdict[str, Any] = defaultdict(lambda: print, f=print)
    composed = compose_functions(functions, {}, adapt)
    functions["late"] = print
    assert list(composed) == ["f"]
    assert composed.get("made up") is None
    with pytest.raises(TypeError):
        composed["g"] = print  # type: ignore[index]  # this is what must not work


class RunsAnAgent:
    category = "agent"

    def __call__(self, controller: object) -> None:
        del controller


@pytest.mark.parametrize(
    ("functions", "agents", "lineage"),
    [
        ({"f": 1}, {}, ()),
        ({"f": RunsAnAgent()}, {}, ()),
        ({"f": print}, {"f": "agent"}, ()),
        ({}, {}, ("workflow:w", "agent:x")),
        ({}, {}, ("agent:x",)),
    ],
)
def test_what_cannot_be_composed_is_refused(functions: Any, agents: Any, lineage: Any) -> None:
    with pytest.raises(ToolError) as refused:
        compose_functions(functions, agents, adapt, lineage=lineage)
    assert refused.value.code == "TOOL"


def test_a_summary_counts_what_is_recorded_and_does_not_hide_failures() -> None:
    workflow = a_workflow({"a": "x y z"})
    for task_id in ("x", "y"):
        task(workflow, task_id).start()
    task(workflow, "x").fail("handler", "no")
    task(workflow, "y").complete(None)
    task(workflow, "z").skip()
    result = WorkflowResult(workflow=workflow, status=workflow.status, results=workflow.results())
    assert msgspec.to_builtins(summarize_workflow(result)) == {"status": "completed", "count": 2, "failed": 1}


def test_a_summary_of_a_clean_run_says_no_more_than_it_has_to() -> None:
    workflow = a_workflow({})
    workflow.complete()
    fault = PersistenceFault(checkpoint="initial", message="disk full")
    result = WorkflowResult(workflow=workflow, status=workflow.status, results=(), durable=True, fault=fault)
    assert msgspec.json.decode(msgspec.json.encode(summarize_workflow(result, ("colour",)))) == {
        "status": "completed",
        "count": 0,
        "ignored": ["colour"],
        "durable": True,
        "fault": {"origin": "persistence", "checkpoint": "initial", "message": "disk full"},
    }
