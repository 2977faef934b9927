"""What an agent is told of the ends of its jobs: by its inbox, and not so that two of them wake each other for ever."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, final

from greenroom.actors.agent import Agent
from greenroom.actors.job.job import Job
from greenroom.protocol.errors import GreenroomError
from greenroom.runtime.inbox import InboxInserted

__all__ = ["IN_A_ROW", "Notices"]

logger = logging.getLogger("greenroom.jobs")

IN_A_ROW: Final = 3
"""How often an idle agent is woken by its jobs alone; after that it has to be somebody else."""

SOURCE: Final = "job"


@final
class Notices:
    """Tells one agent. A notice to one that works is read at its next step; one that is idle is woken for it, at most
    three times in a row. Input of a user, and a run that somebody begins, let it be woken anew. What is `quiet` wakes
    nobody."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
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

    def tell(self, job: Job) -> None:
        """Tell it that a job is over."""
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

    def _started(self, _id: str) -> None:
        if not self._waking:
            self._left = IN_A_ROW
        self._waking = False

    def _inserted(self, event: InboxInserted) -> None:
        if event.agent == self._agent.ref.path and event.message.source is None:
            self._left = IN_A_ROW
