"""What happened in a run, one thing after another: numbered events, as whoever follows the run is told them."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from greenroom.protocol.workflows.activity import TaskActivity
from greenroom.protocol.workflows.definition import Count
from greenroom.protocol.workflows.snapshot import TaskResult

__all__ = ["WorkflowEvent"]


class WorkflowEvent(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One change of a workflow, or of the phase or the task of it that `phase` and `task` name.

    `event` is the word by which the node announces it (`start`, `complete`, `fail`, `skip`, `stop`, `suspend`, `pause`,
    `resume`, `add`, `remove`, `move`, `update`, `report`, `pulse`, `silence`, `timer`, `signal`), or `retry`: an
    attempt failed and there is another.
    """

    number: Count
    """From 1, without gaps within a run, recoveries included."""
    time: Count
    """Milliseconds since 1970."""
    event: str
    phase: str | UnsetType = UNSET
    task: str | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    """Of a task's `start` and `retry`: which attempt it is about."""
    result: TaskResult | UnsetType = UNSET
    """Of `complete` and `fail`: what the task came to; for phase and workflow, the failure that decided."""
    frame: TaskActivity | UnsetType = UNSET
    """Of `report` and `pulse`."""
    name: str | UnsetType = UNSET
    """Of `signal` and `timer`: its name; of an edit: the id of the part that it concerned."""
    value: Any = UNSET
    """Of `signal`: what was sent; of `timer`: when the sleep ends; of `add` and `move`: the index; of `retry`: why."""
