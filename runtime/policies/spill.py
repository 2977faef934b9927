"""Spilling: a result too large for a model's context is kept elsewhere, and the model told where."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from msgspec import UNSET, structs

from greenroom.runtime.bus import Next
from greenroom.runtime.pipeline.invocations import Settled
from greenroom.runtime.pipeline.outcomes import ToolOk
from greenroom.runtime.pipeline.verdicts import Accept, Review

__all__ = ["SpillStore", "excerpt", "spill_policy"]

logger = logging.getLogger("greenroom.policies")


class SpillStore(Protocol):
    """Where large results go."""

    async def save(self, owner: str, name: str, text: str) -> str:
        """Keep the text of a result of the tool `name` for the agent at `owner`; how it is found again."""
        ...


def spill_policy(
    store: SpillStore, *, max_inline_bytes: int, skip: Collection[str] = ("read",)
) -> Callable[[Settled, Next[Review]], Awaitable[Review]]:
    """A listener to `tools/post-execute` that keeps texts of more than so many bytes of UTF-8 in the store, and shows
    the model their beginning, a notice with the place, and their end, all within that many bytes. Register it with
    `prepend=True`, so that it sees what the others have made of the text.

    The value stays as it is: whoever called the tool from a program gets all of it. Left alone are nested calls,
    failures, values that a policy has put in place of the tool's, and tools in `skip` (a tool that reads what was
    spilled, above all). Where nobody owns the result, where it cannot be saved, and where not even the notice fits,
    the text stays whole and the reason is logged.
    """

    async def spill(settled: Settled, next: Next[Review]) -> Review:
        review = await next()
        call, outcome = settled.call, settled.outcome
        if not isinstance(review, Accept) or review.value is not UNSET or not isinstance(outcome, ToolOk):
            return review
        text = outcome.content if review.content is None else review.content
        if text is None or len(text.encode()) <= max_inline_bytes or call.parent is not None or call.name in skip:
            return review
        if call.agent is None:
            logger.warning("The result of %s is large and stays whole: no agent owns it", call.name)
            return review
        try:
            place = await store.save(call.agent, call.name, text)
            shortened = excerpt(text, place, max_inline_bytes)
        except Exception as error:
            logger.warning("The result of %s is large and stays whole: it cannot be saved: %s", call.name, error)
            return review
        if shortened is None:
            logger.warning("The result of %s is large and stays whole: there is no room for its place", call.name)
            return review
        return structs.replace(review, content=shortened)

    return spill


def excerpt(text: str, place: str, most: int) -> str | None:
    """The beginning and the end of a text around a notice, in at most so many bytes of UTF-8. None: it has no room."""
    whole = text.encode()
    notice = f"\n[... {len(whole)} bytes in all, kept at {place}: read there what you need ...]\n"
    room = most - len(notice.encode())
    if room < 0:
        return None
    head = whole[: room - room // 2].decode(errors="ignore")
    tail = whole[len(whole) - room // 2 :].decode(errors="ignore")
    return f"{head}{notice}{tail}"
