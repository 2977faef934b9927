"""The mailbox: bounded, first in first out, one receiver, and a control lane that overtakes."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any, final

import outcome
import trio
from trio.lowlevel import (
    Abort,
    Task,
    cancel_shielded_checkpoint,
    checkpoint,
    checkpoint_if_cancelled,
    current_task,
    enable_ki_protection,
    reschedule,
    wait_task_rescheduled,
)

from greenroom.runtime.messages import Message
from greenroom.runtime.reply import Reply
from greenroom.runtime.waits import Wait

__all__ = ["Closed", "Mailbox"]

BURST = 32
"""Messages a busy receiver takes between two full checkpoints, so that it neither starves others nor pays for each."""


class Closed(Exception):
    """The mailbox takes and gives nothing any more."""


@final
class _Sender:
    """Somebody who stands in line with a message before a full mailbox."""

    __slots__ = ("message", "task", "wait")

    def __init__(self, message: Any, task: Task, wait: Wait | None) -> None:
        self.message = message
        self.task = task
        self.wait = wait


@final
class Mailbox:
    """Messages for one receiver, at most `capacity` of them; control messages are not counted and come first.

    Those who find it full stand in line and are moved in by the receiver in order of arrival, so nobody overtakes and
    nobody starves. A request whose asker gives up leaves at once, wherever it is, and the next in line gets its place.

    Cancellation: a cancelled `send` either put its message in whole and returned, or left nothing behind; a cancelled
    `receive` took nothing.

    The oldest message has a slot of its own, and the lanes behind it are made at first use and dropped when empty: an
    empty deque is 760 bytes, and most mailboxes are idle and seldom hold two messages.
    """

    __slots__ = ("_burst", "_control", "_data", "_first", "_line", "capacity", "closed", "receiver")

    def __init__(self, capacity: int = 1024) -> None:
        if capacity < 1:
            raise ValueError(f"A mailbox holds at least one message, not {capacity}")
        self.capacity = capacity
        self.closed = False
        self._first: Any = None
        self._data: deque[Any] | None = None
        """What came after the first."""
        self._control: deque[Any] | None = None
        self._line: OrderedDict[Reply[Any] | _Sender, None] | None = None
        """Empty unless the mailbox is full. Left from both the front and the middle, in constant time."""
        self.receiver: Task | None = None
        """Who waits for a message: there is none to be had. None while the receiver is busy."""
        self._burst = BURST

    @property
    def depth(self) -> int:
        """How many messages wait here, those in line included."""
        first = self._first is not None
        return first + len(self._data or ()) + len(self._control or ()) + len(self._line or ())

    # ---------------------------------------------------------------- putting

    @enable_ki_protection
    def offer(self, item: Any) -> bool:
        """Put without waiting. False: full, nothing happened. Raises `Closed`."""
        if self.closed:
            raise Closed
        if self._first is None:
            self._first = item
            receiver = self.receiver
            if receiver is not None:
                self.receiver = None
                reschedule(receiver)
            return True
        data = self._data
        if data is None:
            data = self._data = deque()
        if len(data) + 1 >= self.capacity:
            return False
        data.append(item)
        return True

    @enable_ki_protection
    def control(self, item: Any) -> None:
        """Put into the control lane, which has no bound: only the runtime writes there. Raises `Closed`."""
        if self.closed:
            raise Closed
        if self._control is None:
            self._control = deque()
        self._control.append(item)
        self.wake()

    @enable_ki_protection
    async def send(self, item: Any) -> None:
        """Put, standing in line while the mailbox is full. Raises `Closed`."""
        await checkpoint_if_cancelled()
        if self.offer(item):
            await cancel_shielded_checkpoint()
        else:
            await self.stand_in_line(item)

    @enable_ki_protection
    async def stand_in_line(self, item: Any, wait: Wait | None = None) -> None:
        """What a sender does whose offer was refused. It is in line before the first checkpoint. Raises `Closed`.

        `wait` is the sender's wait in the graph, if it has one: it is released at the moment the message is in.
        """
        sender = _Sender(item, current_task(), wait)
        self.stand(sender)

        def leave(_raise_cancel: Any) -> Abort:
            self.leave(sender)
            return Abort.SUCCEEDED

        await wait_task_rescheduled(leave)

    @enable_ki_protection
    def queue(self, reply: Reply[Any]) -> None:
        """Put a request, in line if the mailbox is full: its asker waits for the answer anyway. Raises `Closed`."""
        if not self.offer(reply):
            self.stand(reply)

    def stand(self, who: Reply[Any] | _Sender) -> None:
        """Join the line, in the step in which `offer` refused."""
        if self._line is None:
            self._line = OrderedDict()
        self._line[who] = None

    @enable_ki_protection
    def leave(self, who: Reply[Any] | _Sender) -> None:
        """Somebody who stands in line, or whose request is here, gives up. Does nothing for anybody else.

        For one who is not in line it looks through the queued messages, at most `capacity`.
        """
        if type(who) is _Sender and who.wait is not None:
            who.wait.release()
        if self._line is not None and who in self._line:
            del self._line[who]
        elif self._first is who:
            self._first = self._data.popleft() if self._data else None
            self._move_in()
        elif _remove(who, self._data):
            self._move_in()
        else:
            _remove(who, self._control)

    def _move_in(self) -> None:
        """Let the first in line in, if there is one: there is room."""
        line = self._line
        if not line:
            return
        who, _ = line.popitem(last=False)
        if type(who) is not _Sender:
            self._append(who)
            return
        self._append(who.message)
        if who.wait is not None:
            who.wait.release()
        reschedule(who.task)

    def _append(self, item: Any) -> None:
        if self._first is None:
            self._first = item
            return
        if self._data is None:
            self._data = deque()
        self._data.append(item)

    # ---------------------------------------------------------------- receiving

    async def receive(self) -> Any:
        """The next message, waiting without a deadline. Raises `Closed` when closed, whatever is still queued."""
        while (item := self.take()) is None:
            if not await self.more():
                raise Closed
        return item

    @enable_ki_protection
    def take(self) -> Any:
        """The next message, or None. Then the receiver awaits `more` and takes again.

        None is also given after `BURST` messages in a row, and for good once it is closed.
        """
        burst = self._burst
        if not burst:
            return None
        if self._control is not None:
            item = self._control.popleft()
            if not self._control:
                self._control = None
        else:
            item = self._first
            if item is None:
                return None
            data = self._data
            self._first = data.popleft() if data else None
            if self._line:
                self._move_in()
        self._burst = burst - 1
        return item

    async def more(self) -> bool:
        """Wait, without a deadline, until there may be a message to take. False: it is closed. For one task."""
        if self.closed:
            return False
        if self.receiver is not None:
            raise trio.BusyResourceError("another task receives from this mailbox already")
        self._burst = BURST
        if self._first is not None or self._control is not None:
            await checkpoint()
        else:
            self._data = self._line = None
            self.receiver = current_task()
            await wait_task_rescheduled(self._abort)
        return True

    def _abort(self, _raise_cancel: Any) -> Abort:
        self.receiver = None
        return Abort.SUCCEEDED

    def drop(self, kind: type[Message]) -> None:
        """Take all control messages of this type out: what they were to tell has no meaning any more."""
        if self._control is not None:
            self._control = deque(item for item in self._control if type(item) is not kind) or None

    def wake(self) -> None:
        """Let `more` return, if the receiver waits there."""
        receiver, self.receiver = self.receiver, None
        if receiver is not None:
            reschedule(receiver)

    # ---------------------------------------------------------------- the end

    @enable_ki_protection
    def close(self) -> None:
        """Take and give nothing any more: the receiver and every sender in line are told. Idempotent."""
        self.closed = True
        self._burst = 0
        self.wake()
        for who in list(self._line or ()):
            if type(who) is _Sender:
                self.leave(who)
                reschedule(who.task, outcome.Error(Closed()))

    @enable_ki_protection
    def drain(self) -> list[Reply[Any]]:
        """Take everything out when it was closed, and give the requests, so that their askers can be told."""
        left = [*(self._control or ()), self._first, *(self._data or ()), *(self._line or ())]
        self._first = self._control = self._data = self._line = None
        return [item for item in left if type(item) is Reply]


def _remove(who: object, lane: deque[Any] | None) -> bool:
    """By identity: messages may compare as they like."""
    for place, item in enumerate(lane or ()):
        if item is who:
            assert lane is not None
            del lane[place]
            return True
    return False
