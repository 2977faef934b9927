"""A deadline around tools, whichever set none of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from math import inf

from greenroom.protocol.errors import ToolError
from greenroom.runtime.bus import Next
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.outcomes import Outcome, failure
from greenroom.runtime.tool import in_time

__all__ = ["timeout_policy"]


def timeout_policy(
    seconds: float, *, patience: bool = True, tools: Collection[str] | None = None
) -> Callable[[Invocation, Next[Outcome]], Awaitable[Outcome]]:
    """A listener to `tools/execute` that gives what is beneath it so many seconds: the tool, and policies registered
    later. Registered before `retry_policy` it bounds all attempts together, after it each one.

    With `patience` the clock stands still while a person is asked, see `patient_scope`. `tools` are the names it is
    for; None: all. A call that took longer is a `ToolFail` TOOL_TIMEOUT, whatever it came to then. Cancellation from
    elsewhere passes. Raises ValueError for seconds that are not positive and finite.
    """
    if not 0 < seconds < inf:
        raise ValueError(f"a timeout is a positive number of seconds, not {seconds}")

    async def within(call: Invocation, next: Next[Outcome]) -> Outcome:
        if tools is not None and call.name not in tools:
            return await next()
        try:
            return await in_time(call.name, seconds, next, patience=patience)
        except ToolError as error:
            if error.code != "TOOL_TIMEOUT":
                raise
            return failure(error)

    return within
