"""What an agent is told of its jobs: by its log which there are, by its inbox that one is over, and not so that two of
them wake each other for ever."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Final, final

from greenroom.actors.agent import Agent
from greenroom.actors.agent.left import SOURCE
from greenroom.actors.job.job import Job
from greenroom.actors.session import Session
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.sessions import JobEnded, JobStarted
from greenroom.runtime.inbox import InboxInserted

__all__ = ["IN_A_ROW", "Notices"]

logger = logging.getLogger("greenroom.jobs")

_NUMBER: Final = re.compile("[0-9]{1,15}")

IN_A_ROW: Final = 3
"""How often an idle agent is woken by its jobs alone; after that it has to be somebody else."""


@final
class Notices:
    """Tells one agent. A notice to one that works is read at its next step; one that is idle is woken for it, at most
    three times in a row. Input of a user, and a run that somebody begins, let it be woken anew. What is `quiet` wakes
    nobody."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._last = _last_numbers(agent.session)
        self._left = IN_A_ROW
        self._waking = False
        """It was woken, and the run has not begun."""
        self._unheard: tuple[Callable[[], None], ...] = (
            agent.emitter.on("start", self._started),
            agent.ref.tree.bus.on("inbox/inserted", self._inserted),
        )

    def close(self, _place: object = None) -> None:
        """Listen no more."""
        for unheard in self._unheard:
            unheard()

    def number(self, kind: str) -> int:
        """The highest that a job of this kind has in its log, also of those of earlier processes; 0 for none."""
        return self._last.get(kind, 0)

    def begun(self, job: Job) -> None:
        """Log that there is a job."""
        self._log("job/started", JobStarted(job.id, job.label))

    def over(self, job: Job) -> None:
        """Tell it that a job is over, unless it knows. What it could not be told is told with its next beginning."""
        if job.seen or self._tell(job):
            self._log("job/ended", JobEnded(job.id))

    def _log(self, kind: str, data: JobStarted | JobEnded) -> None:
        session = self._agent.session
        if session is None:
            return
        try:
            session.append(kind, data)
        except GreenroomError as error:  # it was disposed of, and so its agent can do nothing any more
            logger.warning("%s of %s is not logged: %s", data.id, self._agent.ref.path, error)

    def _tell(self, job: Job) -> bool:
        told = job.snapshot
        detail = f": {told.detail}" if told.detail else ""
        text = f"The job {told.id} ({told.label}) is over, {told.status}{detail}. Its output: job_output({told.id!r})."
        inbox = self._agent.inbox
        try:
            if job.quiet or self._agent.status == "running" or not self._left:
                inbox.inject(text, source=SOURCE)
            else:
                self._waking = True
                inbox.steer(text, source=SOURCE)
                self._left -= 1
        except GreenroomError as error:  # it is full, or the agent ends; the job is listed all the same
            self._waking = False
            logger.warning("%s is not told of the end of %s: %s", self._agent.ref.path, told.id, error)
            return False
        return True

    def _started(self, _id: str) -> None:
        if not self._waking:
            self._left = IN_A_ROW
        self._waking = False

    def _inserted(self, event: InboxInserted) -> None:
        if event.agent == self._agent.ref.path and event.message.source is None:
            self._left = IN_A_ROW


def _last_numbers(session: Session | None) -> dict[str, int]:
    last: dict[str, int] = {}
    for event in () if session is None else session.events():
        if isinstance(event.data, JobStarted):
            kind, _, number = event.data.id.rpartition("-")
            if _NUMBER.fullmatch(number):
                last[kind] = max(last.get(kind, 0), int(number))
    return last
