"""The bus events of inboxes: what came into one, and what became of it."""

from __future__ import annotations

from typing import final

from msgspec import Struct

from greenroom.protocol.agents.inbox import InboxMessage
from greenroom.runtime.bus import Bus

__all__ = ["InboxClaimed", "InboxDiscarded", "InboxEvents", "InboxInserted"]


class InboxInserted(Struct, frozen=True):
    """`inbox/inserted`: an agent was given input that waits. One of the other two follows for each message, once."""

    agent: str
    """The path of the agent, here and in the other two."""
    message: InboxMessage


class InboxClaimed(Struct, frozen=True):
    """`inbox/claimed`: messages went into the agent's conversation, all in one step, in this order."""

    agent: str
    messages: tuple[InboxMessage, ...]


class InboxDiscarded(Struct, frozen=True):
    """`inbox/discarded`: messages will not be read. They were cleared, or the agent has ended."""

    agent: str
    messages: tuple[InboxMessage, ...]
    reason: str


@final
class InboxEvents:
    """The three events of one runtime. Agents dispatch them, each for its own inbox."""

    def __init__(self, bus: Bus) -> None:
        self.inserted = bus.declare("inbox/inserted", InboxInserted)[1]
        self.claimed = bus.declare("inbox/claimed", InboxClaimed)[1]
        self.discarded = bus.declare("inbox/discarded", InboxDiscarded)[1]
