"""Jobs: work in the background, beneath whoever owns it."""

from greenroom.actors.job.job import Job
from greenroom.actors.job.manager import JobManager, job_owner

__all__ = ["Job", "JobManager", "job_owner"]
