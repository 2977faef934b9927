"""Driving one phase: so many tasks at a time, attempts of each until one settles it."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, final

import trio
from msgspec import UNSET

from greenroom.actors.workflow.attempt import Attempt
from greenroom.actors.workflow.controller import TaskController
from greenroom.actors.workflow.failures import leaves, said
from greenroom.actors.workflow.owners import owner_of_task
from greenroom.actors.workflow.retry import Permanent, RetryAfter
from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows import DEFAULT_PHASE_CONCURRENCY, MAX_TIMER_MS, Phase, Task, rest_before
from greenroom.runtime.errand import Errand, begin, finish
from greenroom.runtime.tree import free_place

if TYPE_CHECKING:
    from greenroom.actors.workflow.drive import Drive

__all__ = ["PhaseDrive", "TaskErrand"]


@final
class TaskErrand(Errand):
    """A task's place in the tree: what it starts is beneath it, what it waits for it waits for there."""

    __slots__ = ("drive", "owns", "slot", "task")

    kind: ClassVar[str] = "task"

    def __init__(self, drive: Drive, task: Task) -> None:
        super().__init__()
        self.drive = drive
        self.task = task
        self.slot = True
        """Whether it takes up one of the places that its phase has for tasks."""
        self.owns = False
        """Whether something may have been recorded for it."""

    @property
    def durable_name(self) -> str | None:
        self.owns = self.drive.storing
        return owner_of_task(self.task) if self.owns else None


@final
class _Returning:
    """A task that has rested, and stands in line for a slot again."""

    __slots__ = ("errand", "granted")

    def __init__(self, errand: TaskErrand) -> None:
        self.errand = errand
        self.granted = trio.Event()


