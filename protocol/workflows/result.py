"""What a run comes to: for the host that ran it, and in short for a model that asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from greenroom.protocol.workflows.snapshot import TaskResult
from greenroom.protocol.workflows.status import Status
from greenroom.protocol.workflows.workflow import Workflow

__all__ = ["Checkpoint", "PersistenceFault", "WorkflowResult", "WorkflowSummary", "summarize_workflow"]

Checkpoint: TypeAlias = Literal["initial", "attempt", "settlement", "final"]


class PersistenceFault(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="origin",
    tag="persistence",
):
    """The first write that a run waited for and that failed."""

    checkpoint: Checkpoint
    message: str
    task: str | UnsetType = UNSET
    attempt: int | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowResult:
    """A run that is over. `durable` (whether its end is stored) and `fault` are absent for a run without a store."""

    workflow: Workflow
    status: Status
    results: tuple[TaskResult, ...]
    durable: bool | UnsetType = UNSET
    fault: PersistenceFault | UnsetType = UNSET


class WorkflowSummary(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the workflow tool returns."""

    status: Status
    count: int
    """How many tasks completed or failed."""
    failed: int | UnsetType = UNSET
    """How many of them failed, if any did: a run that does not bail completes all the same."""
    ignored: tuple[str, ...] | UnsetType = UNSET
    """Where the arguments held members that mean nothing, if they did."""
    durable: bool | UnsetType = UNSET
    fault: PersistenceFault | UnsetType = UNSET


def summarize_workflow(result: WorkflowResult, ignored: tuple[str, ...] = ()) -> WorkflowSummary:
    """The result in short, with what was `ignored` of the arguments that asked for the run."""
    failed = sum(not each.result.success for each in result.results)
    return WorkflowSummary(
        status=result.status,
        count=len(result.results),
        failed=failed or UNSET,
        ignored=ignored or UNSET,
        durable=result.durable,
        fault=result.fault,
    )
