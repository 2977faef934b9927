"""Where a JSON Schema holds other schemas, so that a walk tells keywords from the names of properties.

A property may be called `$ref` or `title`, and an `enum` may hold an object that looks like a schema: neither is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias, TypeGuard
from urllib.parse import unquote

__all__ = ["Schema", "inline_references", "is_list", "is_schema", "map_subschemas", "subschemas"]

Schema: TypeAlias = dict[str, Any]

MAX_INLINED: Final = 16_384
"""How many schemas a schema may come to once every reference is replaced by what it names."""

MAX_NESTED: Final = 128
"""How deep schemas may stand inside each other."""

_SCHEMA: Final = {
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
}
_LIST: Final = {"allOf", "anyOf", "items", "oneOf", "prefixItems"}
_NAMED: Final = {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}


def is_schema(value: object) -> TypeGuard[Schema]:
    """Whether the value can be a schema: a JSON object. (`true` and `false` are schemas too, but hold none.)"""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether the value is a JSON array."""
    return isinstance(value, list)


def map_subschemas(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """A copy of the schema in which each schema directly beneath it is what `change` makes of it."""
    mapped = dict(schema)
    for keyword, value in schema.items():
        if keyword in _SCHEMA and is_schema(value):
            mapped[keyword] = change(value)
        elif keyword in _LIST and is_list(value):
            mapped[keyword] = [change(part) if is_schema(part) else part for part in value]
        elif keyword in _NAMED and is_schema(value):
            mapped[keyword] = {name: change(part) if is_schema(part) else part for name, part in value.items()}
    return mapped


def subschemas(schema: Schema) -> Iterator[Schema]:
    """The schema itself and every schema beneath it, in no order that matters. References are not followed."""
    waiting = [schema]

    def note(part: Schema) -> Schema:
        waiting.append(part)
        return part

    while waiting:
        current = waiting.pop()
        yield current
        map_subschemas(current, note)


def inline_references(schema: Schema) -> Schema:
    """A copy of the schema without `$ref`, `$defs` and `definitions`: each reference is replaced by what it names.

    What stands beside a reference is kept and wins over what is referred to, as a description of that one place.
    Raises `TypeError` for a schema that refers to itself, and for one that comes to more than `MAX_INLINED` schemas or
    more than `MAX_NESTED` levels; `LookupError` for a reference that leads nowhere in the same document.
    """
    return _Inliner(schema).inline(schema, ())


class _Inliner:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._made = 0

    def inline(self, schema: Schema, path: tuple[str, ...], depth: int = 0) -> Schema:
        """The schema without references; `path` holds each `$ref` that led here."""
        self._made += 1
        if self._made > MAX_INLINED:
            raise TypeError(f"it comes to more than {MAX_INLINED:,} parts once its references are replaced")
        if depth > MAX_NESTED:
            raise TypeError(f"its parts stand more than {MAX_NESTED} levels inside each other")
        beside = {
            keyword: value for keyword, value in schema.items() if keyword not in ("$ref", "$defs", "definitions")
        }
        reference = schema.get("$ref")
        named: Schema = {}
        if reference is not None:
            if reference in path:
                raise TypeError(f"it is recursive: {' -> '.join((*path[path.index(reference) :], reference))}")
            named = self.inline(self._named(reference), (*path, reference), depth + 1)
        return named | map_subschemas(beside, lambda part: self.inline(part, path, depth + 1))

    def _named(self, reference: object) -> Schema:
        """What a reference within the document leads to (JSON Pointer as a URI fragment, RFC 6901 section 6)."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise LookupError(f"`$ref` {reference!r} leads out of the schema")
        target: object = self._root
        for token in reference.split("/")[1:]:
            key = unquote(token).replace("~1", "/").replace("~0", "~")
            if is_schema(target) and key in target:
                target = target[key]
            elif is_list(target) and key.isdecimal() and int(key) < len(target):
                target = target[int(key)]
            else:
                raise LookupError(f"`$ref` {reference!r} leads nowhere")
        if not is_schema(target):
            raise LookupError(f"`$ref` {reference!r} leads to no schema")
        return target
