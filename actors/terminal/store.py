"""Where terminals' own settings are kept. Parked forms are never among them."""

from __future__ import annotations

from typing import Protocol, final

from trio.lowlevel import checkpoint

from greenroom.protocol.terminals import TerminalSnapshot

__all__ = ["MemoryTerminalStore", "TerminalStore"]


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
