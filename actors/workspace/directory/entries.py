"""What a directory's workspace keeps of its files between calls: what was last seen of each, its state, its place."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import NamedTuple, final

from greenroom.actors.workspace.directory.confined import Found, Signature, signature
from greenroom.actors.workspace.directory.contents import digest
from greenroom.protocol.workspace.files import File, FileState, TextContent, infer_language

__all__ = ["Call", "Entries", "Entry", "Image"]


class Entry(NamedTuple):
    """One file. It is the same file as long as its bytes are the same or, where they were never read, its signature."""

    signature: Signature
    digest: bytes | None
    state: FileState
    language: str
    place: tuple[int, int, str]
    """Files are ordered by it: those that were found by their path, then those that were made here. One that moved away
    keeps its place, at which another one may be found later; those two go by path."""

    def shows(self, found: Found) -> bool:
        """Whether what is on the disk is what was last seen."""
        if self.digest is not None and found.data is not None:
            return self.digest == digest(found.data)
        return self.signature == signature(found.status)


class Image(NamedTuple):
    """A file as it was before a call; both are `None` where there was none."""

    found: Found | None
    entry: Entry | None


@final
class Call:
    """What one call has changed, by path: the files as they were, and the digests of what is there instead."""

    def __init__(self) -> None:
        self.before: dict[str, Image] = {}
        self.after: dict[str, bytes | None] = {}

    @property
    def size(self) -> int | None:
        """The bytes that are held for it; `None` if it changed a file that was too large to be held."""
        found = [image.found for image in self.before.values() if image.found is not None]
        held = [one.data for one in found if one.data is not None]
        return sum(map(len, held)) if len(held) == len(found) else None


@final
class Entries:
    """The entries by path. A path without one had no file when it was last looked at."""

    __slots__ = ("_entries", "_made")

    def __init__(self, found: Mapping[str, os.stat_result]) -> None:
        self._made = itertools.count()
        self._entries = {path: _found(path, status) for path, status in found.items()}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, path: str) -> Entry | None:
        """The entry of a path, if it has one."""
        return self._entries.get(path)

    def shows(self, path: str, found: Found | None) -> bool:
        """Whether what is on the disk is what was last seen there."""
        entry = self._entries.get(path)
        return found is None if entry is None else found is not None and entry.shows(found)

    def described(self, path: str, status: os.stat_result) -> Entry:
        """The entry, or that of a file which somebody else has made meanwhile."""
        return self._entries.get(path) or _found(path, status)

    def see(self, path: str, found: Found | None) -> None:
        """Whoever uses the workspace is shown the file, or that there is none."""
        if found is None:
            self._entries.pop(path, None)
        else:
            entry = self.described(path, found.status)
            self._entries[path] = entry._replace(signature=signature(found.status), digest=digest(found.data))

    def save(self, file: File, status: os.stat_result, saved: bytes | None) -> None:
        """The file was saved, and its bytes have this digest."""
        entry = self._entries.get(file.path)
        place = (1, next(self._made), "") if entry is None else entry.place
        language = file.content.language if isinstance(file.content, TextContent) else infer_language(file.path)
        self._entries[file.path] = Entry(signature(status), saved, file.state, language, place)

    def move(self, source: str, target: str, status: os.stat_result) -> None:
        """The file was moved."""
        entry = self._entries.pop(source)
        self._entries[target] = entry._replace(signature=signature(status), state="modified")

    def put(self, path: str, entry: Entry | None) -> None:
        """The entry is this one again, or there is none."""
        if entry is None:
            self._entries.pop(path, None)
        else:
            self._entries[path] = entry


def _found(path: str, status: os.stat_result) -> Entry:
    return Entry(signature(status), None, "created", infer_language(path), (0, 0, path))
