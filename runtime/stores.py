"""Stores of snapshots: one for each id, in memory, or as rows of a journal's file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec
from trio.lowlevel import checkpoint

from greenroom.runtime.journal import Journal, Table

__all__ = ["MemoryStore", "SnapshotStore", "TableStore", "snapshot_table"]


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


S = TypeVar("S", bound=_Identified)


class SnapshotStore(Protocol[S]):
    """Keeps one snapshot for each id. Implementations may raise; whoever uses the store passes it on."""

    async def get(self, id: str) -> S | None:
        """The snapshot of that id; None if there is none, or none that can be read."""
        ...

    async def set(self, snapshot: S) -> None:
        """Keep it under its own id, in place of an earlier one."""
        ...

    async def delete(self, id: str) -> None:
        """Forget it. Deleting what is not there is fine."""
        ...


class MemoryStore(Generic[S]):
    """Snapshots for as long as the process lives."""

    def __init__(self) -> None:
        self._snapshots: dict[str, S] = {}

    @property
    def ids(self) -> list[str]:
        """Whose snapshots it has, in order of keeping."""
        return list(self._snapshots)

    async def get(self, id: str) -> S | None:
        await checkpoint()
        return self._snapshots.get(id)

    async def set(self, snapshot: S) -> None:
        await checkpoint()
        self._snapshots[snapshot.id] = snapshot

    async def delete(self, id: str) -> None:
        await checkpoint()
        self._snapshots.pop(id, None)


def snapshot_table(name: str) -> Table:
    """The declaration of a table for a `TableStore`."""
    return Table(name, {"id": str, "snapshot": str}, pk="id", not_null={"snapshot"})


class TableStore(Generic[S]):
    """Snapshots in a table of the journal's file, each as one column of JSON. Raises what the journal raises.

    The table has to be registered with the journal. `read` makes a snapshot of decoded JSON, None of what is none. Half
    a character is escaped in the JSON, so that a text with one comes back as it was.
    """

    def __init__(self, journal: Journal, table: Table, read: Callable[[object], S | None]) -> None:
        self._journal = journal
        self._table = table
        self._select = f'SELECT snapshot FROM "{table.name}" WHERE id = ? LIMIT 1'
        self._read = read

    async def get(self, id: str) -> S | None:
        rows = await self._journal.select(self._select, (id,))
        if not rows:
            return None
        try:
            return self._read(json.loads(rows[0][0]))
        except (ValueError, RecursionError):
            return None

    async def set(self, snapshot: S) -> None:
        encoded = json.dumps(msgspec.to_builtins(snapshot))
        await self._journal.write(self._table.upsert(id=snapshot.id, snapshot=encoded))

    async def delete(self, id: str) -> None:
        await self._journal.write(self._table.delete(id))
