"""The writer: the one actor that writes the file, many units at a time."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import final

import trio

from greenroom.protocol.errors import JournalError
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.journal.faults import closed
from greenroom.runtime.journal.file import JournalFile
from greenroom.runtime.journal.follower import Tails
from greenroom.runtime.journal.reader import Event, JournalReader
from greenroom.runtime.journal.recorder import Outcome, Recorder, Unit
from greenroom.runtime.journal.steps import Append, End
from greenroom.runtime.journal.tables import Table
from greenroom.runtime.messages import Message, Request
from greenroom.runtime.reply import Reply

__all__ = ["CAPACITY", "Commit", "Done", "Register", "Writer"]

GROUP = 1_024
"""Units a transaction holds at most."""
CAPACITY = 16_384
"""How many units may wait before no more are posted. Those who wait for their own commit are not refused."""
TURNS = 16
"""How often at most the writer lets others run before it begins a transaction."""

Done = Callable[[Outcome], object]
"""Is told what became of a posted unit, in trio's thread. It must not wait; what it raises is logged."""

logger = logging.getLogger("greenroom.journal")


class Commit(Request[tuple[int, ...]], frozen=True):
    """What somebody waits for who writes a unit. It is never sent: see `Writer.accept`."""


class Register(Request[None], frozen=True):
    """Bring tables up to date."""

    tables: tuple[Table, ...]


Receiver = Reply[tuple[int, ...]] | Done | None


@final
class Writer(Actor):
    """Commits units in the order in which they are handed over: one transaction at a time in a worker thread, and
    whatever comes meanwhile goes into the next. Everybody is told after the commit.

    It owns the file. When it stops it commits what was handed over before, and closes the file.
    """

    __slots__ = (
        "_arrived",
        "_backlog",
        "_closed",
        "_file",
        "_limiter",
        "_reader",
        "_recorder",
        "_tails",
        "_wall_clock",
    )

    def __init__(
        self,
        file: JournalFile,
        limiter: trio.CapacityLimiter,
        reader: JournalReader,
        tails: Tails,
        wall_clock: Callable[[], float],
    ) -> None:
        super().__init__()
        self._file = file
        self._limiter = limiter
        self._reader = reader
        self._recorder = Recorder(file.writer, file.path)
        self._tails = tails
        self._wall_clock = wall_clock
        self._backlog: deque[tuple[Unit, Receiver]] = deque()
        self._arrived = trio.Event()
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many units wait for a transaction."""
        return len(self._backlog)

    def require_open(self) -> None:
        """Raise JournalError CLOSED once the writer stops."""
        if self._closed or not self.ref.alive:
            raise closed(self._file.path)

    def accept(self, unit: Unit, receiver: Receiver) -> None:
        """Hand over a unit, and who is to be told, after `require_open`.

        This is not a message: of those that wait in a mailbox when an actor stops, the told ones are lost, and no unit
        that was handed over may be.
        """
        self._backlog.append((unit, receiver))
        self._arrived.set()

    async def on_start(self) -> None:
        self.start_soon(self._write)

    @handles(Register)
    async def on_register(self, message: Register) -> None:
        await trio.to_thread.run_sync(self._file.register, message.tables, limiter=self._limiter)

    def refusal(self, message: Message, reason: str) -> Exception:
        return closed(self._file.path)

    def on_end(self, reason: str) -> None:
        for _, receiver in self._backlog:  # it failed, or was stopped before it had begun
            _tell(receiver, closed(self._file.path))
        self._backlog.clear()
        if not self._closed:
            self._closed = self._reader.closed = True
            self._tails.close()
            self._file.close()

    # ---------------------------------------------------------------- its work

    async def _write(self) -> None:
        try:
            while True:
                await self._gather()
                await self._commit()
        finally:
            self._closed = True
            # Without a deadline: a commit cannot be interrupted, and there are only so many.
            with trio.CancelScope(shield=True):
                try:
                    while self._backlog:
                        await self._commit()
                finally:
                    self._tails.close()
                    await self._reader.close_reader()
                    await trio.to_thread.run_sync(self._file.close, limiter=self._limiter)

    async def _gather(self) -> None:
        """Wait for units, without a deadline, and then until they cease to come one after the other.

        Those who were told of the last commit run now, and are about to write again: a transaction that did not wait
        for them would hold one of them, and the next one all the others.
        """
        await self._arrived.wait()
        before = quiet = 0
        for _ in range(TURNS):
            await trio.lowlevel.checkpoint()
            waiting = len(self._backlog)
            quiet = quiet + 1 if waiting == before else 0
            if quiet == 2 or waiting >= GROUP:
                break
            before = waiting

    async def _commit(self) -> None:
        """One transaction. Once begun it is carried out, and everybody told, even if this is cancelled."""
        group: list[tuple[Unit, Receiver]] = []
        while self._backlog and len(group) < GROUP:
            unit, receiver = self._backlog.popleft()
            if not (isinstance(receiver, Reply) and receiver.settled):  # its writer was cancelled
                group.append((unit, receiver))
        if not self._backlog:
            self._arrived = trio.Event()
        if not group:
            return
        try:
            now = float(self._wall_clock())
        except Exception as error:
            self._publish(group, [_undated(error) for _ in group], 0.0)
            return
        outcomes: list[Outcome] = [closed(self._file.path) for _ in group]  # unless something unknown happens
        try:
            with trio.CancelScope(shield=True):
                units = [unit for unit, _ in group]
                outcomes = await trio.to_thread.run_sync(self._recorder.record, units, now, limiter=self._limiter)
        finally:
            self._publish(group, outcomes, now)

    def _publish(self, group: Sequence[tuple[Unit, Receiver]], outcomes: Sequence[Outcome], now: float) -> None:
        followed = bool(self._tails)
        for (unit, receiver), outcome in zip(group, outcomes, strict=True):
            if followed and not isinstance(outcome, JournalError):
                self._show(unit, outcome, now)
            _tell(receiver, outcome)

    def _show(self, unit: Unit, numbers: Sequence[int], now: float) -> None:
        """Let those who follow a stream see what was committed to it."""
        for step, number in zip(unit, numbers, strict=True):
            if isinstance(step, Append | End) and (tail := self._tails.get(step.stream)) is not None:
                if isinstance(step, Append):
                    tail.add(Event(step.stream, number, now, step.kind, step.payload))
                elif number:
                    tail.end()


def _undated(error: Exception) -> JournalError:
    return JournalError(
        "REFUSED",
        f"The journal refused this, and nothing of it was recorded: its wall clock raised {type(error).__name__}.",
        {"reason": "the wall clock raised"},
    )


def _tell(receiver: Receiver, outcome: Outcome) -> None:
    if isinstance(receiver, Reply):
        if isinstance(outcome, JournalError):
            receiver.fail(outcome)
        else:
            receiver.answer(outcome)
    elif receiver is not None:
        try:
            receiver(outcome)
        except Exception:
            logger.exception("A callback raised that was told of a commit")
    elif isinstance(outcome, JournalError):
        logger.error("A posted unit was not recorded: %s", outcome)
