"""Edits of one file: each makes the file that takes the place of the one before, `None` where there was none."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from greenroom.protocol.errors import WorkspaceError
from greenroom.protocol.patterns.units import to_units
from greenroom.protocol.workspace.files import BinaryContent, File, TextContent, create_file
from greenroom.protocol.workspace.positions import Range, is_range, locate
from greenroom.protocol.workspace.slicing import put_in

__all__ = ["Edited", "append", "edit", "modality", "prepend", "relocate", "rewrite", "splice", "write"]


class Edited(NamedTuple):
    """The file after `edit`, and how many places of it were changed."""

    file: File
    occurrences: int


def write(path: str, before: File | None, text: str) -> File:
    """The whole text, whatever was there. The language of a text before it is kept."""
    language = before.content.language if before is not None and isinstance(before.content, TextContent) else None
    return create_file(path, text, state="created" if before is None else "modified", language=language)


def rewrite(before: File, text: str) -> File:
    """The same file with another text."""
    return write(before.path, before, text)


def splice(path: str, before: File | None, text: str, range: Range) -> File:
    """The text put in the place of a range, whose ends are moved into the text there is.

    Raises `WorkspaceError`: MODALITY if there is no text, then RANGE (context `path`, `range`) if an end is before the
    start or a number below 1.
    """
    if before is None or before.text is None:
        raise modality(path, before)
    if not is_range(range):
        raise WorkspaceError(
            "RANGE",
            f"{path}: {_shown(range)} is no range. Lines and columns count from 1, and no end is before its start.",
            {"path": path, "range": msgspec.to_builtins(range)},
        )
    _, span = locate(before.text, range)
    return rewrite(before, put_in(before.text, [span], text))


def prepend(path: str, before: File | None, text: str) -> File:
    """The text put before what is there. Raises `WorkspaceError` MODALITY if that is no text."""
    return write(path, before, text + _text(path, before))


def append(path: str, before: File | None, text: str) -> File:
    """The text put after what is there. Raises `WorkspaceError` MODALITY if that is no text."""
    return write(path, before, _text(path, before) + text)


def edit(path: str, before: File | None, old: str, new: str, *, replace_all: bool = False) -> Edited:
    """`old`, which must be in the text exactly once, replaced by `new`; both are taken literally.

    With `replace_all` it may be there more often, and is replaced from left to right where it does not overlap with the
    one before: `aa` in `aaa` is changed once. Without, overlapping ones count, and `aa` in `aaa` is there twice.

    Raises `WorkspaceError`: MODALITY if there is no text; UNMATCHED (context `path`) if `old` is not in it; AMBIGUOUS
    (context `path`, `count`) if it is there more than once, or is empty.
    """
    if before is None or before.text is None:
        raise modality(path, before)
    text, units, needle = before.text, to_units(before.text), to_units(old)
    if not needle:
        raise WorkspaceError(
            "AMBIGUOUS",
            f"{path}: an empty text is in every place. Say which text is to be replaced.",
            {"path": path, "count": len(units) + 1},
        )
    places: list[int] = []
    at = units.find(needle)
    while at >= 0:
        places.append(at)
        at = units.find(needle, at + (len(needle) if replace_all else 1))
    if not places:
        raise _unmatched(path, text, old)
    if len(places) > 1 and not replace_all:
        raise WorkspaceError(
            "AMBIGUOUS",
            f"{path}: the text to be replaced is there {len(places)} times. Say more of what is around the one you "
            "mean, or replace all of them.",
            {"path": path, "count": len(places)},
        )
    changed = put_in(text, [(place, place + len(needle)) for place in places], new)
    return Edited(rewrite(before, changed), len(places))


def relocate(before: File, path: str) -> File:
    """The same file at another path."""
    return msgspec.structs.replace(before, path=path, state="modified")


def modality(path: str, before: File | None) -> WorkspaceError:
    """The refusal of a text edit where there is no text."""
    if before is None:
        told = f"There is no file at {path!r}, so nothing of it can be changed. Write it first."
    else:
        mime = before.content.mime if isinstance(before.content, BinaryContent) else "text"
        told = f"{path} is no text but {mime}, and stays as it is. Remove it first if text is to take its place."
    return WorkspaceError("MODALITY", told, {"path": path})


def _text(path: str, before: File | None) -> str:
    if before is None:
        return ""
    if before.text is None:
        raise modality(path, before)
    return before.text


def _unmatched(path: str, text: str, old: str) -> WorkspaceError:
    told = f"{path}: the text to be replaced is not in it. Read it and take over exactly what is there."
    if "\n" in old and "\r\n" in text and "\r" not in old:
        told = rf"{path}: the text to be replaced is not in it. Its lines end with CRLF: write \r\n where you have \n."
    return WorkspaceError("UNMATCHED", told, {"path": path})


def _shown(range: Range) -> str:
    start, end = range.start, range.end
    return f"{start.line}:{start.column} to {end.line}:{end.column}"
