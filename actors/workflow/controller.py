"""What a behaviour is called with: what it is to do, and what it can tell and wait for while it does it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, final

import trio
from msgspec import UnsetType
from trio.lowlevel import checkpoint

from greenroom.actors.workflow.attempt import Attempt
from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows import (
    MAX_TIMER_MS,
    Edit,
    Failure,
    Task,
    TaskActivity,
    TaskResult,
)

if TYPE_CHECKING:
    from greenroom.actors.workflow.drive import Drive

__all__ = ["TaskController"]


@final
class TaskController:
    """One attempt, seen from the behaviour that makes it.

    The attempt's cancellation is trio's: at its next checkpoint the behaviour gets `Cancelled`, and is to let it pass.
    Blocking work belongs into a thread, with `abandon_on_cancel=True`.
    """

    __slots__ = ("_attempt", "_drive")

    def __init__(self, attempt: Attempt, drive: Drive) -> None:
        self._attempt = attempt
        self._drive = drive

    # ---------------------------------------------------------------- what it is to do

    @property
    def task(self) -> Task:
        """The live task, and by it its `phase` and `workflow`."""
        return self._attempt.task

    @property
    def input(self) -> dict[str, Any]:
        """What the task was given, as a copy; `{}` if that is nothing."""
        return self.task.metadata

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1, counted on over recoveries."""
        return self._attempt.number

    @property
    def key(self) -> str:
        """`<workflow>/<phase>/<task>`, the same in every attempt and after every recovery.

        To be handed to services outside, so that they do once what is asked twice.
        """
        return self.task.key

    @property
    def previous(self) -> TaskActivity | UnsetType:
        """The last frame of the attempt before, also of one that the death of its process cut off."""
        return self.task.previous

    def results(self) -> tuple[TaskResult, ...]:
        """Everything that tasks of the run have come to so far, siblings included, in the order of the tasks."""
        return self.task.workflow.results()

    # ---------------------------------------------------------------- how it stands

    @property
    def cancelled(self) -> bool:
        """Whether what the behaviour comes to is of no interest any more."""
        return not self._attempt.current or self._attempt.cancelled or self._drive.ending

    @property
    def paused(self) -> bool:
        """Whether the task, its phase or its workflow is paused: a good moment to `wait`."""
        return self._attempt.paused

    async def wait(self) -> None:
        """Wait while the task, its phase or its workflow is paused; without a deadline but the attempt's.

        Returns as well when the run is over, or suspended, which it may be without this behaviour being cancelled.
        """
        await checkpoint()
        await self._attempt.passed()

    # ---------------------------------------------------------------- what it tells

    def report(self, report: object) -> Edit[TaskActivity]:
        """Replace what is shown of the task by an `ActivityReport`, or JSON for one, and prove that it lives.

        Refused, as a `Failure`, with MUTATION for a malformed report and TRANSITION once the attempt is cancelled.
        """
        if self.cancelled:
            return Failure(
                WorkflowError(
                    "TRANSITION",
                    f"Attempt {self.attempt} of task {self.key!r} is over, and has nothing to report any more.",
                    {"task": self.task.id, "attempt": self.attempt, "status": self.task.status},
                )
            )
        return self.task.report(report)

    def pulse(self) -> bool:
        """Prove that it lives, and that what it reported still holds. False once the attempt is cancelled."""
        return not self.cancelled and self.task.pulse()

    # ---------------------------------------------------------------- what it waits for

    async def signal(self, name: str, *, timeout: float | None = None) -> Any:
        """The last value of the signal `name`, waiting for the first one, `timeout` seconds at most (None: no limit).

        A signal that was sent before counts, also before a crash. Raises `WorkflowError` EXPIRE after the timeout, and
        TRANSITION if the workflow is over and takes no signals any more.
        """
        await checkpoint()
        workflow = self.task.workflow
        with trio.move_on_after(math.inf if timeout is None else timeout):
            await self._attempt.until(lambda: workflow.signalled(name))
        if workflow.signalled(name):
            return workflow.signals[name]
        if self._attempt.halted:
            raise WorkflowError(
                "TRANSITION",
                f"Workflow {workflow.id!r} is {workflow.status}: the signal {name!r} will not come any more.",
                {"id": workflow.id, "signal": name, "status": workflow.status},
            )
        raise WorkflowError(
            "EXPIRE",
            f"The signal {name!r} to workflow {workflow.id!r} did not come within {timeout:g} s; send it earlier, or"
            " wait longer.",
            {"id": workflow.id, "signal": name, "timeout": timeout},
        )

    async def sleep(self, seconds: float, name: str = "sleep") -> None:
        """Sleep, by the wall clock, over the death of the process: only the rest is slept then.

        The end of the sleep `name` is fixed, and stored, when it begins; a further sleep of the same attempt needs a
        name of its own. Raises `WorkflowError` SCHEDULE for what is no time to sleep, TRANSITION if the attempt is
        over, and whatever keeps the store from keeping the end.
        """
        if not 0 <= seconds <= MAX_TIMER_MS / 1000:
            raise WorkflowError(
                "SCHEDULE",
                f"Task {self.key!r} cannot sleep {seconds} s: from 0 to {MAX_TIMER_MS / 1000:g} is possible.",
                {"task": self.task.id, "timer": name},
            )
        await checkpoint()
        shared = self.task.shared
        wake = self.task.timer(name, shared.now() + round(seconds * 1000))
        await self._drive.stored()
        await trio.sleep(max(0, wake - shared.now()) / 1000)
