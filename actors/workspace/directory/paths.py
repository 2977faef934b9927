"""Which paths name a file in a directory, told from the text of the path alone, before anything is looked at.

A path is relative, with `/` between its parts. Refused is what could lead out of the directory here or on another
system, also by a name that is only taken for another one: a file system may ignore case, fold compatibility characters
(U+2025 is `..` in form NFKC, UAX #15), pass over characters without a width, or cut dots and spaces off the end.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Collection
from typing import Final

from greenroom.protocol.errors import WorkspaceError
from greenroom.protocol.workspace.slicing import find_lone_surrogate, printable

__all__ = ["DEEPEST", "PRIVATE", "is_plain", "is_temporary", "path_error", "split_path", "temporary_name"]

PRIVATE: Final = (".git", ".hg", ".svn")
"""Folders that are another program's own: an edit in them breaks it, or lets it run what was put there."""

DEEPEST: Final = 100
"""How many folders may stand one in another: all on the way are held open while a directory is walked."""

_TEMPORARY: Final = ".greenroom-"
"""How the names of files begin that are being saved."""

_STAGED = re.compile(re.escape(_TEMPORARY) + r"[0-9a-f]{16}\.tmp")
_DRIVE = re.compile(r"[A-Za-z]:")


def split_path(path: str, private: Collection[str] = PRIVATE) -> tuple[str, ...]:
    """The names of the folders on the way to the file, and its own. Raises `WorkspaceError` PATH (context `path`).

    `private` are names that no part may have, however they are spelled.
    """
    why = _flaw(path)
    parts = tuple(path.split("/"))
    if why is None:
        why = next((flaw for part in parts if (flaw := _part_flaw(part, private)) is not None), None)
    if why is not None:
        raise path_error(path, why)
    return parts


def is_plain(name: str, private: Collection[str] = PRIVATE) -> bool:
    """Whether a name that was found in the directory can be a part of a path."""
    return _flaw(name) is None and _part_flaw(name, private) is None


def temporary_name() -> str:
    """A name that no path can spell, for a file that is being saved."""
    return f"{_TEMPORARY}{secrets.token_hex(8)}.tmp"


def is_temporary(name: str) -> bool:
    """Whether `temporary_name` has made the name."""
    return _STAGED.fullmatch(name) is not None


def path_error(path: str, why: str, *, found: str | None = None) -> WorkspaceError:
    """The refusal of a path, also of one where something is `found` that is no file. What UTF-8 cannot hold is written
    out in it."""
    shown = printable(path)
    context = {"path": shown} if found is None else {"path": shown, "found": found}
    return WorkspaceError("PATH", f"The path {shown!r} cannot be used: {why}.", context)


def _flaw(path: str) -> str | None:
    if not path:
        return "it is empty; name a file, as in 'notes/today.md'"
    if path.startswith("/"):
        return "it is absolute; begin it with a name in the workspace's own directory"
    if path.count("/") > DEEPEST:
        return f"it leads through more than {DEEPEST} folders"
    if "\\" in path:
        return "it has a backslash; separate its parts with '/'"
    if "\0" in path:
        return "it holds U+0000"
    if find_lone_surrogate(path) is not None:
        return "it holds half a character"
    return None


def _part_flaw(part: str, private: Collection[str]) -> str | None:
    taken_for = _folded(part)
    if not part:
        return "a part of it is empty; write one '/' between two names and none at the end"
    if _DRIVE.match(part):
        return f"its part {part!r} begins with a drive; begin it with a name in the workspace's own directory"
    if not taken_for:
        return "a part of it is '.' or '..', or may be taken for it; name each folder"
    if "/" in taken_for or "\\" in taken_for:
        return f"its part {part!r} may be taken for more than one name"
    if taken_for in private:
        return f"{taken_for} belongs to another program and is no part of the workspace"
    if taken_for.startswith(_TEMPORARY):
        return f"names that begin with {_TEMPORARY!r} are kept for files that are being saved"
    return None


def _folded(part: str) -> str:
    """What the most lenient file system may take the name for; empty if that is made of dots and spaces."""
    visible = "".join(char for char in part if unicodedata.category(char) not in ("Cf", "Cc"))
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold()).rstrip(". ")
