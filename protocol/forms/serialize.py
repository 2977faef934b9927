"""Writing a schema as a document: members in canonical order, absent ones left out, custom rules dropped."""

from __future__ import annotations

from typing import Any, cast

from msgspec import UNSET, Struct

from greenroom.protocol.forms.schema import FormSchema
from greenroom.protocol.forms.structure import read_schema, refusal

__all__ = ["project", "serialize_form"]


def serialize_form(schema: FormSchema) -> dict[str, Any]:
    """The document of `schema` as JSON values, which belong to the caller.

    Raises `FormError` SCHEMA if its members do not have the types that they declare.
    """
    read, faults = read_schema(schema)
    if read is None:
        raise refusal(faults)
    return project(read)


def project(record: Struct) -> dict[str, Any]:
    """A struct that has been read as JSON values; `meta` is not copied once more."""
    tag = record.__struct_config__.tag
    document: dict[str, Any] = {} if tag is None else {"control": tag}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if value is UNSET or name == "custom":
            continue
        if isinstance(value, Struct):
            value = project(value)
            if not value:
                continue
        elif isinstance(value, tuple):
            items = cast("tuple[object, ...]", value)
            value = [project(item) if isinstance(item, Struct) else item for item in items]
        document[name] = value
    return document
