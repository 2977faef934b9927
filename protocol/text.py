"""Text and numbers as ECMAScript reads, counts and prints them.

Documents cross to clients whose strings are UTF-16 and whose numbers are doubles, so lengths, trimming and number text
follow ECMA-262 here rather than Python: a length is in UTF-16 code units, white space is `WhiteSpace` together with
`LineTerminator` (sections 12.2 and 12.3), a number prints by `Number::toString` (6.1.6.1.20).
"""

from __future__ import annotations

import math
import re
from typing import Final

__all__ = [
    "WHITE_SPACE",
    "exact_number",
    "number_text",
    "parse_number",
    "path_segment",
    "trim",
    "utf16_length",
    "well_formed",
]

WHITE_SPACE: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What ECMAScript trims and `\\s` matches. Python's `str.strip` adds U+001C-1F and U+0085 and leaves out U+FEFF."""

_SAFE: Final = 2**53 - 1
"""Below and at this magnitude every integer is a double of its own (`Number.MAX_SAFE_INTEGER`)."""

_LONGEST: Final = 309
"""How many digits the largest double has before its point; Python refuses to read integers beyond 4,300."""

_DIGITS = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_RADIX = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")


def utf16_length(text: str) -> int:
    """How many UTF-16 code units `text` takes: one a character, two beyond U+FFFF, one for a lone surrogate."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def well_formed(text: str) -> str:
    """The text as UTF-8 can hold it: each lone surrogate is U+FFFD (`String.prototype.toWellFormed`)."""
    # The detour joins a pair that was given as two halves, as ECMAScript sees it.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def path_segment(text: str) -> str:
    """The text as one segment of a path: its slashes and percent signs percent-encoded, so that no two share one."""
    return text.replace("%", "%25").replace("/", "%2F")


def trim(text: str) -> str:
    """`text` without ECMAScript white space at either end (`String.prototype.trim`)."""
    return text.strip(WHITE_SPACE)


def number_text(value: int | float) -> str:
    """The number as ECMAScript prints it: `5` for 5.0, `0` for -0.0, `1e+21`, `1e-7`, plain digits in between.

    An integer is first rounded to the double that a client would hold. Raises `ValueError` for what is not finite, or
    is beyond the range of a double.
    """
    try:
        double = float(value)
    except OverflowError:
        double = math.inf
    if not math.isfinite(double):
        raise ValueError("a number that is not finite has no text")
    if double.is_integer() and -_SAFE <= double <= _SAFE:
        return str(int(double))
    digits, point = _shortest(double)
    sign = "-" if double < 0 else ""
    if len(digits) <= point <= 21:
        return f"{sign}{digits.ljust(point, '0')}"
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{point - 1:+d}"


def exact_number(value: int) -> int | float | None:
    """The number a client holds for the integer, or `None` if it would print with other digits (9007199254740993)."""
    if -_SAFE <= value <= _SAFE:
        return value
    try:
        double = float(value)
    except OverflowError:
        return None
    digits, point = _shortest(double)
    return double if int(digits) * 10 ** (point - len(digits)) == abs(value) else None


def parse_number(text: str) -> int | float | None:
    """The finite number that `text` spells, white space around it aside; an `int` where integral and safely held.

    Read are decimal numbers with an optional sign (`5.`, `.5`, `1e3`) and unsigned `0x`, `0o`, `0b` in either case, as
    `StringToNumber` has them (ECMA-262, 7.1.4.1). `None` for everything else, which includes the empty text, separators
    and `Infinity`, and for plain decimal digits that a double cannot give back (9007199254740993): an identifier that
    changes under way is worse than one that is refused.
    """
    text = trim(text)
    if _DIGITS.fullmatch(text):
        digits = text.lstrip("+-").lstrip("0") or "0"
        if len(digits) > _LONGEST:
            return None
        return exact_number(-int(digits) if text[0] == "-" else int(digits))
    if _DECIMAL.fullmatch(text):
        double = float(text)
    elif _RADIX.fullmatch(text):
        try:
            double = float(int(text, 0))
        except OverflowError:
            return None
    else:
        return None
    if not math.isfinite(double):
        return None
    return int(double) if double.is_integer() and -_SAFE <= double <= _SAFE else double


def _shortest(double: float) -> tuple[str, int]:
    """The digits D and the point P of a double's magnitude, which is 0.D times ten to the P; no zero ends D."""
    mantissa, _, power = repr(abs(double)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(digits) - len(fraction) + int(power or 0)
    return digits.rstrip("0"), point
