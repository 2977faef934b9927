"""Where conversations are kept while nobody has them open."""

from __future__ import annotations

from typing import Protocol, final

from trio.lowlevel import checkpoint

from greenroom.protocol.agents import ConversationSnapshot

__all__ = ["ConversationStore", "MemoryConversationStore"]


class ConversationStore(Protocol):
    """Keeps one snapshot a conversation. Implementations may raise; whoever uses it passes it on."""

    async def get(self, id: str) -> ConversationSnapshot | None:
        """The snapshot of that id; `None` if there is none, or none that can be read."""
        ...

    async def set(self, snapshot: ConversationSnapshot) -> None:
        """Keep it under its own id, in place of an earlier one."""
        ...

    async def delete(self, id: str) -> None:
        """Forget it. Deleting what is not there is fine."""
        ...


@final
class MemoryConversationStore:
    """Snapshots for as long as the process lives."""

    def __init__(self) -> None:
        self._snapshots: dict[str, ConversationSnapshot] = {}

    @property
    def ids(self) -> list[str]:
        """Whose snapshots it has, in order of keeping."""
        return list(self._snapshots)

    async def get(self, id: str) -> ConversationSnapshot | None:
        await checkpoint()
        return self._snapshots.get(id)

    async def set(self, snapshot: ConversationSnapshot) -> None:
        await checkpoint()
        self._snapshots[snapshot.id] = snapshot

    async def delete(self, id: str) -> None:
        await checkpoint()
        self._snapshots.pop(id, None)
