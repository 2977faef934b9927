"""The two schemas of what a tool takes, both derived from its structs: the canonical one and the flat one.

Arguments are declared once, as a `msgspec.Struct` or as a union of Structs tagged by `operation`; their docstrings say
what an operation does, `Meta(description=...)` what a field is. The canonical schema is exact and is what calls are
checked against. The flat one is shown to models: providers refuse a union at the root, so its operations are merged
into one object, which is looser.
"""

from __future__ import annotations

import enum
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast, get_args, get_origin

import msgspec
from msgspec import Struct

from greenroom.protocol.schemas.subschemas import Schema, inline_references, map_subschemas

__all__ = ["OPERATION", "canonical_schema", "flat_schema", "merge_variants", "operation_of"]

OPERATION: Final = "operation"
"""The field that tells the operations of a tool apart."""

_DROPPED: Final = ("title", "default", "examples", "discriminator")


def canonical_schema(declared: Any) -> Schema:
    """The exact schema of a struct type, or of a union of structs tagged by `operation`: an object, or an `anyOf`.

    It is plain: objects are closed, nothing is referred to, and there is no title and no default. Raises `TypeError`
    for a type that is no such thing, and for a struct that contains itself.
    """
    (root,), components = msgspec.json.schema_components([declared], ref_template="#/$defs/{name}")
    orders = {frozenset(members): members for members in _declared_members(declared)}
    definitions = {name: _component(component) for name, component in components.items()}
    try:
        schema = _tidy(inline_references({**root, "$defs": definitions}), orders)
    except TypeError as error:
        raise TypeError(f"{_shown(declared)} cannot be the arguments of a tool: {error}") from None
    variants = schema.get("anyOf", [schema])
    unfit = any(variant.get("type") != "object" or "properties" not in variant for variant in variants)
    if unfit or (len(variants) > 1 and not all(operation_of(variant) for variant in variants)):
        raise TypeError(
            f"{_shown(declared)} cannot be the arguments of a tool: declare a Struct, or a union of Structs with"
            f" tag_field={OPERATION!r}"
        )
    return schema


def flat_schema(canonical: Schema) -> Schema:
    """The canonical schema as it is shown to models: always one object with properties."""
    if "anyOf" not in canonical:
        return canonical
    return merge_variants({operation_of(variant): variant for variant in canonical["anyOf"]}, tag=OPERATION)


def merge_variants(variants: Mapping[str, Schema], *, tag: str | None) -> Schema:
    """One object that takes whatever one of several objects takes; their names are used in descriptions.

    `tag` is the property whose one value tells the variants apart, and whose values are then their names. What all
    variants require is required; a property that they describe differently is any of their descriptions.
    """
    properties: Schema = {}
    if tag is not None:
        texts = {name: variant["properties"][tag].get("description") for name, variant in variants.items()}
        lines = "\n".join(f"{name}: {text}" if text else name for name, text in texts.items())
        properties[tag] = {"type": "string", "enum": list(variants), "description": lines}
    names = {name: None for variant in variants.values() for name in variant.get("properties", {}) if name != tag}
    for name in names:
        properties[name] = _merged_property(name, variants)
    required = [] if tag is None else [tag]
    required += [name for name in names if all(name in variant.get("required", ()) for variant in variants.values())]
    flat: Schema = {"type": "object", "properties": properties}
    if required:
        flat["required"] = required
    if all(variant.get("additionalProperties") is False for variant in variants.values()):
        flat["additionalProperties"] = False
    return flat


def _merged_property(name: str, variants: Mapping[str, Schema]) -> Schema:
    holders = {label: variant for label, variant in variants.items() if name in variant.get("properties", {})}
    forms: list[Schema] = []
    texts: dict[str, list[str]] = {}
    for label, variant in holders.items():
        form = dict(variant["properties"][name])
        texts.setdefault(form.pop("description", ""), []).append(label)
        if form not in forms:
            forms.append(form)
    parts = [
        _sentence(text if len(texts) == 1 else f"{'/'.join(labels)}: {text}") for text, labels in texts.items() if text
    ]
    required = [label for label, variant in holders.items() if name in variant.get("required", ())]
    if len(required) < len(variants):
        optional = [label for label in holders if label not in required]
        parts.append(_need(required, optional))
    merged: Schema = forms[0] if len(forms) == 1 else {"anyOf": forms}
    return {**merged, "description": " ".join(parts)} if parts else merged


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _need(required: list[str], optional: list[str]) -> str:
    """Which variants need a property and which only take it, as a sentence."""
    if not required:
        return f"Optional for {', '.join(optional)}."
    rest = f"; optional for {', '.join(optional)}" if optional else ""
    return f"Required for {', '.join(required)}{rest}."


def _component(schema: Schema) -> Schema:
    """A struct's schema: closed, and with what an operation does said where the operation is chosen."""
    if "properties" not in schema:
        return schema
    closed = {**schema, "additionalProperties": False}
    if "description" in schema:
        closed["description"] = " ".join(schema["description"].split())
    if operation_of(schema):
        said = {"description": closed.pop("description")} if "description" in closed else {}
        closed["properties"] = {**schema["properties"], OPERATION: {**schema["properties"][OPERATION], **said}}
    return closed


def operation_of(schema: Schema) -> str:
    """The operation that a struct stands for; empty for a struct that is no operation."""
    match schema.get("properties", {}).get(OPERATION):
        case {"enum": [str(tag)]}:
            return tag
        case _:
            return ""


def _tidy(schema: Schema, orders: Mapping[frozenset[Any], Sequence[Any]]) -> Schema:
    """The schema without what says nothing to a model, and with literals in the order of their declaration."""
    kept = {keyword: value for keyword, value in schema.items() if keyword not in _DROPPED}
    tidied = map_subschemas(kept, lambda part: _tidy(part, orders))
    if not tidied.get("required", True):
        del tidied["required"]
    if tidied.get("type") == "array":
        tidied.setdefault("items", {})
    if "enum" in tidied:
        tidied["enum"] = list(orders.get(frozenset(tidied["enum"]), tidied["enum"]))
    variants = tidied.get("anyOf", [])
    if {"type": "number"} in variants and {"type": "integer"} in variants:
        variants.remove({"type": "integer"})
    if len(variants) == 1:
        del tidied["anyOf"]
        return {**variants[0], **tidied}
    return tidied


def _declared_members(declared: Any) -> Iterator[Sequence[Any]]:
    """The members of every literal and enumeration that a type holds; the schemas list them sorted instead."""
    waiting, seen = [declared], set[int]()
    while waiting:
        kind = waiting.pop()
        if id(kind) in seen:
            continue
        seen.add(id(kind))
        if get_origin(kind) is typing.Literal:
            yield get_args(kind)
        elif isinstance(kind, type) and issubclass(kind, enum.Enum):
            yield [member.value for member in kind]
        elif isinstance(kind, type) and issubclass(kind, Struct):
            waiting += [field.type for field in msgspec.structs.fields(kind)]
        else:
            waiting += [part for part in get_args(kind) if not isinstance(part, msgspec.Meta)]


def _shown(declared: Any) -> str:
    return cast("str", getattr(declared, "__name__", None)) or str(declared)
