"""How tools reach the files of the active workspace: what they look at and change, and what they say when they cannot.

A tool says who is about to change what before it does (`FileAccess`), and the precondition that it is given is looked
at in the workspace's own step, together with the change.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import Annotated, Final, NamedTuple, TypeAlias, TypeVar, final

import trio
from msgspec import UNSET, Meta

from greenroom.actors.workspace import Workspace, WorkspaceManager
from greenroom.protocol.errors import ToolError, WorkspaceError
from greenroom.protocol.workspace import File, SearchMatch, compile_glob, editing
from greenroom.protocol.workspace.memory import LIGHT
from greenroom.protocol.workspace.positions import refuse_halves
from greenroom.protocol.workspace.slicing import printable
from greenroom.runtime.context import current_actor
from greenroom.runtime.file_access import EditIntent, FileObserved, Precondition, WriteIntent

__all__ = ["Changed", "FilePath", "Files", "Folder", "shortened"]

FilePath: TypeAlias = Annotated[
    str, Meta(min_length=1, description="The file's path in the workspace, as in src/a.py.")
]
Folder: TypeAlias = Annotated[
    str, Meta(description="The folder to look in, or a file; all of the workspace by default.")
]

R = TypeVar("R")

WIDTH: Final = 2000
"""How many characters of a line a model is shown."""

MATCHES: Final = 10_000
"""How many lines a search may find."""

FOUND: Final = 4 * 2**20
"""How many characters these lines may have together."""

CODES: Final = {
    "CHANGED": "FS_STALE_VERSION",
    "MODALITY": "FS_NOT_TEXT",
    "UNMATCHED": "FS_EDIT_NOT_FOUND",
    "AMBIGUOUS": "FS_AMBIGUOUS_EDIT",
    "LIMIT": "FS_TOO_LARGE",
    "IO": "FS_FAILED",
}
"""What refusals of a workspace are called by tools that read and change one file."""

SEARCH_CODES: Final = {"PATTERN": "SEARCH_INVALID_PATTERN", "LIMIT": "SEARCH_FAILED", "IO": "SEARCH_FAILED"}
"""The same, by tools that look through many."""


class Changed(NamedTuple):
    """A text before and after a change; None where there was no file."""

    before: str | None
    after: str


@final
class Files:
    """The files of the workspace that is active in a manager. Where none is there are no files, and the first one that
    is written is in a workspace in memory.

    Everything raises `ToolError` with one of the codes above, FS_NOT_FOUND, FS_NOT_REGULAR_FILE, FS_PATH, or
    SEARCH_RAW_OUTPUT_OVERFLOW; `WorkspaceError` SURROGATE for a text that JSON cannot hold; ActorError STOPPED for a
    workspace that was removed; and what a listener to the intents raises. Then nothing has changed. A cancelled change
    is made whole or not at all, and its agent counts as not having seen it.
    """

    def __init__(self, workspaces: WorkspaceManager) -> None:
        self._workspaces = workspaces

    async def read(self, path: str, look: Callable[[str], R]) -> R:
        """What `look` makes of the text of a file, which the calling agent has seen from now on. It is plain and may
        run in a worker thread."""
        workspace = self._workspaces.active
        file: File | None = None
        if workspace is not None:
            async with self._turn(workspace, path):
                with _reported(CODES):
                    file = await workspace.file(path)
                    if file is not None and file.text is None:
                        raise editing.modality(path, file)
                await self._observed(workspace, path, file)
        if file is None:
            raise _not_found(path)
        text = file.text or ""

        def seen() -> R:
            refuse_halves(path, text)
            return look(text)

        return await _aside(file.size, seen)

    async def write(self, path: str, content: str) -> Changed:
        """Put the text at the path, over what the calling agent may write over."""
        refuse_halves(path, path)
        refuse_halves(path, content)
        workspace = self._workspaces.active or self._workspaces.add()
        intent = WriteIntent(agent=_agent(), workspace=workspace.id, path=path, content=content)

        def written(before: File | None) -> File:
            return editing.write(path, before, content)

        async with self._turn(workspace, path):
            precondition = await self._workspaces.access.before_write(intent)
            return await self._change(workspace, path, precondition, written, content)

    async def edit(self, path: str, old: str, new: str, *, replace_all: bool) -> Changed:
        """Replace a text in a file, which the calling agent may edit as it is; see `editing.edit`."""
        refuse_halves(path, path)
        refuse_halves(path, new)
        workspace = self._workspaces.active
        if workspace is None:
            raise _not_found(path)
        intent = EditIntent(
            agent=_agent(), workspace=workspace.id, path=path, old=old, new=new, replace_all=replace_all
        )

        def replaced(before: File | None) -> File:
            if before is None:
                raise _not_found(path)
            return editing.edit(path, before, old, new, replace_all=replace_all).file

        async with self._turn(workspace, path):
            precondition = await self._workspaces.access.before_edit(intent)
            return await self._change(workspace, path, precondition, replaced, new)

    async def find(self, folder: str, *globs: str) -> list[str]:
        """The paths in a folder, or the one file, that fit all of the globs, each taken from that folder."""
        workspace = self._workspaces.active
        with _reported(SEARCH_CODES):
            fits = [compile_glob(glob) for glob in globs]
            paths = () if workspace is None else await workspace.paths()
        inside = _inside(paths, folder)
        found = [path for path, name in inside.items() if all(fit(name) for fit in fits)]
        for path in found:
            refuse_halves(path, path)
        return found

    async def search(self, pattern: str, paths: Container[str]) -> list[SearchMatch]:
        """The lines at these paths in which an ECMAScript pattern matches, each with its first match."""
        workspace = self._workspaces.active
        if workspace is None:
            return []
        with _reported(SEARCH_CODES):
            found = await workspace.search(pattern, regex=True, limit=MATCHES + 1, only=paths, each=1)
        if len(found) > MATCHES or sum(len(match.content) for match in found) > FOUND:
            raise ToolError(
                "SEARCH_RAW_OUTPUT_OVERFLOW",
                f"The pattern is found in more than {MATCHES:,} lines, or in lines of more than {FOUND:,} characters. "
                "Look for something that is there less often, or in fewer files.",
                {"lines": MATCHES, "characters": FOUND},
            )
        for match in found:
            refuse_halves(match.path, match.content)
        return found

    async def _change(
        self,
        workspace: Workspace,
        path: str,
        precondition: Precondition,
        make: Callable[[File | None], File],
        text: str,
    ) -> Changed:
        """Make a file of the one that is there, if that is the one which is expected."""
        earlier: list[str | None] = []

        def made(before: File | None) -> File:
            if before is not None and before.text is None:
                raise editing.modality(path, before)
            _check(path, before, precondition)
            after = make(before)
            for file in (before, after):  # both are told: nothing is done before it is known that they can be
                refuse_halves(path, (file and file.text) or "")
            earlier.append(None if before is None else before.text)
            return after

        with _reported(CODES):
            after = await workspace.change(path, made, text)
        await self._observed(workspace, path, after)
        return Changed(earlier[-1], after.text or "")

    def _turn(self, workspace: Workspace, path: str) -> AbstractAsyncContextManager[None]:
        return self._workspaces.access.turn(_agent(), workspace.id, path)

    async def _observed(self, workspace: Workspace, path: str, file: File | None) -> None:
        access = self._workspaces.access
        if access.observed.heard:
            version = None if file is None else await _aside(file.size, partial(_version, file))
            access.announce(FileObserved(agent=_agent(), workspace=workspace.id, path=path, version=version))


def shortened(line: str) -> str:
    """A line as a model is shown it."""
    line = line.removesuffix("\r")
    if len(line) <= WIDTH:
        return line
    return f"{line[:WIDTH]} [... line cut: it has {len(line):,} characters]"


async def _aside(size: int, work: Callable[[], R]) -> R:
    """Do something with a text of so many bytes: with a large one not in trio's thread."""
    return work() if size <= LIGHT else await trio.to_thread.run_sync(work)


