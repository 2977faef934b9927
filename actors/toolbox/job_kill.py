"""The tool `job_kill`: the end of a job in the background."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.actors.job import JobManager, job_owner
from greenroom.protocol.jobs import JobSnapshot, Killing
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.tools import Tool

__all__ = ["job_kill_tool"]

SUMMARY: Final = "Ends a job in the background."

DESCRIPTION: Final = """\
Asks one of your jobs to end, with all that it has started. It does not wait for that: job_output does, with `wait`.

Arguments:
- `job_id`: the job, as the call that began it returned it, or as job_list shows it.
- `reason`: why, for whoever looks on.

Example: {"job_id": "bash-1", "reason": "The server is not needed any more."}

Returns `{outcome, job}`: `outcome` is `cancellation-requested`, also if it was requested before, or \
`already-finished`.
"""


class JobKill(Struct):
    job_id: Annotated[str, Meta(description="The job.")]
    reason: Annotated[str | UnsetType, Meta(description="Why it is to end.")] = UNSET


class Killed(Struct):
    outcome: Killing
    job: JobSnapshot


def job_kill_tool(jobs: JobManager) -> Tool:
    """The tool `job_kill`, for the jobs of the agent that calls it and those that are nobody's.

    It raises JobError UNKNOWN or FOREIGN, `ToolError` TOOL for arguments that are none, and what the job's own way of
    ending raises.
    """

    def execute(call: JobKill) -> Any:
        job = jobs.find(call.job_id, by=job_owner())
        outcome = job.kill(None if call.reason is UNSET else call.reason)
        return msgspec.to_builtins(Killed(outcome, job.snapshot))

    return Tool(
        "job_kill",
        execute,
        summary=SUMMARY,
        description=DESCRIPTION,
        parameters=JobKill,
        handling=Handling(returns=Killed),
    )
