"""Elicitations of outside servers as forms, so that a person is asked them like anything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from greenroom.protocol.forms import FormSchema, parse_form
from greenroom.protocol.schemas.subschemas import is_list, is_schema

__all__ = ["elicited_form"]

_RULES: Final = {"minLength": "minimum", "maxLength": "maximum", "minItems": "minimum", "maxItems": "maximum"}
_BOUNDS: Final = ("minimum", "maximum")
_FORMATS: Final = {"email": "email", "uri": "url"}


def elicited_form(server: str, message: str, requested: Mapping[str, Any]) -> FormSchema | None:
    """The form that a server's elicitation comes to, with a word on who asks; None for what no form can hold.

    Whatever the server has sent, this raises nothing: its schema is read like any form that came from outside.
    """
    properties, required = requested.get("properties"), requested.get("required")
    if not is_schema(properties):
        return None
    needed = required if is_list(required) else []
    fields = [_field(name, part, name in needed) for name, part in properties.items()]
    return parse_form({"label": message, "help": f"The MCP server {server!r} asks this.", "fields": fields})


def _field(name: str, schema: object, required: bool) -> dict[str, Any] | None:
    """A property as a field; None, which no form takes, for one that is none of an elicitation's."""
    if not is_schema(schema):
        return None
    about = {"name": name} | _renamed(schema, {"title": "label", "description": "help", "default": "default"})
    rule: dict[str, Any] = {"required": True} if required else {}
    match schema.get("type"):
        case "boolean":
            control: dict[str, Any] = {"control": "confirm"}
        case "number" | "integer" as kind:
            rule |= {bound: schema[bound] for bound in _BOUNDS if bound in schema}
            control = {"control": "number"}
            rule |= {"integer": True} if kind == "integer" else {}
        case "array":
            rule |= _renamed(schema, _RULES)
            control = {"control": "checkbox", "choices": _choices(schema.get("items"))}
        case "string" if "enum" in schema or "oneOf" in schema:
            control = {"control": "select", "choices": _choices(schema)}
        case "string" if schema.get("format") == "date":
            control = {"control": "date"}
        case "string":
            control = {"control": "text"}
            rule |= _renamed(schema, _RULES)
            rule |= {_FORMATS[kind]: True for kind in [schema.get("format")] if kind in _FORMATS}
        case _:
            return None
    return about | control | ({"rule": rule} if rule else {})


def _choices(schema: object) -> list[dict[str, Any]] | None:
    """What is offered: values with titles, or bare ones, perhaps with `enumNames` beside them."""
    if not is_schema(schema):
        return None
    named, values = schema.get("oneOf", schema.get("anyOf")), schema.get("enum")
    if is_list(named):
        return [_choice(each.get("const"), each.get("title")) for each in named if is_schema(each)]
    if not is_list(values):
        return None
    labels = schema.get("enumNames")
    shown = labels if is_list(labels) and len(labels) == len(values) else values
    return [_choice(value, label) for value, label in zip(values, shown, strict=True)]


def _choice(value: object, label: object) -> dict[str, Any]:
    return {"value": value, "label": value if label is None else label}


def _renamed(schema: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {ours: schema[theirs] for theirs, ours in names.items() if theirs in schema}
