"""Reading values that nobody vouches for as structs of one kind, by the schema that the struct declares.

*Checking* takes the exact thing: no member that is unknown, nothing of another kind. *Parsing* also reads a number
where text is due and digits where a whole number is, and drops members that it does not know, but tells which.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar, cast, final

import msgspec
from msgspec import UNSET, Struct

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.schemas.coerce import REFUSED, check, coerce
from greenroom.protocol.schemas.explain import explain, fault_text
from greenroom.protocol.schemas.gates import is_array, is_record, place
from greenroom.protocol.schemas.parameters import canonical_schema
from greenroom.protocol.schemas.shape import ArrayShape, ObjectShape, Shape, compile_shape
from greenroom.protocol.schemas.subschemas import Schema, map_subschemas

__all__ = ["Reader", "Reading", "document_of"]

T = TypeVar("T", bound=Struct)


class Reading(NamedTuple, Generic[T]):
    """What was parsed, and where members were dropped that are not known: `phases[0].tasks[1].run`."""

    value: T
    ignored: tuple[str, ...]


@final
class Reader(Generic[T]):
    """Reads values as one kind of struct, by the schema that the struct declares."""

    def __init__(self, kind: type[T], noun: str) -> None:
        self._kind = kind
        self._noun = noun
        self._shape = compile_shape(_exact_flags(canonical_schema(kind)), exact=True)

    def parse(self, value: object) -> Reading[T] | None:
        reading = coerce(self._shape, value)
        if reading is REFUSED or not _writable(reading):
            return None
        ignored = tuple(place(path) for path in _unknown(self._shape, value, []))
        return Reading(msgspec.convert(reading, self._kind), ignored)

    def fits(self, value: object) -> bool:
        document = document_of(value)
        return check(self._shape, document) and _writable(document)

    def checked(self, value: object) -> T:
        """The struct, if the value fits as it stands; raises `WorkflowError` MUTATION that says why not."""
        document = document_of(value)
        if check(self._shape, document) and _writable(document):
            return msgspec.convert(coerce(self._shape, document), self._kind)
        faults = self.faults(document)
        raise WorkflowError(
            "MUTATION", f"This is no {self._noun}: {'; '.join(faults[:5])}.", {"kind": self._noun, "faults": faults}
        )

    def faults(self, value: object) -> list[str]:
        """Why a value is not taken as it stands; not empty, if it is not."""
        faults = [fault_text(fault) for fault in explain(self._shape, value)]
        if not faults:
            faults = [f"{place(path)} is not known" for path in _unknown(self._shape, value, [])]
        # What is left is text for a number, say, or a string that no encoding holds.
        return faults or ["a member is not of the very type that is due, or cannot be written as JSON"]


def _exact_flags(schema: Schema) -> Schema:
    """The schema with flags that are True or False and nothing that spells them."""
    if schema.get("type") == "boolean":
        return {"enum": [True, False]}
    return map_subschemas(schema, _exact_flags)


def document_of(value: object) -> Any:
    """A struct as JSON values, of which only structs and tuples are new; anything else as it is."""
    if isinstance(value, Struct):
        members = ((name, getattr(value, name)) for name in value.__struct_fields__)
        return {name: document_of(member) for name, member in members if member is not UNSET}
    if isinstance(value, tuple):
        return [document_of(item) for item in cast("tuple[object, ...]", value)]
    return value


def _writable(document: object) -> bool:
    """Whether the values can be written as JSON text: a lone surrogate and an endless number cannot."""
    try:
        msgspec.json.encode(document)
    except ValueError:
        return False
    return True


def _unknown(shape: Shape, value: object, path: list[str]) -> Iterator[list[str]]:
    """The paths of members that the shape drops."""
    if isinstance(shape, ArrayShape) and is_array(value):
        for index, item in enumerate(value):
            yield from _unknown(shape.items, item, [*path, str(index)])
    elif isinstance(shape, ObjectShape) and is_record(value):
        for name, member in value.items():
            if name in shape.properties:
                yield from _unknown(shape.properties[name], member, [*path, name])
            elif shape.extras is None:
                yield [*path, str(name)]
