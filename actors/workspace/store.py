"""Where workspaces are kept while nobody has them open."""

from __future__ import annotations

from typing import Final, TypeAlias, final

from greenroom.protocol.workspace import Snapshot, parse_snapshot
from greenroom.runtime.journal import Journal
from greenroom.runtime.stores import MemoryStore, SnapshotStore, TableStore, snapshot_table

__all__ = ["WORKSPACES", "MemoryWorkspaceStore", "TableWorkspaceStore", "WorkspaceStore"]

WorkspaceStore: TypeAlias = SnapshotStore[Snapshot]

WORKSPACES: Final = snapshot_table("workspaces")
"""To be registered with the journal before a `TableWorkspaceStore` is used on it."""


@final
class MemoryWorkspaceStore(MemoryStore[Snapshot]):
    """Workspaces for as long as the process lives."""


@final
class TableWorkspaceStore(TableStore[Snapshot]):
    """Workspaces in a table of the journal's file."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal, WORKSPACES, parse_snapshot)
