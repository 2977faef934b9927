"""The mailbox: bounded, first in first out, one receiver, and a control lane that overtakes."""

from __future__ import annotations

from collections import deque
from typing import Any, final

import outcome
from trio.lowlevel import (
    Abort,
    Task,
    cancel_shielded_checkpoint,
    checkpoint,
    checkpoint_if_cancelled,
    current_task,
    reschedule,
    wait_task_rescheduled,
)

from greenroom.runtime.reply import HELD, Reply
from greenroom.runtime.waits import Wait

__all__ = ["Closed", "Mailbox"]

BURST = 16
"""Messages a busy receiver takes between two full checkpoints, so that it neither starves others nor pays for each."""


class Closed(Exception):
    """The mailbox takes and gives nothing any more."""


@final
class _Sender:
    """Somebody who stands in line with a message before a full mailbox."""

    __slots__ = ("message", "task", "wait")

    def __init__(self, message: Any, task: Task, wait: Wait | None) -> None:
        self.message, self.task, self.wait = message, task, wait


@final
class Mailbox:
    """Messages for one receiver, at most `capacity` of them; control messages are not counted and come first.

    Those who find it full stand in line and are moved in by the receiver in order of arrival, so nobody overtakes and
    nobody starves. A request whose asker has given up is passed over, never delivered.

    Cancellation: a cancelled `send` either put its message in whole and returned, or left nothing behind; a cancelled
    `receive` took nothing.

    The oldest message has a slot of its own, and the lanes behind it are made at first use and dropped when empty: an
    empty deque is 760 bytes, and most mailboxes are idle and seldom hold two messages.
    """

    __slots__ = ("_burst", "_control", "_data", "_first", "_line", "_receiver", "capacity", "closed")

    def __init__(self, capacity: int = 1024) -> None:
        if capacity < 1:
            raise ValueError(f"A mailbox holds at least one message, not {capacity}")
        self.capacity = capacity
        self.closed = False
        self._first: Any = None
        self._data: deque[Any] | None = None
        """What came after the first."""
        self._control: deque[Any] | None = None
        self._line: dict[Reply[Any] | _Sender, None] | None = None
        self._receiver: Task | None = None
        self._burst = BURST

    @property
    def depth(self) -> int:
        """How many messages wait here, those in line included."""
        first = self._first is not None
        return first + len(self._data or ()) + len(self._control or ()) + len(self._line or ())

    @property
    def full(self) -> bool:
        """A message put now would have to stand in line."""
        return self._first is not None and len(self._data or ()) + 1 >= self.capacity

    @property
    def idle(self) -> bool:
        """Its receiver waits here."""
        return self._receiver is not None

    def offer(self, item: Any) -> bool:
        """Put without waiting. False: full, nothing happened. Raises `Closed`."""
        if self.closed:
            raise Closed
        if self._first is None:
            self._first = item
        else:
            data = self._data
            if data is None:
                data = self._data = deque()
            if len(data) + 1 >= self.capacity:
                return False
            data.append(item)
        receiver = self._receiver
        if receiver is not None:
            self._receiver = None
            reschedule(receiver)
        return True

    def control(self, item: Any) -> None:
        """Put into the control lane, which has no bound: only the runtime writes there. Raises `Closed`."""
        if self.closed:
            raise Closed
        if self._control is None:
            self._control = deque()
        self._control.append(item)
        receiver = self._receiver
        if receiver is not None:
            self._receiver = None
            reschedule(receiver)

    async def send(self, item: Any, wait: Wait | None = None) -> None:
        """Put, standing in line while the mailbox is full. Raises `Closed`.

        `wait` is the sender's wait in the graph, if it has one: it is released at the moment the message is in.
        """
        await checkpoint_if_cancelled()
        if self.offer(item):
            if wait is not None:
                wait.release()
            await cancel_shielded_checkpoint()
            return
        sender = _Sender(item, current_task(), wait)
        self._stand(sender)

        def leave(_raise_cancel: Any) -> Abort:
            self.leave_line(sender)
            return Abort.SUCCEEDED

        await wait_task_rescheduled(leave)

    def queue(self, reply: Reply[Any]) -> None:
        """Put a request, in line if the mailbox is full: its asker waits for the answer anyway. Raises `Closed`."""
        if not self.offer(reply):
            self._stand(reply)

    def _stand(self, who: Reply[Any] | _Sender) -> None:
        if self._line is None:
            self._line = {}
        self._line[who] = None

    def leave_line(self, who: Reply[Any] | _Sender) -> None:
        """Somebody who stood in line gives up. Does nothing for one who does not stand there."""
        if self._line is not None:
            self._line.pop(who, None)
        if type(who) is _Sender and who.wait is not None:
            who.wait.release()

    async def receive(self) -> Any:
        """The next message, waiting without a deadline. Raises `Closed` at once when closed, whatever is still queued."""
        while True:
            self._burst -= 1
            if self._burst <= 0:
                self._burst = BURST
                await checkpoint()
            if self.closed:
                raise Closed
            if (item := self.take()) is not None:
                return item
            self._data = self._line = None
            self._receiver, self._burst = current_task(), BURST
            await wait_task_rescheduled(self._leave)

    def take(self) -> Any:
        """The next message without waiting, or None. Takes what is left also after `close`."""
        if self._control is not None:
            while self._control:
                item = self._control.popleft()
                if type(item) is not Reply or item.state <= HELD:
                    return item
            self._control = None
        while (item := self._first) is not None:
            data = self._data
            self._first = data.popleft() if data else None
            if self._line:
                self._move_in()
            if type(item) is not Reply or item.state <= HELD:
                return item
        return None

    def _move_in(self) -> None:
        """Let the first in line in: there is room for one."""
        line = self._line
        assert line is not None
        who = next(iter(line))
        del line[who]
        message = who.message if type(who) is _Sender else who
        if self._first is None:
            self._first = message
        else:
            if self._data is None:
                self._data = deque()
            self._data.append(message)
        if type(who) is _Sender:
            if who.wait is not None:
                who.wait.release()
            reschedule(who.task)

    def _leave(self, _raise_cancel: Any) -> Abort:
        self._receiver = None
        return Abort.SUCCEEDED

    def close(self) -> None:
        """Take and give nothing any more: the receiver and every sender in line get `Closed`. Idempotent.

        What is still queued stays for `take`, so that its askers can be told.
        """
        self.closed = True
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            reschedule(receiver)
        for who in list(self._line or ()):
            if type(who) is _Sender:
                self.leave_line(who)
                reschedule(who.task, outcome.Error(Closed()))
