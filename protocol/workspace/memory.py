"""A workspace in memory: an ordered map from paths, which may be any text, to files."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from contextlib import AbstractContextManager
from typing import Final, final

from greenroom.protocol.workspace import editing
from greenroom.protocol.workspace.changes import (
    Announce,
    Cleared,
    History,
    Moved,
    Removed,
    Written,
    announce_nothing,
)
from greenroom.protocol.workspace.editing import Edited
from greenroom.protocol.workspace.files import File, FileInfo, is_text
from greenroom.protocol.workspace.matching import Query
from greenroom.protocol.workspace.positions import Range, cut
from greenroom.protocol.workspace.searching import Check, ReplaceResult, find_replacements, unchecked

__all__ = ["LIGHT", "UNDO_CALLS", "UNDO_SIZE", "MemoryWorkspace"]

UNDO_CALLS: Final = 20
"""How many calls can be undone where nothing else is said."""

UNDO_SIZE: Final = 64 * 2**20
"""How many bytes of earlier files are kept for that, at most."""


LIGHT: Final = 2**20
"""How many bytes are gone through in a millisecond or so."""


class _Call:
    """What one call has taken away: the files as they were, and their order if that changed."""

    __slots__ = ("before", "order")

    def __init__(self) -> None:
        self.before: dict[str, File | None] = {}
        self.order: tuple[str, ...] | None = None

    @property
    def size(self) -> int:
        return sum(file.size for file in self.before.values() if file is not None)


@final
class MemoryWorkspace:
    """Files by path, in the order in which they came. Each operation is one step and does no I/O.

    Of a repeated path in `seed` the last file stays. `announce` is told of each change. The last `undo` calls can be
    undone, as far as the files that they replaced fit into 64 MiB.
    """

    __slots__ = ("_announce", "_files", "_history", "_size")

    def __init__(
        self, seed: Iterable[File] = (), *, announce: Announce = announce_nothing, undo: int = UNDO_CALLS
    ) -> None:
        self._files = {file.path: file for file in seed}
        self._size = sum(file.size for file in self._files.values())
        self._announce = announce
        self._history = History(_Call, undo, UNDO_SIZE)

    @property
    def slow(self) -> bool:
        """Whether its operations may take longer than the tasks of an event loop should wait."""
        return self._size > LIGHT

    # ---------------------------------------------------------------- looking

    def count(self) -> int:
        """How many files there are."""
        return len(self._files)

    def has(self, *paths: str) -> bool:
        """Whether a file is at one of the paths."""
        return any(path in self._files for path in paths)

    def file(self, path: str) -> File | None:
        """The file at the path, if there is one."""
        return self._files.get(path)

    def files(self) -> tuple[File, ...]:
        """All files in order."""
        return tuple(self._files.values())

    def paths(self) -> tuple[str, ...]:
        """Where there are files, in order."""
        return tuple(self._files)

    def texts(self, only: Container[str] | None = None) -> tuple[File, ...]:
        """The files that are text, in order; with `only`, those at these paths."""
        return tuple(file for file in self._files.values() if is_text(file) and (only is None or file.path in only))

    def infos(self) -> tuple[FileInfo, ...]:
        """What a listing tells, in order."""
        return tuple(file.info for file in self._files.values())

    def read(self, path: str) -> str | None:
        """The text at the path; `None` if nothing or no text is there."""
        file = self._files.get(path)
        return file.text if file is not None else None

    def read_range(self, path: str, range: Range) -> tuple[str, Range] | None:
        """The text of a range that is moved into the text, and that range; `None` if there is no text."""
        text = self.read(path)
        return cut(text, range) if text is not None else None

    # ---------------------------------------------------------------- changing

    def write(self, path: str, text: str, range: Range | None = None) -> File:
        """Put the text at the path, whatever is there; or, with a range, in place of that part (`editing.splice`).

        A new path goes last, an old one keeps its place. This and the following return the file as it is then.
        """
        before = self._files.get(path)
        if range is None:
            return self._put(editing.write(path, before, text))
        return self._put(editing.splice(path, before, text, range))

    def change(self, path: str, make: Callable[[File | None], File]) -> File:
        """Put the file that `make` gives in the place of the one that it is given, `None` where there is none. What it
        raises is raised, and nothing has changed."""
        return self._put(make(self._files.get(path)))

    def prepend(self, path: str, text: str) -> File:
        """Put the text before what is there. Raises `WorkspaceError` MODALITY."""
        return self._put(editing.prepend(path, self._files.get(path), text))

    def append(self, path: str, text: str) -> File:
        """Put the text after what is there. Raises `WorkspaceError` MODALITY."""
        return self._put(editing.append(path, self._files.get(path), text))

    def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> Edited:
        """Replace one text, or all of them, by another; see `editing.edit`, also for what it raises."""
        edited = editing.edit(path, self._files.get(path), old, new, replace_all=replace_all)
        self._put(edited.file)
        return edited

    def replace(self, query: Query, replacement: str, check: Check = unchecked) -> ReplaceResult:
        """Replace matches in all texts; see `find_replacements`. Each file that has one is written once."""
        found = find_replacements(self._files.values(), query, replacement, check)
        with self._history.call():
            for file in found.files:
                self._put(file)
        return found.result

    def move(self, source: str, target: str) -> bool:
        """Move a file, which keeps its place; one that is at the target disappears.

        False, and nothing happens, if there is no such file or both paths are the same.
        """
        file = self._files.get(source)
        if file is None or source == target:
            return False
        moved = editing.relocate(file, target)
        with self._history.call() as call:
            self._keep_order(call)
            self._note(call, source)
            self._note(call, target)
            kept = (other for other in self._files.values() if other.path != target)
            self._replace_all(moved if other is file else other for other in kept)
            self._announce(Moved(source, target))
        return True

    def remove(self, path: str) -> bool:
        """Remove the file at the path; whether there was one."""
        if path not in self._files:
            return False
        with self._history.call() as call:
            self._drop(call, path)
            self._announce(Removed(path))
        return True

    def clear(self) -> None:
        """Remove all files."""
        if not self._files:
            return
        with self._history.call() as call:
            for path in list(self._files):
                self._drop(call, path)
            self._announce(Cleared())

    # ---------------------------------------------------------------- undoing

    def call(self) -> AbstractContextManager[object]:
        """Changes within the block are one call, to be undone together; also those made before it raises."""
        return self._history.call()

    def undo(self) -> tuple[str, ...]:
        """Put everything back, places too, that the last call changed which was not undone yet. Returns the paths that
        it had changed; none if no call is remembered."""
        call = self._history.last()
        if call is None:
            return ()
        self._history.pop()
        files = self._files | {path: file for path, file in call.before.items() if file is not None}
        order = call.order or ()
        files = {path: files[path] for path in order if path in files} | files
        self._replace_all(file for file in files.values() if call.before.get(file.path, file) is not None)
        for path, file in call.before.items():
            self._announce(Removed(path) if file is None else Written(file))
        return tuple(call.before)

    # ---------------------------------------------------------------- the map

    def _put(self, file: File) -> File:
        with self._history.call() as call:
            self._note(call, file.path)
            before = self._files.get(file.path)
            self._files[file.path] = file
            self._size += file.size - (before.size if before is not None else 0)
            self._announce(Written(file))
        return file

    def _drop(self, call: _Call, path: str) -> None:
        self._keep_order(call)
        self._note(call, path)
        self._size -= self._files.pop(path).size

    def _replace_all(self, files: Iterable[File]) -> None:
        self._files = {file.path: file for file in files}
        self._size = sum(file.size for file in self._files.values())

    def _note(self, call: _Call, path: str) -> None:
        call.before.setdefault(path, self._files.get(path))

    def _keep_order(self, call: _Call) -> None:
        if call.order is None:
            call.order = tuple(self._files)
