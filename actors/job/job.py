"""A job: what is known of one piece of work in the background, and what its owner may do with it."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Final, final

import trio

from greenroom.protocol.jobs import Ending, JobSnapshot, JobStatus, Killing, cut, line
from greenroom.runtime.context import current_node
from greenroom.runtime.errand import Errand
from greenroom.runtime.ref import circle
from greenroom.runtime.waits import Wait, find_circle

__all__ = ["LONGEST_WAIT", "OUTPUT", "WAIT", "Job", "JobPlace"]

WAIT: Final = 30.0
LONGEST_WAIT: Final = 600.0
"""Seconds that a wait takes at most: where nothing is said, and whatever is said."""

OUTPUT: Final = 64_000
"""How many bytes of output are kept until they are read."""


@final
class Awaiting(Wait):
    """A wait for the end of a job."""

    __slots__ = ()

    @property
    def kind(self) -> str:
        return "job"


@final
class JobPlace(Errand):
    """Where a job is in the tree: what it starts and what it waits for is beneath it."""

    kind = "job"

    __slots__ = ("job",)

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.job: Final = job


@final
class Job:
    """One piece of work in the background. Made by `JobManager.start`; whoever has it may do all of this with it.

    It is `running`, then perhaps `stopping`, and at last `completed`, `killed` or `failed`, once and for good. Then
    nothing that it has started is left.
    """

    def __init__(self, kind: str, label: str, *, owner: str | None, quiet: bool, output: int, now: float) -> None:
        if output < 1:
            raise ValueError(f"A job keeps at least one byte of its output, not {output}")
        self.id = ""
        """`<kind>-<number>`."""
        self.kind: Final = line(kind)
        self.label: Final = line(label)
        self.owner: Final = owner
        """The path of the actor whose it is. None: nobody's, and so everybody's."""
        self.quiet: Final = quiet
        """Its end wakes nobody."""
        self.scope: Final = trio.CancelScope()
        """Around its work."""
        self.place: JobPlace
        """Where it is. There since before `start` has returned."""
        self.seen = False
        """Its end is known to whoever cares, or they asked for it."""
        self._output: Final = output
        self._status: JobStatus = "running"
        self._started = now
        self._finished: float | None = None
        self._detail: str | None = None
        self._noted: tuple[Ending, str] | None = None
        self._killing: Callable[[str | None], object] | None = None
        self._streams = False
        self._text = ""
        self._dropped = 0
        self._over = trio.Event()
        self._waits: dict[Wait, None] = {}

    def __repr__(self) -> str:
        return f"<Job {self.id} {self._status}>"

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._finished is not None

    @property
    def status(self) -> JobStatus:
        """Where it is between its start and its end."""
        return self._status

    @property
    def snapshot(self) -> JobSnapshot:
        """All that is known of it."""
        return JobSnapshot(
            id=self.id,
            kind=self.kind,
            label=self.label,
            status=self._status,
            detail=self._detail,
            started_at=round(self._started * 1000),
            finished_at=None if self._finished is None else round(self._finished * 1000),
        )

    # ---------------------------------------------------------------- for its owner

    def read(self) -> str:
        """Its output. Of work that writes while it goes on, what has come since the last read, of which the oldest is
        dropped if that was too much; of other work nothing before its end, and then the same each time: what it
        returned, or why it failed."""
        self.seen = self.seen or self.over
        text = cut(self._text, self._output, self._dropped)
        if self._streams:
            self._text, self._dropped = "", 0
        return text

    def kill(self, reason: str | None = None) -> Killing:
        """Ask it to end, which nobody is told of then. Asking again changes nothing.

        Raises what its own way of ending raises, and then nothing has changed.
        """
        if self.over:
            return "already-finished"
        if self._status == "running":
            if self._killing is None:
                self.scope.cancel()
            else:
                self._killing(reason)
            self._status, self._detail, self.seen = "stopping", line(reason) if reason else None, True
        return "cancellation-requested"

    async def wait(self, timeout: float = WAIT) -> JobSnapshot:
        """Wait for its end, for so many seconds and at most 600; what is known of it then, ended or not.

        It goes on when the time is over, and when this is cancelled; if it has ended by then, its end is what counts.
        Raises ActorDeadlock, at once, if it waits for the caller in turn; ValueError for what is no time.
        """
        if isnan(timeout) or timeout < 0:
            raise ValueError(f"A wait takes a number of seconds, not {timeout}")
        if self.over:
            self.seen = True
            await trio.lowlevel.cancel_shielded_checkpoint()
            return self.snapshot
        waiter, goal = current_node(), self.place.ref.work
        if waiter is not None and (path := find_circle((waiter,), (goal,))):
            raise circle(path)
        wait = Awaiting(waiter, goal)
        self._waits[wait] = None
        try:
            with trio.move_on_after(min(timeout, LONGEST_WAIT)):
                await self._over.wait()
            if not self.over:  # what ends in the very step in which the time is over has ended in time
                await trio.lowlevel.cancel_shielded_checkpoint()
        finally:
            if wait in self._waits:
                del self._waits[wait]
                wait.release()
        self.seen = self.seen or self.over
        return self.snapshot

    # ---------------------------------------------------------------- for its work

    def write(self, text: str) -> None:
        """See `Work.write`."""
        if self.over:
            return
        self._streams = True
        self._text += text
        if len(self._text) > 2 * self._output:
            self._dropped += len(self._text) - self._output
            self._text = self._text[-self._output :]

    def note(self, detail: str, *, ending: Ending = "completed") -> None:
        """See `Work.note`."""
        self._noted = ending, detail

    def on_kill(self, listener: Callable[[str | None], object]) -> None:
        """See `Work.on_kill`."""
        self._killing = listener

    # ---------------------------------------------------------------- for what carries it out

    def returned(self, output: str | None) -> tuple[Ending, str | None]:
        """Its work has returned this: how it ends by that."""
        if output is not None and not self._streams:
            self._text = output
        if self._noted is not None:
            return self._noted
        return "completed", None

    def failed(self, message: str) -> tuple[Ending, str | None]:
        """Its work has raised this: how it ends by that. The whole message is its output, unless it writes."""
        if not self._streams:
            self._text = message
        return "failed", message

    def cancelled(self) -> tuple[Ending, str | None]:
        """Its work was cancelled: how it ends by that."""
        return "killed", "its owner has ended" if self.place.stopping else self._detail

    def settle(self, ending: Ending, detail: str | None, now: float) -> None:
        """This is its end. Without a checkpoint; whoever waits for it goes on."""
        self._status, self._finished = ending, now
        self._detail = line(detail) if detail else None
        waits, self._waits = self._waits, {}
        for wait in waits:
            wait.release()
        self._over.set()
