"""One value made of many cells."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from typing import Any, Final

from greenroom.protocol.database.queries import Aggregate
from greenroom.protocol.database.values import invalid, whole
from greenroom.protocol.text import parse_number, trim

__all__ = ["aggregate", "numbers"]

_DIGITS = re.compile(r"[+-]?[0-9]+")
_LONGEST: Final = 300
"""Digits of an integer that is a finite number, whichever they are."""


def numbers(cells: Iterable[Any]) -> Iterable[int | float]:
    """The cells that are numbers, or text that spells one, as numbers; others are passed over, booleans too."""
    for cell in cells:
        if isinstance(cell, str):
            read = _spelled(cell)
            if read is not None:
                yield read
        elif isinstance(cell, int | float) and not isinstance(cell, bool) and math.isfinite(cell):
            yield cell


def aggregate(function: Aggregate, cells: Iterable[int | float]) -> int | float | None:
    """What the function makes of numbers, given in key order; `None` if there are none.

    Integers add up exactly, floats one after another as IEEE 754 has it: Python's own `sum` compensates their rounding.
    Raises `DatabaseError` VALIDATION if the result is beyond what a number can be.
    """
    match function:
        case "count":
            return sum(1 for _ in cells)
        case "minimum":
            return _told(function, min(cells, default=None))
        case "maximum":
            return _told(function, max(cells, default=None))
        case "sum" | "average":
            total: int | float = 0
            count = 0
            for cell in cells:
                total += cell
                count += 1
            if not count:
                return None
            return _told(function, total if function == "sum" else _divided(total, count))


def _told(function: Aggregate, result: int | float | None) -> int | float | None:
    if result is None:
        return None
    if abs(result) > sys.float_info.max:
        raise invalid(f"the {function} is beyond the largest number; narrow the conditions")
    return whole(result)


def _divided(total: int | float, count: int) -> float:
    try:
        return total / count
    except OverflowError:
        return math.inf


def _spelled(text: str) -> int | float | None:
    digits = trim(text)
    if len(digits) <= _LONGEST and _DIGITS.fullmatch(digits):
        return int(digits)
    return parse_number(text)
