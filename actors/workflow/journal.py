"""The store of runs in the journal."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Collection, Sequence
from typing import Final, final

from greenroom.actors.workflow.events import RunEvents
from greenroom.actors.workflow.recording import Recording
from greenroom.actors.workflow.rows import READ_RUN, RUN_TASKS, RUNS, Head, decode, encode, put_together
from greenroom.actors.workflow.store import RunRecord, StoredRun, changed_before
from greenroom.protocol.errors import JournalError, WorkflowError
from greenroom.protocol.workflows import TERMINAL, Status, Workflow, WorkflowEvent, WorkflowSnapshot, read_snapshot
from greenroom.runtime.journal import End, Journal, Statement

__all__ = ["RUN_TABLES", "JournalWorkflowStore"]

RUN_TABLES: Final = (RUNS, RUN_TASKS)
"""What has to be among the tables of the journal."""

_SET: Final = """
INSERT INTO runs (id, name, status, created, updated, base, head, stream, epoch) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, status = excluded.status, updated = excluded.updated,
base = excluded.base, head = excluded.head,
stream = CASE created WHEN excluded.created THEN stream ELSE excluded.stream END, created = excluded.created
"""
_LIST: Final = "SELECT id, name, status, created, updated FROM runs WHERE status IN ({}) ORDER BY updated, rowid"
_STREAM: Final = "SELECT stream, created, status FROM runs WHERE id = ?"
_LAST: Final = """
SELECT max(events.seq) FROM runs JOIN streams ON streams.name = runs.stream JOIN events ON events.stream = streams.id
WHERE runs.id = ?
"""
_STATUSES: Final[tuple[Status, ...]] = ("pending", "running", *sorted(TERMINAL))
_OVER: Final = ", ".join(f"'{status}'" for status in sorted(TERMINAL))
_OLD: Final = f"SELECT id, stream FROM runs WHERE status IN ({_OVER}) AND updated < ?"
_PRUNE: Final = f"DELETE FROM runs WHERE id = ? AND stream = ? AND status IN ({_OVER}) AND updated < ?"
_ORPHANS: Final = """
SELECT name FROM streams WHERE name >= 'runs/' AND name < 'runs0' AND name NOT IN (SELECT stream FROM runs)
"""
"""Of runs in whose place another one of their id has come."""


@final
class JournalWorkflowStore:
    """Runs in a journal: a `RecordingStore`, whose journal must have `RUN_TABLES` among its own.

    A run is written change by change, and what happened in it is kept as a stream. Only one process can write a journal
    at a time, and its lock goes with the process that held it: so there is no lease that would have to run out before
    another process takes a run up. Within the process a run is driven once, and a write of one that was taken over, or
    deleted, fails. `deleted(id)` hears of runs that were deleted, whether or not they were over.

    Everything raises JournalError. What `set`, `delete` and a `required` have returned from is on the disk. Cancelled:
    it is, or it is not.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        wall_clock: Callable[[], float] = time.time,
        deleted: Callable[[str], object] | None = None,
    ) -> None:
        self._journal = journal
        self._deleted = deleted
        self._wall_clock = wall_clock
        self._driven: dict[str, Recording | None] = {}

    # ---------------------------------------------------------------- snapshots

    async def get(self, id: str) -> WorkflowSnapshot | None:
        rows = await self._journal.select(READ_RUN, {"id": id})
        return put_together(rows, id) if rows else None

    async def set(self, snapshot: WorkflowSnapshot) -> None:
        """As every store. Of a run that is under way everything is stored anyway, and this waits until it is; another
        one of its id is refused with `WorkflowError` TRANSITION."""
        copy = read_snapshot(snapshot)
        if (driven := self._driven.get(copy.id)) is not None and driven.created == copy.created:
            await driven.required(None, None)
            return
        self._refuse_driven(copy.id, copy.status)
        head = Head(override=copy.override, signals=copy.signals)
        stream = _new_stream(copy.id)
        row = (copy.id, copy.name, copy.status, copy.created, copy.updated, encode(copy), encode(head), stream)
        await self._journal.write(Statement(_SET, row), _no_tasks(copy.id))

    async def delete(self, id: str) -> None:
        streams = [stream for stream, _, _ in await self._journal.select(_STREAM, (id,))]
        await self._journal.write(RUNS.delete(id), _no_tasks(id), *map(End, streams))
        if self._deleted is not None:
            self._deleted(id)
        await self._journal.prune(older_than=0, streams=streams)

    async def list(self, *, status: Collection[Status] | None = None) -> Sequence[StoredRun]:
        statuses = _STATUSES if status is None else tuple(status)
        rows = await self._journal.select(_LIST.format(_marks(statuses)), statuses)
        return [
            StoredRun(id=id, name=name, status=status, created=created, updated=updated)
            for id, name, status, created, updated in rows
        ]

    async def prune(self, *, older_than: float) -> int:
        limit = changed_before(self._wall_clock(), older_than)
        pruned = 0
        for id, stream in await self._journal.select(_OLD, (limit,)):
            try:
                # Another run of its id may have come in its place meanwhile.
                await self._journal.write(Statement(_PRUNE, (id, stream, limit), expect=1), _no_tasks(id))
                pruned += 1
            except JournalError as error:
                if error.code != "STALE":
                    raise
        streams = [stream for (stream,) in await self._journal.select(_ORPHANS)]
        if streams:
            await self._journal.write(*map(End, streams))
            await self._journal.prune(older_than=0, streams=streams)
        return pruned

    # ---------------------------------------------------------------- runs that go on, and what happened in them

    async def record(self, workflow: Workflow, events: RunEvents) -> RunRecord:
        id = workflow.id
        self._refuse_driven(id, workflow.status)
        self._driven[id] = None
        try:
            rows = await self._journal.select(_STREAM, (id,))
            goes_on = [(workflow.created, False)] == [(created, status in TERMINAL) for _, created, status in rows]
            last = await self.last_event(id) if goes_on else 0
        except BaseException:
            del self._driven[id]
            raise
        earlier = next((stream for stream, _, _ in rows), None)
        events.go_on(last)
        recording = self._driven[id] = Recording(
            workflow,
            self._journal,
            events=events,
            owner=f"{os.getpid()}-{uuid.uuid4().hex}",
            stream=earlier if goes_on and earlier is not None else _new_stream(id),
            ends=None if goes_on else earlier,
            let_go=lambda: self._let_go(id),
        )
        return recording

    def _refuse_driven(self, id: str, status: Status) -> None:
        if id in self._driven:
            raise WorkflowError(
                "TRANSITION",
                f"There is a run {id!r} under way already: wait for it, or choose another id.",
                {"id": id, "status": status},
            )

    def _let_go(self, id: str) -> None:
        del self._driven[id]

    async def last_event(self, id: str) -> int:
        ((last,),) = await self._journal.select(_LAST, (id,))
        return 0 if last is None else last + 1

    async def events(self, id: str, *, after: int, limit: int) -> Sequence[WorkflowEvent]:
        rows = await self._journal.select(_STREAM, (id,))
        if not rows:
            return []
        ((stream, _, _),) = rows
        # The first event of a run has number 1, that of a stream 0.
        events = await self._journal.read(stream, after=after - 1, limit=limit)
        return [decode(event.payload, WorkflowEvent) for event in events]


def _new_stream(id: str) -> str:
    """Another one for every run of an id. What is recovered goes on in the one that it has."""
    return f"runs/{id}/{uuid.uuid4().hex}"


def _no_tasks(id: str) -> Statement:
    return Statement("DELETE FROM run_tasks WHERE run = ?", (id,))


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))
