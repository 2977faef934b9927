"""Finding the compiled schema that a schema object shares with all others of the same content.

Two caches lead to it, both bounded: by identity, for an object that is opened again and again, and by document, for
schemas that arrive anew each time. Only sound schemas are kept. Custom rules belong to one schema object and stay
beside what is shared; a schema with `meta` is not found by identity, since a `meta` can be changed behind it.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, structs

from greenroom.protocol.forms.audit import audit
from greenroom.protocol.forms.compiled import CompiledSchema, Customs
from greenroom.protocol.forms.schema import FieldRule, FormSchema
from greenroom.protocol.forms.structure import read_schema, refusal

__all__ = ["Opened", "compile_schema", "open_schema"]

_K = TypeVar("_K")
_V = TypeVar("_V")

_ENTRIES: Final = 256
"""Schemas that each cache keeps."""

_LARGEST: Final = 64 * 1024
"""Bytes of a document up to which they keep it."""


class Opened(NamedTuple):
    """A schema that was read: what it is, what it shares with its equals, and the custom rules of its own, if any."""

    source: object
    schema: FormSchema
    compiled: CompiledSchema
    customs: Customs | None


_by_identity: dict[int, Opened] = {}
_by_document: dict[bytes, CompiledSchema] = {}


def open_schema(source: object, *, sound: bool) -> Opened:
    """What `source`, a `FormSchema` or a document, shares with its equals.

    Raises `FormError` SCHEMA if it has not the shape of a schema, or has faults where it must be `sound`.
    """
    known = _by_identity.get(id(source))
    if known is not None and known.source is source:  # an id outlives its object, but the entry keeps the object
        return known
    schema, faults = read_schema(source)
    if schema is None:
        raise refusal(faults)
    customs = {
        field.name: field.rule.custom
        for field in schema.fields
        if field.rule is not UNSET and field.rule.custom is not UNSET
    }
    if customs:
        compiled, _ = compile_schema(_without_custom(schema), sound=sound)
        return Opened(source, schema, compiled, customs)
    compiled, kept = compile_schema(schema, sound=sound)
    opened = Opened(source, compiled.schema, compiled, None)
    if kept and compiled.immutable and schema == source:
        _keep(_by_identity, id(source), opened)
    return opened


def compile_schema(schema: FormSchema, *, sound: bool) -> tuple[CompiledSchema, bool]:
    """The compiled schema of one that was read and has no custom rules, and whether it is kept for its equals.

    Raises `FormError` SCHEMA if it must be `sound` and has faults.
    """
    try:
        document = msgspec.json.encode(schema)
    except (UnicodeEncodeError, RecursionError):  # half a surrogate pair, or a `meta` too deep for the stack at hand
        document = b""
    compiled = _by_document.pop(document, None)
    if compiled is None:
        faults = audit(schema)
        if faults and sound:
            raise refusal(faults)
        compiled = CompiledSchema(schema)
        if faults or not 0 < len(document) <= _LARGEST:
            return compiled, False
    _keep(_by_document, document, compiled)
    return compiled, True


def _keep(cache: dict[_K, _V], key: _K, value: _V) -> None:
    """Put an entry last, where it is kept longest; the first leaves when there are too many."""
    cache[key] = value
    if len(cache) > _ENTRIES:
        cache.pop(next(iter(cache)), None)


def _without_custom(schema: FormSchema) -> FormSchema:
    fields = tuple(
        field if field.rule is UNSET or field.rule.custom is UNSET else structs.replace(field, rule=_bare(field.rule))
        for field in schema.fields
    )
    return structs.replace(schema, fields=fields)


def _bare(rule: FieldRule) -> FieldRule | msgspec.UnsetType:
    bare = structs.replace(rule, custom=UNSET)
    return UNSET if bare == FieldRule() else bare
