"""Where terminals' own settings are kept. Parked forms are never among them; durable ones have a table of their own."""

from __future__ import annotations

from typing import Final, Protocol, final

import msgspec
from trio.lowlevel import checkpoint

from greenroom.protocol.terminals import TerminalSnapshot
from greenroom.runtime.journal import Journal, Table

__all__ = ["TERMINALS", "JournalTerminalStore", "MemoryTerminalStore", "TerminalStore"]

TERMINALS: Final = Table("terminals", {"id": str, "snapshot": bytes}, "id", not_null={"snapshot"})


class TerminalStore(Protocol):
    """Keeps one snapshot a terminal. Implementations may raise; the manager passes it on and changes nothing."""

    async def get(self, id: str) -> TerminalSnapshot | None:
        """The snapshot of that terminal; None if there is none, or none that can be read."""
        ...

    async def set(self, snapshot: TerminalSnapshot) -> None:
        """Keep it under its own id, in place of an earlier one."""
        ...

    async def delete(self, id: str) -> None:
        """Forget it. Deleting what is not there is fine."""
        ...


@final
class MemoryTerminalStore:
    """Settings for as long as the process lives."""

    def __init__(self) -> None:
        self._snapshots: dict[str, TerminalSnapshot] = {}

    async def get(self, id: str) -> TerminalSnapshot | None:
        await checkpoint()
        return self._snapshots.get(id)

    async def set(self, snapshot: TerminalSnapshot) -> None:
        await checkpoint()
        self._snapshots[snapshot.id] = snapshot

    async def delete(self, id: str) -> None:
        await checkpoint()
        self._snapshots.pop(id, None)


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
