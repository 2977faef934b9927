"""A live workflow: its phases, what they make it, edits of them, and the run as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, final

from msgspec import UNSET, UnsetType, structs

from greenroom.protocol.emitter import ErrorHandler, Listener
from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.schemas.gates import NotJson, clone_json
from greenroom.protocol.workflows.children import Children
from greenroom.protocol.workflows.coherence import check_coherence
from greenroom.protocol.workflows.edit import boxed
from greenroom.protocol.workflows.group import GROUP_EVENTS, Group
from greenroom.protocol.workflows.options import PhaseOptions
from greenroom.protocol.workflows.patch import PhasePatch, WorkflowPatch, read_patch
from greenroom.protocol.workflows.pending import pending_phase
from greenroom.protocol.workflows.phase import Phase
from greenroom.protocol.workflows.reading import check_phase
from greenroom.protocol.workflows.shared import Shared, Watcher
from greenroom.protocol.workflows.snapshot import TaskResult, WorkflowSnapshot, copy_json
from greenroom.protocol.workflows.status import Status, derive_workflow_status, is_terminal

__all__ = ["WORKFLOW_EVENTS", "Workflow"]

WORKFLOW_EVENTS: Final = GROUP_EVENTS | {"signal"}

_Counted: TypeAlias = tuple[Status, bool]


@final
class Workflow(Group):
    """A workflow, made by `create_workflow` or one of its siblings.

    Events: `start(id)`, `complete`, `fail(first failing result)`, `skip`, `stop`, `suspend`, `pause`, `resume`,
    `add(phase, index)`, `remove(phase)`, `move(phase, index)`, `update(phase)` (or of itself), `signal(name, value)`.
    Edits return a `Success` or a `Failure`: MUTATION says why an edit is refused.
    """

    __slots__ = (
        "_bail",
        "_children",
        "_claimed",
        "_counted",
        "_destroyed",
        "_record",
        "_signals",
        "_tally",
        "on_cancel",
        "silence",
    )

    def __init__(
        self,
        record: WorkflowSnapshot,
        shared: Shared,
        *,
        bail: bool | None = None,
        phases: Mapping[str, PhaseOptions] | None = None,
        silence: float | None = None,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
    ) -> None:
        super().__init__(shared, WORKFLOW_EVENTS, override=record.override, on=on, error=error)
        self._bail = bail
        self._claimed = False
        self._destroyed = False
        self.silence: float | None = silence
        """Seconds after which a task is said to be silent that has no word of its own."""
        self.on_cancel: Callable[[], object] | None = None
        """Called when the workflow is destroyed, to end its run. It must not raise."""
        # Its own members alone: what it holds lives in the nodes.
        self._record = structs.replace(record, phases=())
        self._signals: dict[str, Any] = {} if record.signals is UNSET else dict(record.signals)
        self._children: Children[Phase] = Children("phase", f"workflow {record.id!r}")
        self._counted: dict[Phase, _Counted] = {}
        self._tally: Counter[_Counted] = Counter()
        for index, phase in enumerate(record.phases):
            self._children.insert(Phase(phase, self, (phases or {}).get(phase.id, PhaseOptions())), index)
            self._count(self._children[index])
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
        """What holds for phases that are added without a word of their own."""
        return self._record.bail

    @property
    def hash(self) -> str | UnsetType:
        """`definition_hash` of what it was built from."""
        return self._record.hash

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Its phases, in order."""
        return tuple(self._children)

    @property
    def destroyed(self) -> bool:
        """Whether `destroy` was called."""
        return self._destroyed

    @property
    def suspended(self) -> bool:
        """Whether `suspend` was called: the run goes on from its snapshot, and this object stays as it is."""
        return self.shared.suspended

    @property
    def claimed(self) -> bool:
        """Whether somebody has run it, or does."""
        return self._claimed

    @property
    def created(self) -> int:
        """When the run was made: milliseconds since 1970. It stays the same over recoveries."""
        return self._record.created

    @property
    def signals(self) -> dict[str, Any]:
        """The last value of each signal that it was sent, as a copy."""
        return copy_json(self._signals)

    def signalled(self, name: str) -> bool:
        """Whether the signal `name` was ever sent."""
        return name in self._signals

    def phase(self, phase_id: str) -> Phase | None:
        """The phase with this id."""
        return self._children.get(phase_id)

    def results(self) -> tuple[TaskResult, ...]:
        """What tasks completed or failed with, in the order of the tasks, as copies."""
        found = (task.result for phase in self._children for task in phase.tasks)
        return tuple(result for result in found if result is not None)

    def first_failure(self) -> TaskResult | None:
        """The first result, by position, that made the workflow fail."""
        failed = (phase.first_failure() for phase in self._children if phase.status == "failed" and phase.bail)
        return next(failed, None)

    def snapshot(self) -> WorkflowSnapshot:
        """All of it, as a copy that a store may keep. Raises `WorkflowError` RESTORE rather than give one that no
        store would take back."""
        snapshot = structs.replace(
            self._record,
            status=self._status,
            override=self._override,
            phases=tuple(phase.snapshot() for phase in self._children),
            updated=self.shared.updated,
            **({"signals": self.signals} if self._signals else {}),
        )
        check_coherence(snapshot)
        return snapshot

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher(node, event, arguments)` for every event of the workflow, its phases and its tasks, those
        added later included, after the node's own listeners. What comes back ends that."""
        return self.shared.watch(watcher)

    # ---------------------------------------------------------------- the run as a whole

    def claim(self) -> None:
        """Take this object for a run, once and for good; nobody can take it again.

        Raises `WorkflowError` TRANSITION if it was taken, if it is over, destroyed, suspended or has a running task, if
        none of its tasks is pending though it has some, or if a behaviour was found no handler for.
        """
        reason = self._unclaimable()
        if reason is not None:
            raise WorkflowError(
                "TRANSITION",
                f"Workflow {self.id!r} cannot be run: {reason}.",
                {"id": self.id, "status": self._status, "destroyed": self._destroyed},
            )
        self._claimed = True

    def complete(self) -> None:
        """Pin a pending workflow without any tasks to completed. Nothing happens if it is done for good.

        Raises `WorkflowError` TRANSITION if it has tasks: they decide.
        """
        if any(phase.tasks for phase in self._children) and not self.terminal:
            raise WorkflowError(
                "TRANSITION",
                f"Workflow {self.id!r} has tasks and completes when they are over: run it, skip it or stop it.",
                {"id": self.id, "status": self._status, "destroyed": self._destroyed},
            )
        self._pin("completed")

    def suspend(self) -> None:
        """Put running tasks back to pending, as if their attempts had not begun, so that the snapshot can be run.

        This object stays as it is from then on: its tasks refuse every move, and skipping or stopping it does nothing.
        Nothing happens if it is done for good, or suspended.
        """
        if self.terminal or self.suspended:
            return
        self.shared.suspended = True
        self.shared.touch()
        for phase in self._children:
            for task in phase.tasks:
                task.suspend()
        self.shared.announce(self, "suspend")
        self.shared.happen()

    def signal(self, name: str, value: object) -> None:
        """Keep `value`, of which a copy is taken, as the last of the signal `name`, for all tasks, now and later.

        Raises `WorkflowError` RESTORE for a value that is no JSON, and TRANSITION if the workflow is done for good.
        """
        if self.terminal or self.suspended:
            state = self._status if self.terminal else "suspended"
            raise WorkflowError(
                "TRANSITION",
                f"Workflow {self.id!r} is {state} and takes no signal {name!r} any more.",
                {"id": self.id, "status": self._status, "destroyed": self._destroyed},
            )
        copy = clone_json({name: value})
        if isinstance(copy, NotJson):
            raise WorkflowError(
                "RESTORE",
                f"Workflow {self.id!r} cannot keep the signal {name!r}, which is no JSON: {copy}.",
                {"id": self.id, "signal": name, "reason": str(copy)},
            )
        self._signals |= copy
        self.shared.touch()
        self.shared.announce(self, "signal", name, copy_json(copy[name]))
        self.shared.happen()

    def destroy(self) -> None:
        """Stop the workflow, its phases and its tasks, whatever is not over yet, end its run, and fall silent for good.

        A suspended workflow stays as it is, and falls silent. Idempotent.
        """
        if self._destroyed:
            return
        self._destroyed = True
        if not self.suspended:
            self._stop_everything()
        if self.on_cancel is not None:
            self.shared.line_up(self.on_cancel)
        for phase in self._children:
            phase.detach()
        self.detach()
        self.shared.line_up(self.shared.close)
        self.shared.happen()

    # ---------------------------------------------------------------- edits

    @boxed
    def add(self, definition: object, index: int | None = None, *, options: PhaseOptions | None = None) -> Phase:
        """Add a phase, a `PhaseDefinition` or JSON for one, at `index` or at the end, behind all that has begun."""
        self.require_open()
        options = options or PhaseOptions()
        record = pending_phase(check_phase(definition), options, bail=self._bail, default=self.bail)
        index = self._children.position(index, first=self._first_open(), last=len(self._children))
        self._children.require_new(record.id)
        phase = Phase(record, self, options)
        self._children.insert(phase, index)
        self._edited("add", phase, index)
        self.shared.happen()
        return phase

    @boxed
    def remove(self, phase_id: str) -> Phase:
        """Take a pending phase out. It is no part of the workflow from then on, and announces nothing any more."""
        phase = self._children.pop(self._editable(phase_id))
        self._edited("remove", phase)
        phase.detach()
        self.shared.happen()
        return phase

    @boxed
    def move(self, phase_id: str, index: int) -> Phase:
        """Put a pending phase elsewhere, behind all that has begun: `index` counts without it."""
        at = self._editable(phase_id)
        index = self._children.position(index, first=self._first_open(), last=len(self._children) - 1)
        phase = self._children.pop(at)
        self._children.insert(phase, index)
        self._edited("move", phase, index)
        self.shared.happen()
        return phase

    @boxed
    def update(self, phase_id: str, patch: object) -> Phase:
        """Change name, description, bail or concurrency of a pending phase: a `PhasePatch` or JSON for one."""
        changes = read_patch(PhasePatch, patch)
        phase = self._children[self._editable(phase_id)]
        phase.patch(changes)
        self._edited("update", phase)
        self.shared.happen()
        return phase

    @boxed
    def patch(self, patch: object) -> Workflow:
        """Change name or description of the workflow itself while it is pending: a `WorkflowPatch` or JSON for one."""
        changes = read_patch(WorkflowPatch, patch)
        self.require_open()
        if self._status != "pending":
            raise self._refusal(f"it is {self._status}, and only a pending workflow is renamed")
        self._record = structs.replace(self._record, **changes.given())
        self.shared.touch()
        self.shared.announce(self, "update", self)
        self.shared.happen()
        return self

    # ---------------------------------------------------------------- for its phases

    def obstacle(self, phase: Phase) -> str | None:
        """Why no task of the phase may start now, as far as that is up to the workflow."""
        if self.terminal:
            return f"workflow {self.id!r} is {self._status}"
        for ahead in self._children:
            if ahead is phase:
                return None
            if not ahead.terminal and ahead.tasks:
                return f"phase {ahead.id!r} ahead of it is {ahead.status}, and phases run one after another"
        return f"phase {phase.id!r} is no part of the workflow any more"

    def begun_after(self, phase: Phase) -> bool:
        """Whether a phase behind this one has begun."""
        phases = self.phases
        return any(later.begun for later in phases[phases.index(phase) + 1 :])

    def phase_changed(self, phase: Phase) -> None:
        """Count a phase that has changed."""
        self._count(phase)
        self._refresh()

    def require_open(self) -> None:
        """Raises `WorkflowError` MUTATION unless the workflow may be edited."""
        if self.terminal:
            raise self._refusal(f"it is {self._status}, and what is over stays as it is")
        if self.suspended:
            raise self._refusal("it is suspended; recover it from its snapshot and change that")

    # ---------------------------------------------------------------- how it changes

    def _stop_everything(self) -> None:
        self.stop()
        for phase in self._children:
            phase.stop()
        for phase in self._children:
            for task in phase.tasks:
                if not task.terminal:
                    task.stop()

    def _derive(self) -> Status:
        return derive_workflow_status(counted for counted, count in self._tally.items() if count)

    def _changed(self) -> None:
        """It is part of nothing."""

    def _announce_status(self) -> None:
        if self._status != "pending":  # only `suspend` leads back, and announces itself
            super()._announce_status()

    def _count(self, phase: Phase) -> None:
        before = self._counted.pop(phase, None)
        if before is not None:
            self._tally[before] -= 1
        if phase.counts and self._children.get(phase.id) is phase:
            self._counted[phase] = phase.status, phase.bail
            self._tally[self._counted[phase]] += 1

    def _edited(self, event: str, phase: Phase, *args: object) -> None:
        """Line up the event of an edit, and what the edit does to the workflow."""
        self.shared.touch()
        self.shared.announce(self, event, phase, *args)
        self.phase_changed(phase)

    def _first_open(self) -> int:
        """The first index that is behind all that has begun, and not before the first pending phase."""
        first = len(self._children)
        for index, phase in reversed(tuple(enumerate(self._children))):
            if phase.begun:
                break
            if phase.status == "pending":
                first = index
        return first

    def _editable(self, phase_id: str) -> int:
        """Where a phase stands; raises unless it may be taken out, moved or changed."""
        self.require_open()
        index = self._children.index(phase_id)
        phase = self._children[index]
        if phase.status != "pending" or index < self._first_open():
            raise self._refusal(f"phase {phase_id!r} is {phase.status}, or one behind it has begun")
        return index

    def _unclaimable(self) -> str | None:
        if self._claimed:
            return "it was run before; build or restore it afresh"
        if self._destroyed or self.suspended:
            return f"it is {'destroyed' if self._destroyed else 'suspended'}; build or restore it afresh"
        if is_terminal(self._status):
            return f"it is {self._status}"
        tasks = [task for phase in self._children for task in phase.tasks]
        running = next((task for task in tasks if task.status == "running"), None)
        if running is not None:
            return f"task {running.key!r} is running; recover it instead of restoring it"
        if tasks and all(task.terminal for task in tasks):
            return "none of its tasks is pending"
        deaf = next((task for task in tasks if task.behavior is not UNSET and task.handler is None), None)
        if deaf is not None:
            known = ", ".join(sorted(self.shared.functions)) or "none"
            return f"there is no function {deaf.behavior!r} for task {deaf.key!r}; there are: {known}"
        return None

    def _refusal(self, reason: str) -> WorkflowError:
        return WorkflowError(
            "MUTATION",
            f"Workflow {self.id!r} was not changed: {reason}.",
            {"workflow": self.id, "status": self._status},
        )
