"""The tables of statuses: what a task may do when, and what its tasks make a phase, its phases a workflow."""

from __future__ import annotations

from typing import Any

import pytest

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows import Status, Task, derive_phase_status, derive_workflow_status
from tests.workflows.trees import a_workflow, task


def moved(status: str) -> Task:
    """A task with this status, with a sibling that keeps its phase open."""
    workflow = a_workflow({"a": "x sibling"})
    moving = task(workflow, "x")
    if status != "pending":
        {"skipped": moving.skip, "stopped": moving.stop}.get(status, moving.start)()
    if status == "completed":
        moving.complete(None)
    if status == "failed":
        moving.fail("handler", "no")
    assert moving.status == status
    return moving


def move(moving: Task, name: str) -> None:
    moves: dict[str, Any] = {
        "start": moving.start,
        "complete": lambda: moving.complete(1),
        "fail": lambda: moving.fail("handler", "no"),
        "skip": moving.skip,
        "stop": moving.stop,
    }
    moves[name]()


@pytest.mark.parametrize(
    ("before", "name", "after"),
    [
        ("pending", "start", "running"),
        ("pending", "skip", "skipped"),
        ("pending", "stop", "stopped"),
        ("running", "complete", "completed"),
        ("running", "fail", "failed"),
        ("running", "skip", "skipped"),
        ("running", "stop", "stopped"),
    ],
)
def test_a_move_that_is_open_leads_where_the_table_says(before: str, name: str, after: str) -> None:
    moving = moved(before)
    move(moving, name)
    assert moving.status == after


@pytest.mark.parametrize(
    ("before", "name"),
    [
        ("pending", "complete"),
        ("pending", "fail"),
        ("running", "start"),  # its one attempt is used up
        *(
            (over, name)
            for over in ("completed", "failed", "skipped", "stopped")
            for name in ("start", "complete", "fail", "skip", "stop")
        ),
    ],
)
def test_a_move_that_is_not_open_is_refused_and_changes_nothing(before: str, name: str) -> None:
    moving = moved(before)
    snapshot = moving.snapshot()
    with pytest.raises(WorkflowError, match=f"'w/a/x' is {before} and cannot {name}") as refused:
        move(moving, name)
    assert refused.value.code == "TRANSITION"
    assert refused.value.context == {"task": "x", "phase": "a", "workflow": "w", "status": before}
    assert moving.snapshot() == snapshot


@pytest.mark.parametrize(
    ("tasks", "status"),
    [
        ([], "pending"),
        (["pending", "pending"], "pending"),
        (["pending", "skipped"], "running"),
        (["failed", "running"], "running"),
        (["failed", "pending"], "running"),
        (["failed", "stopped", "completed"], "failed"),
        (["stopped", "completed", "skipped"], "stopped"),
        (["completed", "skipped"], "completed"),
        (["skipped"], "skipped"),
    ],
)
def test_the_tasks_of_a_phase_make_its_status(tasks: list[Status], status: Status) -> None:
    assert derive_phase_status(tasks) == status


@pytest.mark.parametrize(
    ("phases", "status"),
    [
        ([], "pending"),
        ([("pending", True), ("pending", False)], "pending"),
        ([("failed", True), ("running", False)], "failed"),
        ([("failed", False), ("running", False)], "running"),
        ([("failed", False), ("pending", True)], "running"),
        ([("completed", True), ("pending", True)], "running"),
        ([("stopped", True), ("completed", True)], "stopped"),
        ([("failed", False), ("stopped", False)], "stopped"),
        ([("failed", False), ("skipped", False)], "completed"),
        ([("completed", False), ("skipped", True)], "completed"),
        ([("skipped", False)], "skipped"),
    ],
)
def test_the_phases_of_a_workflow_make_its_status(phases: list[tuple[Status, bool]], status: Status) -> None:
    assert derive_workflow_status(phases) == status
