"""Why `coerce` refuses a value: faults in the order of the schema, each with the place and what was expected there.

What a coercion repairs is no fault, nor is an extra key of a closed object. A list of faults is empty exactly when
`coerce` takes the value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, Literal, TypeAlias, assert_never

from msgspec import UNSET, Struct, UnsetType

from greenroom.protocol.schemas.coerce import REFUSED, as_number, as_text, check, coerce, is_object
from greenroom.protocol.schemas.gates import NotJson, clone_json, encodable, is_array, place
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
)
from greenroom.protocol.text import number_text

__all__ = [
    "ConstraintFault",
    "Fault",
    "MissingFault",
    "OneOfFault",
    "TypeFault",
    "VariantFault",
    "explain",
    "fault_text",
    "received_text",
]

MAX_FAULTS: Final = 64
"""How many faults one list holds; the rest is left out."""

_MAX_SHOWN: Final = 64
"""How many characters of a refused text are shown."""


class TypeFault(Struct, frozen=True, tag_field="reason", tag="type"):
    """A value of the wrong kind. `expected` is string, number, integer, boolean, null, literal, array, object, union or
    json; `received` the value as short text."""

    path: list[str]
    expected: str
    received: str


class MissingFault(Struct, frozen=True, tag_field="reason", tag="missing"):
    """A required key that is absent; it is the end of `path`."""

    path: list[str]
    expected: str


class ConstraintFault(Struct, frozen=True, kw_only=True, tag_field="reason", tag="constraint"):
    """A value of the right kind beyond a bound: `limit` is the bound, and absent where a number is not whole."""

    path: list[str]
    expected: str
    constraint: Literal["min", "max", "integer"]
    limit: int | float | UnsetType = UNSET
    received: str


class VariantFault(Struct, frozen=True, tag_field="reason", tag="variant"):
    """None of so many variants reads the value. The faults of the nearest one follow."""

    path: list[str]
    variants: int


class OneOfFault(Struct, frozen=True, tag_field="reason", tag="oneOf"):
    """Not exactly one variant takes the value, but `matched` of them."""

    path: list[str]
    matched: int


Fault: TypeAlias = TypeFault | MissingFault | ConstraintFault | VariantFault | OneOfFault


def explain(shape: Shape, value: object) -> list[Fault]:
    """Why `coerce` refuses the value, at most `MAX_FAULTS` reasons; an empty list if it does not. Never raises."""
    return list(islice(_faults(shape, value, []), MAX_FAULTS))


def fault_text(fault: Fault) -> str:
    """The fault as a clause for a person or a model: `steps[0].name is missing, expected string`."""
    where = place(fault.path) or "the value"
    match fault:
        case TypeFault():
            return f"{where} is {fault.received}, expected {fault.expected}"
        case MissingFault():
            return f"{where} is missing, expected {fault.expected}"
        case ConstraintFault(constraint="integer"):
            return f"{where} is {fault.received}, expected a whole number"
        case ConstraintFault():
            unit = {"string": " characters", "array": " items"}.get(fault.expected, "")
            limit = number_text(fault.limit) if fault.limit is not UNSET else ""
            bound = "at least" if fault.constraint == "min" else "at most"
            return f"{where} is {fault.received}, expected {bound} {limit}{unit}"
        case VariantFault():
            return f"{where} fits none of {fault.variants} forms"
        case OneOfFault():
            return f"{where} fits {fault.matched} forms, expected exactly one"
        case _:
            assert_never(fault)


def received_text(value: object) -> str:
    """The value as short text: a quoted string (cut at 64 characters), a number, a word; no container is rendered."""
    if type(value) is str:
        return _quoted(value)
    if value is None or type(value) is bool:
        return json.dumps(value)
    if is_finite_number(value):
        return number_text(value)
    if type(value) is float:
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return "array" if type(value) is list else "object"


def _faults(shape: Shape, value: object, path: list[str]) -> Iterator[Fault]:
    match shape:
        case Anything():
            return
        case AnyJson():
            flaw = clone_json(value)
            if isinstance(flaw, NotJson):
                yield TypeFault([*path, *flaw.path], "json", flaw.reason)
        case TextShape(low, high):
            text = as_text(value)
            if text is None:
                yield _wrong(shape, value, path)
            else:
                yield from _bounds(shape, path, low, len(text), high, received_text(text))
        case NumberShape(whole, low, high):
            number = as_number(value)
            if number is None:
                yield _wrong(shape, value, path)
                return
            shown = number_text(number)
            if whole and number % 1:
                yield ConstraintFault(path=path, expected="integer", constraint="integer", received=shown)
            yield from _bounds(shape, path, low, number, high, shown)
        case ArrayShape(items, low, high):
            if not is_array(value):
                yield _wrong(shape, value, path)
                return
            for index, item in enumerate(value):
                yield from _faults(items, item, [*path, str(index)])
            yield from _bounds(shape, path, low, len(value), high, str(len(value)))
        case ObjectShape():
            if is_object(value):
                yield from _object_faults(shape, value, path)
            else:
                yield _wrong(shape, value, path)
        case FirstOf(variants):
            if coerce(shape, value) is REFUSED:
                yield VariantFault(path, len(variants))
                yield from _nearest(variants, value, path)
        case ExactlyOne(variants):
            matched = sum(check(variant, value) for variant in variants)
            if matched != 1:
                yield OneOfFault(path, matched)
            if matched == 0:
                yield from _nearest(variants, value, path)
        case EnumShape() | BooleanShape() | NullShape():
            if coerce(shape, value) is REFUSED:
                yield _wrong(shape, value, path)
        case _:
            assert_never(shape)


def _object_faults(shape: ObjectShape, value: dict[str, Any], path: list[str]) -> Iterator[Fault]:
    for name, part in shape.properties.items():
        if name in value:
            yield from _faults(part, value[name], [*path, name])
        elif name in shape.required:
            yield MissingFault([*path, name], _expected(part))
    if shape.extras is not None:
        for name in value:
            if name not in shape.properties:
                yield from _faults(shape.extras, value[name], [*path, name])


def _nearest(variants: tuple[Shape, ...], value: object, path: list[str]) -> list[Fault]:
    """The faults of the variant that has the fewest, the earliest of several."""
    nearest = list(islice(_faults(variants[0], value, path), MAX_FAULTS))
    for variant in variants[1:]:
        faults = list(islice(_faults(variant, value, path), len(nearest)))
        if len(faults) < len(nearest):
            nearest = faults
    return nearest


def _bounds(
    shape: Shape, path: list[str], low: float | None, size: float, high: float | None, received: str
) -> Iterable[Fault]:
    expected = _expected(shape)
    if low is not None and size < low:
        yield ConstraintFault(path=path, expected=expected, constraint="min", limit=low, received=received)
    if high is not None and size > high:
        yield ConstraintFault(path=path, expected=expected, constraint="max", limit=high, received=received)


def _wrong(shape: Shape, value: object, path: list[str]) -> TypeFault:
    return TypeFault(path, _expected(shape), received_text(value))


def _expected(shape: Shape) -> str:
    match shape:
        case Anything() | AnyJson():
            return "json"
        case EnumShape():
            return "literal"
        case ExactlyOne() | FirstOf():
            return "union"
        case TextShape():
            return "string"
        case NumberShape(whole):
            return "integer" if whole else "number"
        case BooleanShape():
            return "boolean"
        case NullShape():
            return "null"
        case ArrayShape():
            return "array"
        case ObjectShape():
            return "object"
        case _:
            assert_never(shape)


def _quoted(text: str) -> str:
    """The text as JSON writes it, cut before the character (or escape) that would make it too long."""
    shown = '"'
    for character in text[:_MAX_SHOWN]:
        escape = json.dumps(character, ensure_ascii=not encodable(character))[1:-1]
        if len(shown) + len(escape) > _MAX_SHOWN:
            return f"{shown}…"
        shown += escape
    return f"{shown}…" if len(text) > _MAX_SHOWN else f'{shown}"'
