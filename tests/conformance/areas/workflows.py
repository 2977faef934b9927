"""Workflow runs, on a clock that jumps to the next thing that is due whenever nothing else can happen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from greenroom import MemoryWorkflowStore, TaskController, WorkflowResult, WorkflowSnapshot, WorkflowStore, open_runtime
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.workflows import Phase, Task, Workflow, create_workflow
from tests.clock import mock_clock, settle
from tests.conformance.recorded import error

Handler = Callable[[TaskController], Awaitable[Any]]


class _Breaking:
    """A memory store whose writes fail from number `first` on."""

    def __init__(self, first: int) -> None:
        self._store = MemoryWorkflowStore()
        self._left = first - 1
        self.get, self.delete = self._store.get, self._store.delete
        self.list, self.prune = self._store.list, self._store.prune

    async def set(self, snapshot: WorkflowSnapshot) -> None:
        self._left -= 1
        if self._left < 0:
            raise OSError("the disk is full")
        await self._store.set(snapshot)


async def run(given: Any) -> Any:
    mock_clock().autojump_threshold = 0
    options = given.get("options") or {}
    starts: list[Any] = []
    functions = {name: _handler(how, starts) for name, how in given.get("functions", {}).items()}
    store = _store(options.get("store"))
    told: dict[str, Any] = {"starts": starts}
    async with open_runtime(wall_clock=trio.current_time) as runtime, trio.open_nursery() as nursery:
        try:
            workflow = create_workflow(
                given["definition"], functions=functions, bail=options.get("bail"), clock=trio.current_time
            )
            complaints: list[dict[str, Any]] = [{} for _ in given.get("control", ())]
            for control, complaint in zip(given.get("control", ()), complaints, strict=True):
                nursery.start_soon(_control, workflow, control, complaint)
            cancel = trio.Event()
            if "cancel" in options:
                nursery.start_soon(_after, options["cancel"], cancel.set)
            result = await runtime.workflows.runner.execute(
                workflow, cancel=cancel, timeout=_seconds(options.get("timeout")), store=store
            )
        except GreenroomError as refused:
            told |= error(refused)
        else:
            told |= _told(result)
            if any(complaints):
                told["control"] = complaints
            if isinstance(store, MemoryWorkflowStore) and (stored := await store.get(result.workflow.id)) is not None:
                told["stored"] = stored.status
        nursery.cancel_scope.cancel()
    return told


def _told(result: WorkflowResult) -> dict[str, Any]:
    told: dict[str, Any] = {
        "elapsed": round(trio.current_time() * 1000),
        "status": result.status,
        "count": len(result.results),
        "phases": [
            {"id": phase.id, "status": phase.status, "tasks": [_task(task) for task in phase.tasks]}
            for phase in result.workflow.phases
        ],
        "settled": [each.task for each in result.results],
    }
    if isinstance(result.durable, bool):
        told["durable"] = result.durable
    if result.fault:
        fault = {"origin": "persistence", "checkpoint": result.fault.checkpoint}
        members = {"task": result.fault.task, "attempt": result.fault.attempt}
        told["fault"] = fault | {name: member for name, member in members.items() if member}
    return told


def _task(task: Task) -> dict[str, Any]:
    told: dict[str, Any] = {"id": task.id, "status": task.status, "attempts": task.attempts}
    outcome = None if task.result is None else task.result.result
    if outcome is not None and outcome.success:
        told["value"] = outcome.value
    elif outcome is not None and outcome.error:
        told["failed"] = outcome.error.origin
    return told


def _handler(how: Any, starts: list[Any]) -> Handler:
    """A behaviour as a case describes it."""

    async def behave(controller: TaskController) -> Any:
        starts.append([controller.task.id, controller.attempt, round(trio.current_time() * 1000)])
        seen = len(controller.results())
        if "ms" in how:
            await trio.sleep(how["ms"] / 1000)
        match how["kind"]:
            case "fail" if controller.attempt <= how["times"]:
                raise RuntimeError(f"attempt {controller.attempt}")
            case "hang":
                await trio.sleep_forever()
            case "attempt":
                return controller.attempt
            case "seen":
                return seen
            case "nonjson":
                return object()
            case _:
                return how.get("value")

    return behave


async def _control(workflow: Workflow, control: Any, complaint: dict[str, Any]) -> None:
    await _due(control["at"])
    node: Workflow | Phase | Task | None = workflow
    if "phase" in control:
        node = phase = workflow.phase(control["phase"])
        if "task" in control and phase is not None:
            node = phase.task(control["task"])
    try:
        getattr(node, control["do"])()
    except GreenroomError as refused:
        complaint |= error(refused)


async def _after(milliseconds: float, call: Callable[[], None]) -> None:
    await _due(milliseconds)
    call()


async def _due(milliseconds: float) -> None:
    """A timer that is armed at the beginning; also one of 0 ms waits until nothing else can happen."""
    await settle()
    await trio.sleep(milliseconds / 1000)


def _store(kind: str | None) -> WorkflowStore | None:
    if kind is None:
        return None
    if kind == "memory":
        return MemoryWorkflowStore()
    return _Breaking(1 if kind == "broken" else int(kind.rpartition("-")[2]))


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


OPS = {"workflow.run": run}
