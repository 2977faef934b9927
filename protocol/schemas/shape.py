"""What a JSON Schema asks of a value, compiled: the keywords that count, in the order in which they count.

`enum` wins over `oneOf`, that over `anyOf`, that over `type` (as a single word), and `properties` alone means an
object. `format`, `pattern`, `const`, `allOf`, `not`, `$ref`, exclusive bounds and a list of types are never asserted: a
schema that says nothing else takes any value. So the shape is never narrower than the schema, but for one thing: `null`
and containers among the members of an `enum` are dropped.
"""

from __future__ import annotations

import math
import sys
from typing import Any, Final, TypeAlias, TypeGuard

from msgspec import Struct

from greenroom.protocol.errors import ToolError
from greenroom.protocol.schemas.subschemas import Schema, is_list, is_schema

__all__ = [
    "AnyJson",
    "Anything",
    "ArrayShape",
    "BooleanShape",
    "EnumShape",
    "ExactlyOne",
    "FirstOf",
    "NullShape",
    "NumberShape",
    "ObjectShape",
    "Scalar",
    "Shape",
    "TextShape",
    "compile_shape",
    "is_finite_number",
    "member_key",
]

MAX_SHAPES: Final = 16_384
"""How many parts a schema may compile to."""

MAX_DEPTH: Final = 32
"""How many containers a schema describes inside each other; what lies deeper may be anything."""

MAX_BREADTH: Final = 256
"""How many properties or variants are told apart in one place; more of them widen it."""

_MAX_STEPS: Final = 2 * MAX_DEPTH + 2
"""How deep containers and unions may alternate, so that unions of unions cannot exhaust the interpreter's stack."""

_LARGEST: Final = int(sys.float_info.max)

Scalar: TypeAlias = str | bool | int | float


class Anything(Struct, frozen=True):
    """Any value at all."""


class AnyJson(Struct, frozen=True):
    """Any JSON value, by the rules of `gates.clone_json`."""


class EnumShape(Struct, frozen=True):
    """One of a few scalars, told apart by type as well: `members` maps `member_key` of each to itself."""

    members: dict[tuple[str, Scalar] | None, Scalar]


class ExactlyOne(Struct, frozen=True):
    """`oneOf`: what exactly one variant takes as it stands."""

    variants: tuple[Shape, ...]


class FirstOf(Struct, frozen=True):
    """`anyOf`: what some variant takes, those that take it as it stands before those that read it."""

    variants: tuple[Shape, ...]


class TextShape(Struct, frozen=True):
    """Text of `low` to `high` code points."""

    low: float | None
    high: float | None


class NumberShape(Struct, frozen=True):
    """A finite number from `low` to `high`, whole if `whole`; a bool is none."""

    whole: bool
    low: float | None
    high: float | None


class BooleanShape(Struct, frozen=True):
    """True or False."""


class NullShape(Struct, frozen=True):
    """None."""


class ArrayShape(Struct, frozen=True):
    """A list of `low` to `high` items."""

    items: Shape
    low: float | None
    high: float | None


class ObjectShape(Struct, frozen=True):
    """A dict with text keys. `extras` is the shape of what is not declared, or `None` where that has no place."""

    properties: dict[str, Shape]
    required: frozenset[str]
    extras: Shape | None


Shape: TypeAlias = (
    Anything
    | AnyJson
    | EnumShape
    | ExactlyOne
    | FirstOf
    | TextShape
    | NumberShape
    | BooleanShape
    | NullShape
    | ArrayShape
    | ObjectShape
)


def compile_shape(schema: Schema, *, exact: bool = False) -> Shape:
    """The shape of a schema. A part that contains itself may hold anything there; with `exact`, any JSON.

    Raises `ToolError` (TOOL) if the schema compiles to more than `MAX_SHAPES` parts.
    """
    return _Compiler(AnyJson() if exact else Anything()).shape(schema, depth=0, steps=0)


def is_finite_number(value: object) -> TypeGuard[int | float]:
    """Whether the value is an `int` or a `float` (neither a `bool` nor a subclass) that a double can stand for."""
    if type(value) is int:
        return -_LARGEST <= value <= _LARGEST
    return type(value) is float and math.isfinite(value)


