"""Edits of a live workflow: what is taken, what is refused, and that a refusal is a value."""

from __future__ import annotations

from typing import Any

import pytest

from greenroom.protocol.workflows import Node, TaskOptions, Workflow, create_workflow
from tests.workflows.trees import a_workflow, made, overhear, phase, refused, task


def a_task(task_id: str, **members: Any) -> dict[str, Any]:
    return {"id": task_id, "name": task_id, **members}


def a_phase(phase_id: str, *tasks: str) -> dict[str, Any]:
    return {"id": phase_id, "name": phase_id, "tasks": [a_task(each) for each in tasks]}


def order(workflow: Workflow) -> str:
    return " ".join(each.id for each in workflow.phases)


def finish(workflow: Workflow, task_id: str) -> None:
    task(workflow, task_id).start()
    task(workflow, task_id).complete(None)


def test_tasks_of_a_pending_phase_are_edited_anywhere() -> None:
    workflow = a_workflow({"a": "x y"})
    editing = phase(workflow, "a")
    heard: list[Any] = []

    def hear(node: Node, event: str, arguments: tuple[Any, ...]) -> None:
        child, *index = arguments
        assert node is editing
        heard.append((event, child.id, *index))

    workflow.watch(hear)
    assert made(editing.add(a_task("z"), 0)) is task(workflow, "z")
    made(editing.move("x", 2))
    made(editing.remove("y"))
    made(editing.update("z", {"name": "Zed", "description": ""}))
    assert [each.id for each in editing.tasks] == ["z", "x"]
    assert (task(workflow, "z").name, task(workflow, "z").description) == ("Zed", "")
    assert heard == [("add", "z", 0), ("move", "x", 2), ("remove", "y"), ("update", "z")]


def test_a_running_phase_takes_tasks_at_its_end_and_runs_them_too() -> None:
    workflow = a_workflow({"a": "x", "b": ""})
    workflow.claim()
    task(workflow, "x").start()
    editing = phase(workflow, "a")
    refused(editing.add(a_task("y"), 0), "cannot stand at 0: at 1 there is room for it")
    made(editing.add(a_task("y")))
    finish(workflow, "y")
    assert editing.status == "running"
    task(workflow, "x").complete(None)
    assert (editing.status, workflow.status) == ("completed", "completed")
    refused(editing.add(a_task("z")), "it is completed")
    for edit in (editing.remove("x"), editing.move("x", 0), editing.update("x", {})):
        refused(edit, "it is completed")


def test_tasks_of_a_running_phase_stay_as_they_are() -> None:
    workflow = a_workflow({"a": "x y"})
    task(workflow, "x").start()
    editing = phase(workflow, "a")
    for edit in (editing.remove("y"), editing.move("y", 0), editing.update("y", {"name": "z"})):
        refused(edit, "only tasks of a pending phase are changed")


def test_ids_stay_unique_and_indices_in_bounds() -> None:
    workflow = a_workflow({"a": "x", "b": "x"})
    heard = overhear(workflow)
    editing = phase(workflow, "a")
    refused(editing.add(a_task("x")), "a task 'x' in phase 'a' already")
    refused(editing.add(a_task("y"), 2), "between 0 and 1")
    refused(editing.move("x", 1), "at 0 there is room")
    refused(editing.remove("y"), "no task 'y' in phase 'a'; there are: x")
    refused(workflow.add(a_phase("b")), "a phase 'b' in workflow 'w' already")
    refused(workflow.add(a_phase("c"), -1), "between 0 and 2")
    refused(workflow.add(a_phase("c", "z", "z")), "a task 'z' in phase 'c' already")
    refused(workflow.remove("c"), "there are: a, b")
    assert heard == []
    assert (order(workflow), [each.id for each in editing.tasks]) == ("a b", ["x"])


def test_a_malformed_addition_or_change_names_its_fault() -> None:
    workflow = a_workflow({"a": "x"})
    editing = phase(workflow, "a")
    refused(editing.add(a_task("y", retries=-1)), "retries")
    refused(editing.add(None), "object")
    refused(workflow.add({"id": "b", "name": "b"}), "tasks is missing")
    refused(workflow.update("a", {"concurrency": 0}), "concurrency")
    refused(workflow.update("a", {"tasks": []}), "What can be changed is: name, description, bail, concurrency")
    refused(editing.update("x", {"name": ""}), "length")
    refused(workflow.patch(None), "name, description")


