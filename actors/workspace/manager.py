"""All workspaces of a program, by id, and which of them is worked in."""

from __future__ import annotations

import os
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Final, final

import trio

from greenroom.actors.workspace.actor import Backing, WorkspaceActor
from greenroom.actors.workspace.directory import PRIVATE, DirectoryWorkspace, Limits
from greenroom.actors.workspace.store import WorkspaceStore
from greenroom.actors.workspace.workspace import Workspace
from greenroom.protocol.emitter import Emitter, ErrorHandler, Listener
from greenroom.protocol.workspace import WORKSPACE_EVENTS, Change, File, MemoryWorkspace, Snapshot
from greenroom.protocol.workspace.memory import UNDO_CALLS
from greenroom.runtime.actor import Actor
from greenroom.runtime.file_access import FileAccess
from greenroom.runtime.tree import Tree, free_place

__all__ = ["WorkspaceManager"]

SECONDS: Final = 5.0
"""How long going through all files may take, where nothing else is said."""

THREADS: Final = 4
"""How many calls of all workspaces together run in worker threads at a time, and how many searches beside them."""


@final
class Workspaces(Actor):
    """Parent of every workspace's actor; it has no messages of its own."""

    __slots__ = ()


@final
class WorkspaceManager:
    """Workspaces by id, in order, one of them active or none. They live in the tree, beneath `/workspaces`.

    `store` keeps snapshots for `save` and `open`; with `auto_save`, every call that changes a workspace in memory saves
    it before it answers, and raises what the store raises, though the files are changed. `undo` is how many calls can
    be undone in each, `seconds` how long one search or replacement may take (`None`: any time), `hits` how many matches
    a search gives at most (`None`: all). `error(exception, event)` hears what listeners raise.
    """

    def __init__(
        self,
        tree: Tree,
        *,
        store: WorkspaceStore | None = None,
        auto_save: bool = False,
        undo: int = UNDO_CALLS,
        seconds: float | None = SECONDS,
        hits: int | None = None,
        error: ErrorHandler | None = None,
    ) -> None:
        self._tree = tree
        self._store = store
        self._auto_save = auto_save
        self._undo = undo
        self._seconds = seconds
        self._hits = hits
        self._error = error
        self._calls = trio.CapacityLimiter(THREADS)
        self._searches = trio.CapacityLimiter(THREADS)
        self._workspaces: dict[str, Workspace] = {}
        self._active: str | None = None
        self._ref = tree.spawn(Workspaces(), "workspaces")

    @property
    def access(self) -> FileAccess:
        """Where tools say what they are about to do to files."""
        return self._tree.file_access

    # ---------------------------------------------------------------- the registry

    @property
    def count(self) -> int:
        """How many workspaces there are."""
        return len(self._workspaces)

    @property
    def active(self) -> Workspace | None:
        """The one that is worked in, if one is."""
        return None if self._active is None else self._workspaces.get(self._active)

    def workspace(self, id: str) -> Workspace | None:
        """The workspace of that id, if there is one."""
        return self._workspaces.get(id)

    def workspaces(self) -> list[Workspace]:
        """All of them, in order."""
        return list(self._workspaces.values())

    def add(
        self,
        id: str | None = None,
        seed: Iterable[File] = (),
        *,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
    ) -> Workspace:
        """Add a workspace in memory, with these files. Without an id it gets a UUID.

        One that is added while none is active becomes it. A known id is replaced in its place, and the earlier
        workspace is stopped. `on` registers first listeners; the files given here are not announced.
        """
        changes: list[Change] = []
        backing = MemoryWorkspace(seed, announce=changes.append, undo=self._undo)
        id = str(uuid.uuid4()) if id is None else id
        saved = self._saver(id) if self._auto_save else None
        return self._enter(id, backing, changes, on, error, saved=saved)

    async def mount(
        self,
        root: str | os.PathLike[str],
        id: str | None = None,
        *,
        limits: Limits | None = None,
        private: Collection[str] = PRIVATE,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
    ) -> Workspace:
        """Add a workspace that is a directory, as `add` does; see `DirectoryWorkspace`.

        What processes left in it that were killed while they saved is removed. Folders and files named in `private` are
        no part of it. Raises `WorkspaceError`: IO if it cannot be opened, LIMIT if it has too many files. Cancelled:
        nothing is left open.
        """
        changes: list[Change] = []

        def open_directory() -> DirectoryWorkspace:
            return DirectoryWorkspace(root, announce=changes.append, limits=limits, private=private, undo=self._undo)

        backing = await trio.to_thread.run_sync(open_directory, limiter=self._calls)
        try:
            id = str(uuid.uuid4()) if id is None else id
            return self._enter(id, backing, changes, on, error, close=backing.close, root=os.fspath(root))
        except BaseException:
            backing.close()
            raise

    def switch(self, id: str) -> Workspace | None:
        """Make the workspace of that id the active one; `None`, and nothing changes, if there is none."""
        found = self._workspaces.get(id)
        if found is not None:
            self._active = id
        return found

    async def remove(self, ids: str | Iterable[str]) -> bool:
        """Stop and forget workspaces; whether one of them was there. A directory stays, and so does what a store has.

        If the active one is among them, none is active afterwards. Cancelled: those begun with are removed.
        """
        removed = False
        for id in (ids,) if isinstance(ids, str) else tuple(ids):
            workspace = self._workspaces.pop(id, None)
            if workspace is None:
                continue
            removed = True
            if self._active == id:
                self._active = None
            workspace.destroy()
            await workspace.ref.stop(reason="removed")
        return removed

    async def clear(self) -> None:
        """Remove all workspaces."""
        await self.remove(tuple(self._workspaces))

    # ---------------------------------------------------------------- the store

    async def open(self, id: str) -> Workspace | None:
        """Make the workspace of that id the active one: the one there is, or else one that is as the store has it.

        `None`, and nothing changes, if there is neither. Raises what the store raises.
        """
        if id not in self._workspaces and self._store is not None:
            snapshot = await self._store.get(id)
            if snapshot is not None and id not in self._workspaces:
                self.add(id, snapshot.files)
        return self.switch(id)

    async def save(self, id: str) -> bool:
        """Store a workspace as it is now. Raises what the store raises.

        False without a store or such a workspace, and for a directory, which keeps itself.
        """
        workspace = self._workspaces.get(id)
        if workspace is None or self._store is None or workspace.root is not None:
            return False
        await self._store.set(await workspace.snapshot())
        return True

    def _saver(self, id: str) -> Callable[[tuple[File, ...]], Awaitable[None]] | None:
        store = self._store
        if store is None:
            return None

        async def saved(files: tuple[File, ...]) -> None:
            await store.set(Snapshot(id, files))

        return saved

    # ---------------------------------------------------------------- the tree

    def _enter(
        self,
        id: str,
        backing: Backing,
        changes: list[Change],
        on: Mapping[str, Listener] | None,
        error: ErrorHandler | None,
        *,
        saved: Callable[[tuple[File, ...]], Awaitable[None]] | None = None,
        close: Callable[[], None] | None = None,
        root: str | None = None,
    ) -> Workspace:
        emitter = Emitter(WORKSPACE_EVENTS, on=on, error=error or self._error)
        actor = WorkspaceActor(backing, changes, emitter, self._calls, saved=saved, close=close)
        ref = self._tree.spawn(actor, free_place(self._ref, id), parent=self._ref)
        before = self._workspaces.get(id)
        if before is not None:
            before.destroy()
            before.ref.stop_soon(reason="replaced")
        workspace = Workspace(id, ref, emitter, self._searches, seconds=self._seconds, hits=self._hits, root=root)
        self._workspaces[id] = workspace
        if self.active is None:
            self._active = id
        return workspace
