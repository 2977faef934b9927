"""Drafts, flat steps, and what a call of the workflow tool asks to be run."""

from __future__ import annotations

from typing import Any

import pytest

from greenroom.protocol.errors import ToolError, WorkflowError
from greenroom.protocol.workflows import (
    WorkflowDefinition,
    author_workflow,
    check_definition,
    complete_draft,
    create_workflow,
    parse_draft,
)
from tests.workflows.trees import definition

HOST = check_definition(definition({"p": "t"}))
CYCLE: dict[str, Any] = {}
CYCLE["steps"] = [CYCLE]


def completed(draft: Any) -> WorkflowDefinition:
    reading = parse_draft(draft)
    assert reading is not None
    return complete_draft(reading.value)


@pytest.mark.case("workflows", 47)
def test_a_draft_is_completed_by_position_and_names_from_ids() -> None:
    done = completed({"name": "nm", "phases": [{"id": "build", "tasks": [{}, {"name": "N"}]}]})
    (phase,) = done.phases
    assert [done.id, phase.id, *(task.id for task in phase.tasks)] == ["wf", "build", "build-task-0", "build-task-1"]
    assert [done.name, phase.name, *(task.name for task in phase.tasks)] == ["nm", "build", "build-task-0", "N"]


def test_completing_changes_nothing_that_is_given() -> None:
    whole = definition({"a": "x y", "b": ""}, bail=False, description="")
    assert completed(whole) == check_definition(whole)


@pytest.mark.case("workflows", 45)
def test_an_id_made_up_that_clashes_is_found_when_the_workflow_is_built() -> None:
    clash = completed({"phases": [{"id": "phase-1", "tasks": []}, {"tasks": []}]})
    assert [phase.id for phase in clash.phases] == ["phase-1", "phase-1"]
    with pytest.raises(WorkflowError, match="'phase-1' in workflow 'wf' already") as refused:
        create_workflow(clash)
    assert refused.value.code == "MUTATION"
    same_task = completed({"phases": [{"tasks": [{"id": "t"}]}, {"tasks": [{"id": "t"}]}]})
    assert len(create_workflow(same_task).phases) == 2


def test_flat_steps_win_over_phases_and_what_they_beat_is_told() -> None:
    args: dict[str, Any] = {"steps": [{"name": "one"}], "phases": [{"tasks": []}], "name": 5}
    authored = author_workflow(args, HOST)
    assert [authored.definition.id, authored.definition.name] == ["5", "5"]
    (phase,) = authored.definition.phases
    assert [task.behavior for task in phase.tasks] == ["one"]
    assert authored.ignored == ("phases",)


def test_steps_that_are_no_list_make_a_draft() -> None:
    authored = author_workflow({"steps": "a", "phases": []}, HOST)
    assert (authored.definition.id, authored.definition.phases) == ("wf", ())
    assert authored.ignored == ("steps",)


def test_no_arguments_mean_the_wrapped_workflow_if_it_is_whole() -> None:
    assert author_workflow({}, HOST).definition is HOST
    with pytest.raises(ToolError) as refused:
        author_workflow({}, WorkflowDefinition(id="", name="w", phases=()))
    assert (refused.value.code, refused.value.context) == ("TOOL", {"workflow": ""})


def tasked(**members: Any) -> Any:
    return {"phases": [{"tasks": [members]}]}


SPELL_NOTHING: list[Any] = [
    {"name": "x"},
    {"foo": 1},
    {"steps": "a"},
    {"steps": ["a"]},
    {"steps": [{"name": ""}]},
    {"id": "", "phases": []},
    {"id": None, "phases": []},
    tasked(retries=-1),
    tasked(retries=1.5),
    tasked(retries=True),
    {"phases": [], "bail": "true"},
    {"phases": [], "bail": 1},
    tasked(timeout=2147483648),
    {"phases": [{"tasks": [], "concurrency": 0}]},
    [],
    None,
    "steps",
    {"steps": [], "unknown": float("nan")},
    CYCLE,
    {"steps": [], "unknown": object()},
]


@pytest.mark.parametrize("args", SPELL_NOTHING)
def test_arguments_that_spell_no_workflow_are_refused(args: Any) -> None:
    with pytest.raises(ToolError, match="These arguments spell no workflow") as refused:
        author_workflow(args, HOST)
    assert (refused.value.code, refused.value.context) == ("TOOL", {"workflow": "w"})


def test_a_refusal_names_the_member_at_fault_and_the_form_that_is_due() -> None:
    with pytest.raises(ToolError, match=r'steps\[1\]\.name is missing.*\{"steps"'):
        author_workflow({"steps": [{"name": "a"}, {"behaviour": "b"}]}, HOST)
