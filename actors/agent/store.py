"""Where conversations are kept while nobody has them open."""

from __future__ import annotations

from typing import Final, TypeAlias, final

from greenroom.protocol.agents import ConversationSnapshot, parse_conversation
from greenroom.runtime.journal import Journal
from greenroom.runtime.stores import MemoryStore, SnapshotStore, TableStore, snapshot_table

__all__ = ["CONVERSATIONS", "ConversationStore", "MemoryConversationStore", "TableConversationStore"]

ConversationStore: TypeAlias = SnapshotStore[ConversationSnapshot]

CONVERSATIONS: Final = snapshot_table("conversations")
"""To be registered with the journal before a `TableConversationStore` is used on it."""


@final
class MemoryConversationStore(MemoryStore[ConversationSnapshot]):
    """Conversations for as long as the process lives."""


@final
class TableConversationStore(TableStore[ConversationSnapshot]):
    """Conversations in a table of the journal's file."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal, CONVERSATIONS, parse_conversation)
