"""Where workspaces are kept while nobody has them open."""

from __future__ import annotations

from typing import Protocol, final

from trio.lowlevel import checkpoint

from greenroom.protocol.workspace import Snapshot

__all__ = ["MemoryWorkspaceStore", "WorkspaceStore"]


class WorkspaceStore(Protocol):
    """Keeps one snapshot a workspace. Implementations may raise; the manager passes it on."""

    async def get(self, id: str) -> Snapshot | None:
        """The snapshot of that id; `None` if there is none, or none that can be read."""
        ...

    async def set(self, snapshot: Snapshot) -> None:
        """Keep it under its own id, in place of an earlier one."""
        ...

    async def delete(self, id: str) -> None:
        """Forget it. Deleting what is not there is fine."""
        ...


@final
class MemoryWorkspaceStore:
    """Snapshots for as long as the process lives."""

    def __init__(self) -> None:
        self._snapshots: dict[str, Snapshot] = {}

    async def get(self, id: str) -> Snapshot | None:
        await checkpoint()
        return self._snapshots.get(id)

    async def set(self, snapshot: Snapshot) -> None:
        await checkpoint()
        self._snapshots[snapshot.id] = snapshot

    async def delete(self, id: str) -> None:
        await checkpoint()
        self._snapshots.pop(id, None)
