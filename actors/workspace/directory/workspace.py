"""A workspace that is a directory: every operation looks at what is on the disk, and saves what it changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Container, Iterator
from contextlib import AbstractContextManager
from typing import final

from msgspec import Struct

from greenroom.actors.workspace.directory.confined import Confined, Found, Save, changed_on_disk, signature
from greenroom.actors.workspace.directory.contents import decode, digest, encode, is_marked, to_file, too_large
from greenroom.actors.workspace.directory.entries import Call, Entries, Image
from greenroom.actors.workspace.directory.paths import PRIVATE, split_path
from greenroom.protocol.errors import WorkspaceError
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
from greenroom.protocol.workspace.files import File, FileInfo
from greenroom.protocol.workspace.matching import Query
from greenroom.protocol.workspace.memory import UNDO_CALLS, UNDO_SIZE
from greenroom.protocol.workspace.positions import Range
from greenroom.protocol.workspace.searching import Check, ReplaceResult, find_replacements, unchecked

__all__ = ["DirectoryWorkspace", "Limits"]


@final
class Limits(Struct, frozen=True):
    """What a directory's workspace takes: bytes of one file, number of files, bytes of all that are read at once."""

    file_bytes: int = 16 * 2**20
    files: int = 10_000
    total_bytes: int = 256 * 2**20


