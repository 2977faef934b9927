"""Whether a snapshot can be true: its statuses follow from its tasks, its results belong to them, its order held.

A snapshot that passes can be restored, and would look the same if it were taken again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import UNSET

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows.snapshot import PhaseSnapshot, TaskSnapshot, WorkflowSnapshot, read_snapshot_document
from greenroom.protocol.workflows.status import Status, derive_phase_status, derive_workflow_status, is_terminal

__all__ = ["check_coherence", "phase_status", "read_snapshot", "workflow_status"]


def read_snapshot(value: object, *, key: str | None = None) -> WorkflowSnapshot:
    """The coherent snapshot that the value, JSON or a struct, spells, with nothing shared between the two.

    `key` is the id that it was stored under, if it was. Raises `WorkflowError` RESTORE that names what is wrong.
    """
    snapshot = read_snapshot_document(value)
    if key is not None and snapshot.id != key:
        raise WorkflowError(
            "RESTORE",
            f"The snapshot stored under {key!r} is that of workflow {snapshot.id!r}: store it under its own id.",
            {"id": key, "stored": snapshot.id},
        )
    check_coherence(snapshot)
    return snapshot


def check_coherence(snapshot: WorkflowSnapshot) -> None:
    """Raises `WorkflowError` RESTORE with the first thing in the snapshot that cannot be true."""
    for place, problem in _problems(snapshot):
        where = "/".join((snapshot.id, *place))
        raise WorkflowError(
            "RESTORE",
            f"The snapshot of workflow {snapshot.id!r} cannot be true at {where!r}: {problem}.",
            {"id": snapshot.id, "at": where, "reason": problem},
        )


def phase_status(phase: PhaseSnapshot) -> Status:
    """What the phase's status has to be."""
    return derive_phase_status(task.status for task in phase.tasks) if phase.override is UNSET else phase.override


def workflow_status(snapshot: WorkflowSnapshot) -> Status:
    """What the workflow's status has to be, if those of its phases are right."""
    if snapshot.override is not UNSET:
        return snapshot.override
    counted = (phase for phase in snapshot.phases if phase.tasks or phase.override is not UNSET)
    return derive_workflow_status((phase.status, phase.bail) for phase in counted)


def _problems(snapshot: WorkflowSnapshot) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is wrong, and the ids that lead there."""
    if snapshot.updated < snapshot.created:
        yield (), "it was updated before it was created"
    if snapshot.override == "completed" and any(phase.tasks for phase in snapshot.phases):
        yield (), "only a workflow without any tasks is pinned to completed"
    yield from (((), f"phase {twice!r} stands in it twice") for twice in _twice(phase.id for phase in snapshot.phases))
    for phase in snapshot.phases:
        yield from (((phase.id, *place), problem) for place, problem in _phase_problems(phase))
        for task in phase.tasks:
            if task.result is not UNSET and (task.result.task, task.result.phase, task.result.workflow) != (
                task.id,
                phase.id,
                snapshot.id,
            ):
                yield (phase.id, task.id), "its result is that of another task"
    if snapshot.status != workflow_status(snapshot):
        yield (), f"it is {snapshot.status}, and its phases make it {workflow_status(snapshot)}"
    yield from _order_problems(snapshot)


def _phase_problems(phase: PhaseSnapshot) -> Iterator[tuple[tuple[str, ...], str]]:
    if phase.override == "completed":
        yield (), "a phase is pinned to skipped or stopped alone"
    yield from (((), f"task {twice!r} stands in it twice") for twice in _twice(task.id for task in phase.tasks))
    for task in phase.tasks:
        yield from (((task.id,), problem) for problem in _task_problems(task))
    if phase.status != phase_status(phase):
        yield (), f"it is {phase.status}, and its tasks make it {phase_status(phase)}"


def _task_problems(task: TaskSnapshot) -> Iterator[str]:
    if task.attempts > task.limit:
        yield f"it was started {task.attempts} times, and has {task.limit} attempts"
    if task.status == "pending":
        if task.attempts == task.limit:
            yield "it is pending, and has no attempt left"
        if task.activity is not UNSET:
            yield "it is pending, and has a frame of activity"
    if task.status in ("running", "completed", "failed"):
        if task.attempts == 0:
            yield f"it is {task.status}, and was never started"
        if task.activity is UNSET:
            yield f"it is {task.status}, and has no frame of activity"
    if task.status in ("completed", "failed"):
        if task.result is UNSET:
            yield f"it is {task.status}, and has no result"
        elif task.result.status != task.status or task.result.result.success is not (task.status == "completed"):
            yield f"it is {task.status}, and its result says otherwise"
    elif task.result is not UNSET:
        yield f"it is {task.status}, and has a result"
    if is_terminal(task.status) and (task.previous is not UNSET or task.timers is not UNSET):
        yield f"it is {task.status}, and keeps what only a further attempt needs"


def _order_problems(snapshot: WorkflowSnapshot) -> Iterator[tuple[tuple[str, ...], str]]:
    """Whether a phase was begun before the one ahead of it was over. Pinned and taskless phases hold nobody up."""
    ahead: PhaseSnapshot | None = None
    for phase in snapshot.phases:
        if phase.override is not UNSET or not phase.tasks:
            continue
        if ahead is not None and any(task.attempts for task in phase.tasks):
            yield (phase.id,), f"it has begun, and phase {ahead.id!r} ahead of it is {ahead.status}"
        if not is_terminal(phase.status) or (phase.status == "failed" and phase.bail):
            ahead = ahead or phase


def _twice(ids: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for each in ids:
        if each in seen:
            yield each
        seen.add(each)
