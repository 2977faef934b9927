"""The grammar of ECMAScript patterns, read from the source into a fragment for the linear engine.

This is `Pattern` of ECMA-262 (15th edition, 22.2.1) without the `u` and `v` flags, with the additions for web browsers
of Annex B.1.2: `]`, `{` and `}` may stand for themselves, an escape without a meaning stands for its character, octal
escapes are read. Sound patterns that a linear engine cannot match are refused by codes of their own, but only once
the whole source has proved sound: whoever wrote it is told of a mistake first.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from greenroom.protocol.errors import PatternError
from greenroom.protocol.patterns.fragments import EMPTY, Fragment, assertion, choose, join, one_of, repeat, too_large
from greenroom.protocol.patterns.units import (
    DIGITS,
    LINE_ENDS,
    SPACES,
    WORDS,
    Units,
    complement,
    fold,
    unit,
    units_of,
)

__all__ = ["read_pattern"]

MAX_NESTING: Final = 200
"""How deep groups may stand in groups; a source of 256 units cannot go beyond 128."""

MAX_UNITS: Final = 16_384
"""How long a source may be where the caller sets no limit."""

_NO_TEXT_IS_SO_LONG: Final = 10**9
_QUANTIFIER = re.compile(r"(?:([*+?])|\{([0-9]+)(?:(,)([0-9]*))?\})(\??)")
_CAPTURES = re.compile(r"\\.|\[(?:\\.|[^\]\\])*|(\((?!\?)|\(\?<(?![=!]))", re.DOTALL)
_DECIMAL = re.compile(r"[1-9][0-9]*")
_OCTAL = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")
_HEX = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})")
_NAME_ESCAPE = re.compile(r"\\u(?:([0-9a-fA-F]{4})|\{([0-9a-fA-F]+)\})")
_CONTROLS: Final = {"f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CLASSES: Final = {
    "d": DIGITS,
    "D": complement(DIGITS),
    "s": SPACES,
    "S": complement(SPACES),
    "w": WORDS,
    "W": complement(WORDS),
}
_ASSERTIONS: Final = {"^": assertion(r"\A"), "$": assertion(r"\z"), "b": assertion(r"\b"), "B": assertion(r"\B")}
_LOOKAROUND: Final = ("(?=", "(?!", "(?<=", "(?<!")
_OTHER_ID_START: Final = frozenset("\u1885\u1886\u2118\u212e\u309b\u309c")
_OTHER_ID_CONTINUE: Final = frozenset(
    "$\u200c\u200d\u00b7\u0387\u1369\u136a\u136b\u136c\u136d\u136e\u136f\u1370\u1371\u19da"
)


def read_pattern(source: str, *, ignore_case: bool) -> Fragment:
    """The fragment for a pattern's source, given as `to_units` gives it.

    Raises `PatternError`: INVALID for what is no pattern; LOOKAROUND, BACKREFERENCE or REPEAT for a sound one that the
    engine cannot match. The context has the `position` in UTF-16 units and, for the constructs, what stands there.
    """
    return _Reader(source, ignore_case).read()


class _Group:
    """A group that is still open, or the pattern itself, with what has been read of it."""

    __slots__ = ("alternatives", "construct", "position", "terms")

    def __init__(self, construct: str, position: int) -> None:
        self.construct = construct
        self.position = position
        self.alternatives: list[Fragment] = []
        self.terms: list[Fragment] = []

    def end_alternative(self) -> None:
        self.alternatives.append(join(self.terms))
        self.terms = []


class _Reader:
    def __init__(self, source: str, ignore_case: bool) -> None:
        if len(source) > MAX_UNITS:
            raise too_large(f"its source has {len(source)} units, the limit is {MAX_UNITS}")
        captures = [match[1] for match in _CAPTURES.finditer(source) if match[1]]
        self._source = source
        self._at = 0
        self._ignore_case = ignore_case
        self._captures = len(captures)
        self._has_names = "(?<" in captures
        self._names: list[str] = []
        self._named_references: list[tuple[str, int]] = []
        self._refusal: PatternError | None = None

    def read(self) -> Fragment:
        group = _Group("", 0)
        enclosing: list[_Group] = []
        while self._at < len(self._source):
            start = self._at
            character = self._source[start]
            if character == "(":
                enclosing.append(group)
                if len(enclosing) > MAX_NESTING:
                    raise too_large(f"its groups are nested more than {MAX_NESTING} deep")
                group = self._open()
            elif character == ")":
                if not enclosing:
                    raise self._invalid("a `)` has no `(` before it", start)
                self._at += 1
                group.end_alternative()
                closed, group = group, enclosing.pop()
                group.terms.append(self._close(closed))
            elif character == "|":
                self._at += 1
                group.end_alternative()
            else:
                group.terms.append(self._term(character))
        if enclosing:
            raise self._invalid(f"the group `{group.construct}` is never closed", group.position)
        self._check_references()
        if self._refusal is not None:
            raise self._refusal
        group.end_alternative()
        return choose(group.alternatives)

    def _term(self, character: str) -> Fragment:
        start = self._at
        if _QUANTIFIER.match(self._source, start):
            raise self._invalid(f"there is nothing before `{character}` that could be repeated", start)
        if character in "^$":
            self._at += 1
            return _ASSERTIONS[character]
        if character == "\\":
            if self._source.startswith(("b", "B"), start + 1):
                self._at += 2
                return _ASSERTIONS[self._source[start + 1]]
            if self._back_reference():
                return self._repeated(EMPTY)
            return self._repeated(self._one_of(self._escape(in_class=False)))
        if character == "[":
            return self._repeated(self._class())
        self._at += 1
        if character == ".":
            return self._repeated(one_of(complement(LINE_ENDS)))
        return self._repeated(self._one_of(_only(unit(character))))

    def _repeated(self, fragment: Fragment) -> Fragment:
        """The fragment with the quantifier that follows it, if there is one."""
        match = _QUANTIFIER.match(self._source, self._at)
        if match is None:
            return fragment
        symbol, first, comma, last, lazy = match.groups()
        if symbol:
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[symbol]
        else:
            low = _bound(first)
            high = low if not comma else _bound(last) if last else None
            if high is not None and high < low:
                raise self._invalid(f"the bounds of `{match[0]}` are out of order", self._at)
            if high == _NO_TEXT_IS_SO_LONG:
                high = None
        self._at = match.end()
        return repeat(fragment, low, high, lazy=bool(lazy))

    def _one_of(self, units: Units, *, negated: bool = False) -> Fragment:
        if self._ignore_case:
            units = fold(units)
        return one_of(complement(units) if negated else units)

    # Groups

    def _open(self) -> _Group:
        start = self._at
        source = self._source
        if not source.startswith("(?", start):
            self._at += 1
            return _Group("(", start)
        for construct in ("(?:", *_LOOKAROUND):
            if source.startswith(construct, start):
                self._at += len(construct)
                if construct != "(?:":
                    self._refuse("LOOKAROUND", construct, start, "looks around, which")
                return _Group(construct, start)
        if not source.startswith("(?<", start):
            raise self._invalid(
                "a group begins with `(`, `(?:` or `(?<name>`; `(?` followed by anything else is none", start
            )
        self._at += len("(?<")
        name = self._name()
        if name in self._names:
            raise self._invalid(f"there are two groups with the name `{name}`", start)
        self._names.append(name)
        return _Group(f"(?<{name}>", start)

    def _close(self, group: _Group) -> Fragment:
        if group.construct not in _LOOKAROUND:
            return self._repeated(choose(group.alternatives))
        # A lookahead may be repeated, a lookbehind may not; the pattern is refused in the end in any case.
        return EMPTY if "<" in group.construct else self._repeated(EMPTY)

    def _name(self) -> str:
        """The group name from here on and its `>`."""
        start = self._at
        name = ""
        while not self._source.startswith(">", self._at):
            character = self._name_character()
            if not _is_name_character(character, first=not name):
                raise self._invalid("a group name is made as an identifier is, and ends with `>`", start)
            name += character
        if not name:
            raise self._invalid("a group name may not be empty", start)
        self._at += 1
        return name

    def _name_character(self) -> str:
        """The next character of a name, whole where it is written as two surrogates, or nothing at the end."""
        code = self._name_code()
        if 0xD800 <= code < 0xDC00:
            after_lead = self._at
            trail = self._name_code()
            if 0xDC00 <= trail < 0xE000:
                return chr(0x10000 + (code - 0xD800) * 0x400 + trail - 0xDC00)
            self._at = after_lead
        return chr(code) if 0 <= code <= 0x10FFFF else ""

    def _name_code(self) -> int:
        escape = _NAME_ESCAPE.match(self._source, self._at)
        if escape:
            self._at = escape.end()
            return int(escape[1] or escape[2], 16)
        if self._at == len(self._source):
            return -1
        self._at += 1
        return unit(self._source[self._at - 1])

    # Escapes

    def _back_reference(self) -> bool:
        """Whether a reference to a group stands here. It is read, and the pattern will be refused for it."""
        start = self._at
        number = _DECIMAL.match(self._source, start + 1)
        if number and _bound(number[0]) <= self._captures:
            self._at = number.end()
            self._refuse("BACKREFERENCE", f"\\{number[0]}", start, "refers back to a group, which")
            return True
        if not self._has_names or not self._source.startswith("k", start + 1):
            return False
        if not self._source.startswith("<", start + 2):
            raise self._invalid("in a pattern with named groups `\\k` is followed by a name, as in `\\k<name>`", start)
        self._at = start + len("\\k<")
        name = self._name()
        self._named_references.append((name, start))
        self._refuse("BACKREFERENCE", f"\\k<{name}>", start, "refers back to a group, which")
        return True

    def _check_references(self) -> None:
        for name, position in self._named_references:
            if name not in self._names:
                known = ", ".join(f"`{known}`" for known in self._names)
                raise self._invalid(f"no group has the name `{name}`; there are {known}", position)

    def _escape(self, *, in_class: bool) -> Units:
        """The units that the escape here stands for, one unit unless it is a class such as `\\d`."""
        start = self._at
        source = self._source
        if start + 1 == len(source):
            raise self._invalid("it ends with a backslash that has nothing to escape", start)
        character = source[start + 1]
        self._at += 2
        if character in _CLASSES:
            return _CLASSES[character]
        if character in _CONTROLS:
            return _only(ord(_CONTROLS[character]))
        if character == "c":
            return self._control(in_class)
        octal = _OCTAL.match(source, start + 1)
        if octal:
            self._at = octal.end()
            return _only(int(octal[0], 8))
        hexadecimal = _HEX.match(source, start + 1)
        if hexadecimal:
            self._at = hexadecimal.end()
            return _only(int(hexadecimal[1] or hexadecimal[2], 16))
        if character == "k" and self._has_names:
            raise self._invalid("in a pattern with named groups `\\k` has no meaning inside `[...]`", start)
        if character == "b" and in_class:
            return _only(ord("\b"))
        return _only(unit(character))

    def _control(self, in_class: bool) -> Units:
        """What `\\c` and the letter after it stand for, or a mere backslash if no letter follows."""
        letter = self._source[self._at : self._at + 1]
        if letter.isascii() and (letter.isalpha() or (in_class and (letter.isdigit() or letter == "_"))):
            self._at += 1
            return _only(ord(letter) % 32)
        self._at -= 1
        return _only(ord("\\"))

    # Classes

    def _class(self) -> Fragment:
        start = self._at
        self._at += 1
        negated = self._source.startswith("^", self._at)
        self._at += negated
        ranges: list[tuple[int, int]] = []
        while not self._source.startswith("]", self._at):
            first = self._class_atom(start)
            if not self._source.startswith("-", self._at) or self._source.startswith("]", self._at + 1):
                ranges.extend(first)
                continue
            dash = self._at
            self._at += 1
            last = self._class_atom(start)
            low, high = _single(first), _single(last)
            if low is None or high is None:
                ranges.extend([*first, (ord("-"), ord("-")), *last])
            elif low <= high:
                ranges.append((low, high))
            else:
                raise self._invalid("the ends of a range in `[...]` are out of order", dash)
        self._at += 1
        return self._one_of(units_of(ranges), negated=negated)

    def _class_atom(self, opened: int) -> Units:
        if self._at == len(self._source):
            raise self._invalid("the class `[` is never closed", opened)
        if self._source[self._at] == "\\":
            return self._escape(in_class=True)
        self._at += 1
        return _only(unit(self._source[self._at - 1]))

    # Refusals

    def _invalid(self, reason: str, position: int) -> PatternError:
        return PatternError("INVALID", f"Not a pattern: {reason} (position {position}).", {"position": position})

    def _refuse(self, code: str, construct: str, position: int, clause: str) -> None:
        """Keep the refusal of the first construct that the engine lacks until the source has been read."""
        if self._refusal is None:
            self._refusal = PatternError(
                code,
                f"`{construct}` at position {position} {clause} no linear-time matcher can do. State the condition"
                " without it, or check it outside the pattern.",
                {"construct": construct, "position": position},
            )


def _only(code: int) -> Units:
    return ((code, code),)


def _single(units: Units) -> int | None:
    """The unit of a set that has one."""
    return units[0][0] if len(units) == 1 and units[0][0] == units[0][1] else None


def _bound(digits: str) -> int:
    """A count, cut off where no text can be as long; Python reads no integer of more than 4,300 digits."""
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) < 10 else _NO_TEXT_IS_SO_LONG


def _is_name_character(character: str, *, first: bool) -> bool:
    """Whether it is `ID_Start`, `$` or `_`, or further on in a name also `ID_Continue` (Unicode, annex 31)."""
    if not character or character == "\u2e2f":
        return False
    category = unicodedata.category(character)
    if category[0] == "L" or category == "Nl" or character in "$_" or character in _OTHER_ID_START:
        return True
    return not first and (category in ("Mn", "Mc", "Nd", "Pc") or character in _OTHER_ID_CONTINUE)
