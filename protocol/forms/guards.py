"""Whether a value of unknown origin has the shape of something. Shape alone: no limits, no faults. Nothing raises."""

from __future__ import annotations

from typing import TypeGuard, cast

from greenroom.protocol.forms.schema import Value
from greenroom.protocol.forms.structure import is_number, read_error, read_schema

__all__ = ["is_field_error", "is_field_value", "is_form_schema", "is_form_values"]


def is_field_value(value: object) -> TypeGuard[Value]:
    """Whether some field could hold `value`: a text, a finite number, a bool, or a list of texts."""
    kind = type(value)
    if kind is list:
        return all(type(entry) is str for entry in cast("list[object]", value))
    return kind is str or kind is bool or is_number(value)


def is_form_values(value: object) -> TypeGuard[dict[str, Value]]:
    """Whether `value` is a dict of values by name, of whatever form."""
    if type(value) is not dict:
        return False
    record = cast("dict[object, object]", value)
    return all(type(name) is str and is_field_value(entry) for name, entry in record.items())


def is_field_error(value: object) -> bool:
    """Whether `value` is a `FieldError` or the document of one: `field`, `message` and, of a named rule, `rule`."""
    return read_error(value) is not None


def is_form_schema(value: object) -> bool:
    """Whether `value` is a `FormSchema` or a document with exactly that shape; whether it is sound, the audit tells."""
    schema, _ = read_schema(value)
    return schema is not None
