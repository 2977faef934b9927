"""The workspace's actor: it carries out one call after another, each of them whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar, final

import msgspec
import trio

from greenroom.protocol.emitter import Emitter
from greenroom.protocol.workspace import (
    Change,
    Edited,
    File,
    FileInfo,
    Query,
    Range,
    ReplaceResult,
)
from greenroom.protocol.workspace.searching import Check
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.context import as_nobody
from greenroom.runtime.messages import Request

__all__ = ["Backing", "Perform", "WorkspaceActor"]

R = TypeVar("R")


class Backing(Protocol):
    """What holds a workspace's files; see `MemoryWorkspace` and `DirectoryWorkspace`, which also say what is raised."""

    @property
    def slow(self) -> bool: ...

    def call(self) -> AbstractContextManager[object]: ...

    def count(self) -> int: ...
    def has(self, *paths: str) -> bool: ...
    def file(self, path: str) -> File | None: ...
    def files(self) -> tuple[File, ...]: ...
    def paths(self) -> tuple[str, ...]: ...
    def texts(self, only: Container[str] | None = None) -> tuple[File, ...]: ...
    def infos(self) -> tuple[FileInfo, ...]: ...

    def write(self, path: str, text: str, range: Range | None = None) -> File: ...
    def change(self, path: str, make: Callable[[File | None], File]) -> File: ...
    def prepend(self, path: str, text: str) -> File: ...
    def append(self, path: str, text: str) -> File: ...
    def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> Edited: ...
    def replace(self, query: Query, replacement: str, check: Check) -> ReplaceResult: ...
    def move(self, source: str, target: str) -> bool: ...
    def remove(self, path: str) -> bool: ...
    def clear(self) -> None: ...
    def undo(self) -> tuple[str, ...]: ...


class Perform(Request[R], frozen=True):
    """One call: what it does, and whether that takes long enough to be kept out of trio's thread in any case."""

    operation: Callable[[Backing], R]
    slow: bool = False


@final
class WorkspaceActor(Actor):
    """Owns the files of one workspace.

    `changes` is where its backing puts what it announces, `saved` is called after each call that has changed something,
    before its answer is given, and `close` when the actor ends. A call that has begun is carried out, whatever becomes
    of its asker; if the actor is stopped, it ends with the call.
    """

    def __init__(
        self,
        backing: Backing,
        changes: list[Change],
        emitter: Emitter,
        limiter: trio.CapacityLimiter,
        *,
        saved: Callable[[tuple[File, ...]], Awaitable[None]] | None = None,
        close: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._backing = backing
        self._changes = changes
        self._emitter = emitter
        self._limiter = limiter
        self._saved = saved
        self._close = close

    @handles(Perform)
    async def perform(self, message: Perform[Any]) -> Any:
        try:
            if message.slow or self._backing.slow:
                result = await trio.to_thread.run_sync(self._carry_out, message.operation, limiter=self._limiter)
            else:
                result = self._carry_out(message.operation)
        finally:
            changed = self._announce()
        if changed and self._saved is not None:
            await self._saved(self._backing.files())
        return result

    def on_end(self, reason: str) -> None:
        if self._close is not None:
            self._close()

    def _carry_out(self, operation: Callable[[Backing], R]) -> R:
        with self._backing.call():
            return operation(self._backing)

    def _announce(self) -> bool:
        """Tell the listeners what has changed; whether anything has."""
        changes = self._changes.copy()
        self._changes.clear()
        for change in changes:
            as_nobody(self._emitter.emit, str(type(change).__struct_config__.tag), *msgspec.structs.astuple(change))
        return bool(changes)
