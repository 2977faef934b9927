"""The alphabet of patterns: UTF-16 code units, sets of them, and which are one letter when case is ignored.

ECMAScript matches code units where RE2 matches code points. So text is rewritten before it is matched: a character
beyond U+FFFF becomes its two surrogates, and a surrogate `s`, lone or not, becomes U+10000 + (s - U+D800), which no
text can hold any more by then. Afterwards one character is one unit, and every text has a UTF-8 form.

A set of units is a tuple of inclusive ranges, ascending, neither overlapping nor touching.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, TypeAlias

from greenroom.protocol.text import WHITE_SPACE

__all__ = [
    "DIGITS",
    "LINE_ENDS",
    "SPACES",
    "WORDS",
    "Units",
    "complement",
    "expression",
    "fold",
    "to_units",
    "unit",
    "units_of",
]

Units: TypeAlias = tuple[tuple[int, int], ...]

_LAST: Final = 0xFFFF
_LEAD, _TRAIL, _SURROGATES_END = 0xD800, 0xDC00, 0xE000
_SHIFTED: Final = 0x10000
"""Where the surrogates go: U+D800 becomes this code point."""

_NEVER: Final = 0x10FFFF
"""No rewritten text holds this code point, nor any other above the surrogates'."""

_FOLDED_BY_RE2: Final = tuple(((ord(c.upper()),) * 2, (ord(c),) * 2) for c in "ks")
"""RE2 takes such a class for its letter with case ignored, which in alternatives is U+212A and U+017F to it as well."""

_WIDE = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")


def to_units(text: str) -> str:
    """`text` with one character a UTF-16 code unit, surrogates moved out of the way. Most text is returned as it is."""
    return text if text.isascii() else _WIDE.sub(_split, text)


def unit(character: str) -> int:
    """The code unit that a character of `to_units` stands for."""
    code = ord(character)
    return code if code < _SHIFTED else code - _SHIFTED + _LEAD


def _split(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < _SHIFTED:
        return chr(code - _LEAD + _SHIFTED)
    lead, trail = divmod(code - 0x10000, 0x400)
    return chr(lead + _SHIFTED) + chr(trail + _TRAIL - _LEAD + _SHIFTED)


def units_of(ranges: Iterable[tuple[int, int]]) -> Units:
    """The set made of these ranges, which may overlap and come in any order."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(units: Units) -> Units:
    """Every unit that is not in the set."""
    edges = [-1, *(edge for bounds in units for edge in bounds), _LAST + 1]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in gaps if low + 1 < high)


LINE_ENDS: Final = units_of((ord(c), ord(c)) for c in "\n\r\u2028\u2029")
DIGITS: Final = units_of([(ord("0"), ord("9"))])
WORDS: Final = units_of([*DIGITS, (ord("A"), ord("Z")), (ord("_"), ord("_")), (ord("a"), ord("z"))])
SPACES: Final = units_of((ord(c), ord(c)) for c in WHITE_SPACE)


def fold(units: Units) -> Units:
    """The set with every unit that is the same letter as one of its own when case is ignored.

    Two units are one letter if ECMA-262's `Canonicalize` (22.2.2.7.3, without the `u` flag) takes them to the same
    unit. RE2's own folding is another one: it takes U+017F for `s` and U+212A for `k`.
    """
    variants = _variants()
    starts = [low for low, _ in units]

    def holds(code: int) -> bool:
        index = bisect_right(starts, code) - 1
        return index >= 0 and code <= units[index][1]

    if sum(high - low + 1 for low, high in units) < len(variants):
        cased = (code for low, high in units for code in range(low, high + 1) if code in variants)
    else:
        cased = (code for code in variants if holds(code))
    return units_of([*units, *((other, other) for code in cased for other in variants[code])])


@functools.cache
def _variants() -> dict[int, tuple[int, ...]]:
    """For each unit that has another case: all units that are the same letter."""
    letters: dict[int, list[int]] = {}
    for code in range(_LAST + 1):
        letters.setdefault(_canonical(code), []).append(code)
    return {code: tuple(codes) for codes in letters.values() if len(codes) > 1 for code in codes}


def _canonical(code: int) -> int:
    upper = chr(code).upper()
    if len(upper) != 1 or (code >= 0x80 and ord(upper) < 0x80):
        return code
    return ord(upper)


@functools.lru_cache(maxsize=1024)
def expression(units: Units) -> str:
    """The RE2 expression for one unit of the set."""
    if not units:
        return r"[^\x{0}-\x{10FFFF}]"
    ranges = [shifted for low, high in units for shifted in _shift(low, high)]
    if units in _FOLDED_BY_RE2:
        ranges.append((_NEVER, _NEVER))
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _character(ranges[0][0])
    spans = (_character(low) if low == high else f"{_character(low)}-{_character(high)}" for low, high in ranges)
    return f"[{''.join(spans)}]"


def _shift(low: int, high: int) -> Iterable[tuple[int, int]]:
    """The code points that stand for the units from `low` to `high`."""
    if low < _LEAD:
        yield low, min(high, _LEAD - 1)
    if high >= _SURROGATES_END:
        yield max(low, _SURROGATES_END), high
    first, last = max(low, _LEAD), min(high, _SURROGATES_END - 1)
    if (first, last) == (_LEAD, _SURROGATES_END - 1):
        # Taking in what never occurs leaves RE2 with fewer byte ranges.
        yield _SHIFTED, _NEVER
    elif first <= last:
        yield first - _LEAD + _SHIFTED, last - _LEAD + _SHIFTED


def _character(code: int) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else f"\\x{{{code:X}}}"
