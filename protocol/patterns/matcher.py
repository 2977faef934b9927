"""Compiled patterns: whether a text has a match, and where all of them are."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Final, Protocol, cast, final

import re2 as untyped_re2  # type: ignore[import-untyped]  # google-re2 ships no types: `_Re2` says what is used of it

from greenroom.protocol.errors import PatternError
from greenroom.protocol.patterns.fragments import Fragment, too_large
from greenroom.protocol.patterns.grammar import read_pattern
from greenroom.protocol.patterns.units import to_units
from greenroom.protocol.text import utf16_length

__all__ = ["Pattern", "compile_pattern"]

_CACHED: Final = 512
_MEMORY: Final = 4 * 1024 * 1024
"""Bytes that RE2 may use for each program and for the states it builds while matching."""

_QUICK: Final = 64
"""How many positions a pattern may have for `re2.Set`, which is quickest but has no way out when its states explode."""

_WORK: Final = 1000 * 65_536
"""What the positions owed to repeats times the units of a text may come to, half a second or so: RE2's own largest
count on the longest string that a form holds."""


class _Match(Protocol):
    def span(self) -> tuple[int, int]: ...


class _Engine(Protocol):
    def search(self, text: bytes, pos: int) -> _Match | None: ...


class _Options(Protocol):
    log_errors: bool
    max_mem: int


class _Set(Protocol):
    def Add(self, pattern: str) -> int: ...  # noqa: N802 (RE2's own name, as the three below)
    def Compile(self) -> None: ...  # noqa: N802
    def Match(self, text: str | bytes) -> list[int] | None: ...  # noqa: N802


class _Sets(Protocol):
    def SearchSet(self, options: _Options) -> _Set: ...  # noqa: N802


class _Re2(Protocol):
    error: type[Exception]
    Set: _Sets

    def Options(self) -> _Options: ...  # noqa: N802
    def compile(self, pattern: str, options: _Options) -> _Engine: ...


re2 = cast("_Re2", untyped_re2)


@final
class Pattern:
    """A compiled pattern. It is immutable and may be used by several threads at once.

    Neither method calls back into Python while RE2 runs, and RE2 runs without the interpreter's lock.
    """

    __slots__ = ("_copies", "_engine", "_quick", "source")

    source: str
    """The pattern as it was written."""

    def __init__(self, source: str, program: Fragment) -> None:
        self.source = source
        self._copies = program.copies
        self._engine = _compile_engine(program)
        self._quick = _compile_set(program)

    def __repr__(self) -> str:
        return f"<Pattern {self.source!r}>"

    def matches(self, text: str) -> bool:
        """Whether the pattern is found anywhere in `text`; takes time linear in its length.

        Raises `PatternError` REPEAT where repeats that come to more than 1,000 positions meet a text so long that
        the answer might take seconds. Up to 13,000 units (or 65,536 with fewer positions) there is always an answer.
        """
        if self._quick is not None:
            return self._quick((text if text.isascii() else to_units(text)).encode()) is not None
        if self._copies * len(text) > _WORK:
            raise too_large(f"its repeats come to {self._copies} positions, for a text of {len(text)} characters")
        return next(self.spans(text), None) is not None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end, in UTF-16 units, of each match in `text` from left to right, none overlapping.

        After an empty match the search goes on one unit further; after another one at its end, where an empty match
        may follow (`RegExp.prototype[@@matchAll]`, ECMA-262 22.2.6.9). Finding one span takes time linear in the text,
        so that all of them can take its square: a caller with a deadline looks at the clock between two spans.
        """
        data = to_units(text).encode()
        ascii_only = len(data) == len(text)
        at = column = counted = 0
        while at <= len(data):
            match = self._engine.search(data, at)
            if match is None:
                return
            start, end = match.span()
            if not _is_boundary(data, start):
                # RE2 finds `\B` between the bytes of a character too.
                at = start + 1
                continue
            first = column + (start - counted if ascii_only else len(data[counted:start].decode()))
            column = first + (end - start if ascii_only else len(data[start:end].decode()))
            counted = end
            yield first, column
            at = end
            if start == end:
                at += 1
                while not _is_boundary(data, at):
                    at += 1


def compile_pattern(source: str, *, ignore_case: bool = False, limit: int | None = 256) -> Pattern:
    """The pattern that an ECMAScript source means without flags, or with the flag `i` alone.

    `limit` is the number of UTF-16 units that the source may have, `None` for no limit of the caller's own. A text
    taken literally is `compile_pattern(re.escape(text))`. Compiled patterns are kept for the next time.

    Raises `PatternError` with one of the codes

    - LENGTH: the source is over the limit (context `length`, `limit`);
    - INVALID: it is no pattern (context `position`);
    - LOOKAROUND, BACKREFERENCE: no linear-time matcher can match it (context `construct`, `position`);
    - REPEAT: its counted repeats, or the whole of it, are too large for one (no context).
    """
    length = utf16_length(source)
    if limit is not None and length > limit:
        raise PatternError(
            "LENGTH",
            f"A pattern may have {limit} UTF-16 units at most, this one has {length}.",
            {"length": length, "limit": limit},
        )
    return _compile(source, ignore_case)


@functools.lru_cache(maxsize=_CACHED)
def _compile(source: str, ignore_case: bool) -> Pattern:
    return Pattern(source, read_pattern(to_units(source), ignore_case=ignore_case))


def _compile_engine(program: Fragment) -> _Engine:
    try:
        return re2.compile(program.source, _options())
    except re2.error as error:
        raise too_large("its program does not fit") from error


def _compile_set(program: Fragment) -> Callable[[bytes], list[int] | None] | None:
    """The quickest way to ask RE2 for a match, a set of one expression; `None` where it must not be used."""
    if program.size > _QUICK or r"\B" in program.source:
        return None
    alone = re2.Set.SearchSet(_options())
    try:
        alone.Add(program.source)
        alone.Compile()
    except re2.error:
        return None
    return alone.Match


def _options() -> _Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    return options


def _is_boundary(data: bytes, at: int) -> bool:
    """Whether a character of UTF-8 text begins or ends here."""
    return at >= len(data) or data[at] & 0xC0 != 0x80