def test_phases_are_edited_behind_all_that_has_begun() -> None:
    workflow = a_workflow({"a": "x", "b": "y", "c": "z"})
    task(workflow, "x").start()
    heard = overhear(workflow)
    refused(workflow.add(a_phase("d", "v"), 0), "between 1 and 3")
    refused(workflow.move("c", 0), "between 1 and 2")
    refused(workflow.remove("a"), "is running")
    assert heard == []
    made(workflow.add(a_phase("d", "v"), 1))
    made(workflow.move("c", 1))
    made(workflow.remove("b"))
    made(workflow.update("d", {"name": "D", "bail": True, "concurrency": 3}))
    assert order(workflow) == "a c d"
    changed = phase(workflow, "d")
    assert (changed.name, changed.bail, changed.concurrency) == ("D", True, 3)
    assert heard == ["w.add", "w.move", "w.remove", "w.update"]


def test_a_phase_that_was_passed_takes_nothing_that_would_never_run() -> None:
    workflow = a_workflow({"passed": "", "b": "y", "c": "z"})
    task(workflow, "y").start()
    refused(phase(workflow, "passed").add(a_task("x")), "a phase behind it has begun")
    refused(workflow.remove("passed"), "one behind it has begun")
    refused(workflow.add(a_phase("d", "v"), 1), "between 2 and 3")
    assert workflow.snapshot().status == "running"


def test_taking_out_what_is_left_to_do_completes_the_workflow() -> None:
    workflow = a_workflow({"a": "x", "b": "y", "c": "z"})
    finish(workflow, "x")
    heard = overhear(workflow)
    made(phase(workflow, "b").remove("y"))
    assert workflow.status == "running"
    made(workflow.remove("c"))
    assert heard == ["b.remove", "w.remove", "w.complete"]
    refused(workflow.add(a_phase("d")), "it is completed")
    refused(phase(workflow, "b").add(a_task("v")), "it is completed")


def test_what_was_taken_out_is_no_part_of_anything() -> None:
    workflow = a_workflow({"a": "x y", "b": "z"})
    gone, gone_phase = made(phase(workflow, "a").remove("y")), made(workflow.remove("b"))
    heard = overhear(workflow)
    (orphan,) = gone_phase.tasks
    for each in (gone, orphan):
        assert each.emitter.closed
        for edit in (each.start, each.skip, each.stop):
            with pytest.raises(Exception, match="no part of its workflow any more"):
                edit()
    gone_phase.stop()
    refused(gone_phase.add(a_task("v")), "no part of the workflow any more")
    assert (gone_phase.status, heard) == ("pending", [])


def test_a_phase_added_live_takes_the_bail_that_is_in_force() -> None:
    plain, strict = a_workflow({}), a_workflow({}, bail=True)
    for workflow in (plain, strict):
        made(workflow.add({**a_phase("a", "x"), "bail": False}))
        made(workflow.add(a_phase("b", "y")))
    assert [each.bail for each in plain.phases] == [False, False]
    assert [each.bail for each in strict.phases] == [True, True]


def test_a_task_added_live_is_looked_up_and_given_its_options() -> None:
    workflow = create_workflow(
        {"id": "w", "name": "w", "phases": [a_phase("a")]}, functions={"known": print}, silence=9
    )
    options = TaskOptions(metadata={"k": 1}, silence=0)
    added = made(phase(workflow, "a").add(a_task("x", behavior="known"), options=options))
    unknown = made(phase(workflow, "a").add(a_task("y", behavior="unknown")))
    assert (added.handler, added.metadata, added.silence) == (print, {"k": 1}, None)
    assert (unknown.handler, unknown.silence) == (None, 9)


def test_a_workflow_is_renamed_while_it_is_pending() -> None:
    workflow = a_workflow({"a": "x"})
    heard = overhear(workflow)
    made(workflow.patch({"name": "W", "description": "d"}))
    assert (workflow.name, workflow.description, heard) == ("W", "d", ["w.update"])
    task(workflow, "x").start()
    refused(workflow.patch({"name": "V"}), "it is running")


def test_an_edit_is_stored() -> None:
    workflow = a_workflow({"a": "x"})
    before = workflow.snapshot()
    made(workflow.add(a_phase("b", "y")))
    after = workflow.snapshot()
    assert after.updated > before.updated
    assert (after.created, after.hash) == (before.created, before.hash)
    assert [each.id for each in after.phases] == ["a", "b"]
