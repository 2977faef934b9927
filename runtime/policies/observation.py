"""Observation: no agent changes a file that it has not seen as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from greenroom.protocol.errors import ToolError
from greenroom.runtime.bus import Bus, Next, closing_all
from greenroom.runtime.file_access import EditIntent, FileObserved, Precondition, WriteIntent
from greenroom.runtime.tree import ActorEnded, ActorStarted

__all__ = ["observation_policy"]

MOST: Final = 10_000
"""How many files are remembered for an agent. The one that was seen longest ago is forgotten, and must be read anew."""


def observation_policy(bus: Bus) -> Callable[[], None]:
    """Let agents change only what they have seen, until the returned function is called.

    What an agent has not seen, or seen to be missing, it may make and not overwrite; what it has seen it may write and
    edit as long as that is what is there, whoever else changed it (FS_STALE_VERSION). Editing something unseen is
    refused (FS_NOT_OBSERVED), and so is editing what it was told is missing (FS_NOT_FOUND). Reading a part of a file is
    seeing it, and so is having written it; finding it by a search is not.

    Each actor that calls tools is an agent here, and the program outside the tree is one too. All of it is in memory:
    an agent that ends, or begins anew, has seen nothing.
    """
    seen = _Seen()

    async def before_write(intent: WriteIntent, next: Next[Precondition]) -> Precondition:
        observed = seen.find(intent)
        return Precondition(None if observed is None else observed.version)

    async def before_edit(intent: EditIntent, next: Next[Precondition]) -> Precondition:
        observed = seen.find(intent)
        if observed is None:
            raise ToolError(
                "FS_NOT_OBSERVED",
                f"{intent.path} was not changed: you have not seen what is in it. Read it, then edit.",
                {"path": intent.path},
            )
        if observed.version is None:
            raise ToolError(
                "FS_NOT_FOUND",
                f"There was no file at {intent.path} when you looked. Write it, or look again.",
                {"path": intent.path},
            )
        return Precondition(observed.version)

    def started(actor: ActorStarted) -> None:
        if actor.restarts:
            seen.forget(actor.path)

    def ended(actor: ActorEnded) -> None:
        seen.forget(actor.path)

    return closing_all(
        bus.on("fs/write-intent", before_write),
        bus.on("fs/edit-intent", before_edit),
        bus.on("fs/observed", seen.note),
        bus.on("actor/started", started),
        bus.on("actor/ended", ended),
    )


@final
class _Seen:
    """What each agent was told last of each file."""

    def __init__(self) -> None:
        self._files: dict[str | None, dict[tuple[str, str], FileObserved]] = {}

    def find(self, intent: WriteIntent | EditIntent) -> FileObserved | None:
        return self._files.get(intent.agent, {}).get((intent.workspace, intent.path))

    def note(self, observed: FileObserved) -> None:
        files = self._files.setdefault(observed.agent, {})
        place = (observed.workspace, observed.path)
        files.pop(place, None)  # so that it comes last
        files[place] = observed
        if len(files) > MOST:
            del files[next(iter(files))]

    def forget(self, agent: str) -> None:
        self._files.pop(agent, None)
