"""Lines and columns. Both begin with 1; only a line feed ends a line; a column is a UTF-16 code unit.

So a carriage return is an ordinary character, which takes a column.
"""

from __future__ import annotations

from typing import final

from msgspec import Struct

from greenroom.protocol.errors import WorkspaceError
from greenroom.protocol.text import utf16_length
from greenroom.protocol.workspace.slicing import Span, find_lone_surrogate, printable

__all__ = [
    "Position",
    "Range",
    "cut",
    "is_range",
    "locate",
    "position_of",
    "range_of",
    "refuse_halves",
    "surrogate_error",
]


@final
class Position(Struct, frozen=True, order=True):
    """A place before a unit, or at the end of a line."""

    line: int
    column: int


@final
class Range(Struct, frozen=True):
    """What lies from `start` on and before `end`."""

    start: Position
    end: Position


def range_of(from_line: int, from_column: int, to_line: int, to_column: int) -> Range:
    """The range between two places. It is not checked."""
    return Range(Position(from_line, from_column), Position(to_line, to_column))


def is_range(range: Range) -> bool:
    """Whether all four numbers count from 1 and the end is not before the start."""
    start, end = range.start, range.end
    return min(start.line, start.column, end.line, end.column) >= 1 and start <= end


def locate(text: str, range: Range) -> tuple[Range, Span]:
    """The range with both ends moved into the text, to the nearest line, then to the nearest column; and its span."""
    start, begin = _locate(text, range.start)
    end, finish = _locate(text, range.end)
    return Range(start, end), (begin, finish)


def cut(text: str, range: Range) -> tuple[str, Range]:
    """The text of a range, whose ends are first moved into the text, and the range that it then was. A reversed one is
    empty."""
    located, (start, end) = locate(text, range)
    units = text.encode("utf-16-le", "surrogatepass")
    return units[2 * start : 2 * end].decode("utf-16-le", "surrogatepass"), located


def position_of(text: str, index: int) -> Position:
    """Where the character of this index is."""
    start = text.rfind("\n", 0, index) + 1
    return Position(text.count("\n", 0, index) + 1, utf16_length(text[start:index]) + 1)


def surrogate_error(path: str, at: Position) -> WorkspaceError:
    """The refusal of a text that has half of a character at this place, where only whole ones can be passed on."""
    shown = printable(path)
    return WorkspaceError(
        "SURROGATE",
        f"{shown!r} has half of a character in line {at.line}, column {at.column}, which can be passed on nowhere. "
        "Replace it, or the whole line.",
        {"path": shown, "line": at.line, "column": at.column},
    )


def refuse_halves(path: str, text: str) -> None:
    """Raise `WorkspaceError` SURROGATE for a text of that path, or for the path itself, with half of a character."""
    at = find_lone_surrogate(text)
    if at is not None:
        raise surrogate_error(path, position_of(text, at))


def _locate(text: str, position: Position) -> tuple[Position, int]:
    line = min(max(position.line, 1), text.count("\n") + 1)
    start = 0
    for _ in range(1, line):
        start = text.index("\n", start) + 1
    end = text.find("\n", start)
    length = utf16_length(text[start:] if end < 0 else text[start:end])
    column = min(max(position.column, 1), length + 1)
    return Position(line, column), utf16_length(text[:start]) + column - 1
