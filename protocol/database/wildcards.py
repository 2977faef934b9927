"""Text patterns with two wildcards: one for any run of characters, one for any single one."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

__all__ = ["Matcher", "compile_glob", "compile_like"]

Matcher: TypeAlias = Callable[[str], bool]
"""Whether a whole text fits the pattern."""

Tick: TypeAlias = Callable[[], object]
"""Called now and then by a match that takes long; it may raise to end it."""

_PAUSE: Final = 4096
"""Positions that are tried between two ticks."""


def compile_like(pattern: str, tick: Tick = lambda: None) -> Matcher:
    """`%` is any run and `_` any one UTF-16 unit; upper and lower case are alike. There is no escape."""
    match = _compile(_units(pattern.lower()), "%", "_", tick)
    return lambda text: match(_units(text.lower()))


def compile_glob(pattern: str, tick: Tick = lambda: None) -> Matcher:
    """`*` is any run and `?` any one UTF-16 unit. There is no escape, and no class of characters."""
    match = _compile(_units(pattern), "*", "?", tick)
    return lambda text: match(_units(text))


def _units(text: str) -> str:
    """The text with a character for each UTF-16 unit, so that searching it counts as ECMAScript does."""
    if text.isascii():
        return text
    encoded = text.encode("utf-16-le", "surrogatepass")
    return text if len(encoded) == 2 * len(text) else "".join(map(chr, array("H", encoded)))


def _compile(pattern: str, run: str, one: str, tick: Tick) -> Matcher:
    """A greedy match is enough: between two runs, what follows the leftmost place of a piece can only be more."""
    first, *rest = (_piece(piece, one) for piece in pattern.split(run))
    if not rest:
        return lambda text: len(text) == first.length and first.stands(text, 0)
    *middle, last = rest
    fixed = first.length + last.length

    def match(text: str) -> bool:
        end = len(text) - last.length
        if len(text) < fixed or not first.stands(text, 0) or not last.stands(text, end):
            return False
        at = first.length
        for piece in middle:
            at = piece.find(text, at, end, tick)
            if at < 0:
                return False
            at += piece.length
        return True

    return match


class _Piece:
    """What stands between two runs: literal stretches at fixed distances."""

    __slots__ = ("_longest", "_longest_at", "_stretches", "length")

    def __init__(self, piece: str, one: str) -> None:
        self.length: Final = len(piece)
        stretches: list[tuple[int, str]] = []
        at = 0
        for stretch in piece.split(one):
            if stretch:
                stretches.append((at, stretch))
            at += len(stretch) + 1
        self._stretches: Final = tuple(stretches)
        self._longest_at, self._longest = max(stretches, key=lambda each: len(each[1]), default=(0, ""))

    def stands(self, text: str, at: int) -> bool:
        """Whether it fits right there, with room enough."""
        return all(text.startswith(stretch, at + offset) for offset, stretch in self._stretches)

    def find(self, text: str, start: int, end: int, tick: Tick) -> int:
        """The first place from `start` where it fits and ends by `end`, or -1."""
        last = end - self.length
        tried = 0
        while start <= last:
            found = text.find(self._longest, start + self._longest_at, last + self._longest_at + len(self._longest))
            if found < 0:
                return -1
            start = found - self._longest_at
            if len(self._stretches) < 2 or self.stands(text, start):
                return start
            start += 1
            tried += 1
            if tried % _PAUSE == 0:
                tick()
        return -1


@lru_cache(maxsize=64)
def _piece(piece: str, one: str) -> _Piece:
    return _Piece(piece, one)
