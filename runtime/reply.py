"""The reply cell: a request on its way, the place of its answer, and its wait in the graph, in one record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

import trio
from trio.lowlevel import (
    Abort,
    Task,
    cancel_shielded_checkpoint,
    current_task,
    enable_ki_protection,
    reschedule,
    wait_task_rescheduled,
)

from greenroom.protocol.errors import ActorError
from greenroom.runtime.messages import Request, Withdrawn
from greenroom.runtime.patience import OPEN, begun
from greenroom.runtime.waits import Node, Wait

if TYPE_CHECKING:
    from greenroom.runtime.ref import Ref

__all__ = ["Reply"]

R = TypeVar("R")

QUEUED: Final = 0
"""In the mailbox, or in line before it."""
IN_HAND: Final = 1
"""Its request is being handled."""
KEPT: Final = 2
"""Taken by the handler, to be answered later. Everything after it is settled."""
ANSWERED: Final = 3
FAILED: Final = 4
WITHDRAWN: Final = 5


@final
class Reply(Wait, Generic[R]):
    """One asked question, from the ask until its answer is given. It is settled exactly once.

    A handler answers by returning or raising; or it takes the cell with `Actor.take_reply`, keeps it, and calls
    `answer` or `fail` whenever it likes, from any task of the same trio run. The wait leaves the graph at that moment.

    `to` is the actor whose mailbox the request goes to, `target` the party that is waited for. They are the same in
    `Ref.ask`. Whoever makes cells with another target sees to it that the actor's `on_end` settles the ones it keeps;
    the others the runtime fails with STOPPED.
    """

    __slots__ = ("message", "note", "state", "task", "to", "value")

    def __init__(
        self,
        message: Request[R],
        to: Ref,
        waiter: Node | None,
        target: Node,
        second: Node | None = None,
        other: Node | None = None,
        label: str | None = None,
    ) -> None:
        # Wait's constructor is repeated here, not called: an ask is the kernel's hottest path.
        self.message = message
        self.to = to
        self.waiter = waiter
        self.target = target
        self.second = second
        self.other = other
        self.label = label
        self.task: Task | None = None
        self.state = QUEUED
        self.value: Any = None
        self.note: Any = None
        """The keeper's own key for it."""
        asked = target.asked
        if asked is None:
            target.asked = {self: None}
        else:
            asked[self] = None
        if waiter is not None:
            waiting = waiter.waiting
            if waiting is None:
                waiter.waiting = {self: None}
            else:
                waiting[self] = None
        if second is not None or other is not None:
            self._link_more()
        if OPEN:
            begun(self)

    @property
    def settled(self) -> bool:
        """It was answered, failed or withdrawn."""
        return self.state > KEPT

    @property
    def withdrawn(self) -> bool:
        """The asker was cancelled: nobody takes an answer any more."""
        return self.state == WITHDRAWN

    @property
    def kind(self) -> str:
        return type(self.message).__name__

    def answer(self, value: R) -> bool:
        """Give the answer. False: it was settled before, and nothing happened."""
        return self._settle(ANSWERED, value)

    def fail(self, error: Exception) -> bool:
        """Let `await ref.ask(...)` raise `error`. False: it was settled before, and nothing happened."""
        return self._settle(FAILED, error)

    @enable_ki_protection
    def _settle(self, state: int, value: Any) -> bool:
        if self.state > KEPT:
            return False
        self.state = state
        self.value = value
        self.release()
        task = self.task
        if task is not None:
            self.task = None
            reschedule(task)
        return True

    @enable_ki_protection
    async def wait(self) -> R:
        """The answer, whenever it comes; for one task. Raises what it failed with.

        Cancelled: the request is withdrawn, and an actor that keeps this cell is told.
        """
        if self.task is not None:
            raise trio.BusyResourceError("another task waits for this reply already")
        if self.state <= KEPT:
            self.task = current_task()
            await wait_task_rescheduled(self.abort)
        else:  # settled within our own step; still a checkpoint, but one that can lose nothing
            await cancel_shielded_checkpoint()
        return self.result()

    def result(self) -> R:
        """The answer that was given, or the raise of the error that it failed with. Only for a settled one."""
        if self.state == ANSWERED:
            answer: R = self.value
            return answer
        if self.state == WITHDRAWN:
            path = self.to.path
            raise ActorError("WITHDRAWN", f"The {self.kind} to {path} was withdrawn; ask again.", {"path": path})
        error, self.value = self.value, None
        try:
            raise error
        finally:
            del error, self  # no cycle through the traceback

    @enable_ki_protection
    def withdraw(self) -> None:
        """Give the question up, as the cancellation of its asker does. Does nothing once it is settled."""
        if self.state > KEPT:
            return
        before, self.state = self.state, WITHDRAWN
        self.release()
        if before == QUEUED:
            self.to.mailbox.leave(self)
        elif before == KEPT:
            self.to.notice(Withdrawn(self))
        task, self.task = self.task, None
        if task is not None:
            reschedule(task)

    def abort(self, _raise_cancel: Any) -> Abort:
        """trio's abort function for the asker's task: runs in whoever cancels, so it only marks, unlinks and posts."""
        self.task = None
        self.withdraw()
        return Abort.SUCCEEDED
