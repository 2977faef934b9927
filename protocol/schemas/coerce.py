"""Whether a value has a shape, and how one that nearly has it is read.

`check` takes nothing but the exact thing. `coerce` also reads what a model or a query string tends to send for it: a
number for text, digits for a number, `"true"` for True, white space around a word. Three things hold: what `check`
takes, `coerce` takes; what `coerce` returns, `check` takes; and neither ever raises, whatever the value.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Literal, TypeAlias, TypeGuard, assert_never

from greenroom.protocol.schemas.gates import NotJson, clone_json, is_array, is_record
from greenroom.protocol.schemas.shape import (
    AnyJson,
    Anything,
    ArrayShape,
    BooleanShape,
    EnumShape,
    ExactlyOne,
    FirstOf,
    NullShape,
    NumberShape,
    ObjectShape,
    Shape,
    TextShape,
    is_finite_number,
    member_key,
)
from greenroom.protocol.text import number_text, parse_number, trim

__all__ = [
    "REFUSED",
    "Refused",
    "as_number",
    "as_text",
    "check",
    "coerce",
    "is_object",
]


class _Outcome(Enum):
    REFUSED = "refused"


REFUSED: Final = _Outcome.REFUSED
"""What a value without a reading is read as; `None` would be a value."""

Refused: TypeAlias = Literal[_Outcome.REFUSED]


def check(shape: Shape, value: object) -> bool:
    """Whether the value has the shape as it is: a bool is no number, 3.0 is whole, a closed object has no extras."""
    match shape:
        case ObjectShape(properties, required, extras):
            return (
                is_object(value)
                and all(name in value for name in required)
                and all(_check_entry(properties.get(name, extras), part) for name, part in value.items())
            )
        case TextShape(low, high):
            return type(value) is str and _within(low, len(value), high)
        case NumberShape(whole, low, high):
            return is_finite_number(value) and not (whole and value % 1) and _within(low, value, high)
        case BooleanShape():
            return type(value) is bool
        case ArrayShape(items, low, high):
            return is_array(value) and _within(low, len(value), high) and all(check(items, item) for item in value)
        case Anything():
            return True
        case AnyJson():
            return not isinstance(clone_json(value), NotJson)
        case EnumShape(members):
            return member_key(value) in members
        case ExactlyOne(variants):
            return sum(check(variant, value) for variant in variants) == 1
        case FirstOf(variants):
            return any(check(variant, value) for variant in variants)
        case NullShape():
            return value is None
        case _:
            assert_never(shape)


def coerce(shape: Shape, value: object) -> Any | Refused:
    """The value as the shape reads it, objects and lists rebuilt, or `REFUSED`.

    Bounds are tested on what was read. Undeclared keys of a closed object are dropped unread, an absent key stays
    absent, and `None` is no absence: it is refused wherever the shape does not take it. A whole number comes out as an
    `int`, text that spells one too.
    """
    match shape:
        case ObjectShape():
            return _coerce_object(shape, value) if is_object(value) else REFUSED
        case TextShape(low, high):
            text = as_text(value)
            return text if text is not None and _within(low, len(text), high) else REFUSED
        case NumberShape(whole, low, high):
            number = as_number(value)
            if number is None or (whole and number % 1) or not _within(low, number, high):
                return REFUSED
            return int(number) if whole else number
        case BooleanShape():
            truth = _as_boolean(value)
            return REFUSED if truth is None else truth
        case ArrayShape(items, low, high):
            if not is_array(value) or not _within(low, len(value), high):
                return REFUSED
            parts = [coerce(items, item) for item in value]
            return REFUSED if any(part is REFUSED for part in parts) else parts
        case Anything():
            return value
        case AnyJson():
            copy = clone_json(value)
            return REFUSED if isinstance(copy, NotJson) else copy
        case EnumShape(members):
            member = members.get(member_key(value), REFUSED)
            return members.get(("string", trim(value)), REFUSED) if member is REFUSED and type(value) is str else member
        case ExactlyOne():
            return value if check(shape, value) else REFUSED
        case FirstOf(variants):
            return _first(variants, value)
        case NullShape():
            return None if value is None else REFUSED
        case _:
            assert_never(shape)


def as_text(value: object) -> str | None:
    """Text as it is, a finite number as ECMAScript prints it (though an `int` with all its digits), else `None`."""
    if type(value) is str:
        return value
    if not is_finite_number(value):
        return None
    return str(value) if type(value) is int else number_text(value)


def as_number(value: object) -> int | float | None:
    """A finite number as it is, text that spells one by `text.parse_number`, else `None`."""
    if type(value) is str:
        return parse_number(value)
    return value if is_finite_number(value) else None


def _as_boolean(value: object) -> bool | None:
    """A bool, or exactly `"true"`, `"false"`, `"1"`, `"0"`, 1 or 0 for one, else `None`."""
    if type(value) is bool:
        return value
    if type(value) is str:
        return {"true": True, "1": True, "false": False, "0": False}.get(value)
    return bool(value) if is_finite_number(value) and value in (0, 1) else None


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether the value is a dict (no subclass) with text keys only, so that looking into it runs no foreign code."""
    return is_record(value) and all(type(key) is str for key in value)


def _within(low: float | None, size: float, high: float | None) -> bool:
    """Whether `size` lies between the bounds, of which either may be missing."""
    return (low is None or size >= low) and (high is None or size <= high)


def _check_entry(shape: Shape | None, value: object) -> bool:
    return shape is not None and check(shape, value)


def _first(variants: tuple[Shape, ...], value: object) -> Any | Refused:
    for variant in variants:
        if check(variant, value):
            return coerce(variant, value)
    readings = (coerce(variant, value) for variant in variants)
    return next((reading for reading in readings if reading is not REFUSED), REFUSED)


def _coerce_object(shape: ObjectShape, value: dict[str, Any]) -> dict[str, Any] | Refused:
    if any(name not in value for name in shape.required):
        return REFUSED
    entries = [(name, part) for name, part in shape.properties.items() if name in value]
    if shape.extras is not None:
        entries += [(name, shape.extras) for name in value if name not in shape.properties]
    read: dict[str, Any] = {}
    for name, part in entries:
        reading = coerce(part, value[name])
        if reading is REFUSED:
            return REFUSED
        read[name] = reading
    return read