@final
class DirectoryWorkspace:
    """The files of a directory, by their paths in it. All of it blocks: it belongs into a worker thread.

    A file whose bytes are UTF-8 is text; every other one is binary, and no text is written over it. What an edit leaves
    alone stays as it is: line ends, a byte order mark, owner and mode. Saving is atomic and durable: whatever happens,
    a file is as before or as after. What somebody else has changed since the directory was opened, or since it was
    last read here, is not changed: `read` it first. Folders are made where they are needed, and stay.

    Raises `WorkspaceError`: PATH, CHANGED (context `path`, `paths`), LIMIT (`path`, `limit`), SURROGATE for text that
    UTF-8 cannot hold, IO, and what the edits raise. A call that raises has changed nothing, unless it saves several
    files and the disk fails between two of them; `undo` puts the first ones back.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        announce: Announce = announce_nothing,
        limits: Limits | None = None,
        private: Collection[str] = PRIVATE,
        undo: int = UNDO_CALLS,
    ) -> None:
        self._announce = announce
        self._limits = limits or Limits()
        self._private = frozenset(name.casefold() for name in private)
        self._history = History(Call, undo, UNDO_SIZE)
        self._root = Confined(root, self._private)
        try:
            with self._root.alone():
                self._entries = Entries(self._root.walk(self._limits.files, sweep=True))
        except BaseException:
            self._root.close()
            raise

    @property
    def slow(self) -> bool:
        """Whether its operations may take longer than the tasks of an event loop should wait: all of them may."""
        return True

    def close(self) -> None:
        """Let go of the directory. The workspace cannot be used any more."""
        self._root.close()

    # ---------------------------------------------------------------- looking

    def count(self) -> int:
        """How many files there are."""
        return len(self._root.walk(self._limits.files))

    def has(self, *paths: str) -> bool:
        """Whether a file is at one of the paths."""
        return any(self._root.has(self._split(path)) for path in paths)

    def file(self, path: str) -> File | None:
        """The file at the path, if there is one. From now on it may be changed as it is."""
        found = self._load(path)
        self._entries.see(path, found)
        return None if found is None else self._file(path, found)

    def read(self, path: str) -> str | None:
        """The text at the path; `None` if nothing or no text is there. From now on that may be changed as it is."""
        file = self.file(path)
        return file.text if file is not None else None

    def files(self) -> tuple[File, ...]:
        """All files in order, but for those that cannot be read or are over the limit."""
        return tuple(file for file, _ in self._read_all())

    def paths(self) -> tuple[str, ...]:
        """Where there are files, in order."""
        return tuple(self._walk())

    def texts(self, only: Container[str] | None = None) -> tuple[File, ...]:
        """The files that are text, in order; with `only`, those at these paths."""
        return tuple(file for file, _ in self._read_all(texts=True, only=only))

    def infos(self) -> tuple[FileInfo, ...]:
        """What a listing tells, in order. A file that cannot be read, or is over the limit, counts as binary."""
        return tuple(
            FileInfo(path, self._entries.described(path, found.status).state, found.status.st_size, 0, "binary")
            if found.data is None
            else self._file(path, found).info
            for path, found in self._all()
        )

    # ---------------------------------------------------------------- changing

    def write(self, path: str, text: str, range: Range | None = None) -> File:
        """Put the text at the path or, with a range, in place of that part. MODALITY if bytes are there."""
        if range is None:
            return self.change(path, lambda before: editing.write(path, before, text))
        return self.change(path, lambda before: editing.splice(path, before, text, range))

    def change(self, path: str, make: Callable[[File | None], File]) -> File:
        """Put the text that `make` gives in the place of the one that it is given, `None` where there is no file. What
        it raises is raised, and nothing has changed. MODALITY if bytes are there."""
        with self._root.alone(), self._history.call() as call:
            found = self._current(path)
            before = None if found is None else self._file(path, found)
            if before is not None and before.text is None:
                raise editing.modality(path, before)
            if before is None and len(self._entries) >= self._limits.files:
                raise self._too_many(path)
            (file,) = self._save(call, [(make(before), found)])
        return file

    def prepend(self, path: str, text: str) -> File:
        """Put the text before what is there."""
        return self.change(path, lambda before: editing.prepend(path, before, text))

    def append(self, path: str, text: str) -> File:
        """Put the text after what is there."""
        return self.change(path, lambda before: editing.append(path, before, text))

    def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> Edited:
        """Replace one text, or all of them, by another; see `editing.edit`."""
        occurrences = 0

        def change(before: File | None) -> File:
            nonlocal occurrences
            file, occurrences = editing.edit(path, before, old, new, replace_all=replace_all)
            return file

        return Edited(self.change(path, change), occurrences)

    def replace(self, query: Query, replacement: str, check: Check = unchecked) -> ReplaceResult:
        """Replace matches in all texts; see `find_replacements`. No file is changed before all are ready to be."""
        with self._root.alone(), self._history.call() as call:
            texts = list(self._read_all(texts=True))
            wanted = find_replacements([file for file, _ in texts], query, replacement, check)
            found = {file.path: one for file, one in texts}
            stale = [file.path for file in wanted.files if not self._entries.shows(file.path, found[file.path])]
            if stale:
                raise changed_on_disk(*stale)
            self._save(call, [(file, found[file.path]) for file in wanted.files])
        return wanted.result

    def move(self, source: str, target: str) -> bool:
        """Move a file, which keeps its place; one that is at the target disappears.

        False, and nothing happens, if there is no such file or both paths are the same.
        """
        parts, aim = self._split(source), self._split(target)
        if source == target:
            return False
        with self._root.alone(), self._history.call() as call:
            found, there = self._current(source), self._current(target)
            if found is None:
                return False
            status = self._root.move(parts, aim, found.status, there.status if there is not None else None)
            self._note(call, source, found, None)
            self._note(call, target, there, digest(found.data))
            self._entries.move(source, target, status)
            self._announce(Moved(source, target))
        return True

    def remove(self, path: str) -> bool:
        """Remove the file at the path; whether there was one."""
        with self._root.alone(), self._history.call() as call:
            found = self._current(path)
            if found is None:
                return False
            self._drop(call, path, found)
            self._announce(Removed(path))
        return True

    def clear(self) -> None:
        """Remove all files."""
        with self._root.alone(), self._history.call() as call:
            statuses = self._root.walk(self._limits.files)
            self._refuse_over_total(sum(status.st_size for status in statuses.values()))
            for path, found in [(path, self._current(path)) for path in statuses]:
                if found is not None:
                    self._drop(call, path, found)
            if statuses:
                self._announce(Cleared())

    # ---------------------------------------------------------------- undoing

    def call(self) -> AbstractContextManager[object]:
        """Changes within the block are one call, to be undone together; also those made before it raises."""
        return self._history.call()

    def undo(self) -> tuple[str, ...]:
        """Put everything back that the last call changed which was not undone yet.

        Returns the paths that it had changed; none if no call is remembered.

        CHANGED, and nothing happens, if somebody else has changed one of the files since.
        """
        call = self._history.last()
        if call is None:
            return ()
        with self._root.alone():
            now = {path: self._load(path) for path in call.before}
            stale = [path for path, found in now.items() if _digest_of(found) != call.after[path]]
            if stale:
                raise changed_on_disk(*stale)
            back: dict[str, Save] = {}
            for path, (before, _) in call.before.items():
                there = now[path]
                if before is not None and before.data is not None:
                    expected = None if there is None else there.status
                    back[path] = Save(self._split(path), before.data, before.status, expected)
            for status, path in zip(self._root.save([*back.values()]), back, strict=True):
                self._put_back(path, call.before[path], status)
            for path, there in now.items():
                if path not in back and there is not None:
                    self._root.remove(self._split(path), there.status)
                    self._entries.put(path, None)
                    self._announce(Removed(path))
        self._history.pop()
        return tuple(call.before)

    def _put_back(self, path: str, image: Image, status: os.stat_result) -> None:
        assert image.found is not None, "nothing else can be put back"
        assert image.entry is not None, "a file is changed only after it was seen"
        data = image.found.data
        self._entries.put(path, image.entry._replace(signature=signature(status), digest=digest(data)))
        self._announce(Written(self._file(path, image.found)))

    # ---------------------------------------------------------------- the disk

    def _split(self, path: str) -> tuple[str, ...]:
        return split_path(path, self._private)

    def _load(self, path: str) -> Found | None:
        return self._root.load(self._split(path), self._limits.file_bytes)

    def _current(self, path: str) -> Found | None:
        """What is at the path. Raises CHANGED if that is not what was last seen there."""
        found = self._load(path)
        if not self._entries.shows(path, found):
            raise changed_on_disk(path)
        return found

    def _walk(self) -> dict[str, os.stat_result]:
        """What there is, in order."""
        found = self._root.walk(self._limits.files)
        return {path: found[path] for path in sorted(found, key=lambda path: (self._place(path, found[path]), path))}

    def _place(self, path: str, status: os.stat_result) -> tuple[int, int, str]:
        return self._entries.described(path, status).place

    def _all(self, only: Container[str] | None = None) -> Iterator[tuple[str, Found]]:
        """All files in order, or those at `only` these paths. One that cannot be read is as one that is too large to
        be; one that is no file any more when its turn comes is passed over."""
        statuses = self._walk()
        for path in statuses:
            if only is not None and path not in only:
                continue
            try:
                found = self._load(path)
            except WorkspaceError as error:
                found = Found(None, statuses[path]) if error.code == "IO" else None
            if found is not None:
                yield path, found

    def _read_all(self, *, texts: bool = False, only: Container[str] | None = None) -> Iterator[tuple[File, Found]]:
        """The files that can be read, or only the texts among them, in order. LIMIT if there is too much of them."""
        total = 0
        for path, found in self._all(only):
            if found.data is not None and not (texts and decode(found.data) is None):
                total += len(found.data)
                self._refuse_over_total(total)
                yield self._file(path, found), found

    def _refuse_over_total(self, total: int) -> None:
        most = self._limits.total_bytes
        if total > most:
            raise WorkspaceError(
                "LIMIT",
                f"The files of {self._root.root} have more than {most:,} bytes, too many to hold at once. Use a "
                "smaller directory, or allow more.",
                {"path": self._root.root, "limit": most},
            )

    def _file(self, path: str, found: Found) -> File:
        if found.data is None:
            raise too_large(path, found.status.st_size, self._limits.file_bytes)
        entry = self._entries.described(path, found.status)
        return to_file(path, found.data, state=entry.state, language=entry.language)

    def _save(self, call: Call, changes: list[tuple[File, Found | None]]) -> list[File]:
        """Save files in the place of what was found there, and return them as they are then."""
        files: list[File] = []
        saves: list[Save] = []
        for file, found in changes:
            text = file.text
            assert text is not None, "no edit makes bytes"
            bare = text.removeprefix("\ufeff")
            marked = bare != text or (found is not None and found.data is not None and is_marked(found.data))
            data = encode(file.path, bare, marked=marked, most=self._limits.file_bytes)
            status = None if found is None else found.status
            files.append(file if bare == text else editing.rewrite(file, bare))
            saves.append(Save(self._split(file.path), data, status, status))
        for status, save, file, (_, found) in zip(self._root.save(saves), saves, files, changes, strict=True):
            saved = digest(save.data)
            self._note(call, file.path, found, saved)
            self._entries.save(file, status, saved)
            self._announce(Written(file))
        return files

    def _drop(self, call: Call, path: str, found: Found) -> None:
        self._root.remove(self._split(path), found.status)
        self._note(call, path, found, None)
        self._entries.put(path, None)

    def _note(self, call: Call, path: str, found: Found | None, after: bytes | None) -> None:
        """The call has put something with this digest in the place of what was found."""
        call.before.setdefault(path, Image(found, self._entries.get(path)))
        call.after[path] = after

    def _too_many(self, path: str) -> WorkspaceError:
        most = self._limits.files
        return WorkspaceError(
            "LIMIT",
            f"{path} would be one more than the {most:,} files that there may be here. Remove some, or allow more.",
            {"path": path, "limit": most},
        )


def _digest_of(found: Found | None) -> bytes | None:
    return None if found is None else digest(found.data)
