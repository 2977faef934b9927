"""Live workflows, built from a definition or from what a store has kept of one."""

from __future__ import annotations

import time
from collections.abc import Mapping

from msgspec import structs

from greenroom.protocol.emitter import ErrorHandler, Listener
from greenroom.protocol.workflows.coherence import read_snapshot
from greenroom.protocol.workflows.definition import DEFAULT_RECOVERIES
from greenroom.protocol.workflows.options import PhaseOptions
from greenroom.protocol.workflows.pending import pending_workflow
from greenroom.protocol.workflows.reading import check_definition
from greenroom.protocol.workflows.recovery import recovered_snapshot
from greenroom.protocol.workflows.shared import Clock, Shared
from greenroom.protocol.workflows.snapshot import WorkflowSnapshot
from greenroom.protocol.workflows.status import is_terminal
from greenroom.protocol.workflows.workflow import Workflow

__all__ = ["create_recovered_workflow", "create_restored_workflow", "create_workflow"]


def create_workflow(
    definition: object,
    *,
    functions: Mapping[str, object] | None = None,
    bail: bool | None = None,
    on: Mapping[str, Listener] | None = None,
    error: ErrorHandler | None = None,
    phases: Mapping[str, PhaseOptions] | None = None,
    silence: float | None = None,
    clock: Clock = time.time,
) -> Workflow:
    """A workflow of which nothing has begun, from a `WorkflowDefinition` or JSON for one.

    `functions` are looked up once, now; a name that stands for nothing is found when the workflow is run. `bail`, if
    given, holds for every phase, whatever the definition says. `on` are listeners of the workflow's own events, `error`
    is told what its listeners raise; `phases` are options by phase id. `silence` is in seconds, `clock` gives seconds
    since 1970. Raises `WorkflowError` MUTATION for a definition with a fault, ids that are not unique among it, or
    options for what it does not have; RESTORE for metadata that is no JSON.
    """
    options = phases or {}
    record = pending_workflow(check_definition(definition), options, bail=bail, now=max(0, int(clock() * 1000)))
    shared = Shared(functions=functions, clock=clock, updated=record.updated, error=error)
    return Workflow(record, shared, bail=bail, phases=options, silence=silence, on=on, error=error)


def create_restored_workflow(
    snapshot: object,
    *,
    functions: Mapping[str, object] | None = None,
    bail: bool | None = None,
    on: Mapping[str, Listener] | None = None,
    error: ErrorHandler | None = None,
    clock: Clock = time.time,
) -> Workflow:
    """The workflow exactly as a snapshot, a `WorkflowSnapshot` or JSON for one, has it. Nothing is announced.

    It can be looked at without `functions`, and run if it was pending or between tasks. `bail`, if given, holds from
    now on: for phases that are not over. Raises `WorkflowError` RESTORE for a snapshot that is malformed or cannot be
    true.
    """
    read = _bailing(read_snapshot(snapshot), bail)
    return _restored(read, functions, bail, on, error, clock)


def create_recovered_workflow(
    snapshot: object,
    *,
    functions: Mapping[str, object] | None = None,
    bail: bool | None = None,
    recoveries: int = DEFAULT_RECOVERIES,
    on: Mapping[str, Listener] | None = None,
    error: ErrorHandler | None = None,
    clock: Clock = time.time,
) -> Workflow:
    """The workflow of a snapshot whose process died in the middle of the run, ready to be run on: see
    `recovered_snapshot`. It may be over already.

    `recoveries` is for tasks that say nothing of their own. Raises `WorkflowError` RESTORE for a snapshot that is
    malformed or cannot be true, for a run that was skipped or stopped as a whole, and if a behaviour has no handler.
    """
    read = _bailing(read_snapshot(snapshot), bail)
    recovered = recovered_snapshot(read, functions or {}, recoveries=recoveries, now=max(0, int(clock() * 1000)))
    return _restored(recovered, functions, bail, on, error, clock)


def _restored(
    snapshot: WorkflowSnapshot,
    functions: Mapping[str, object] | None,
    bail: bool | None,
    on: Mapping[str, Listener] | None,
    error: ErrorHandler | None,
    clock: Clock,
) -> Workflow:
    shared = Shared(functions=functions, clock=clock, updated=snapshot.updated, error=error)
    return Workflow(snapshot, shared, bail=bail, on=on, error=error)


def _bailing(snapshot: WorkflowSnapshot, bail: bool | None) -> WorkflowSnapshot:
    """The snapshot with another `bail`, if given. Phases that are over keep theirs, which decided what came of them."""
    if bail is None:
        return snapshot
    phases = tuple(
        phase if is_terminal(phase.status) else structs.replace(phase, bail=bail) for phase in snapshot.phases
    )
    return structs.replace(snapshot, bail=bail, phases=phases)
