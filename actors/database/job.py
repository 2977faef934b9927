"""One piece of blocking work for a database: how it is run in a thread, and how it is ended early."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, final

import outcome
import trio
from trio.lowlevel import Abort, RaiseCancelT, checkpoint_if_cancelled, current_task, wait_task_rescheduled

from greenroom.actors.database.session import Happening, Session
from greenroom.actors.database.storage import Stop
from greenroom.protocol.errors import ActorError, DatabaseError
from greenroom.runtime.context import CURRENT
from greenroom.runtime.messages import Request
from greenroom.runtime.ref import Ref, circle
from greenroom.runtime.reply import Reply
from greenroom.runtime.waits import find_circle

__all__ = ["Job", "Perform", "Work", "closed", "in_thread", "perform"]

R = TypeVar("R")

Work = Callable[[Session], R]


@final
class Job(Generic[R]):
    """What is to be done with a session, and the wish that it end early. `happened` is for its listeners afterwards."""

    __slots__ = ("begun", "happened", "stop", "work")

    def __init__(self, work: Work[R]) -> None:
        self.work = work
        self.stop = Stop(_is_cancelled)
        self.begun = False
        """The actor has taken it: from now on it ends by itself, with an outcome."""
        self.happened: list[Happening] = []


class Perform(Request[R], frozen=True):
    """Do a job, in its turn."""

    job: Job[R]


async def perform(ref: Ref, message: Perform[R], name: str) -> R:
    """Ask a database's actor for a job, and wait for its outcome without a deadline.

    Raises what the job raises, ActorDeadlock if waiting would close a circle, `DatabaseError` CLOSED. Cancelled while
    the job waits for its turn: it never begins. Cancelled while it runs: it is asked to end, and waited for; if it was
    done all the same its result is returned, so that nobody is left to guess whether something was stored.
    """
    await checkpoint_if_cancelled()
    job = message.job
    waiter = CURRENT.get()
    if waiter is not None and (path := find_circle((waiter,), (ref,))):
        raise circle(path)
    if not ref.alive:
        raise closed(name)
    reply: Reply[R] = Reply(message, ref, waiter, ref)
    ref.post(reply)
    cancel: RaiseCancelT | None = None

    def abort(raise_cancel: RaiseCancelT) -> Abort:
        nonlocal cancel
        if not job.begun:
            return reply.abort(raise_cancel)
        cancel = raise_cancel
        job.stop.request()
        return Abort.FAILED

    reply.task = current_task()
    await wait_task_rescheduled(abort)
    try:
        return reply.result()
    except ActorError as error:
        raise closed(name) if error.code == "STOPPED" else error from None
    except DatabaseError as error:
        if error.code != "ABORTED":
            raise
    if cancel is not None:
        cancel()
    raise closed(name)  # else it was the actor that was asked to end


async def in_thread(work: Callable[[], R], limiter: trio.CapacityLimiter) -> outcome.Outcome[R]:
    """How the work ended in a worker thread. There is no checkpoint after the end, so that an outcome is never lost.

    Cancelled, the thread is awaited all the same; the stop of a job that it works on is then wished.
    """
    return await trio.to_thread.run_sync(outcome.capture, work, limiter=limiter)


def _is_cancelled() -> bool:
    """Whether the task that awaits this worker thread is cancelled. That task itself gets to know of it by trio."""
    try:
        trio.from_thread.check_cancelled()
    except trio.Cancelled:
        return True
    return False


def closed(name: str) -> DatabaseError:
    """What every use of a closed database raises."""
    return DatabaseError("CLOSED", f"the database {name!r} is closed; open it anew to use it")
