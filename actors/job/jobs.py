"""The jobs of one owner: they run beneath it, a few at a time, and end with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import TYPE_CHECKING, Final, final

from trio.lowlevel import cancel_shielded_checkpoint, enable_ki_protection

from greenroom.actors.job.job import Job, JobPlace
from greenroom.actors.job.notices import Notices
from greenroom.protocol.errors import JobError
from greenroom.protocol.jobs import Ending
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.errand import begin, finish
from greenroom.runtime.messages import Request
from greenroom.runtime.pipeline.outcomes import error_text
from greenroom.runtime.reply import Reply
from greenroom.runtime.tree import free_place

if TYPE_CHECKING:
    from greenroom.actors.job.manager import JobManager

__all__ = ["AT_ONCE", "Begin", "Jobs", "Run"]

AT_ONCE: Final = 10
"""How many jobs of one owner may run, or be about to end, at a time."""

KEPT: Final = 100
"""How many jobs of one owner are known after their end: the oldest are forgotten."""

Run = Callable[[Job], Awaitable[str | None]]


class Begin(Request[Job], frozen=True):
    """Start a job, in the context of whoever asks."""

    job: Job
    run: Run
    context: Context


@final
class Jobs(Actor):
    """Parent of the jobs of one owner, at `<owner>/jobs`; of those that are nobody's, at `/jobs`."""

    at_once = True

    __slots__ = ("_live", "_manager", "_notices", "_over")

    def __init__(self, manager: JobManager, notices: Notices | None) -> None:
        super().__init__()
        self._manager = manager
        self._notices = notices
        """Tell the owner, if it can be told anything."""
        self._live: dict[str, Job] = {}
        self._over: dict[str, Job] = {}

    @handles(Begin)
    @enable_ki_protection
    def _begin(self, message: Begin) -> None:
        job = message.job
        if len(self._live) >= AT_ONCE:
            whose = "nobody" if job.owner is None else job.owner
            raise JobError(
                "LIMIT",
                f"{AT_ONCE} jobs of {whose} run already, which is the most: wait for one of them, or kill one: "
                f"{', '.join(self._live)}.",
                {"limit": AT_ONCE, "known": list(self._live)},
            )
        work = message.context.run(message.run, job)
        self._manager.enter(job, 0 if self._notices is None else self._notices.number(job.kind))
        self._live[job.id] = job
        if self._notices is not None:
            self._notices.begun(job)
        reply = self.take_reply()
        message.context.run(lambda: self.start_soon(self._carry_out, job, work, reply, name=job.id))

    async def _carry_out(self, job: Job, work: Awaitable[str | None], reply: Reply[Job]) -> None:
        """The task of a job."""
        nursery = self.ref.life.nursery
        assert nursery is not None, "it is where this task runs"
        place = job.place = begin(JobPlace(job), free_place(self.ref, job.id), parent=self.ref, nursery=nursery)
        place.cancel_with(job.scope)
        if not reply.answer(job):
            job.kill("whoever began it was cancelled")
        ending: Ending = "killed"
        detail: str | None = "its owner has ended"
        try:
            with job.scope:
                ending, detail = job.returned(await work)
            if job.scope.cancelled_caught:
                ending, detail = job.cancelled()
        except Exception as error:
            ending, detail = job.failed(error_text(error))
        finally:
            try:
                await finish(place)
            finally:
                self._settle(job, ending, detail)
        # Whoever waited, and was cancelled or told by the clock just now, has its say first whether it has seen this.
        await cancel_shielded_checkpoint()
        await cancel_shielded_checkpoint()
        owner = self.ref.parent
        if self._notices is not None and owner is not None and owner.alive:
            self._notices.over(job)

    def _settle(self, job: Job, ending: Ending, detail: str | None) -> None:
        job.settle(ending, detail, self._manager.now())
        del self._live[job.id]
        self._over[job.id] = job
        if len(self._over) > KEPT:
            self._manager.forget(self._over.pop(next(iter(self._over))))

    def on_end(self, reason: str) -> None:
        for job in (*self._live.values(), *self._over.values()):
            self._manager.forget(job)
