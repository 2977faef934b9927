"""Reading what clients send: schemas, single answers, whole records. Refusal is `None`; nothing here raises."""

from __future__ import annotations

from typing import Final, cast

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms.schema import ConfirmField, FormField, FormSchema, NumberField, Value
from greenroom.protocol.forms.shared import compile_schema, open_schema
from greenroom.protocol.forms.structure import read_schema
from greenroom.protocol.forms.values import Holds, holder, is_encodable, is_text, own_value
from greenroom.protocol.text import parse_number

__all__ = ["parse_form", "parse_value", "parse_values"]

_CONFIRMED: Final = {"true": True, "false": False}


def parse_form(document: object) -> FormSchema | None:
    """The schema that a document spells, or `None` if it has not exactly the shape of one or has any fault.

    Custom rules are dropped, whatever stands in their place. A schema without `meta` may be an object that was returned
    for an equal document before: it cannot be changed.
    """
    read, _ = read_schema(document, wire=True)
    if read is None:
        return None
    try:
        compiled, _ = compile_schema(read, sound=True)
    except FormError:
        return None
    return compiled.schema if compiled.immutable else read


def parse_value(field: FormField, value: object) -> Value | None:
    """The answer that `value` is for `field`, or `None`.

    Besides what the field holds, read are a number from its text and a confirmation from exactly `true` or `false`. A
    text with half of a surrogate pair, which has no UTF-8 and could not be passed on, is refused.
    """
    return _parse(field, holder(field), value)


def parse_values(schema: FormSchema, values: object) -> dict[str, Value] | None:
    """The answers of a record in its order, or `None` if a name is unknown or a single value is refused.

    Raises `FormError` SCHEMA if `schema` itself has not the shape of one.
    """
    fields = open_schema(schema, sound=False).compiled.fields
    if type(values) is not dict:
        return None
    parsed: dict[str, Value] = {}
    for name, value in cast("dict[object, object]", values).items():
        if type(name) is not str or (field := fields.get(name)) is None:
            return None
        answer = _parse(field.field, field.holds, value)
        if answer is None:
            return None
        parsed[name] = answer
    return parsed


def _parse(field: FormField, holds: Holds, value: object) -> Value | None:
    if holds(value):
        held = cast(Value, value)
        return own_value(field, held) if is_encodable(held) else None
    if type(value) is not str:
        return None
    if isinstance(field, NumberField):
        return parse_number(value) if is_text(value) else None
    if isinstance(field, ConfirmField):
        return _CONFIRMED.get(value)
    return None