def _version(file: File) -> str:
    return file.version


def _agent() -> str | None:
    actor = current_actor()
    return None if actor is None else actor.ref.path


def _check(path: str, before: File | None, precondition: Precondition) -> None:
    """Called in the step of the workspace in which the change is made."""
    expected = precondition.version
    if expected is UNSET or expected == (None if before is None else before.version):
        return
    if expected is None:
        told = f"There is a file at {path} that you have not read, so nothing was written over it. Read it, then write."
    else:
        told = (
            f"{path} is not as you have seen it: it was changed or removed since, so nothing was done. Read it again."
        )
    raise ToolError("FS_STALE_VERSION", told, {"path": path})


def _not_found(path: str) -> ToolError:
    shown = printable(path)
    return ToolError(
        "FS_NOT_FOUND", f"There is no file at {shown!r}. Look for where it is, or write it.", {"path": shown}
    )


def _inside(paths: Sequence[str], folder: str) -> dict[str, str]:
    """The paths in the folder, or of the one file, each with what it is called from there."""
    folder = folder.removeprefix("./").rstrip("/")
    if folder in ("", "."):
        return {path: path for path in paths}
    inside = {path: path[len(folder) + 1 :] for path in paths if path.startswith(f"{folder}/")}
    if folder in paths:
        inside[folder] = folder.rpartition("/")[2]
    if not inside:
        raise ToolError(
            "FS_NOT_FOUND",
            f"There is neither a file nor a folder with files at {printable(folder)!r}. Look everywhere, or elsewhere.",
            {"path": printable(folder)},
        )
    return inside


@contextmanager
def _reported(codes: dict[str, str]) -> Generator[None]:
    """What a workspace refuses in the block is the `ToolError` that stands for it."""
    try:
        yield
    except WorkspaceError as error:
        code = codes.get(error.code)
        if error.code == "PATH":
            code = "FS_NOT_REGULAR_FILE" if "found" in error.context else "FS_PATH"
        if code is None:
            raise
        raise ToolError(code, error.message, error.context) from error
