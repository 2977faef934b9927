"""A runtime on a clock that jumps, and short ways to say what its workflows do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from greenroom import MemoryWorkflowStore, Runtime, TaskController, Workflow, WorkflowSnapshot, open_runtime
from greenroom.protocol.workflows import create_workflow

__all__ = ["Faulty", "Handlers", "behaving", "built", "opened", "seen", "statuses"]

Handler = Callable[[TaskController], Any]


@asynccontextmanager
async def opened(**options: Any) -> AsyncGenerator[Runtime]:
    """A runtime whose wall clock is trio's."""
    async with open_runtime(wall_clock=trio.current_time, **options) as runtime:
        yield runtime


def behaving(
    phases: dict[str, str],
    /,
    tasks: dict[str, dict[str, Any]] | None = None,
    each: dict[str, dict[str, Any]] | None = None,
    **members: Any,
) -> dict[str, Any]:
    """`{"a": "x y"}` is phase a with tasks x and y; a task's behaviour has the name of the task.

    `tasks` are further members of tasks by id, `each` those of phases.
    """
    listed = [
        {
            "id": name,
            "name": name,
            "tasks": [
                {"id": task, "name": task, "behavior": task, **(tasks or {}).get(task, {})} for task in ids.split()
            ],
            **(each or {}).get(name, {}),
        }
        for name, ids in phases.items()
    ]
    return {"id": "w", "name": "w", "phases": listed, **members}


class Handlers(dict[str, Handler]):
    """Behaviours by name, and the calls of them. One that is not given returns the name of its task."""

    def __init__(self, definition: dict[str, Any], /, **given: Handler) -> None:
        super().__init__()
        self.calls: list[tuple[str, int]] = []
        """Task and attempt, in order."""
        for phase in definition["phases"]:
            for task in phase["tasks"]:
                if (name := task.get("behavior")) is not None:
                    self[name] = self._noted(given.get(name, _named))

    def _noted(self, handler: Handler) -> Handler:
        def call(controller: TaskController) -> Any:
            self.calls.append((controller.task.id, controller.attempt))
            return handler(controller)

        return call


def built(definition: dict[str, Any], handlers: dict[str, Handler] | None = None, **options: Any) -> Workflow:
    """The live workflow, on trio's clock."""
    functions = Handlers(definition) if handlers is None else handlers
    return create_workflow(definition, functions=functions, clock=trio.current_time, **options)


def statuses(workflow: Workflow) -> dict[str, str]:
    """Those of the workflow and everything in it, by id."""
    found = {workflow.id: workflow.status}
    for phase in workflow.phases:
        found[phase.id] = phase.status
        found |= {task.id: task.status for task in phase.tasks}
    return {id: str(status) for id, status in found.items()}


def seen(snapshot: WorkflowSnapshot) -> dict[str, str]:
    """The same of a snapshot."""
    found = {snapshot.id: snapshot.status}
    for phase in snapshot.phases:
        found[phase.id] = phase.status
        found |= {task.id: task.status for task in phase.tasks}
    return {id: str(status) for id, status in found.items()}


class Faulty:
    """A memory store that keeps what it was given to write, and fails where `fails(snapshot, number)` says so."""

    def __init__(self, fails: Callable[[WorkflowSnapshot, int], bool] = lambda _snapshot, _number: False) -> None:
        self._store = MemoryWorkflowStore(wall_clock=trio.current_time)
        self._fails = fails
        self.get, self.delete = self._store.get, self._store.delete
        self.list, self.prune = self._store.list, self._store.prune
        self.writes: list[WorkflowSnapshot] = []
        """What was written, whether or not that failed."""
        self.writing = 0
        self.most = 0
        """How many writes were under way at once, at most."""

    async def set(self, snapshot: WorkflowSnapshot) -> None:
        self.writes.append(snapshot)
        number = len(self.writes)
        self.writing += 1
        self.most = max(self.most, self.writing)
        try:
            await trio.sleep(0.001)
            if self._fails(snapshot, number):
                raise OSError("the disk is full")
            await self._store.set(snapshot)
        finally:
            self.writing -= 1


def _named(controller: TaskController) -> str:
    return controller.task.id
