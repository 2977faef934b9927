"""A reminder for a model that makes the same call again and again."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Final, final

from msgspec import structs

from greenroom.runtime.bus import Bus, Next, closing_all
from greenroom.runtime.inbox import InboxClaimed
from greenroom.runtime.pipeline.invocations import Settled
from greenroom.runtime.pipeline.verdicts import Review
from greenroom.runtime.tree import ActorEnded

__all__ = ["RepeatReminder"]

AT: Final = (3, 5, 8)


@final
class RepeatReminder:
    """A listener to `tools/post-execute` that tells a model, with the third, fifth and eighth same call in a row, that
    it goes in circles. Calls are the same by name and arguments, whatever the order of their keys; whether they were
    denied, failed or succeeded makes no difference. Calls of tools in `exclude` are as if they were not made, and so
    are those that a tool makes itself.

    It counts for each agent by itself, in memory, until `reset`: which is to be called when a person has said something
    to the agent, and when the agent has ended. `follow` registers it and calls that by itself.
    """

    def __init__(self, *, exclude: Collection[str] = ()) -> None:
        self._exclude = exclude
        self._last: dict[str, tuple[str, int]] = {}

    def follow(self, bus: Bus) -> Callable[[], None]:
        """Listen, until the returned function is called; and begin anew with an agent that has ended, or that has read
        input in its inbox which no part of the runtime has put there. What is added to its conversation otherwise is
        not seen: whoever does that calls `reset`."""

        def claimed(input: InboxClaimed) -> None:
            if any(message.source is None for message in input.messages):
                self.reset(input.agent)

        def ended(actor: ActorEnded) -> None:
            self.reset(actor.path)

        return closing_all(
            bus.on("tools/post-execute", self),
            bus.on("inbox/claimed", claimed),
            bus.on("actor/ended", ended),
        )

    def reset(self, agent: str) -> None:
        """Forget what the agent at that path has called."""
        self._last.pop(agent, None)

    async def __call__(self, settled: Settled, next: Next[Review]) -> Review:
        review = await next()
        call = settled.call
        if call.agent is None or call.parent is not None or call.name in self._exclude:
            return review
        made = json.dumps([call.name, call.arguments], sort_keys=True)
        last, times = self._last.get(call.agent, ("", 0))
        times = times + 1 if made == last else 1
        self._last[call.agent] = (made, times)
        if times not in AT:
            return review
        text = (
            f"This was the same call of {call.name} {times} times in a row. Look at what it gave, and go another way."
        )
        return structs.replace(review, contexts=(*review.contexts, text))