@final
class PhaseDrive:
    """One phase. Tasks get slots in the order of their places, those that come back from a rest after them."""

    def __init__(self, drive: Drive, phase: Phase) -> None:
        self.drive = drive
        self.phase = phase
        self._line: deque[Task | _Returning] = deque(task for task in phase.tasks if not task.terminal)
        self._free = DEFAULT_PHASE_CONCURRENCY if phase.concurrency is UNSET else phase.concurrency
        self._active = 0
        self._bailed = False
        self._feeding = False
        self._idle = trio.Event()
        # A task starts in the context of the run, not in that of the task whose end made room for it.
        self._context = contextvars.copy_context()

    async def run(self) -> None:
        """Until no task of it is under way, and none may begin any more."""
        self._feed()
        while self._active:
            self._idle = trio.Event()
            await self._idle.wait()

    def add(self, task: Task) -> None:
        """A task was added while the phase runs."""
        self._line.append(task)
        self._feed()

    def failed(self) -> None:
        """A task of it has failed for good: where the phase bails, all others are skipped."""
        if self.phase.bail and not self._bailed:
            self._bailed = True
            for task in self.phase.tasks:
                if not task.terminal:
                    task.skip()

    def look(self) -> None:
        """Something has changed that tasks in line may depend on."""
        if self._halted:
            for waiting in self._line:
                if isinstance(waiting, _Returning):
                    waiting.granted.set()
            self._line.clear()
        self._feed()

    @property
    def _halted(self) -> bool:
        workflow = self.phase.workflow
        return self.drive.ending or self._bailed or self.phase.terminal or workflow.terminal or workflow.suspended

    # ---------------------------------------------------------------- slots

    def _feed(self) -> None:
        """Give free slots to those in line. Starting a task may lead back here, by its listeners."""
        if self._feeding:
            return
        self._feeding = True
        try:
            while self._line and self._free and not self._halted:
                first = self._line.popleft()
                if isinstance(first, _Returning):
                    self._free -= 1
                    first.errand.slot = True
                    first.granted.set()
                elif not first.terminal:
                    self._begin(first)
        finally:
            self._feeding = False

    def _begin(self, task: Task) -> None:
        number = _start(task)
        if number is not None:
            self._free -= 1
            self._active += 1
            start_soon = partial(self.drive.nursery.start_soon, name=f"task {task.id}")
            self._context.run(start_soon, self._do, task, number)

    async def _do(self, task: Task, number: int) -> None:
        """All attempts of a task; the trio task of it."""
        drive = self.drive
        errand = TaskErrand(drive, task)
        try:
            begin(errand, free_place(drive.ref, task.id), parent=drive.ref, nursery=drive.nursery)
            try:
                await self._attempts(errand, number)
            finally:
                await finish(errand)
        except Exception as error:
            drive.fail(error)
        except BaseException:
            drive.tear()
            raise
        finally:
            self._free += errand.slot
            self._active -= 1
            self._feed()
            if not self._active:
                self._idle.set()

    async def _rested(self, errand: TaskErrand, seconds: float) -> bool:
        """Rest outside the slot, and wait for one. False if the task was ended meanwhile."""
        task = errand.task
        self._give_up(errand)
        with trio.CancelScope() as scope:
            task.on_cancel = scope.cancel
            errand.cancel_with(scope)
            await trio.sleep(seconds)
            returning = _Returning(errand)
            self._line.append(returning)
            try:
                self._feed()
                await returning.granted.wait()
            finally:
                if not returning.granted.is_set():
                    self._line.remove(returning)
        task.on_cancel = None
        if errand.stopping:
            self._stopped(errand)
        return errand.slot

    def _give_up(self, errand: TaskErrand) -> None:
        errand.slot = False
        self._free += 1
        self._feed()

    # ---------------------------------------------------------------- attempts

    async def _attempts(self, errand: TaskErrand, number: int) -> None:
        task = errand.task
        while True:
            rest = await self._attempt(errand, number)
            if rest is None:
                return
            if rest > 0:
                if not await self._rested(errand, rest):
                    return
            else:
                await trio.lowlevel.checkpoint()  # many attempts may fail without ever waiting
            again = None if self._halted or task.attempts != number else _start(task)
            if again is None:
                return
            number = again

    async def _attempt(self, errand: TaskErrand, number: int) -> float | None:
        """Make one attempt. The seconds to rest before the next one, or `None` if the task is settled."""
        drive, task = self.drive, errand.task
        attempt = drive.attempts[task] = Attempt(task, number)
        value: Any = None
        failure: BaseException | None = None
        try:
            with attempt.scope as scope, attempt.limited() as attempt.limit:
                task.on_cancel = scope.cancel
                errand.cancel_with(scope)
                drive.listen(attempt)
                if drive.storing and not await drive.required("attempt", task, number):
                    task.workflow.stop()
                if attempt.paused:
                    await attempt.passed()
                if attempt.current and not (drive.ending or attempt.halted):
                    attempt.dispatched = True
                    attempt.beat()
                    try:
                        value = _call(task, TaskController(attempt, drive))
                        if inspect.isawaitable(value):
                            value = await value
                    except (Exception, asyncio.CancelledError) as raised:  # the latter from a portal into asyncio
                        failure = raised
        finally:
            task.on_cancel = None
            del drive.attempts[task]
            drive.ref.tree.deadlines.disarm(attempt)
        await trio.lowlevel.checkpoint_if_cancelled()  # the run is being torn down, whatever the handler made of that
        if task.attempts != number:
            return None  # somebody else has begun another attempt, and will settle it
        rest = self._settled(errand, attempt, value, failure) if attempt.current else None
        if drive.storing and task.terminal:
            if not await drive.required("settlement", task, number):
                task.workflow.stop()
            elif errand.owns:
                drive.let_go(owner_of_task(task))
        return rest

    def _settled(
        self, errand: TaskErrand, attempt: Attempt, value: object, failure: BaseException | None
    ) -> float | None:
        """Settle the task by what ended the attempt, the outermost cause first. As `_attempt`."""
        task = errand.task
        if errand.stopping:
            self._stopped(errand)
        elif self.drive.ending or self._bailed or (not attempt.dispatched and attempt.halted):
            task.skip()
        elif attempt.cancelled:
            return self._failed(attempt, "timeout", attempt.overdue(), [])
        elif failure is not None:
            causes = leaves(failure)
            return self._failed(attempt, "handler", "; ".join(filter(None, map(said, causes))), causes)
        else:
            try:
                task.complete(value)
            except WorkflowError as refused:
                return self._failed(attempt, "handler", refused.message, [])
        return None

    def _stopped(self, errand: TaskErrand) -> None:
        """Somebody stops the task's place: that alone, or with the place of the whole run."""
        if not self.drive.ref.alive:
            self.drive.tear()
        elif not errand.task.terminal:
            errand.task.stop()

    def _failed(self, attempt: Attempt, origin: str, message: str, causes: list[BaseException]) -> float | None:
        """Fail the task if that was its last attempt; else the seconds to rest."""
        task, number = attempt.task, attempt.number
        deaf = task.behavior is not UNSET and task.handler is None
        if number >= task.limit or deaf or any(isinstance(cause, Permanent) for cause in causes):
            task.fail(origin, message)
            return None
        if self._halted:
            task.skip()
            return None
        self.drive.happened(task, "retry", attempt=number, value=message)
        wished = [cause.seconds for cause in causes if isinstance(cause, RetryAfter)]
        if wished:
            return min(max(wished), MAX_TIMER_MS / 1000)
        return 0.0 if task.backoff is UNSET else rest_before(number + 1, task.backoff, self.drive.chance())


def _start(task: Task) -> int | None:
    """Begin the next attempt; `None` if somebody else has taken that from us."""
    try:
        return task.start()
    except WorkflowError:
        return None


def _call(task: Task, controller: TaskController) -> object:
    """What the task's behaviour comes to, or what is to be awaited for that. Without one it comes to nothing."""
    if task.handler is None:
        if task.behavior is UNSET:
            return None
        known = ", ".join(sorted(task.shared.functions)) or "none"
        raise WorkflowError("TRANSITION", f"There is no function {task.behavior!r}; there are: {known}.")
    return task.handler(controller)
