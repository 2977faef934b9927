"""What a cell holds, what a key is, and the one order in which all values stand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final, TypeAlias, TypeGuard

from greenroom.protocol.errors import DatabaseError
from greenroom.protocol.schemas.gates import encodable
from greenroom.protocol.text import exact_number

__all__ = [
    "ABSENT",
    "Cell",
    "Key",
    "KeyFunction",
    "Rank",
    "Row",
    "fits_64_bits",
    "invalid",
    "is_key",
    "is_mapping",
    "operand",
    "rank_of",
    "whole",
]

Cell: TypeAlias = str | int | float | bool
Key: TypeAlias = str | int | float
Row: TypeAlias = dict[str, Cell]
"""The cells of a row by column, in declared order. A cell that is absent has no entry; none is ever `None`."""

KeyFunction: TypeAlias = Callable[[], Key]
"""Makes the key of a row that has none."""

_WHOLE: Final = 1e21
"""From here on a client prints a whole number with an exponent, so that it stays a float here too."""


class Rank(IntEnum):
    """The kinds of value in ascending order: whatever the values, one of a lower rank stands before one of a higher."""

    ABSENT = 0
    NULL = 1
    BOOLEAN = 2
    NUMBER = 3
    STRING = 4
    OTHER = 5


class _Absent:
    """The value of a cell that is not there, and of an operand that was not given."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


def rank_of(value: object) -> Rank:
    """Where the kind of a value stands. A bool is no number."""
    if value is ABSENT:
        return Rank.ABSENT
    if value is None:
        return Rank.NULL
    if isinstance(value, bool):
        return Rank.BOOLEAN
    if isinstance(value, int | float):
        return Rank.NUMBER
    return Rank.STRING if isinstance(value, str) else Rank.OTHER


def is_key(value: object) -> bool:
    """Whether the value can be a key: text or a finite number."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int) and not isinstance(value, bool)


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether the value has members by key."""
    return isinstance(value, Mapping)


def whole(number: int | float) -> int | float:
    """The number as it is handed out: an `int` where it is whole and a client would print no exponent."""
    return int(number) if isinstance(number, float) and number.is_integer() and abs(number) < _WHOLE else number


def fits_64_bits(number: int) -> bool:
    """Whether an integer column can hold the number."""
    return -(2**63) <= number < 2**63


def operand(value: Any, *, exact: bool, where: str) -> Any:
    """A number or text as it is compared with cells; any other value as it is.

    With `exact` it meets the cells of an integer column, which have all their digits. An integer that they could not
    hold, or that no double prints back elsewhere, was most likely changed under way: `DatabaseError` VALIDATION, which
    begins with `where` and advises text.
    """
    if isinstance(value, str):
        if not encodable(value):
            raise invalid(f"{where} holds a lone surrogate, which no stored text does")
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise invalid(f"{where} is {value}, and only finite numbers are stored")
    if isinstance(value, int) and not isinstance(value, bool) and not (exact and fits_64_bits(value)):
        held = exact_number(value)
        if held is None:
            raise invalid(f"{where} is {value}, whose digits are not all kept on the way; send it as text")
        return float(held)
    return value


def invalid(message: str, **context: Any) -> DatabaseError:
    """`DatabaseError` VALIDATION."""
    return DatabaseError("VALIDATION", message, context)
