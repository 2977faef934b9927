"""The arguments of a call, read into the struct that declares them."""

from __future__ import annotations

import json
from typing import Any, Final, Generic, NamedTuple, TypeVar, final

import msgspec
from msgspec import Struct

from greenroom.protocol.schemas.coerce import REFUSED, is_object
from greenroom.protocol.schemas.contract import Contract
from greenroom.protocol.schemas.explain import Fault, MissingFault, TypeFault, fault_text, received_text
from greenroom.protocol.schemas.gates import place
from greenroom.protocol.schemas.parameters import OPERATION, canonical_schema, flat_schema, operation_of
from greenroom.protocol.schemas.subschemas import Schema
from greenroom.protocol.text import trim

__all__ = ["Arguments", "Refusal"]

T = TypeVar("T")

_MAX_CLAUSES: Final = 5
"""How many faults a refusal tells; more would not help whoever mends them one by one."""


class Refusal(Struct, frozen=True):
    """Why arguments were turned away: a clause for each fault. `str()` joins them; each names the field at fault."""

    clauses: list[str]

    def __str__(self) -> str:
        rest = len(self.clauses) - _MAX_CLAUSES
        return "; ".join(self.clauses[:_MAX_CLAUSES]) + (f"; and {rest} more" if rest > 0 else "")


class _Variant(NamedTuple):
    schema: Schema
    contract: Contract


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
        self._variants = {
            operation_of(schema): _Variant(schema, Contract(schema, exact=True))
            for schema in self.canonical.get("anyOf", [self.canonical])
        }

    def parse(self, args: object) -> T | Refusal:
        """The struct that the arguments spell, or why they spell none. Never raises, whatever the arguments are.

        Undeclared keys are dropped unread. A text field takes a finite number as its decimal text, and nothing is
        trimmed in it; a number, a flag or a literal is read from text that spells it. Bounds are tested on what was
        read. `None` is no absence. A field of any type takes JSON (`gates.clone_json`), as a copy of its own.
        """
        if not is_object(args):
            return Refusal([f"the arguments are {received_text(args)}, expected an object whose keys are text"])
        variant = self._chosen(args)
        if variant is None:
            return Refusal([self._unknown_operation(args)])
        reading = variant.contract.parse(args)
        if reading is REFUSED:
            return Refusal([_clause(fault, variant.schema) for fault in variant.contract.explain(args)])
        try:
            parsed: T = msgspec.convert(reading, self._declared, strict=True)
        except msgspec.ValidationError as error:
            # What only the declaration knows: a pattern, an exclusive bound, a check of the struct's own.
            return Refusal([str(error)])
        return parsed

    def _chosen(self, args: dict[str, Any]) -> _Variant | None:
        """The variant whose operation is named: no other could take the call, and its faults are the ones to tell."""
        if len(self._variants) == 1:
            return next(iter(self._variants.values()))
        operation = args.get(OPERATION)
        return self._variants.get(trim(operation)) if type(operation) is str else None

    def _unknown_operation(self, args: dict[str, Any]) -> str:
        known = ", ".join(json.dumps(operation) for operation in self._variants)
        given = f"is {received_text(args[OPERATION])}" if OPERATION in args else "is missing"
        return f"{OPERATION} {given}, expected one of {known}"


def _clause(fault: Fault, schema: Schema) -> str:
    """The fault in words, with the members of the literal that was expected, if one was."""
    if isinstance(fault, TypeFault | MissingFault) and fault.expected == "literal":
        members = _members(schema, fault.path)
        given = f"is {fault.received}" if isinstance(fault, TypeFault) else "is missing"
        if members:
            return f"{place(fault.path)} {given}, expected one of {', '.join(map(json.dumps, members))}"
    return fault_text(fault)


def _members(schema: Schema, path: list[str]) -> list[Any]:
    """The members of the literal at the end of a path, or none if the path leads through a union."""
    for key in path:
        schema = schema.get("properties", {}).get(key) or schema.get("items") or {}
    return list(schema.get("enum", ()))
