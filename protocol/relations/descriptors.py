"""What a relation is declared as, and what it then is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from greenroom.protocol.database import is_mapping
from greenroom.protocol.errors import RelationError
from greenroom.protocol.schemas.gates import is_array

__all__ = [
    "RelationDescriptor",
    "Relations",
    "Relationship",
    "ResolvedRelation",
    "belongs_to",
    "has_many",
    "has_morph",
    "has_one",
    "has_through",
    "resolve_relation",
    "resolve_relation_map",
]

Relationship: TypeAlias = Literal["belongs", "many", "one", "through", "morph"]

_NEEDED: Final[Mapping[Relationship, tuple[str, ...]]] = {
    "belongs": ("column",),
    "many": ("key",),
    "one": ("key",),
    "through": ("through", "source", "target"),
    "morph": ("key", "tag", "label"),
}


_HINTS: Final[tuple[tuple[str, Relationship], ...]] = (
    ("through", "through"),
    ("tag", "morph"),
    ("column", "belongs"),
    ("key", "one"),
)
"""The fields that tell which relationship is meant, the first that is there."""


class RelationDescriptor(Struct, frozen=True):
    """A relation, spelled out. Without a `relationship`, the fields that are there tell which it is."""

    relationship: Relationship | UnsetType = UNSET
    column: str | UnsetType = UNSET
    """The column of this table that holds the key of the related row."""
    key: str | UnsetType = UNSET
    """The column of the related table that holds the key of this row."""
    through: str | UnsetType = UNSET
    """The table between the two."""
    source: str | UnsetType = UNSET
    """Its column that holds the key of this row."""
    target: str | UnsetType = UNSET
    """Its column that holds the key of the related row."""
    tag: str | UnsetType = UNSET
    """The column of the related table that tells whose row its key is of."""
    label: str | UnsetType = UNSET
    """What has to stand there."""
    model: str | UnsetType = UNSET
    """The related table; the relation's own name if it is left out."""


class ResolvedRelation(Struct, frozen=True):
    """A relation of which everything is known. Fields that its relationship does not need are empty."""

    name: str
    relationship: Relationship
    model: str
    column: str = ""
    key: str = ""
    through: str = ""
    source: str = ""
    target: str = ""
    tag: str = ""
    label: str = ""


Relations: TypeAlias = Mapping[str, Mapping[str, Any]]
"""`{table: {relation: value}}`; for the values see `resolve_relation`."""


def belongs_to(column: str, model: str | UnsetType = UNSET) -> RelationDescriptor:
    """The one row whose key stands in a column of this table."""
    return RelationDescriptor("belongs", column=column, model=model)


def has_many(key: str, model: str | UnsetType = UNSET) -> RelationDescriptor:
    """The rows that have this row's key in a column."""
    return RelationDescriptor("many", key=key, model=model)


def has_one(key: str, model: str | UnsetType = UNSET) -> RelationDescriptor:
    """The first of the rows that have this row's key in a column."""
    return RelationDescriptor("one", key=key, model=model)


def has_through(through: str, source: str, target: str, model: str | UnsetType = UNSET) -> RelationDescriptor:
    """The rows that a table between the two links to this row."""
    return RelationDescriptor("through", through=through, source=source, target=target, model=model)


def has_morph(key: str, tag: str, label: str, model: str | UnsetType = UNSET) -> RelationDescriptor:
    """The rows that have this row's key in a column, and a label in another one that tells whose key it is."""
    return RelationDescriptor("morph", key=key, tag=tag, label=label, model=model)


def resolve_relation(name: str, value: object) -> ResolvedRelation:
    """What a declared relation is.

    `value` is text, the column of this table (belongs); a list that begins with the column of the related table (many);
    a descriptor, or a record of its fields. Without a `relationship`, the first of `through`, `tag` (morph), `column`
    (belongs) and `key` (one) that is there decides. Raises `RelationError` INVALID, with `relation` in its context.
    """
    fields = _fields(name, value)
    relationship = _relationship(fields)
    if relationship is None:
        raise _invalid(name, f"it is declared as none of {', '.join(_NEEDED)}, but as {value!r:.100}")
    needed = _NEEDED[relationship]
    if missing := [field for field in needed if not isinstance(fields.get(field), str)]:
        raise _invalid(name, f"{relationship} needs {', '.join(needed)}, and {', '.join(missing)} is missing")
    model = fields.get("model", name)
    if not isinstance(model, str):
        raise _invalid(name, f"`model` is the name of a table, not {model!r:.100}")
    return ResolvedRelation(name, relationship, model, **{field: str(fields[field]) for field in needed})


def resolve_relation_map(relations: Relations) -> dict[str, dict[str, ResolvedRelation]]:
    """The relations of each table. Raises as `resolve_relation` does, and for what has no tables and relations by name
    (`model` in its context, if that is the entry of a table).
    """
    if not _is_named(relations):
        raise RelationError("INVALID", f"relations are declared by table, not as {relations!r:.100}")
    for table, named in relations.items():
        if not _is_named(named):
            told = f"the relations of {table!r} are declared by name, not as {named!r:.100}"
            raise RelationError("INVALID", told, {"model": table})
    return {
        table: {name: resolve_relation(name, value) for name, value in named.items()}
        for table, named in relations.items()
    }


def _is_named(value: object) -> bool:
    return is_mapping(value) and all(isinstance(name, str) for name in value)


def _relationship(fields: Mapping[Any, Any]) -> Relationship | None:
    given = fields.get("relationship")
    if given is not None:
        return next((known for known in _NEEDED if known == given), None)
    return next((meant for field, meant in _HINTS if field in fields), None)


def _fields(name: str, value: object) -> Mapping[Any, Any]:
    if isinstance(value, str):
        return {"relationship": "belongs", "column": value}
    if is_array(value):
        return {"relationship": "many", **({"key": value[0]} if value else {})}
    if isinstance(value, RelationDescriptor):
        fields: dict[str, Any] = msgspec.to_builtins(value)
        return fields
    if is_mapping(value):
        return value
    raise _invalid(name, f"it is declared as {value!r:.100}, and not as text, a list or an object")


def _invalid(name: str, why: str) -> RelationError:
    return RelationError("INVALID", f"relation {name!r}: {why}", {"relation": name})
