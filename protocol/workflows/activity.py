"""What a running task tells of itself: a frame with a note, its progress, what it is doing and what holds it up."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.schemas.gates import NotJson, clone_json
from greenroom.protocol.workflows.definition import Count, Identifier
from greenroom.protocol.workflows.reader import document_of

__all__ = ["ActivityItem", "ActivityReport", "Progress", "TaskActivity", "read_report"]

Amount: TypeAlias = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]


class Progress(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How far the task has come, in `unit`."""

    current: Amount
    total: Amount | UnsetType = UNSET
    unit: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.total is not UNSET and self.total < self.current:
            raise ValueError("`total` must not be less than `current`")


class ActivityItem(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that goes on since `started`, in milliseconds since 1970."""

    id: Identifier
    name: Identifier
    started: Count


class ActivityReport(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a task reports. It replaces the whole frame: what it leaves out is gone."""

    note: str | UnsetType = UNSET
    progress: Progress | UnsetType = UNSET
    operations: tuple[ActivityItem, ...] = ()
    """What the task is doing."""
    constraints: tuple[ActivityItem, ...] = ()
    """What holds it up."""

    def __post_init__(self) -> None:
        for list_name, items in (("operations", self.operations), ("constraints", self.constraints)):
            if len({item.id for item in items}) < len(items):
                raise ValueError(f"the ids in `{list_name}` must differ from each other")


class TaskActivity(ActivityReport, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A frame as it is kept."""

    updated: Count
    """When it was reported, or last said to hold still; milliseconds since 1970."""


def read_report(report: object, now: int) -> TaskActivity:
    """The frame that a report, JSON or an `ActivityReport`, comes to at `now` (milliseconds since 1970).

    Raises `WorkflowError` MUTATION that says what is wrong with it.
    """
    document: Any = clone_json(document_of(report), record=True)
    if isinstance(document, NotJson):
        raise _refusal(str(document))
    try:
        read = msgspec.convert(document, ActivityReport)
    except msgspec.ValidationError as error:
        raise _refusal(str(error)) from None
    return TaskActivity(
        note=read.note, progress=read.progress, operations=read.operations, constraints=read.constraints, updated=now
    )


def _refusal(reason: str) -> WorkflowError:
    known = ", ".join(ActivityReport.__struct_fields__)
    return WorkflowError(
        "MUTATION", f"This report was not taken: {reason}. A report may hold {known}.", {"reason": reason}
    )
