"""Conversations in a table of the journal's file."""

from __future__ import annotations

import json
from typing import Final, final

import msgspec

from greenroom.protocol.agents import ConversationSnapshot, parse_conversation
from greenroom.runtime.journal import Journal, Table

__all__ = ["CONVERSATIONS", "TableConversationStore"]

CONVERSATIONS: Final = Table("conversations", {"id": str, "snapshot": str}, pk="id", not_null={"snapshot"})
"""To be registered with the journal before a store is used on it."""


@final
class TableConversationStore:
    """Snapshots in a table of the journal's file, each as one column of JSON. Raises what the journal raises.

    Half a character is escaped in the JSON, so that a text with one comes back as it was.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def get(self, id: str) -> ConversationSnapshot | None:
        rows = await self._journal.select("SELECT snapshot FROM conversations WHERE id = ? LIMIT 1", (id,))
        if not rows:
            return None
        try:
            return parse_conversation(json.loads(rows[0][0]))
        except (ValueError, RecursionError):
            return None

    async def set(self, snapshot: ConversationSnapshot) -> None:
        encoded = json.dumps(msgspec.to_builtins(snapshot))
        await self._journal.write(CONVERSATIONS.upsert(id=snapshot.id, snapshot=encoded))

    async def delete(self, id: str) -> None:
        await self._journal.write(CONVERSATIONS.delete(id))
