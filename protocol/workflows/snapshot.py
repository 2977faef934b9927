"""A workflow run as it is stored: plain JSON that holds all of it but handlers, timers and who is listening."""

from __future__ import annotations

from math import inf
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.schemas.gates import MAX_LEVELS, NotJson, clone_json
from greenroom.protocol.workflows.activity import TaskActivity
from greenroom.protocol.workflows.definition import Backoff, Count, Identifier, Milliseconds, Width
from greenroom.protocol.workflows.reader import document_of
from greenroom.protocol.workflows.status import Override, Status

__all__ = [
    "FailureOrigin",
    "PhaseSnapshot",
    "TaskError",
    "TaskOutcome",
    "TaskResult",
    "TaskSnapshot",
    "WorkflowSnapshot",
    "copy_json",
    "copy_result",
    "copy_task",
    "read_snapshot_document",
]

T = TypeVar("T")

_LEVELS: Final = MAX_LEVELS + 8
"""How deep a snapshot may be: it has seven levels around the value of a task, which may have all that a value may."""

FailureOrigin: TypeAlias = Literal["handler", "timeout", "recovery"]


class TaskError(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a task failed: its handler, its deadline, or the process dying in its last attempt."""

    origin: FailureOrigin
    message: Identifier


class TaskOutcome(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a task came to: a `value` (any JSON, null too) on success, an `error` else."""

    success: bool
    value: Any = UNSET
    error: TaskError | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.value is UNSET) is self.success or (self.error is UNSET) is not self.success:
            raise ValueError("a success has a `value` and no `error`, a failure an `error` and no `value`")


class TaskResult(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The record of a task that completed or failed, with the ids that lead to it."""

    task: Identifier
    phase: Identifier
    workflow: Identifier
    status: Literal["completed", "failed"]
    result: TaskOutcome
    timestamp: Count
    """Milliseconds since 1970."""


class TaskSnapshot(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One task: what it is to do, and how far it is."""

    id: Identifier
    name: Identifier
    description: str | UnsetType = UNSET
    status: Status
    result: TaskResult | UnsetType = UNSET
    metadata: dict[str, Any]
    """What its behaviour is given."""
    attempts: Count
    """How often it was started."""
    behavior: Identifier | UnsetType = UNSET
    retries: Count | UnsetType = UNSET
    timeout: Milliseconds | UnsetType = UNSET
    backoff: Backoff | UnsetType = UNSET
    heartbeat: Milliseconds | UnsetType = UNSET
    patience: bool | UnsetType = UNSET
    recoveries: Count | UnsetType = UNSET
    recovered: Count | UnsetType = UNSET
    """How many runs beyond its attempts it was granted because the process died in the last of them."""
    activity: TaskActivity | UnsetType = UNSET
    """What it last told of itself; every task that runs or has a result has a frame."""
    previous: TaskActivity | UnsetType = UNSET
    """The last frame of the attempt before."""
    timers: dict[str, Count] | UnsetType = UNSET
    """When its sleeps end, by their names: milliseconds since 1970. They outlast the process, not the attempt."""

    @property
    def limit(self) -> int:
        """How many attempts it has."""
        retries = 0 if self.retries is UNSET else self.retries
        return retries + 1 + (0 if self.recovered is UNSET else self.recovered)


class PhaseSnapshot(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One phase and its tasks, in order."""

    id: Identifier
    name: Identifier
    description: str | UnsetType = UNSET
    status: Status
    override: Override | UnsetType = UNSET
    """The status that it was pinned to."""
    bail: bool
    """What holds for it, wherever it was said."""
    concurrency: Width | UnsetType = UNSET
    tasks: tuple[TaskSnapshot, ...]


class WorkflowSnapshot(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One run and its phases, in order. Times are milliseconds since 1970."""

    id: Identifier
    name: Identifier
    description: str | UnsetType = UNSET
    status: Status
    override: Override | UnsetType = UNSET
    bail: bool
    """What holds for phases that are added without a word of their own."""
    phases: tuple[PhaseSnapshot, ...]
    created: Count
    updated: Count
    hash: str | UnsetType = UNSET
    """`definition_hash` of what the run was built from, whatever was edited since."""
    signals: dict[str, Any] | UnsetType = UNSET
    """The last value of each signal that the run was sent."""


def copy_json(value: T) -> T:
    """A deep copy of what is known to be JSON."""
    return cast("T", clone_json(value, most=inf, levels=inf))


def copy_result(result: TaskResult) -> TaskResult:
    """The result with a value of its own, since values are JSON that anyone may change."""
    if type(result.result.value) not in (list, dict):  # nobody can change it
        return result
    return structs.replace(result, result=TaskOutcome(success=True, value=copy_json(result.result.value)))


def copy_task(task: TaskSnapshot) -> TaskSnapshot:
    """The task with values of its own."""
    return structs.replace(
        task,
        metadata=copy_json(task.metadata),
        result=UNSET if task.result is UNSET else copy_result(task.result),
        timers=UNSET if task.timers is UNSET else dict(task.timers),
    )


def read_snapshot_document(value: object) -> WorkflowSnapshot:
    """The snapshot that the value, JSON or a struct, spells, with nothing shared between the two.

    Shape alone is looked at. Raises `WorkflowError` RESTORE that says where the value stops being a snapshot.
    """
    # As large as the run has become: what bounds a definition bounds no results of its tasks.
    document: Any = clone_json(document_of(value), record=True, most=inf, levels=_LEVELS)
    if isinstance(document, NotJson):
        raise WorkflowError("RESTORE", f"This is no snapshot of a workflow: {document}.", {"reason": str(document)})
    try:
        return msgspec.convert(document, WorkflowSnapshot)
    except msgspec.ValidationError as error:
        raise WorkflowError("RESTORE", f"This is no snapshot of a workflow: {error}.", {"reason": str(error)}) from None
