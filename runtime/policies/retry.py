"""Further attempts at calls that failed, of tools that bear repeating."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection
from typing import Final

import trio

from greenroom.runtime.bus import Next
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.outcomes import Outcome, ToolFail

__all__ = ["FINAL", "retry_policy"]

FINAL: Final = frozenset(
    {"ABORTED", "ABORTED_BEFORE_DISPATCH", "DENIED", "DEPTH", "INVALID_ARGS", "TOOL_CHANGED", "UNKNOWN_TOOL"}
)
"""What no further attempt would change."""


def retry_policy(
    tools: Collection[str],
    *,
    attempts: int = 3,
    delay: float = 1.0,
    factor: float = 2.0,
    retryable: Callable[[ToolFail], bool] = lambda failure: failure.code not in FINAL,
) -> Callable[[Invocation, Next[Outcome]], Awaitable[Outcome]]:
    """A listener to `tools/execute` that calls the tools of these names again where they failed: name only those that
    may run twice. `delay` is how many seconds it waits before the second attempt, `factor` times as long before each
    further one.

    A call that somebody approved of is for one run, and not made again. One that is stopped meanwhile ends with what it
    came to last. Raises ValueError for less than one attempt, and for a `delay` or a `factor` that is no finite number
    of at least zero; TypeError for a single name, which would stand for every part of it.
    """
    if attempts < 1:
        raise ValueError(f"a call takes at least one attempt, not {attempts}")
    if not (0 <= delay < math.inf and 0 <= factor < math.inf):
        raise ValueError(f"a wait is a finite number of seconds from zero on, not {delay}, and {factor} times as long")
    if isinstance(tools, str):
        raise TypeError(f"the tools are a collection of names: [{tools!r}], say")
    further = range(attempts - 1)

    async def again(call: Invocation, next: Next[Outcome]) -> Outcome:
        outcome = await next()
        if call.name not in tools:
            return outcome
        pause = delay
        for _ in further:
            if not isinstance(outcome, ToolFail) or not retryable(outcome) or await _stopped_within(call, pause):
                break
            latest = await next()
            if isinstance(latest, ToolFail) and latest.code == "GRANT_SPENT":
                break
            outcome = latest
            pause *= factor
        return outcome

    return again


async def _stopped_within(call: Invocation, seconds: float) -> bool:
    """Wait so long, or until the call is told to stop; whether it was."""
    with trio.move_on_after(seconds) as scope:
        close = call.on_stop(scope.cancel)
        try:
            await trio.sleep_forever()
        finally:
            close()
    return call.stopped
