"""How a run is spread over rows, and put together again.

A run has one row with the snapshot that it began from (or was last restructured to), its *base*, and with what changes
as a whole; each task that has changed since then has one of its own. Statuses of phases and of the workflow follow from
those of the tasks, so that the end of a task is one small row however large the run is.
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows import Override, PhaseSnapshot, TaskSnapshot, WorkflowEvent, WorkflowSnapshot
from greenroom.protocol.workflows.coherence import check_coherence, phase_status, workflow_status
from greenroom.runtime.journal import Table

__all__ = ["READ_RUN", "RUNS", "RUN_TASKS", "Head", "decode", "encode", "put_together"]

T = TypeVar("T")

RUNS: Final = Table(
    "runs",
    {
        "id": str,
        "name": str,
        "status": str,
        "created": int,
        "updated": int,
        "base": bytes,
        "head": bytes,
        "stream": str,
        "owner": str,
        "epoch": int,
    },
    "id",
    not_null={"name", "status", "created", "updated", "base", "head", "stream", "epoch"},
    indexes=[("status", "updated")],
)
"""One row a run. Times are milliseconds since 1970. `stream` has its events; `owner` is who drives it or did so last,
and `epoch` counts how often it was taken over: a write by anybody else changes nothing."""

RUN_TASKS: Final = Table(
    "run_tasks",
    {"run": str, "phase": str, "task": str, "place": int, "snapshot": bytes},
    ("run", "phase", "task"),
    not_null={"place", "snapshot"},
)
"""One row for each task that differs from the base of its run; `place` orders those that the base does not have."""

READ_RUN: Final = """
SELECT -1 AS place, NULL, NULL, base, head, updated FROM runs WHERE id = :id
UNION ALL
SELECT place, phase, task, snapshot, NULL, NULL FROM run_tasks WHERE run = :id
ORDER BY place
"""
"""The row of a run, and then those of its tasks: a single statement, so that it is the run at one moment."""


class Head(Struct, frozen=True, omit_defaults=True):
    """What changes of a run as a whole."""

    override: Override | UnsetType = UNSET
    signals: dict[str, Any] | UnsetType = UNSET


def encode(value: Head | TaskSnapshot | WorkflowEvent | WorkflowSnapshot) -> bytes:
    """As JSON, which is ASCII where a text holds half a character, or a number is beyond 64 bits."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(msgspec.to_builtins(value), allow_nan=False).encode()


def decode(data: bytes, kind: type[T]) -> T:
    """What was encoded. Raises `msgspec.ValidationError` or `ValueError` for anything else."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(data), kind)


def put_together(rows: list[tuple[Any, ...]], id: str) -> WorkflowSnapshot:
    """The run that these rows of `READ_RUN`, at least one, tell of. Raises `WorkflowError` RESTORE if they tell of
    none."""
    (_, _, _, base, head, updated), *tasks = rows
    try:
        snapshot = decode(base, WorkflowSnapshot)
        pinned = decode(head, Head)
        changed: dict[str, dict[str, TaskSnapshot]] = {}
        for _, phase, task, row, _, _ in tasks:
            changed.setdefault(phase, {})[task] = decode(row, TaskSnapshot)
    except (ValueError, RecursionError) as error:
        raise WorkflowError("RESTORE", f"What is stored of run {id!r} is no snapshot: {error}.", {"id": id}) from None
    snapshot = structs.replace(
        snapshot,
        phases=tuple(_changed(phase, changed.get(phase.id, {})) for phase in snapshot.phases),
        override=pinned.override,
        signals=pinned.signals,
        updated=updated,
    )
    snapshot = structs.replace(snapshot, status=workflow_status(snapshot))
    check_coherence(snapshot)
    return snapshot


def _changed(phase: PhaseSnapshot, tasks: dict[str, TaskSnapshot]) -> PhaseSnapshot:
    """The phase with these tasks in place of what it had under their ids, and those that it had not behind them."""
    known = [tasks.pop(task.id, task) for task in phase.tasks]
    phase = structs.replace(phase, tasks=(*known, *tasks.values()))
    return structs.replace(phase, status=phase_status(phase))
