"""Workflows for tests: short ways to say, drive and overhear one."""

from __future__ import annotations

from typing import Any, TypeVar

from greenroom.protocol.workflows import Edit, Failure, Node, Phase, Success, Task, Workflow, create_workflow

T = TypeVar("T")

__all__ = ["Ticking", "a_workflow", "definition", "made", "overhear", "phase", "refused", "task"]


class Ticking:
    """A wall clock that goes on by a second each time it is read."""

    def __init__(self, seconds: float = 1000.0) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        self.seconds += 1
        return self.seconds


def definition(phases: dict[str, str], /, **members: Any) -> dict[str, Any]:
    """`{"a": "x y", "b": "z"}` is phase a with tasks x and y, then phase b with task z."""
    listed = [
        {"id": each, "name": each, "tasks": [{"id": task, "name": task} for task in tasks.split()]}
        for each, tasks in phases.items()
    ]
    return {"id": "w", "name": "w", "phases": listed, **members}


def a_workflow(phases: dict[str, str], /, **options: Any) -> Workflow:
    """The workflow that `definition` says, on a clock that ticks."""
    return create_workflow(definition(phases), clock=Ticking(), **options)


def phase(workflow: Workflow, phase_id: str) -> Phase:
    """The phase with this id, which is there."""
    found = workflow.phase(phase_id)
    assert found is not None
    return found


def task(workflow: Workflow, task_id: str) -> Task:
    """The first task with this id, which is there."""
    found = (each.task(task_id) for each in workflow.phases)
    return next(task for task in found if task is not None)


def made(edit: Edit[T]) -> T:
    """What an edit that was made concerned."""
    assert isinstance(edit, Success), edit
    return edit.value


def refused(edit: Edit[Any], reason: str = "", code: str = "MUTATION") -> None:
    """That an edit was refused, and that the message says why."""
    assert isinstance(edit, Failure)
    assert edit.error.code == code
    assert reason in edit.error.message


def overhear(workflow: Workflow) -> list[str]:
    """What is announced from now on, as `x.start`."""
    heard: list[str] = []

    def hear(node: Node, event: str, _: tuple[Any, ...]) -> None:
        heard.append(f"{node.id}.{event}")

    workflow.watch(hear)
    return heard
