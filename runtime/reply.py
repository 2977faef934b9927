"""The reply cell: a request on its way, the place of its answer, and its wait in the graph, in one record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from trio.lowlevel import Abort, Task, cancel_shielded_checkpoint, current_task, reschedule, wait_task_rescheduled

from greenroom.runtime.messages import Request, Withdrawn
from greenroom.runtime.waits import Node, Wait

if TYPE_CHECKING:
    from greenroom.runtime.ref import Ref

__all__ = ["Reply"]

R = TypeVar("R")

QUEUED: Final = 0
"""In the mailbox, or in line before it."""
HELD: Final = 1
"""In the actor's hands: handled just now, or kept to be answered later."""
ANSWERED: Final = 2
FAILED: Final = 3
WITHDRAWN: Final = 4


@final
class Reply(Wait, Generic[R]):
    """One asked question, from the ask until its answer is given. It is settled exactly once.

    A handler answers by returning or raising; or it takes the cell with `Actor.take_reply`, keeps it, and calls `answer`
    or `fail` whenever it likes, from any task of the same trio run. The wait leaves the graph at that moment.
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
        """The actor whose mailbox the request goes to; `target` is the party that is waited for."""
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
        if target.asked is None:
            target.asked = {self: None}
        else:
            target.asked[self] = None
        if waiter is not None:
            if waiter.waiting is None:
                waiter.waiting = {self: None}
            else:
                waiter.waiting[self] = None
        if second is not None or other is not None:
            self._link_more()

    @property
    def settled(self) -> bool:
        """It was answered, failed or withdrawn."""
        return self.state > HELD

    @property
    def withdrawn(self) -> bool:
        """The asker was cancelled: nobody takes an answer any more."""
        return self.state == WITHDRAWN

    def answer(self, value: R) -> bool:
        """Give the answer. False: it was settled before, and nothing happened."""
        return self._settle(ANSWERED, value)

    def fail(self, error: Exception) -> bool:
        """Let `await ref.ask(...)` raise `error`. False: it was settled before, and nothing happened."""
        return self._settle(FAILED, error)

    def _settle(self, state: int, value: Any) -> bool:
        if self.state > HELD:
            return False
        self.state, self.value = state, value
        self.release()
        task, self.task = self.task, None
        if task is not None:
            reschedule(task)
        return True

    async def wait(self) -> R:
        """The answer, whenever it comes. Cancelled: the request is withdrawn, and an actor that keeps this cell is told `Withdrawn`."""
        if self.state <= HELD:
            self.task = current_task()
            await wait_task_rescheduled(self.abort)
        else:  # settled within our own step; still a checkpoint, but one that can lose nothing
            await cancel_shielded_checkpoint()
        return self.result()

    def result(self) -> R:
        """The answer that was given, or the raise of the error that it failed with. Only for a settled one."""
        if self.state == FAILED:
            error, self.value = self.value, None
            try:
                raise error
            finally:
                del error, self  # no cycle through the traceback
        value: R = self.value
        return value

    def withdraw(self) -> None:
        """Give the question up, as the cancellation of the asker does. Does nothing once it is settled."""
        if self.state > HELD:
            return
        held = self.state == HELD
        self.state, self.task = WITHDRAWN, None
        self.release()
        if held:
            self.to.notice(Withdrawn(self))
        else:
            self.to.mailbox.leave_line(self)

    def abort(self, _raise_cancel: Any) -> Abort:
        """trio's abort function for the asker's task: runs in whoever cancels, so it only marks, unlinks and posts."""
        self.withdraw()
        return Abort.SUCCEEDED
