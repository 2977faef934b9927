"""The tool `job_list`: what goes on in the background."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from greenroom.actors.job import JobManager, job_owner
from greenroom.protocol.jobs import JobSnapshot
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.tools import Tool

__all__ = ["job_list_tool"]

SUMMARY: Final = "Lists what goes on in the background, and what has ended there."

DESCRIPTION: Final = """\
Lists your jobs, which go on in the background since a call of a tool was made with `run_in_background`, and those \
that belong to nobody. It takes no arguments.

Returns a list of `{id, kind, label, status, detail?, startedAt, finishedAt?}`, the oldest first. `status` is \
`running`, `stopping`, or how it has ended: `completed`, `killed` or `failed`. You need not look again and again: you \
are told when one ends.
"""


class JobList(Struct):
    pass


def job_list_tool(jobs: JobManager) -> Tool:
    """The tool `job_list`, for the jobs of the agent that calls it and those that are nobody's."""

    def execute(_call: JobList) -> Any:
        return msgspec.to_builtins([job.snapshot for job in jobs.of(job_owner())])

    return Tool(
        "job_list",
        execute,
        summary=SUMMARY,
        description=DESCRIPTION,
        parameters=JobList,
        handling=Handling(returns=list[JobSnapshot]),
    )
