"""Where sessions are kept while nobody has them open: the Protocol, and the one in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, final

from msgspec import Struct
from trio.lowlevel import checkpoint

from greenroom.protocol.errors import SessionError
from greenroom.protocol.sessions import SessionEvent, SessionHeader

__all__ = ["MemoryPersistence", "Persistence", "Stored", "exists_already"]


@final
class Stored(Struct, frozen=True):
    """A log as it is kept. The data of the events is JSON, or was read and frozen already."""

    header: SessionHeader
    events: Sequence[SessionEvent]


class Persistence(Protocol):
    """Keeps one log for each id. What it cannot do it raises as SessionError, JournalError or OSError.

    The manager asks for one thing at a time of each session, and never cancels what has begun to write.
    """

    @property
    def durable(self) -> bool:
        """What was written outlives the process."""
        ...

    async def claim(self, id: str) -> Stored | None:
        """The log of that id, or None if there is none; nobody else may write it until it is let go of, in whatever
        process. What was torn off at its end is cut."""
        ...

    async def read(self, id: str, after: int = -1) -> Stored | None:
        """The log of that id with the events that follow number `after`, for looking at only, whoever writes it; None
        if there is none."""
        ...

    async def list(self) -> list[SessionHeader]:
        """The headers of all logs that can be read, by id."""
        ...

    async def append(self, header: SessionHeader, events: Sequence[SessionEvent]) -> None:
        """Keep these events, which follow those that are kept. The first of all makes the log, and never writes over
        another one (SESSION_ALREADY_EXISTS). All of them or none; after a failure the same ones come again."""
        ...

    async def release(self, id: str) -> None:
        """Let others write it."""
        ...


def exists_already(id: str) -> SessionError:
    """What is raised where a session of that id would be made a second time."""
    return SessionError(
        "SESSION_ALREADY_EXISTS",
        f"There is a session {id} already: open it, or choose another id.",
        {"session": id},
    )


class MemoryPersistence:
    """Logs for as long as the process lives."""

    durable = False

    def __init__(self) -> None:
        self._logs: dict[str, tuple[SessionHeader, list[SessionEvent]]] = {}

    async def claim(self, id: str) -> Stored | None:
        return await self.read(id)

    async def read(self, id: str, after: int = -1) -> Stored | None:
        await checkpoint()
        kept = self._logs.get(id)
        return None if kept is None else Stored(kept[0], tuple(kept[1][after + 1 :]))

    async def list(self) -> list[SessionHeader]:
        await checkpoint()
        return [self._logs[id][0] for id in sorted(self._logs)]

    async def append(self, header: SessionHeader, events: Sequence[SessionEvent]) -> None:
        await checkpoint()
        if events[0].seq == 0 and header.id in self._logs:
            raise exists_already(header.id)
        self._logs.setdefault(header.id, (header, []))[1].extend(events)

    async def release(self, id: str) -> None:
        await checkpoint()
