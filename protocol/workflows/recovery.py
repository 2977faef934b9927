"""What becomes of a snapshot whose process has died, and of one that is to be run again from some phase on."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, structs

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows.coherence import check_coherence, phase_status, read_snapshot, workflow_status
from greenroom.protocol.workflows.shared import callables
from greenroom.protocol.workflows.snapshot import PhaseSnapshot, TaskResult, TaskSnapshot, WorkflowSnapshot
from greenroom.protocol.workflows.status import is_terminal
from greenroom.protocol.workflows.task import failed_outcome

__all__ = ["fork_snapshot", "recovered_snapshot"]


def recovered_snapshot(
    snapshot: WorkflowSnapshot, functions: Mapping[str, object], *, recoveries: int, now: int
) -> WorkflowSnapshot:
    """A coherent snapshot without the attempts that nobody is making any more.

    - What completed or failed stays as it is, and never runs again.
    - A running task with attempts left is pending again; the one that was cut off counts as used.
    - A task that was in its last attempt is granted another, up to `recoveries` times or as often as the task itself
      says; then it has failed, with origin `recovery`.
    - Where a phase bails, a failed task leaves the rest of it, and all phases behind it, skipped.

    A phase that was pinned stays so: the run would have gone on, and goes on. Raises `WorkflowError` RESTORE if the
    workflow itself was pinned, since somebody wanted it to end, and if a behaviour has no handler in `functions`.
    """
    if snapshot.override is not UNSET:
        raise WorkflowError(
            "RESTORE",
            f"Workflow {snapshot.id!r} was {snapshot.override} on purpose and cannot be recovered: fork it from a phase"
            " to run that again.",
            {"id": snapshot.id, "override": snapshot.override},
        )
    _require_handlers(snapshot, callables(functions))
    updated = max(snapshot.updated, now)
    phases: list[PhaseSnapshot] = []
    bailed = False
    for phase in snapshot.phases:
        tasks = tuple(
            _skipped(task) if bailed else _recovered(task, phase, snapshot, recoveries, updated) for task in phase.tasks
        )
        failed = any(task.status == "failed" for task in tasks)
        if failed and phase.bail and phase.override is UNSET:
            bailed = True
            tasks = tuple(_skipped(task) for task in tasks)
        phases.append(structs.replace(phase, tasks=tasks))
    return _derived(structs.replace(snapshot, phases=tuple(phases), updated=updated))


def fork_snapshot(snapshot: object, workflow_id: str, *, phase: str, now: int) -> WorkflowSnapshot:
    """A run of its own, under another id, that has the results of all phases ahead of `phase` and none from there on.

    The old one stays what it is. `now` is in milliseconds since 1970. Raises `WorkflowError` RESTORE for a snapshot
    that is malformed or cannot be true, for a phase that it does not have, and if a phase ahead is not over or has
    failed the run.
    """
    read = read_snapshot(snapshot)
    at = next((index for index, each in enumerate(read.phases) if each.id == phase), None)
    if at is None or not workflow_id or workflow_id == read.id:
        known = ", ".join(each.id for each in read.phases) or "none"
        raise WorkflowError(
            "RESTORE",
            f"Workflow {read.id!r} cannot be run again as {workflow_id!r} from phase {phase!r}: name an id of its own"
            f" for the new run, and one of these phases: {known}.",
            {"id": read.id, "phase": phase},
        )
    for ahead in read.phases[:at]:
        unfinished = not is_terminal(ahead.status) or any(not is_terminal(task.status) for task in ahead.tasks)
        if (unfinished and ahead.tasks) or (ahead.status == "failed" and ahead.bail):
            raise WorkflowError(
                "RESTORE",
                f"Workflow {read.id!r} cannot be run again from phase {phase!r}: phase {ahead.id!r} ahead of it is"
                f" {ahead.status}. Begin with that one.",
                {"id": read.id, "phase": phase, "ahead": ahead.id},
            )
    kept = tuple(
        structs.replace(each, tasks=tuple(_renamed(task, workflow_id) for task in each.tasks))
        for each in read.phases[:at]
    )
    again = tuple(
        structs.replace(each, override=UNSET, tasks=tuple(_fresh(task) for task in each.tasks))
        for each in read.phases[at:]
    )
    forked = structs.replace(
        read, id=workflow_id, override=UNSET, phases=kept + again, created=now, updated=now, signals=UNSET
    )
    return _derived(forked)


def _require_handlers(snapshot: WorkflowSnapshot, functions: Mapping[str, object]) -> None:
    for phase in snapshot.phases:
        for task in phase.tasks:
            if task.behavior is not UNSET and task.behavior not in functions:
                known = ", ".join(sorted(functions)) or "none"
                raise WorkflowError(
                    "RESTORE",
                    f"Workflow {snapshot.id!r} cannot be recovered: there is no function {task.behavior!r} for task"
                    f" {task.id!r} of phase {phase.id!r}; there are: {known}.",
                    {"id": snapshot.id, "phase": phase.id, "task": task.id, "behavior": task.behavior},
                )


def _recovered(
    task: TaskSnapshot, phase: PhaseSnapshot, workflow: WorkflowSnapshot, recoveries: int, now: int
) -> TaskSnapshot:
    if task.status != "running":
        return task
    pending = structs.replace(task, status="pending", activity=UNSET, previous=task.activity)
    if task.attempts < task.limit:
        return pending
    granted = 0 if task.recovered is UNSET else task.recovered
    if granted < (recoveries if task.recoveries is UNSET else task.recoveries):
        return structs.replace(pending, recovered=granted + 1)
    result = TaskResult(
        task=task.id,
        phase=phase.id,
        workflow=workflow.id,
        status="failed",
        result=failed_outcome("recovery", "The process died in its last attempt, and it may not be run once more."),
        timestamp=now,
    )
    return structs.replace(task, status="failed", result=result, previous=UNSET, timers=UNSET)


def _skipped(task: TaskSnapshot) -> TaskSnapshot:
    if is_terminal(task.status):
        return task
    return structs.replace(task, status="skipped", activity=UNSET, previous=UNSET, timers=UNSET)


def _renamed(task: TaskSnapshot, workflow_id: str) -> TaskSnapshot:
    if task.result is UNSET:
        return task
    return structs.replace(task, result=structs.replace(task.result, workflow=workflow_id))


def _fresh(task: TaskSnapshot) -> TaskSnapshot:
    """The task as if it had never been started."""
    return structs.replace(
        task,
        status="pending",
        result=UNSET,
        attempts=0,
        recovered=UNSET,
        activity=UNSET,
        previous=UNSET,
        timers=UNSET,
    )


def _derived(snapshot: WorkflowSnapshot) -> WorkflowSnapshot:
    """The snapshot with the statuses that its tasks give its phases and itself."""
    phases = tuple(structs.replace(phase, status=phase_status(phase)) for phase in snapshot.phases)
    derived = structs.replace(snapshot, phases=phases)
    derived = structs.replace(derived, status=workflow_status(derived))
    check_coherence(derived)
    return derived
