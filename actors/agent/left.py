"""What an agent is told of the jobs that an earlier one on its session has left: nobody else can tell it any more."""

from __future__ import annotations

from greenroom.actors.agent.inbox import Inbox
from greenroom.actors.session import Session
from greenroom.protocol.sessions import JOBS, JobEnded, project

__all__ = ["SOURCE", "tell_of_jobs"]

SOURCE = "job"
"""Who an agent hears of its jobs from."""


def tell_of_jobs(session: Session, inbox: Inbox) -> None:
    """Put one notice into the inbox of an agent that begins, if jobs were left; it wakes nobody. They are in the log
    until they were told of, so that this is tried again if it fails. Raises what the inbox and the session raise.

    What was taken over from another session are not its own jobs.
    """
    left = project([JOBS], session.live_events()).values[JOBS.key]
    if not left:
        return
    named = ", ".join(f"{job.id} ({job.label})" for job in left)
    inbox.inject(
        f"These jobs of yours are over; if they had not ended before, they ended when you were stopped: {named}. Their "
        "output is lost, and what they had done by then may stand: look before you begin them again.",
        source=SOURCE,
    )
    for job in left:
        session.append("job/ended", JobEnded(job.id))
