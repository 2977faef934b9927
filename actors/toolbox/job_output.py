"""The tool `job_output`: what a job has to say, and the wait for its end."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.actors.job import JobManager, job_owner
from greenroom.actors.job.job import WAIT
from greenroom.protocol.jobs import JobSnapshot
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.tools import Tool

__all__ = ["job_output_tool"]

SUMMARY: Final = "Reads the output of a job in the background, and waits for its end if asked to."

DESCRIPTION: Final = """\
Reads the output of one of your jobs.

Arguments:
- `job_id`: the job, as the call that began it returned it, or as job_list shows it.
- `wait`: true to wait for its end first.
- `timeout_ms`: how long to wait at most, in milliseconds; 30000 if you do not say, and 600000 at most. The job goes \
on if it has not ended by then.

Example: {"job_id": "bash-1", "wait": true, "timeout_ms": 60000}

Returns `{text, job}`. Of a command, `text` is what it has written since you last read it, so read it once. Of any \
other job it is empty until the end, and then the whole result. `job` is what job_list tells of it.
"""


class JobOutput(Struct):
    job_id: Annotated[str, Meta(description="The job.")]
    wait: Annotated[bool, Meta(description="Wait for its end first.")] = False
    timeout_ms: Annotated[
        Annotated[int, Meta(ge=0, le=600_000)] | UnsetType,
        Meta(description="How many milliseconds to wait at most."),
    ] = UNSET


class Read(Struct):
    text: str
    job: JobSnapshot


def job_output_tool(jobs: JobManager) -> Tool:
    """The tool `job_output`, for the jobs of the agent that calls it and those that are nobody's.

    It raises JobError UNKNOWN or FOREIGN, ActorDeadlock for a wait in a circle, and `ToolError` TOOL for arguments that
    are none.
    """

    async def execute(call: JobOutput) -> Any:
        job = jobs.find(call.job_id, by=job_owner())
        if call.wait:
            await job.wait(WAIT if call.timeout_ms is UNSET else call.timeout_ms / 1000)
        return msgspec.to_builtins(Read(job.read(), job.snapshot))

    return Tool(
        "job_output",
        execute,
        summary=SUMMARY,
        description=DESCRIPTION,
        parameters=JobOutput,
        handling=Handling(returns=Read),
    )