def member_key(value: object) -> tuple[str, Scalar] | None:
    """What tells scalars apart: `True` is not 1, while 1 and 1.0 are one; `None` for what is no scalar."""
    if type(value) is str:
        return "string", value
    if type(value) is bool:
        return "boolean", value
    return ("number", value) if is_finite_number(value) else None


class _Compiler:
    """One compilation: it counts what it has made and knows which schemas it is in the middle of."""

    def __init__(self, open_: Anything | AnyJson) -> None:
        self._open = open_
        self._made = 0
        self._within: set[int] = set()

    def shape(self, schema: object, *, depth: int, steps: int) -> Shape:
        self._made += 1
        if self._made > MAX_SHAPES:
            raise ToolError(
                "TOOL",
                f"the schema has more than {MAX_SHAPES:,} parts: describe less, or take part of it as any value",
                {"limit": MAX_SHAPES},
            )
        if not is_schema(schema) or id(schema) in self._within or depth > MAX_DEPTH or steps > _MAX_STEPS:
            return self._open
        self._within.add(id(schema))
        try:
            return self._known(schema, depth, steps)
        finally:
            self._within.discard(id(schema))

    def _known(self, schema: Schema, depth: int, steps: int) -> Shape:
        members = _members(schema.get("enum"))
        if members:
            return EnumShape(members)
        for keyword, make in (("oneOf", ExactlyOne), ("anyOf", FirstOf)):
            variants = schema.get(keyword)
            if is_list(variants):
                return self._variants(make, variants, depth, steps)
        match schema.get("type", "object" if is_schema(schema.get("properties")) else None):
            case "string":
                return TextShape(*_bounds(schema, "minLength", "maxLength", whole=True))
            case "number":
                return NumberShape(False, *_bounds(schema, "minimum", "maximum", whole=False))
            case "integer":
                return NumberShape(True, *_bounds(schema, "minimum", "maximum", whole=True))
            case "boolean":
                return BooleanShape()
            case "null":
                return NullShape()
            case "array":
                items = self.shape(schema.get("items"), depth=depth + 1, steps=steps + 1)
                return ArrayShape(items, *_bounds(schema, "minItems", "maxItems", whole=True))
            case "object":
                return self._object(schema, depth, steps)
            case _:
                return self._open

    def _variants(self, make: type[ExactlyOne | FirstOf], variants: list[Any], depth: int, steps: int) -> Shape:
        entries = [entry for entry in variants if is_schema(entry)]
        if not entries or len(entries) > MAX_BREADTH:
            return self._open
        return make(tuple(self.shape(entry, depth=depth, steps=steps + 1) for entry in entries))

    def _object(self, schema: Schema, depth: int, steps: int) -> Shape:
        declared = schema.get("properties")
        named = declared if is_schema(declared) else {}
        properties = {
            name: self.shape(named[name], depth=depth + 1, steps=steps + 1) for name in list(named)[:MAX_BREADTH]
        }
        required = schema.get("required")
        names = required if is_list(required) else []
        extra = schema.get("additionalProperties")
        extras: Shape | None = self._open
        if len(named) <= MAX_BREADTH:
            extras = None if extra is False else self.shape(extra, depth=depth + 1, steps=steps + 1)
        return ObjectShape(properties, frozenset(name for name in properties if name in names), extras)


def _members(enum: object) -> dict[tuple[str, Scalar] | None, Scalar]:
    members: dict[tuple[str, Scalar] | None, Scalar] = {}
    for member in enum if is_list(enum) else []:
        key = member_key(member)
        if key is not None:
            members.setdefault(key, key[1])
    return members


def _bounds(schema: Schema, low: str, high: str, *, whole: bool) -> tuple[float | None, float | None]:
    """Both bounds. One that is no number does not count, nor does a pair that leaves nothing in between."""
    least, most = (schema[key] if is_finite_number(schema.get(key)) else None for key in (low, high))
    if least is None or most is None:
        return least, most
    empty = least > most or (whole and math.ceil(least) > math.floor(most))
    return (None, None) if empty else (least, most)
