"""A live phase: its tasks, what they make it, and edits of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, final

from msgspec import UNSET, UnsetType, structs

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows.children import Children
from greenroom.protocol.workflows.edit import boxed
from greenroom.protocol.workflows.group import GROUP_EVENTS, Group
from greenroom.protocol.workflows.options import PhaseOptions, TaskOptions, silence_in_force
from greenroom.protocol.workflows.patch import PhasePatch, TaskPatch, read_patch
from greenroom.protocol.workflows.pending import pending_task
from greenroom.protocol.workflows.reading import check_task
from greenroom.protocol.workflows.snapshot import PhaseSnapshot, TaskResult, TaskSnapshot
from greenroom.protocol.workflows.status import Override, Status, derive_phase_status
from greenroom.protocol.workflows.task import Task

if TYPE_CHECKING:
    from greenroom.protocol.workflows.workflow import Workflow

__all__ = ["Phase"]


@final
class Phase(Group):
    """One phase of a workflow.

    Events: `start(id)`, `complete`, `fail(first failing result)`, `skip`, `stop`, `suspend` (pending again), `pause`,
    `resume`, `add(task, index)`, `remove(task)`, `move(task, index)`, `update(task)`. Edits return a `Success` or a
    `Failure`: MUTATION says why an edit is refused.
    """

    __slots__ = ("_children", "_record", "_statuses", "workflow")

    def __init__(self, record: PhaseSnapshot, workflow: Workflow, options: PhaseOptions) -> None:
        super().__init__(workflow.shared, GROUP_EVENTS, override=record.override, on=options.on, error=options.error)
        self.workflow: Workflow = workflow
        # Its own members alone: what it holds lives in the nodes.
        self._record = structs.replace(record, tasks=())
        self._children: Children[Task] = Children("task", f"phase {record.id!r}")
        for index, task in enumerate(record.tasks):
            self._children.insert(self._build(task, options.tasks.get(task.id, TaskOptions())), index)
        self._statuses: Counter[Status] = Counter(task.status for task in record.tasks)
        self._status = self._derive() if self._override is UNSET else self._override

    # ---------------------------------------------------------------- what it is

    @property
    def id(self) -> str:
        return self._record.id

    @property
    def name(self) -> str:
        return self._record.name

    @property
    def description(self) -> str | UnsetType:
        return self._record.description

    @property
    def bail(self) -> bool:
        """Whether a task that fails for good ends the run."""
        return self._record.bail

    @property
    def concurrency(self) -> int | UnsetType:
        """How many tasks run at a time, if that was said."""
        return self._record.concurrency

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Its tasks, in order."""
        return tuple(self._children)

    @property
    def begun(self) -> bool:
        """Whether a task of it was ever started."""
        return any(task.attempts for task in self._children)

    @property
    def counts(self) -> bool:
        """Whether its status matters to the workflow: not if it has no tasks and nobody pinned it."""
        return len(self._children) > 0 or self._override is not UNSET

    def task(self, task_id: str) -> Task | None:
        """The task with this id."""
        return self._children.get(task_id)

    def first_failure(self) -> TaskResult | None:
        return next((task.result for task in self._children if task.status == "failed"), None)

    def snapshot(self) -> PhaseSnapshot:
        """All of it, as a copy."""
        return structs.replace(
            self._record,
            status=self._status,
            override=self._override,
            tasks=tuple(task.snapshot() for task in self._children),
        )

    def obstacle(self) -> str | None:
        """Why none of its tasks may start now, if so."""
        if self.terminal:
            return f"phase {self.id!r} is {self._status}"
        return self.workflow.obstacle(self)

    # ---------------------------------------------------------------- edits

    @boxed
    def add(self, definition: object, index: int | None = None, *, options: TaskOptions | None = None) -> Task:
        """Add a task, a `TaskDefinition` or JSON for one, at `index` or at the end; while the phase runs only there.

        Its handler is looked up now.
        """
        self._require_open()
        options = options or TaskOptions()
        record = pending_task(check_task(definition), options)
        last = len(self._children)
        index = self._children.position(index, first=0 if self._status == "pending" else last, last=last)
        self._children.require_new(record.id)
        task = self._build(record, options)
        self._children.insert(task, index)
        self._statuses[task.status] += 1
        self._edited("add", task, index)
        self.shared.happen()
        return task

    @boxed
    def remove(self, task_id: str) -> Task:
        """Take a task out. It is no part of the workflow from then on, and announces nothing any more."""
        index = self._editable(task_id)
        task = self._children.pop(index)
        self._statuses[task.status] -= 1
        self._edited("remove", task)
        task.detach()
        self.shared.happen()
        return task

    @boxed
    def move(self, task_id: str, index: int) -> Task:
        """Put a task elsewhere: `index` counts without it."""
        at = self._editable(task_id)
        index = self._children.position(index, first=0, last=len(self._children) - 1)
        task = self._children.pop(at)
        self._children.insert(task, index)
        self._edited("move", task, index)
        self.shared.happen()
        return task

    @boxed
    def update(self, task_id: str, patch: object) -> Task:
        """Change name or description of a task: a `TaskPatch` or JSON for one."""
        changes = read_patch(TaskPatch, patch)
        task = self._children[self._editable(task_id)]
        task.patch(changes)
        self._edited("update", task)
        self.shared.happen()
        return task

    # ---------------------------------------------------------------- for its tasks and its workflow

    def task_changed(self, before: Status, after: Status) -> None:
        """Count a task that has changed its status."""
        if before == after:
            return
        self._statuses[before] -= 1
        self._statuses[after] += 1
        if self._status != "running" or not self._statuses["running"]:  # else it runs as before
            self._refresh()

    def patch(self, patch: PhasePatch) -> None:
        """Take over what the patch gives."""
        self._record = structs.replace(self._record, **patch.given())

    def detach(self) -> None:
        for task in self._children:
            task.detach()
        super().detach()

    # ---------------------------------------------------------------- how it changes

    def _pin(self, override: Override) -> None:
        # A phase without tasks counts once it is pinned, which must not change what a workflow has come to.
        if self.counts or not self.workflow.terminal or self.workflow.override is not UNSET:
            super()._pin(override)

    def _derive(self) -> Status:
        return derive_phase_status([status for status, count in self._statuses.items() if count])

    def _changed(self) -> None:
        self.workflow.phase_changed(self)

    def _build(self, record: TaskSnapshot, options: TaskOptions) -> Task:
        silence = silence_in_force(options.silence, self.workflow.silence)
        return Task(record, self, silence=silence, options=options)

    def _edited(self, event: str, *args: object) -> None:
        """Line up the event of an edit, and what the edit does to the workflow."""
        self.shared.touch()
        self.shared.announce(self, event, *args)
        self.workflow.phase_changed(self)

    def _require_open(self) -> None:
        """Raises unless a task may be added."""
        self._require_attached()
        if self.terminal:
            raise self._refusal(f"it is {self._status}, and what is over stays as it is")
        if self._status == "pending" and self.workflow.begun_after(self):
            raise self._refusal("a phase behind it has begun; add the task to that one or to a later one")

    def _editable(self, task_id: str) -> int:
        """Where a task stands; raises unless it may be taken out, moved or changed."""
        self._require_attached()
        if self._status != "pending":
            raise self._refusal(f"it is {self._status}, and only tasks of a pending phase are changed")
        return self._children.index(task_id)

    def _require_attached(self) -> None:
        if not self.attached:
            raise self._refusal("it is no part of the workflow any more")
        self.workflow.require_open()

    def _refusal(self, reason: str) -> WorkflowError:
        return WorkflowError(
            "MUTATION",
            f"Phase {self.id!r} of workflow {self.workflow.id!r} was not changed: {reason}.",
            {"phase": self.id, "workflow": self.workflow.id, "status": self._status},
        )
