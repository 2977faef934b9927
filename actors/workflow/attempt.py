"""One attempt of a task while it is made: its cancel scope, its deadlines, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import inf
from typing import final

import trio

from greenroom.protocol.workflows import Task
from greenroom.runtime.patience import patient_scope

__all__ = ["Attempt"]


@final
class Attempt:
    """Everything of an attempt that ends with it. Whoever cancels it says in the task's status why.

    It is halted when its workflow or phase is over or suspended: what was begun may come to its end, nothing begins.
    """

    __slots__ = ("_bell", "_due", "armed", "dispatched", "limit", "number", "scope", "task")

    def __init__(self, task: Task, number: int) -> None:
        self.task = task
        self.number = number
        self.scope = trio.CancelScope()
        self.limit: trio.CancelScope | None = None
        """Within `scope`: the task's deadline, if that is a patient one."""
        self.dispatched = False
        """Whether the handler was called."""
        self.armed = 0
        """Its entry among the runtime's deadlines, for the silence of the task."""
        self._due = inf
        self._bell: trio.Event | None = None

    @property
    def current(self) -> bool:
        """Whether the task is in this attempt: nobody has settled the task, or begun another one."""
        return self.task.status == "running" and self.task.attempts == self.number

    @property
    def halted(self) -> bool:
        phase = self.task.phase
        return phase.terminal or phase.workflow.terminal or phase.workflow.suspended

    @property
    def paused(self) -> bool:
        """Whether the task, its phase or its workflow is paused."""
        phase = self.task.phase
        return self.task.paused or phase.paused or phase.workflow.paused

    # ---------------------------------------------------------------- deadlines

    def limited(self) -> AbstractContextManager[trio.CancelScope | None]:
        """Start the task's deadline. A patient one is the scope that is to be entered, and to be set as `limit`."""
        timeout = self.task.timeout
        if timeout is None:
            return nullcontext()
        if self.task.patience:
            return patient_scope(timeout)
        self.scope.deadline = self._due = trio.current_time() + timeout
        return nullcontext()

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled, by somebody or by one of its deadlines."""
        return self.scope.cancel_called or (self.limit is not None and self.limit.cancel_called)

    def beat(self) -> None:
        """Something was heard of the handler: it has another `heartbeat` seconds, if that is what its task asks for."""
        heartbeat = self.task.heartbeat
        if heartbeat is not None and self.dispatched:
            self.scope.deadline = min(self._due, trio.current_time() + heartbeat)

    def overdue(self) -> str:
        """Why its deadline ended it, as a sentence."""
        if trio.current_time() >= self._due or (self.limit is not None and self.limit.cancel_called):
            return f"Attempt {self.number} of task {self.task.key!r} took longer than {self.task.timeout:g} s."
        return (
            f"Nothing was heard of attempt {self.number} of task {self.task.key!r} for {self.task.heartbeat:g} s:"
            " report or pulse more often."
        )

    # ---------------------------------------------------------------- waiting

    async def until(self, ready: Callable[[], bool]) -> None:
        """Wait, without a deadline but the attempt's, until `ready` or halted. A checkpoint only if it has to wait."""
        while not (ready() or self.halted):
            if self._bell is None:
                self._bell = trio.Event()
            await self._bell.wait()

    async def passed(self) -> None:
        """Wait until nothing of it is paused any more, or it is halted."""
        await self.until(lambda: not self.paused)

    def ring(self) -> None:
        """Let those who wait look again."""
        bell, self._bell = self._bell, None
        if bell is not None:
            bell.set()
