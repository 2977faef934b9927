"""Where runs are kept: one snapshot a workflow in a store of whole snapshots, or change by change in one that can."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from math import inf
from typing import Final, Protocol, final, runtime_checkable

import msgspec
from trio.lowlevel import checkpoint

from greenroom.actors.workflow.events import RunEvents
from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows import (
    Checkpoint,
    Node,
    Status,
    Task,
    Workflow,
    WorkflowEvent,
    WorkflowSnapshot,
    is_terminal,
    read_snapshot,
)

__all__ = ["MemoryWorkflowStore", "RecordingStore", "RunRecord", "StoredRun", "WorkflowStore", "changed_before"]

_AGES: Final = 2**53 / 1000
"""Seconds that nothing is older than, and that a file's integers hold as milliseconds."""


class StoredRun(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A stored run in short. Times are milliseconds since 1970."""

    id: str
    name: str
    status: Status
    created: int
    updated: int


class WorkflowStore(Protocol):
    """Keeps the last snapshot of each run under its id, until it is deleted or pruned.

    Implementations copy what they take and what they give, and raise what keeps them from it; a row that is no
    snapshot, or that of another id, is a `WorkflowError` RESTORE and never reads as `None`.
    """

    async def get(self, id: str) -> WorkflowSnapshot | None:
        """The snapshot of that run, `None` if there is none."""
        ...

    async def set(self, snapshot: WorkflowSnapshot) -> None:
        """Keep it under its own id, in place of an earlier one. When this returns, it is stored."""
        ...

    async def delete(self, id: str) -> None:
        """Forget it. Deleting what is not there is fine."""
        ...

    async def list(self, *, status: Collection[Status] | None = None) -> Sequence[StoredRun]:
        """The runs there are, those with one of these statuses if any are given, the least recently changed first."""
        ...

    async def prune(self, *, older_than: float) -> int:
        """Forget runs that are over and were last changed more than `older_than` seconds ago; how many those were.

        Raises `WorkflowError` MUTATION for what is no number of seconds; an infinite one is.
        """
        ...


class RunRecord(Protocol):
    """The stored side of one run while it runs, for a store that is written change by change."""

    def note(self, event: WorkflowEvent, node: Node) -> None:
        """Something has changed: `node` (the workflow, a phase or a task of it) as it is now, and the event of it.

        Called synchronously, within the step that made the change, in the order of the events; it must not raise. What
        is noted is to be stored soon, whether or not anybody waits for it.
        """
        ...

    async def required(self, checkpoint: Checkpoint | None, task: Task | None) -> None:
        """Return once all that was noted before the call is stored, and the whole run in the first call (`initial`).

        `attempt` and `settlement` come with their task; no checkpoint is for what a task or a sender of signals waits
        for. Several calls may wait at the same time. Raises what kept it from that; a later call may succeed again.
        Cancelled: what was noted is still to be stored.
        """
        ...

    async def close(self) -> None:
        """The run is over, or goes on elsewhere: let go of it. Called once, after the last `required`."""
        ...


@runtime_checkable
class RecordingStore(WorkflowStore, Protocol):
    """A store that is written change by change, keeps events too, and so can tell what happened before."""

    async def get(self, id: str) -> WorkflowSnapshot | None:
        """As every store; and it is coherent, and its own, so that nobody needs to look at it again."""
        ...

    async def record(self, workflow: Workflow, events: RunEvents) -> RunRecord:
        """Take the run over. What is noted of it from then on is shown by `events`, which `go_on`, once it is stored.

        Raises `WorkflowError` TRANSITION if somebody drives it.
        """
        ...

    async def last_event(self, id: str) -> int:
        """The number of the last event that is kept of a run, 0 if there is none."""
        ...

    async def events(self, id: str, *, after: int, limit: int) -> Sequence[WorkflowEvent]:
        """Up to `limit` events of a run with numbers above `after`, in order; those that were pruned are left out."""
        ...


@final
class MemoryWorkflowStore:
    """Snapshots for as long as the process lives. `wall_clock` gives seconds since 1970."""

    def __init__(self, *, wall_clock: Callable[[], float] = time.time) -> None:
        self._wall_clock = wall_clock
        self._snapshots: dict[str, WorkflowSnapshot] = {}

    async def get(self, id: str) -> WorkflowSnapshot | None:
        await checkpoint()
        found = self._snapshots.get(id)
        return None if found is None else read_snapshot(found, key=id)

    async def set(self, snapshot: WorkflowSnapshot) -> None:
        copy = read_snapshot(snapshot)
        await checkpoint()
        self._snapshots.pop(copy.id, None)  # the least recently changed comes first
        self._snapshots[copy.id] = copy

    async def delete(self, id: str) -> None:
        await checkpoint()
        self._snapshots.pop(id, None)

    async def list(self, *, status: Collection[Status] | None = None) -> Sequence[StoredRun]:
        await checkpoint()
        return [
            StoredRun(id=each.id, name=each.name, status=each.status, created=each.created, updated=each.updated)
            for each in self._snapshots.values()
            if status is None or each.status in status
        ]

    async def prune(self, *, older_than: float) -> int:
        limit = changed_before(self._wall_clock(), older_than)
        await checkpoint()
        old = [each.id for each in self._snapshots.values() if is_terminal(each.status) and each.updated < limit]
        for id in old:
            del self._snapshots[id]
        return len(old)


def changed_before(now: float, older_than: object) -> int:
    """Milliseconds since 1970, which whatever was last changed more than `older_than` seconds before `now` lies before.

    Raises `WorkflowError` MUTATION for what is no number of seconds.
    """
    if isinstance(older_than, bool) or not isinstance(older_than, int | float) or not older_than <= inf:
        raise WorkflowError("MUTATION", f"Runs are pruned by a number of seconds, and not by {older_than!r:.50}.")
    return int((now - min(max(older_than, -_AGES), _AGES)) * 1000)
