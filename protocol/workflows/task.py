"""A live task: its moves, what it reports, and what its attempts leave behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, final

from msgspec import UNSET, UnsetType, structs

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.schemas.gates import NotJson, clone_json, encodable
from greenroom.protocol.text import path_segment
from greenroom.protocol.workflows.activity import TaskActivity, read_report
from greenroom.protocol.workflows.composition import WorkflowFunction
from greenroom.protocol.workflows.definition import Backoff
from greenroom.protocol.workflows.edit import boxed
from greenroom.protocol.workflows.node import Node
from greenroom.protocol.workflows.options import TaskOptions
from greenroom.protocol.workflows.patch import TaskPatch
from greenroom.protocol.workflows.snapshot import (
    FailureOrigin,
    TaskError,
    TaskOutcome,
    TaskResult,
    TaskSnapshot,
    copy_json,
    copy_result,
    copy_task,
)
from greenroom.protocol.workflows.status import TRANSITIONS, Move, Status, is_terminal

if TYPE_CHECKING:
    from greenroom.protocol.workflows.phase import Phase
    from greenroom.protocol.workflows.workflow import Workflow

__all__ = ["NO_MESSAGE", "TASK_EVENTS", "Task", "failed_outcome"]

TASK_EVENTS: Final = frozenset(
    {
        "start",
        "complete",
        "fail",
        "skip",
        "stop",
        "suspend",
        "pause",
        "resume",
        "report",
        "pulse",
        "silence",
        "timer",
    }
)

NO_MESSAGE: Final = "The task failed and did not say why."

_ORIGINS: Final[Mapping[str, FailureOrigin]] = {"timeout": "timeout", "recovery": "recovery"}


@final
class Task(Node):
    """One task of a phase; see `TRANSITIONS` for what it may do when.

    A move that is not open to it raises `WorkflowError` TRANSITION and changes nothing. Events: `start(id)` for every
    attempt, `complete(result)`, `fail(result)`, `skip`, `stop`, `suspend`, `pause`, `resume`, `report(frame)`,
    `pulse(frame)`, `silence`, `timer(name, wake)`.
    """

    __slots__ = ("_record", "handler", "on_cancel", "phase", "silence")

    def __init__(self, record: TaskSnapshot, phase: Phase, *, silence: float | None, options: TaskOptions) -> None:
        super().__init__(phase.shared, TASK_EVENTS, on=options.on, error=options.error)
        self._record = record
        self.phase: Phase = phase
        self.handler: WorkflowFunction | None = (
            None if record.behavior is UNSET else self.shared.functions.get(record.behavior)
        )
        """What its behaviour was looked up as when it was built; `None` if it has none, or none was found."""
        self.silence: float | None = silence
        """Seconds without `report` or `pulse` after which whoever runs it is to call `fall_silent`."""
        self.on_cancel: Callable[[], object] | None = None
        """Called when it is skipped, stopped or suspended, to end the attempt in progress. It must not raise."""

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
    def status(self) -> Status:
        return self._record.status

    @property
    def workflow(self) -> Workflow:
        return self.phase.workflow

    @property
    def key(self) -> str:
        """`<workflow>/<phase>/<task>`, the same in every attempt and after every recovery: an idempotency key.

        A slash and a percent sign within an id are percent-encoded, so that no two tasks share a key.
        """
        return "/".join(path_segment(part) for part in (self.workflow.id, self.phase.id, self.id))

    @property
    def behavior(self) -> str | UnsetType:
        return self._record.behavior

    @property
    def metadata(self) -> dict[str, Any]:
        """What its behaviour is given, as a copy."""
        return copy_json(self._record.metadata)

    @property
    def attempts(self) -> int:
        """How often it was started."""
        return self._record.attempts

    @property
    def limit(self) -> int:
        """How many attempts it has."""
        return self._record.limit

    @property
    def timeout(self) -> float | None:
        """Seconds for each attempt, or `None` for no limit."""
        return _seconds(self._record.timeout)

    @property
    def heartbeat(self) -> float | None:
        """Seconds without `report` or `pulse` after which an attempt has failed, or `None` for no limit."""
        return _seconds(self._record.heartbeat)

    @property
    def patience(self) -> bool:
        """Whether its deadline stands still while a person is being asked."""
        return self._record.patience is True

    @property
    def backoff(self) -> Backoff | UnsetType:
        return self._record.backoff

    @property
    def activity(self) -> TaskActivity | UnsetType:
        """Its last frame."""
        return self._record.activity

    @property
    def previous(self) -> TaskActivity | UnsetType:
        """The last frame of the attempt before this one."""
        return self._record.previous

    @property
    def result(self) -> TaskResult | None:
        """What it came to, as a copy; `None` unless it completed or failed."""
        return None if self._record.result is UNSET else copy_result(self._record.result)

    def snapshot(self) -> TaskSnapshot:
        """All of it, as a copy."""
        return copy_task(self._record)

    # ---------------------------------------------------------------- moves

    def start(self) -> int:
        """Begin the next attempt and return its number (from 1). A running task that failed is started again.

        Refused as well when its attempts are used up, when a phase ahead of it is not over, and when its phase or
        workflow is over, or suspended.
        """
        status = self._after("start")
        record = self._record
        if record.attempts >= record.limit:
            raise self._refusal("start", f"its {record.limit} attempts are used up; give it more retries")
        obstacle = self.phase.obstacle()
        if obstacle is not None:
            raise self._refusal("start", obstacle)
        again = record.status == "running"
        self._change(
            "start",
            self.id,
            status=status,
            attempts=record.attempts + 1,
            activity=TaskActivity(updated=self.shared.now()),
            previous=record.activity if again else record.previous,
            timers=UNSET if again else record.timers,
        )
        return self.attempts

    def complete(self, value: object) -> None:
        """Record `value`, of which a copy is taken. One that is no JSON raises RESTORE, and the task runs on."""
        status = self._after("complete")
        copy = clone_json(value)
        if isinstance(copy, NotJson):
            raise WorkflowError(
                "RESTORE",
                f"Task {self.key!r} cannot keep what it came to, which is no JSON: {copy}.",
                {"task": self.id, "reason": str(copy)},
            )
        self._settle("complete", status, TaskOutcome(success=True, value=copy))

    def fail(self, origin: str, message: str) -> None:
        """Record a failure; an unknown origin counts as `handler`, and an empty message becomes `NO_MESSAGE`."""
        self._settle("fail", self._after("fail"), failed_outcome(origin, message))

    def skip(self) -> None:
        """Leave it undone, and end the attempt in progress."""
        self._abandon("skip")

    def stop(self) -> None:
        """End it, and the attempt in progress."""
        self._abandon("stop")

    def suspend(self) -> None:
        """Take the attempt in progress back, as if it had not begun, but keep its timers and its last frame.

        Nothing happens unless it runs. For the workflow, which is being suspended.
        """
        if self.status != "running":
            return
        self._cancel()
        self._change(
            "suspend",
            status="pending",
            attempts=self.attempts - 1,
            activity=UNSET,
            previous=self._record.activity,
        )

    # ---------------------------------------------------------------- what a running attempt tells

    @boxed
    def report(self, report: object) -> TaskActivity:
        """Replace its frame by what is reported: JSON, or an `ActivityReport`.

        Refused with TRANSITION unless it runs, and with MUTATION for a malformed report; the old frame stays then.
        """
        if self.status != "running":
            raise self._refusal("report", "only a running task has something to report")
        frame = read_report(report, self.shared.now())
        self._change("report", frame, activity=frame)
        return frame

    def pulse(self) -> bool:
        """Say that the frame still holds. False, and nothing else, unless the task runs."""
        if self.status != "running" or self._record.activity is UNSET:
            return False
        frame = structs.replace(self._record.activity, updated=self.shared.now())
        self._change("pulse", frame, activity=frame)
        return True

    def fall_silent(self) -> None:
        """Announce that nothing was heard of it for `silence` seconds. Nothing happens unless it runs."""
        if self.status == "running":
            self.shared.announce(self, "silence")
            self.shared.happen()

    def timer(self, name: str, wake: int) -> int:
        """When the sleep `name` ends (milliseconds since 1970): `wake`, or what was said the first time.

        It is forgotten when the task is started again after a failure, but not when the process dies: a sleep that was
        cut off has only its rest to go. Refused with TRANSITION unless the task runs, and with SCHEDULE for an empty
        name or a time before 1970.
        """
        if self.status != "running":
            raise self._refusal("sleep", "only a running task sleeps")
        if not name or wake < 0:
            raise WorkflowError(
                "SCHEDULE",
                f"Task {self.key!r} cannot sleep as {name!r} until {wake}: give a name, and milliseconds since 1970.",
                {"task": self.id, "timer": name, "wake": wake},
            )
        timers = {} if self._record.timers is UNSET else self._record.timers
        if name not in timers:
            self._change("timer", name, wake, timers={**timers, name: wake})
            return wake
        return timers[name]

    # ---------------------------------------------------------------- for its phase

    def patch(self, patch: TaskPatch) -> None:
        """Take over what the patch gives."""
        self._record = structs.replace(self._record, **patch.given())

    # ---------------------------------------------------------------- how it changes

    def _after(self, move: Move) -> Status:
        """The status that the move leads to; raises if it is not open."""
        if not self.attached:
            raise self._refusal(move, "it is no part of its workflow any more")
        if self.shared.suspended:
            raise self._refusal(move, "its workflow is suspended, and goes on from its snapshot")
        status = TRANSITIONS[self.status].get(move)
        if status is None:
            way_out = "it was never started" if self.status == "pending" else "what is over stays as it is"
            raise self._refusal(move, way_out)
        return status

    def _refusal(self, move: str, reason: str) -> WorkflowError:
        return WorkflowError(
            "TRANSITION",
            f"Task {self.key!r} is {self.status} and cannot {move}: {reason}.",
            {"task": self.id, "phase": self.phase.id, "workflow": self.workflow.id, "status": self.status},
        )

    def _abandon(self, move: Move) -> None:
        status = self._after(move)
        self._cancel()
        self._change(move, status=status, previous=UNSET, timers=UNSET)

    def _settle(self, move: Move, status: Status, outcome: TaskOutcome) -> None:
        result = TaskResult(
            task=self.id,
            phase=self.phase.id,
            workflow=self.workflow.id,
            status="completed" if outcome.success else "failed",
            result=outcome,
            timestamp=self.shared.now(),
        )
        self._change(move, copy_result(result), status=status, result=result, previous=UNSET, timers=UNSET)

    def _cancel(self) -> None:
        if self.on_cancel is not None:
            self.shared.line_up(self.on_cancel)

    def _change(self, event: str, *args: object, **changes: Any) -> None:
        """Change the record, line up the event and whatever it does to the phase, and let it happen."""
        before = self.status
        self._record = structs.replace(self._record, **changes)
        self.shared.touch()
        if is_terminal(self.status):
            self.shared.line_up(self.gate.open)
        self.shared.announce(self, event, *args)
        self.phase.task_changed(before, self.status)
        self.shared.happen()


def failed_outcome(origin: str, message: str) -> TaskOutcome:
    """The outcome of a task that failed. Of the failure nothing is kept but this."""
    # Texts of exceptions may quote bytes that were no text (PEP 383), which no JSON holds.
    text = message if encodable(message) else message.encode("utf-8", "backslashreplace").decode()
    return TaskOutcome(
        success=False, error=TaskError(origin=_ORIGINS.get(origin, "handler"), message=text or NO_MESSAGE)
    )


def _seconds(milliseconds: int | UnsetType) -> float | None:
    return milliseconds / 1000 if milliseconds is not UNSET and milliseconds > 0 else None
