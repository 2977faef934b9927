"""A workspace as a store keeps it."""

from __future__ import annotations

from typing import Any, TypeGuard, cast, final

from msgspec import Struct

from greenroom.protocol.workspace.files import IMAGES, BinaryContent, File, TextContent, is_state

__all__ = ["Snapshot", "parse_snapshot"]


@final
class Snapshot(Struct, frozen=True):
    """All files of one workspace, in order."""

    id: str
    files: tuple[File, ...]


def parse_snapshot(value: object) -> Snapshot | None:
    """The snapshot that decoded JSON spells, or `None` if it is none. Undeclared members are dropped."""
    if not _is_object(value) or not isinstance(id := value.get("id"), str):
        return None
    files = value.get("files")
    if not isinstance(files, list):
        return None
    parsed = tuple(map(_parse_file, cast("list[object]", files)))
    known = tuple(file for file in parsed if file is not None)
    return Snapshot(id, known) if len(known) == len(parsed) else None


def _parse_file(value: object) -> File | None:
    if not _is_object(value) or not isinstance(path := value.get("path"), str):
        return None
    state, size, lines = value.get("state"), value.get("size"), value.get("lines")
    content = _parse_content(value.get("content"))
    if content is None or not is_state(state) or not _is_count(size) or not _is_count(lines):
        return None
    return File(path, content, state, int(size), int(lines))


def _parse_content(value: object) -> TextContent | BinaryContent | None:
    if not _is_object(value):
        return None
    match value:
        case {"text": str(text), "language": str(language)}:
            return TextContent(text, language)
        case {"data": str(data), "mime": str(mime)} if mime in IMAGES:
            return BinaryContent(data, mime)
        case _:
            return None


def _is_count(value: object) -> TypeGuard[int | float]:
    return type(value) is int or (type(value) is float and value.is_integer())


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)
