"""Schemas as models are shown them: what providers take, and how a schema that they would refuse is made to fit.

OpenAI-style and Anthropic-style interfaces fail a whole request over one tool whose schema is a union at the root, MCP
fixes the type of an input schema to `object`, and its clients tend to lose definitions that are only referred to.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from greenroom.protocol.schemas.parameters import merge_variants
from greenroom.protocol.schemas.subschemas import (
    Schema,
    inline_references,
    is_list,
    is_schema,
    map_subschemas,
    subschemas,
)
from greenroom.protocol.schemas.variants import Variants

__all__ = ["Advertised", "advertise", "advertising_faults"]

_COMPOSITION: Final = ("anyOf", "oneOf", "allOf", "enum", "not")
_REFERENCES: Final = ("$ref", "$defs", "definitions")

MAX_FORMS: Final = 256
"""How many forms a union may come to; a contract tells no more of them apart."""


class Advertised(NamedTuple):
    """What is shown of a schema, and what calls owe beyond it where less is shown than the schema asks."""

    schema: Schema
    owed: Variants | None


def advertising_faults(schema: object) -> list[str]:
    """Why an OpenAI-style, an Anthropic-style or an MCP client would refuse or misread the schema; empty if none would.

    Asked are an object with properties at the root, none of `anyOf`, `oneOf`, `allOf`, `enum` and `not` there, and no
    `$ref`, `$defs` or `definitions` anywhere.
    """
    if not is_schema(schema):
        return ["it is no JSON object"]
    faults: list[str] = []
    if schema.get("type") != "object":
        faults.append("its root is not of type `object`")
    if not is_schema(schema.get("properties")):
        faults.append("its root has no `properties`")
    faults += [f"its root has `{keyword}`" for keyword in _COMPOSITION if keyword in schema]
    held = {keyword for part in subschemas(schema) for keyword in _REFERENCES if keyword in part}
    return faults + [f"it has `{keyword}`" for keyword in _REFERENCES if keyword in held]


def advertise(schema: Schema) -> Advertised:
    """The schema as it is to be shown: itself, the very object, unless a provider would refuse it.

    References are replaced by what they name, and a union of objects at the root by one object that takes what any of
    them takes; as that is looser, the union is owed by calls all the same. An object without `properties` is left as it
    is: an empty object is what every provider makes of it. Raises `TypeError` for what cannot be shown: a root that is
    no object, a root with `enum` or `not`, a recursive schema, one that is too large; `LookupError` for a reference
    that leads nowhere.
    """
    if not is_schema(schema):
        raise TypeError("it is no JSON object")
    referring = any(keyword in part for part in subschemas(schema) for keyword in _REFERENCES)
    composed = any(keyword in schema for keyword in _COMPOSITION)
    plain = inline_references(schema) if referring or composed else schema
    if not any(keyword in plain for keyword in _COMPOSITION):
        kind = plain.get("type")
        if kind == "object":
            return Advertised(plain, None)
        if kind is not None:
            raise TypeError(f"its root is of type {kind!r}, and arguments are always an object")
        return Advertised({"type": "object", "properties": {}, **plain}, None)
    forms = [map_subschemas(form, _named_constants) for form in _forms(plain)]
    if len(forms) == 1:
        return Advertised(forms[0], None)
    tag = _tag(forms)
    named = {form["properties"][tag]["enum"][0] if tag else f"form {n}": form for n, form in enumerate(forms, 1)}
    about = {"description": plain["description"]} if "description" in plain else {}
    return Advertised(about | merge_variants(named, tag=tag), Variants(named, tag=tag, exclusive="oneOf" in plain))


def _forms(schema: Schema) -> list[Schema]:
    """The objects that a schema allows, one by one, without composition at their roots."""
    for keyword in ("enum", "not"):
        if keyword in schema:
            raise TypeError(f"its root has `{keyword}`, which no provider takes there")
    forms: list[Schema] = [{keyword: value for keyword, value in schema.items() if keyword not in _COMPOSITION}]
    groups: list[list[Schema]] = []
    for keyword in ("allOf", "anyOf", "oneOf"):
        entries = schema.get(keyword, [])
        if not is_list(entries) or not all(is_schema(entry) for entry in entries):
            raise TypeError(f"its `{keyword}` is no list of schemas")
        expanded = [_forms(entry) for entry in entries]
        groups += (
            expanded if keyword == "allOf" else [[form for group in expanded for form in group]] if entries else []
        )
    for group in groups:
        if len(forms) * len(group) > MAX_FORMS:
            raise TypeError(f"its union comes to more than {MAX_FORMS} forms")
        forms = [_both(form, other) for form in forms for other in group]
    return [_both(form, {"type": "object"}) for form in forms]


def _both(left: Schema, right: Schema) -> Schema:
    """An object that is what both say, as far as one object can say it."""
    for side in (left, right):
        if side.get("type", "object") != "object":
            raise TypeError(f"it allows what is of type {side['type']!r}, and arguments are always an object")
    both = {**left, **right, "type": "object"}
    properties: Schema = {}
    required: dict[str, None] = {}
    for side in (left, right):
        declared, needed = side.get("properties"), side.get("required")
        for name, part in declared.items() if is_schema(declared) else ():
            properties[name] = properties.get(name, {}) | (part if is_schema(part) else {})
        required |= {name: None for name in (needed if is_list(needed) else ()) if isinstance(name, str)}
    both |= {"properties": properties, "required": list(required)}
    if left.get("additionalProperties") is False:
        both["additionalProperties"] = False
    return both


def _named_constants(schema: Schema) -> Schema:
    """The schema with each constant as a literal of one member, which contracts and providers both know."""
    mapped = map_subschemas(schema, _named_constants)
    if "const" in mapped:
        mapped.setdefault("enum", [mapped.pop("const")])
    return mapped


def _tag(forms: list[Schema]) -> str | None:
    """The required property whose one text value tells the forms apart, if there is one."""
    for name in forms[0]["properties"]:
        values = {_value(form, name) for form in forms}
        if None not in values and len(values) == len(forms):
            return str(name)
    return None


def _value(form: Schema, name: str) -> str | None:
    """The only text that a form leaves to a property that it requires, or `None`."""
    match form["properties"].get(name):
        case {"enum": [str(value)]} if name in form["required"]:
            return value
        case _:
            return None
