"""Writing down one run as it goes: what has changed since the last write, as one unit of the journal."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Final, final

import trio
from trio.lowlevel import current_trio_token

from greenroom.actors.workflow.events import RunEvents
from greenroom.actors.workflow.rows import RUN_TASKS, Head, encode
from greenroom.protocol.errors import JournalError, WorkflowError
from greenroom.protocol.workflows import Checkpoint, Node, Phase, Task, Workflow, WorkflowEvent
from greenroom.runtime.journal import Append, End, Journal, Outcome, Statement, Step

__all__ = ["Recording"]

_RESTRUCTURES: Final = frozenset({"add", "remove", "move", "update", "suspend"})
"""Events after which a base is written anew. (A task that is added behind all others gets a row of its own.)"""

_TAKE: Final = """
INSERT INTO runs (id, name, status, created, updated, base, head, stream, owner, epoch)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, status = excluded.status, created = excluded.created,
updated = excluded.updated, base = excluded.base, head = excluded.head, stream = excluded.stream,
owner = excluded.owner, epoch = epoch + 1
"""
_CHANGE: Final = "UPDATE runs SET status = ?, updated = ?, head = coalesce(?, head) WHERE id = ? AND owner = ?"
_REBASE: Final = "UPDATE runs SET name = ?, base = ? WHERE id = ? AND owner = ?"
_ALL_TASKS: Final = "DELETE FROM run_tasks WHERE run = ?"


@final
class _Changes:
    """What is to be written."""

    __slots__ = ("base", "events", "final", "head", "revision", "tasks")

    def __init__(self) -> None:
        self.tasks: dict[Task, None] = {}
        self.events: list[WorkflowEvent] = []
        self.head = False
        self.base = False
        self.final = False
        self.revision = 0
        """The last change that is in it."""

    def precede(self, later: _Changes) -> None:
        """These could not be written: let `later` hold them too."""
        later.tasks = self.tasks | later.tasks
        later.events[:0] = self.events
        later.head |= self.head
        later.base |= self.base
        later.final |= self.final


@final
class Recording:
    """A `RunRecord`. One write is under way at a time, and the next one holds all that has changed meanwhile.

    So a hundred tasks that end during a commit share the next, and one that ends alone waits for nobody. A write that
    fails is made good by the next, which holds its changes as well.

    `owner` is a word that nobody else has. `ends` is the stream of an earlier run of the same id. `let_go()` is called
    when it is closed.
    """

    def __init__(
        self,
        workflow: Workflow,
        journal: Journal,
        *,
        events: RunEvents,
        owner: str,
        stream: str,
        ends: str | None,
        let_go: Callable[[], None],
    ) -> None:
        self._workflow = workflow
        self._journal = journal
        self._events = events
        self._owner = owner
        self._stream = stream
        self._ends = ends
        self._let_go: Callable[[], None] | None = let_go
        self._changes = _Changes()
        self._places: dict[Task, int] = {}
        """Of the tasks that the base does not have."""
        self._revision = 0
        self._taken = False
        """The row in the file is ours."""
        self._written = 0
        self._failed: tuple[int, Exception] = 0, Exception()
        """Up to which revision the last write failed, and why."""
        self._writing = False
        self._waiting: deque[tuple[int, trio.Event]] = deque()
        """Who waits for a revision to be written, or to fail."""
        self._token = current_trio_token()

    @property
    def created(self) -> int:
        """When its run was made."""
        return self._workflow.created

    # ---------------------------------------------------------------- as a record

    def note(self, event: WorkflowEvent, node: Node) -> None:
        changes = self._changes
        changes.events.append(event)
        self._revision += 1
        if isinstance(node, Task):
            changes.tasks[node] = None
        elif isinstance(node, Phase) and event.event == "add" and node.tasks[-1].id == event.name:
            added = node.tasks[-1]
            self._places[added] = len(self._places) + 1
            changes.tasks[added] = None
        elif event.event in _RESTRUCTURES:
            changes.base = True
        elif isinstance(node, Workflow):
            changes.head = True
        elif event.event in ("skip", "stop"):
            changes.base = True  # it may have been pinned
        # Whoever waits for it writes it at once; whatever nobody waits for follows this step, or the write under way.
        if not self._writing:
            self._token.run_sync_soon(self._write, idempotent=True)

    async def required(self, checkpoint: Checkpoint | None, task: Task | None) -> None:
        if checkpoint not in ("initial", "final") and self._taken and self._written == self._revision:
            await trio.lowlevel.checkpoint()
            return
        self._changes.final |= checkpoint == "final"
        self._revision += 1
        revision = self._revision
        while self._written < revision:
            if self._failed[0] >= revision:
                raise self._failed[1]
            self._write()
            if self._writing:
                landed = trio.Event()
                self._waiting.append((revision, landed))
                await landed.wait()

    async def close(self) -> None:
        gone = WorkflowError("TRANSITION", f"Workflow {self._workflow.id!r} is over, and not stored any more.")
        self._failed = sys.maxsize, gone  # for whoever still waits
        self._wake(sys.maxsize)
        if self._let_go is not None:
            self._let_go()
            self._let_go = None
        await trio.lowlevel.checkpoint()

    # ---------------------------------------------------------------- writing

    def _write(self) -> None:
        """Hand over all that has changed, unless a write is under way, which it is to follow."""
        if self._writing or self._written == self._revision or self._let_go is None:
            return
        changes, self._changes = self._changes, _Changes()
        changes.revision = self._revision
        self._writing = True
        try:
            self._journal.post(*self._steps(changes), done=lambda outcome: self._settle(changes, outcome))
        except Exception as error:  # it did not take them, or they cannot be written
            self._settle(changes, error)

    def _settle(self, changes: _Changes, outcome: Outcome | Exception) -> None:
        self._writing = False
        if isinstance(outcome, Exception):
            changes.precede(self._changes)
            self._failed = max(changes.revision, self._failed[0]), self._reason(outcome)
        else:
            self._taken = True
            self._written = changes.revision
            if changes.events:
                self._events.show(changes.events[-1].number)
        self._wake(changes.revision)
        if self._failed[0] < self._revision:
            self._write()

    def _wake(self, revision: int) -> None:
        while self._waiting and self._waiting[0][0] <= revision:
            self._waiting.popleft()[1].set()

    def _steps(self, changes: _Changes) -> list[Step]:
        workflow, id, owner = self._workflow, self._workflow.id, self._owner
        steps: list[Step] = []
        if changes.base or not self._taken:
            self._places.clear()
        if not self._taken:
            snapshot = workflow.snapshot()
            steps += [
                Statement(
                    _TAKE,
                    (
                        id,
                        snapshot.name,
                        snapshot.status,
                        snapshot.created,
                        snapshot.updated,
                        encode(snapshot),
                        encode(self._head()),
                        self._stream,
                        owner,
                    ),
                ),
                Statement(_ALL_TASKS, (id,)),
            ]
            steps += [] if self._ends is None else [End(self._ends)]
        else:
            head = encode(self._head()) if changes.head else None
            status, updated = workflow.status, workflow.shared.updated
            steps.append(Statement(_CHANGE, (status, updated, head, id, owner), expect=1))
            if changes.base:
                snapshot = workflow.snapshot()
                steps.append(Statement(_REBASE, (snapshot.name, encode(snapshot), id, owner)))
                steps.append(Statement(_ALL_TASKS, (id,)))
            else:
                steps += map(self._row, changes.tasks)
        steps += [Append(self._stream, event.event, encode(event)) for event in changes.events]
        if changes.final and workflow.terminal:
            steps.append(End(self._stream))
        return steps

    def _head(self) -> Head:
        signals = self._workflow.signals
        return Head(override=self._workflow.override, **({"signals": signals} if signals else {}))

    def _row(self, task: Task) -> Statement:
        return RUN_TASKS.upsert(
            run=self._workflow.id,
            phase=task.phase.id,
            task=task.id,
            place=self._places.get(task, 0),
            snapshot=encode(task.snapshot()),
        )

    def _reason(self, error: Exception) -> Exception:
        if isinstance(error, JournalError) and error.code == "STALE":
            id = self._workflow.id
            return WorkflowError(
                "TRANSITION",
                f"Workflow {id!r} was taken over by somebody else, or removed: this run of it is stored no more.",
                {"id": id},
            )
        return error
