"""One workspace, as the program that owns it and its tools see it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import TypeVar, final, overload

import trio

from greenroom.actors.workspace.actor import Backing, Perform
from greenroom.actors.workspace.budget import Budget
from greenroom.protocol.emitter import Emitter
from greenroom.protocol.workspace import (
    Edited,
    File,
    FileInfo,
    Query,
    Range,
    ReplaceResult,
    SearchMatch,
    Snapshot,
    search_files,
)
from greenroom.protocol.workspace.memory import LIGHT
from greenroom.protocol.workspace.positions import cut
from greenroom.runtime.ref import Ref

__all__ = ["Workspace"]

R = TypeVar("R")


@final
class Workspace:
    """Files under paths. Made by `WorkspaceManager.add` (in memory) or `mount` (a directory).

    Calls are carried out one after another, in the order in which they were made, and each of them whole; a search goes
    through the files as they are when its turn comes. A call of several items does one after another; where one raises,
    those before it are done.

    Each call raises `WorkspaceError` as `protocol.workspace` says and a directory adds, and ActorError STOPPED once the
    workspace was removed. Cancelled: the call is carried out whole or not at all; a cancelled search ends.

    Events of its `emitter`, in the workspace's own step: `write(file)`, `remove(path)`, `move(source, target)`,
    `clear()`. A listener may tell, but not await: waiting for the same workspace there is a circle.
    """

    __slots__ = ("_hits", "_limiter", "_seconds", "emitter", "id", "ref", "root")

    def __init__(
        self,
        id: str,
        ref: Ref,
        emitter: Emitter,
        limiter: trio.CapacityLimiter,
        *,
        seconds: float | None,
        hits: int | None,
        root: str | None,
    ) -> None:
        self.id = id
        self.root = root
        """The directory that it is, if it is one."""
        self.ref = ref
        """The address of its actor, `/workspaces/<id>`."""
        self.emitter = emitter
        """Where its events can be listened to."""
        self._limiter = limiter
        self._seconds = seconds
        self._hits = hits

    def __repr__(self) -> str:
        return f"<Workspace {self.id}>"

    def destroy(self) -> None:
        """Tell nobody anything any more, for good. Its files are as they were and can still be edited."""
        self.emitter.close()

    # ---------------------------------------------------------------- looking

    async def count(self) -> int:
        """How many files there are."""
        return await self._perform(lambda files: files.count())

    async def has(self, paths: str | Iterable[str]) -> bool:
        """Whether a file is at the path, or at one of several."""
        wanted = _listed(paths)
        return await self._perform(lambda files: files.has(*wanted))

    async def file(self, path: str) -> File | None:
        """The file at the path, if there is one."""
        return await self._perform(lambda files: files.file(path))

    async def files(self) -> tuple[File, ...]:
        """All files in order."""
        return await self._perform(lambda files: files.files())

    async def paths(self) -> tuple[str, ...]:
        """Where there are files, in order. Nothing is read for it."""
        return await self._perform(lambda files: files.paths())

    async def infos(self) -> tuple[FileInfo, ...]:
        """What a listing tells of each file, in order."""
        return await self._perform(lambda files: files.infos())

    async def snapshot(self) -> Snapshot:
        """All files, as a store keeps them."""
        return Snapshot(self.id, await self.files())

    @overload
    async def read(self, path: str) -> str | None: ...
    @overload
    async def read(self, path: list[str] | tuple[str, ...]) -> dict[str, str]: ...
    async def read(self, path: str | list[str] | tuple[str, ...]) -> str | dict[str, str] | None:
        """The text at the path, `None` if there is none; or the texts at those of several paths that have one."""
        if isinstance(path, str):
            file = await self.file(path)
            return file.text if file is not None else None
        paths = tuple(path)
        found = await self._perform(lambda files: [files.file(path) for path in paths])
        return {file.path: file.text for file in found if file is not None and file.text is not None}

    async def read_range(self, path: str, range: Range) -> tuple[str, Range] | None:
        """A part of the text, and the range that it is; `None` if there is no text.

        Ends that lie outside the text are moved to its nearest place. A reversed range is empty.
        """
        text = await self.read(path)
        return cut(text, range) if text is not None else None

    async def search(
        self,
        query: str,
        *,
        regex: bool = False,
        sensitive: bool = True,
        limit: int | None = None,
        only: Container[str] | None = None,
        each: int | None = None,
    ) -> list[SearchMatch]:
        """Matches within lines, at most `limit` of them over all files; see `Query` and `search_files`.

        With `only`, no other paths are looked at; with `each`, that many matches of a line are enough.

        It runs in a worker thread, and others can change files meanwhile. Raises `WorkspaceError`: PATTERN; LIMIT if it
        takes longer than the manager allows.
        """
        bounds = [bound for bound in (limit, self._hits) if bound is not None]
        wanted = Query(query, regex, sensitive, min(bounds, default=None))
        files = await self._perform(lambda files: files.texts(only))
        return await trio.to_thread.run_sync(
            lambda: search_files(files, wanted, Budget(wanted, self._seconds), each=each), limiter=self._limiter
        )

    # ---------------------------------------------------------------- changing

    @overload
    async def write(self, path: str, text: str, range: Range | None = None) -> File: ...
    @overload
    async def write(self, path: Mapping[str, str]) -> list[File]: ...
    async def write(
        self, path: str | Mapping[str, str], text: str = "", range: Range | None = None
    ) -> File | list[File]:
        """Put the text at the path, whatever is there, or with a range in place of that part; or texts by their paths.

        Returns the file, or the files, as they are then. MODALITY and RANGE where a range cannot be replaced.
        """
        if isinstance(path, str) and range is not None:
            return await self._perform(lambda files: files.write(path, text, range), text)
        return await self._edit(lambda files: files.write, path, text)

    async def change(self, path: str, make: Callable[[File | None], File], *texts: str) -> File:
        """Put the file that `make` gives in the place of the one that it is given, `None` where there is none.

        Nothing comes between the two, also where somebody else writes into the directory: CHANGED is raised then. What
        `make` raises is raised, and nothing has changed. It is plain, waits for nothing and may run in a worker thread;
        `texts` are what it puts in, so that much of it does.
        """
        return await self._perform(lambda files: files.change(path, make), *texts)

    @overload
    async def prepend(self, path: str, text: str) -> File: ...
    @overload
    async def prepend(self, path: Mapping[str, str]) -> list[File]: ...
    async def prepend(self, path: str | Mapping[str, str], text: str = "") -> File | list[File]:
        """Put the text before what is there, or several. A missing file counts as empty; MODALITY where bytes are."""
        return await self._edit(lambda files: files.prepend, path, text)

    @overload
    async def append(self, path: str, text: str) -> File: ...
    @overload
    async def append(self, path: Mapping[str, str]) -> list[File]: ...
    async def append(self, path: str | Mapping[str, str], text: str = "") -> File | list[File]:
        """Put the text after what is there, or several. A missing file counts as empty; MODALITY where bytes are."""
        return await self._edit(lambda files: files.append, path, text)

    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> Edited:
        """Replace a text that is there exactly once, or with `replace_all` as often as it is, by another.

        Raises `WorkspaceError` UNMATCHED, AMBIGUOUS, MODALITY; see `protocol.workspace.editing.edit`.
        """
        return await self._perform(lambda files: files.edit(path, old, new, replace_all=replace_all), new)

    async def replace(
        self, query: str, replacement: str, *, regex: bool = False, sensitive: bool = True, limit: int | None = None
    ) -> ReplaceResult:
        """Replace matches over whole texts, at most `limit` of them over all files; the replacement is taken literally.

        It runs in a worker thread; other calls wait for it. Raises as `search` does, and then nothing was changed.
        """
        wanted = Query(query, regex, sensitive, limit)
        budget = Budget(wanted, self._seconds)
        return await self._perform(lambda files: files.replace(wanted, replacement, budget), slow=True)

    async def move(self, source: str, target: str) -> bool:
        """Move a file, in place of one that may be there. False if there is no such file, or it is there already."""
        return await self._perform(lambda files: files.move(source, target))

    async def remove(self, paths: str | Iterable[str]) -> bool:
        """Remove a file, or several; whether one of them was there."""
        wanted = _listed(paths)
        removed = await self._perform(lambda files: [files.remove(path) for path in wanted])
        return any(removed)

    async def clear(self) -> None:
        """Remove all files."""
        await self._perform(lambda files: files.clear())

    async def undo(self) -> tuple[str, ...]:
        """Put back, as a whole, what the last call changed that was not undone yet.

        Returns the paths that it had changed; none if nothing can be undone.
        """
        return await self._perform(lambda files: files.undo())

    async def _edit(
        self, edit: Callable[[Backing], Callable[[str, str], File]], path: str | Mapping[str, str], text: str
    ) -> File | list[File]:
        """One edit of one file, or of each of several with its own text."""
        if isinstance(path, str):
            return await self._perform(lambda files: edit(files)(path, text), text)
        items = dict(path)
        return await self._perform(lambda files: [edit(files)(*item) for item in items.items()], *items.values())

    async def _perform(self, operation: Callable[[Backing], R], *texts: str, slow: bool = False) -> R:
        return await self.ref.ask(Perform(operation, slow or sum(map(len, texts)) > LIGHT))


def _listed(paths: str | Iterable[str]) -> tuple[str, ...]:
    return (paths,) if isinstance(paths, str) else tuple(paths)
