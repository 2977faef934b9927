"""Where terminals' own settings are kept. Parked forms are never among them; durable ones have a table of their own."""

from __future__ import annotations

from typing import Final, TypeAlias, final

import msgspec

from greenroom.protocol.terminals import TerminalSnapshot
from greenroom.runtime.journal import Journal, Table
from greenroom.runtime.stores import MemoryStore, SnapshotStore

__all__ = ["TERMINALS", "JournalTerminalStore", "MemoryTerminalStore", "TerminalStore"]

TERMINALS: Final = Table("terminals", {"id": str, "snapshot": bytes}, "id", not_null={"snapshot"})


TerminalStore: TypeAlias = SnapshotStore[TerminalSnapshot]


@final
class MemoryTerminalStore(MemoryStore[TerminalSnapshot]):
    """Settings for as long as the process lives."""


@final
class JournalTerminalStore:
    """Settings in a journal, whose tables must have `TERMINALS` among them. Every call raises JournalError.

    What `set` and `delete` have returned from is committed. Cancelled: it is, or it is not.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def get(self, id: str) -> TerminalSnapshot | None:
        rows = await self._journal.select("SELECT snapshot FROM terminals WHERE id = ?", (id,))
        try:
            return msgspec.json.decode(rows[0][0], type=TerminalSnapshot) if rows else None
        except msgspec.DecodeError:
            return None

    async def set(self, snapshot: TerminalSnapshot) -> None:
        await self._journal.write(TERMINALS.upsert(id=snapshot.id, snapshot=msgspec.json.encode(snapshot)))

    async def delete(self, id: str) -> None:
        await self._journal.write(TERMINALS.delete(id))
