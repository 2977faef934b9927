"""Definitions as the snapshots of what has not begun yet: every node is built from a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, structs

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.schemas.gates import NotJson, clone_json
from greenroom.protocol.workflows.definition import (
    PhaseDefinition,
    TaskDefinition,
    WorkflowDefinition,
    definition_hash,
)
from greenroom.protocol.workflows.options import PhaseOptions, TaskOptions
from greenroom.protocol.workflows.snapshot import PhaseSnapshot, TaskSnapshot, WorkflowSnapshot

__all__ = ["pending_phase", "pending_task", "pending_workflow"]


def pending_workflow(
    definition: WorkflowDefinition, phases: Mapping[str, PhaseOptions], *, bail: bool | None, now: int
) -> WorkflowSnapshot:
    """A workflow of which nothing has begun. `bail`, if given, holds for every phase, whatever the definition says."""
    _require_known("phase", phases, {phase.id for phase in definition.phases}, f"workflow {definition.id!r}")
    default = definition.bail is True if bail is None else bail
    return WorkflowSnapshot(
        id=definition.id,
        name=definition.name,
        description=definition.description,
        status="pending",
        bail=default,
        phases=tuple(
            pending_phase(phase, phases.get(phase.id, PhaseOptions()), bail=bail, default=default)
            for phase in definition.phases
        ),
        created=now,
        updated=now,
        hash=definition_hash(definition),
    )


def pending_phase(
    definition: PhaseDefinition, options: PhaseOptions, *, bail: bool | None, default: bool
) -> PhaseSnapshot:
    """A phase of which nothing has begun. `bail` beats what the phase says, `default` is for one that says nothing."""
    _require_known("task", options.tasks, {task.id for task in definition.tasks}, f"phase {definition.id!r}")
    own = default if definition.bail is UNSET else definition.bail
    return PhaseSnapshot(
        id=definition.id,
        name=definition.name,
        description=definition.description,
        status="pending",
        bail=own if bail is None else bail,
        concurrency=definition.concurrency,
        tasks=tuple(pending_task(task, options.tasks.get(task.id, TaskOptions())) for task in definition.tasks),
    )


def pending_task(definition: TaskDefinition, options: TaskOptions) -> TaskSnapshot:
    """A task that was never started. Raises `WorkflowError` RESTORE for metadata that is no JSON object."""
    given = structs.asdict(definition)
    del given["input"]
    return TaskSnapshot(**given, status="pending", metadata=_metadata(definition, options), attempts=0)


def _metadata(definition: TaskDefinition, options: TaskOptions) -> dict[str, Any]:
    if options.metadata is None:
        return {} if definition.input is UNSET else definition.input
    copy: Any = clone_json(options.metadata, record=True)
    if isinstance(copy, NotJson):
        raise WorkflowError(
            "RESTORE",
            f"The metadata of task {definition.id!r} is no JSON object: {copy}.",
            {"task": definition.id, "reason": str(copy)},
        )
    metadata: dict[str, Any] = copy
    return metadata


def _require_known(noun: str, options: Mapping[str, object], known: set[str], place: str) -> None:
    """A misspelt id would silently leave its node without options."""
    unknown = sorted(each for each in options if each not in known)
    if unknown:
        raise WorkflowError(
            "MUTATION",
            f"There are options for {noun} {unknown[0]!r}, which {place} does not have; it has:"
            f" {', '.join(sorted(known)) or 'none'}.",
            {noun: unknown[0], "known": sorted(known)},
        )
