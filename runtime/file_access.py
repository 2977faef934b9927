"""What tools on files announce: that they are about to change one, and which version of one they have shown or made."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import final

import trio
from msgspec import UNSET, Struct, UnsetType

from greenroom.protocol.errors import GreenroomError
from greenroom.runtime.bus import Bus

__all__ = ["EditIntent", "FileAccess", "FileObserved", "Precondition", "WriteIntent"]


@final
class Precondition(Struct, frozen=True):
    """What must be at the path for a change to be made, looked at in the same step (as RFC 9110, section 13, has it).

    A `version` must be that of the file that is there; `None`: no file may be there; by default anything may.
    """

    version: str | UnsetType | None = UNSET


class _Intent(Struct, frozen=True, kw_only=True):
    agent: str | None
    """The path of the actor that calls the tool. None: the program, outside the tree."""
    workspace: str
    path: str


@final
class WriteIntent(_Intent, frozen=True, kw_only=True):
    """A file is about to be written as a whole. Who decides gives a `Precondition` and calls no `next`."""

    content: str


@final
class EditIntent(_Intent, frozen=True, kw_only=True):
    """A text in a file is about to be replaced. Who decides gives a `Precondition` and calls no `next`."""

    old: str
    new: str
    replace_all: bool


@final
class FileObserved(Struct, frozen=True, kw_only=True):
    """An agent has been shown a file, or has made it what it is. `version` is None where it was told there is none."""

    agent: str | None
    workspace: str
    path: str
    version: str | None


@final
class FileAccess:
    """The three events of one runtime. What dispatches them is for tools on files.

    `before_write` and `before_edit` ask who decides for the precondition; a listener that is against the change raises.
    """

    def __init__(self, bus: Bus) -> None:
        self.write_intent, self._before_write = bus.declare(
            "fs/write-intent", WriteIntent, mode="waterfall", result=Precondition
        )
        self.edit_intent, self._before_edit = bus.declare(
            "fs/edit-intent", EditIntent, mode="waterfall", result=Precondition
        )
        self.observed, self.announce = bus.declare("fs/observed", FileObserved)
        self._turns: dict[tuple[str | None, str, str], trio.Lock] = {}

    @asynccontextmanager
    async def turn(self, agent: str | None, workspace: str, path: str) -> AsyncGenerator[None]:
        """Let the calls of one agent for one file come one after another, in order, so that each goes by what it was
        shown by those before: a model makes several edits of a file at once. Those of others are not waited for.

        There is no deadline. Cancelled while it waits: the block is not entered.
        """
        place = (agent, workspace, path)
        lock = self._turns.setdefault(place, trio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._turns.pop(place, None)

    async def before_write(self, intent: WriteIntent) -> Precondition:
        """What must be there for the file to be written. Raises what a listener raises."""
        return _checked(await self._before_write(intent, _anything), "fs/write-intent")

    async def before_edit(self, intent: EditIntent) -> Precondition:
        """What must be there for the file to be edited. Raises what a listener raises."""
        return _checked(await self._before_edit(intent, _anything), "fs/edit-intent")


async def _anything() -> Precondition:
    return Precondition()


def _checked(decided: object, event: str) -> Precondition:
    """A listener's code is a user's own: what is no precondition must not pass as none."""
    if not isinstance(decided, Precondition):
        raise GreenroomError(
            "INVALID_PRECONDITION",
            f"A listener to {event} gave what is no Precondition, so nothing was changed: let it return one, or what "
            "next() gives.",
            {"event": event},
        )
    return decided
