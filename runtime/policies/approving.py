"""Approval for the tools that need it, each call by itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from greenroom.runtime.bus import Next
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.verdicts import Allow, Ask, Verdict

__all__ = ["approval_policy"]


def approval_policy(tools: Collection[str]) -> Callable[[Invocation, Next[Verdict]], Awaitable[Verdict]]:
    """A listener to `tools/pre-execute` by which calls of the tools of these names run only if somebody approves of
    them. What another policy denies is not asked about."""

    async def asking(call: Invocation, next: Next[Verdict]) -> Verdict:
        verdict = await next()
        if call.name in tools and isinstance(verdict, Allow):
            return Ask(f"{call.name} is one of the tools that need approval.")
        return verdict

    return asking
