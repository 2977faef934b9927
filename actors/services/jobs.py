"""Work in the background, as programs outside see it, whosever it is."""

from __future__ import annotations

from typing import final

import trio
from msgspec import UNSET, Struct, UnsetType

from greenroom.actors.job import Job, JobManager
from greenroom.actors.remote import remote
from greenroom.protocol.jobs import JobSnapshot, Killing

__all__ = ["JobInfo", "JobKilled", "JobService"]


class JobInfo(Struct, frozen=True, kw_only=True, rename="camel"):
    """A job at a glance. Its output is its owner's, to whom a read by somebody else would be a loss."""

    job: JobSnapshot
    owner: str | None
    """The path of the actor whose it is; null if it is nobody's."""


class JobKilled(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a kill came to."""

    outcome: Killing
    job: JobSnapshot


@final
class JobService:
    """The namespace `job`."""

    def __init__(self, jobs: JobManager) -> None:
        self._jobs = jobs

    def find(self, id: str) -> Job | None:
        """The job of that id, whosever it is."""
        return next((job for job in self._jobs.jobs() if job.id == id), None)

    @remote("list", repeatable=True)
    async def list(self) -> tuple[JobInfo, ...]:
        """All jobs that are known, in the order of their start."""
        await trio.lowlevel.checkpoint()
        return tuple(map(_info, self._jobs.jobs()))

    @remote("show", repeatable=True)
    async def show(self, job: Job) -> JobInfo:
        """One job as it stands."""
        await trio.lowlevel.checkpoint()
        return _info(job)

    @remote("kill")
    async def kill(self, job: Job, reason: str | UnsetType = UNSET) -> JobKilled:
        """Ask a job to end, with all that it has started, and do not wait for that. Asking again changes nothing."""
        await trio.lowlevel.checkpoint()
        outcome = job.kill(None if isinstance(reason, UnsetType) else reason)
        return JobKilled(outcome=outcome, job=job.snapshot)


def _info(job: Job) -> JobInfo:
    return JobInfo(job=job.snapshot, owner=job.owner)
