"""Objects that arguments may be, and the refusal of arguments that are none of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, final

from msgspec import Struct

from greenroom.protocol.schemas.coerce import REFUSED, is_object
from greenroom.protocol.schemas.contract import Contract
from greenroom.protocol.schemas.explain import Fault, MissingFault, TypeFault, fault_text, received_text
from greenroom.protocol.schemas.gates import place
from greenroom.protocol.schemas.subschemas import Schema
from greenroom.protocol.text import trim

__all__ = ["Refusal", "Variants"]

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
class Variants:
    """The objects that arguments may be, by name; one object without alternatives is the simple case.

    With a `tag` the property of that name tells which one is meant: its value is the variant's name, and no other
    variant is looked at, so that a refusal tells what is wrong with the one that was meant. Without, whichever fits is
    meant, and with `exclusive` it has to be the only one. `exact` is that of `Contract`.
    """

    __slots__ = ("_tag", "_variants")

    def __init__(
        self, schemas: Mapping[str, Schema], *, tag: str | None = None, exclusive: bool = False, exact: bool = False
    ) -> None:
        if tag is None and len(schemas) > 1:
            schemas = {"": {"oneOf" if exclusive else "anyOf": list(schemas.values())}}
        self._tag = tag
        self._variants = {name: _Variant(schema, Contract(schema, exact=exact)) for name, schema in schemas.items()}

    def parse(self, args: object) -> dict[str, Any] | Refusal:
        """The arguments as they are to be read, or why they cannot be. Never raises, whatever the arguments are."""
        if not is_object(args):
            return Refusal([f"the arguments are {received_text(args)}, expected an object whose keys are text"])
        variant = self._meant(args)
        if variant is None:
            return Refusal([self._unknown(args)])
        reading = variant.contract.parse(args)
        if reading is REFUSED:
            return Refusal([_clause(fault, variant.schema) for fault in variant.contract.explain(args)])
        parsed: dict[str, Any] = reading
        return parsed

    def _meant(self, args: dict[str, Any]) -> _Variant | None:
        if len(self._variants) == 1:
            return next(iter(self._variants.values()))
        name = args.get(str(self._tag))
        return self._variants.get(trim(name)) if type(name) is str else None

    def _unknown(self, args: dict[str, Any]) -> str:
        given = f"is {received_text(args[str(self._tag)])}" if self._tag in args else "is missing"
        return f"{self._tag} {given}, expected {_one_of(self._variants)}"


def _clause(fault: Fault, schema: Schema) -> str:
    """The fault in words, with the members of the literal that was expected, if one was."""
    if isinstance(fault, TypeFault | MissingFault) and fault.expected == "literal":
        members = _members(schema, fault.path)
        given = f"is {fault.received}" if isinstance(fault, TypeFault) else "is missing"
        if members:
            return f"{place(fault.path)} {given}, expected {_one_of(members)}"
    return fault_text(fault)


def _members(schema: Schema, path: list[str]) -> list[Any]:
    """The members of the literal at the end of a path, or none if the path leads through a union."""
    for key in path:
        schema = schema.get("properties", {}).get(key) or schema.get("items") or {}
    return list(schema.get("enum", ()))


def _one_of(members: Any) -> str:
    return f"one of {', '.join(map(json.dumps, members))}"
