"""The arguments of a call, read into the struct that declares them."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, final

import msgspec

from greenroom.protocol.schemas.parameters import OPERATION, canonical_schema, flat_schema, operation_of
from greenroom.protocol.schemas.subschemas import Schema
from greenroom.protocol.schemas.variants import Refusal, Variants

__all__ = ["Arguments"]

T = TypeVar("T")


@final
class Arguments(Generic[T]):
    """What a tool takes: a struct type, or a union of structs tagged by `operation`, compiled for reading calls.

    Both schemas and the reading come from the declaration alone: `canonical` is the exact schema, which calls are
    checked against, `advertised` the flat one that models are shown. Raises `TypeError` for a declaration that is no
    such type or contains itself.
    """

    __slots__ = ("_declared", "_variants", "advertised", "canonical")

    canonical: Schema
    advertised: Schema

    def __init__(self, declared: Any) -> None:
        self._declared = declared
        self.canonical = canonical_schema(declared)
        self.advertised = flat_schema(self.canonical)
        variants = {operation_of(schema): schema for schema in self.canonical.get("anyOf", [self.canonical])}
        self._variants = Variants(variants, tag=OPERATION, exact=True)

    def parse(self, args: object) -> T | Refusal:
        """The struct that the arguments spell, or why they spell none. Never raises, whatever the arguments are.

        Undeclared keys are dropped unread. A text field takes a finite number as its decimal text, and nothing is
        trimmed in it; a number, a flag or a literal is read from text that spells it. Bounds are tested on what was
        read. `None` is no absence. A field of any type takes JSON (`gates.clone_json`), as a copy of its own.
        """
        reading = self._variants.parse(args)
        if isinstance(reading, Refusal):
            return reading
        try:
            parsed: T = msgspec.convert(reading, self._declared, strict=True)
        except msgspec.ValidationError as error:
            # What only the declaration knows: a pattern, an exclusive bound, a check of the struct's own.
            return Refusal([str(error)])
        return parsed
