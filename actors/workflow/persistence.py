"""Keeping a run in a store of whole snapshots: one write in flight, and the last state in the next."""

from __future__ import annotations

import sys
from typing import Final, final

import trio

from greenroom.actors.workflow.store import WorkflowStore
from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows import Checkpoint, Node, Task, Workflow, WorkflowEvent

__all__ = ["WorkflowPersistence"]

_UNSTORED: Final = frozenset({"pause", "resume", "silence", "retry"})
"""Events of what no snapshot holds."""


@final
class WorkflowPersistence:
    """A `RunRecord` that writes the run's snapshot whenever something has changed.

    Every change is a revision. What changes during a write is part of the next one, however much it is. A write that
    fails and that nobody waits for is made good by the next.
    """

    def __init__(self, workflow: Workflow, store: WorkflowStore) -> None:
        self._workflow = workflow
        self._store = store
        self._revision = 0
        """Counts what was noted."""
        self._asked = 0
        """What the write that is under way, or is to begin, was asked for: the first change after the one before."""
        self._written = 0
        """What is stored."""
        self._failed: tuple[int, Exception] = 0, Exception()
        """Up to which revision the last write failed, and why."""
        self._writing = False
        self._todo = trio.Event()
        self._done = trio.Event()
        self._scope = trio.CancelScope(shield=True)

    async def write(self) -> None:
        """Write until `close`: a task of the run's. Cancellation is not its end, since the last write comes then."""
        with self._scope:
            while True:
                while self._asked <= max(self._written, self._failed[0]):
                    self._todo = trio.Event()
                    await self._todo.wait()
                await self._write()
                if self._revision > self._asked:
                    self._asked = self._revision

    def note(self, event: WorkflowEvent, node: Node) -> None:
        if event.event not in _UNSTORED:
            self._mark()

    async def required(self, checkpoint: Checkpoint | None, task: Task | None) -> None:
        if checkpoint in ("initial", "final") or self._revision == 0:
            self._mark()
        revision = self._revision
        while self._written < revision:
            if self._failed[0] >= revision:
                raise self._failed[1]
            await self._done.wait()

    async def close(self) -> None:
        gone = WorkflowError("TRANSITION", f"Workflow {self._workflow.id!r} is over, and not stored any more.")
        self._failed = sys.maxsize, gone  # for whoever still waits
        self._scope.cancel()
        self._done.set()
        await trio.lowlevel.checkpoint()

    def _mark(self) -> None:
        self._revision += 1
        if not self._writing and self._asked <= max(self._written, self._failed[0]):
            self._asked = self._revision
            self._todo.set()

    async def _write(self) -> None:
        self._writing = True
        asked = self._asked
        try:
            await self._store.set(self._workflow.snapshot())
        except Exception as error:
            self._failed = asked, error
        else:
            self._written = asked
        finally:
            self._writing = False
            done, self._done = self._done, trio.Event()
            done.set()
