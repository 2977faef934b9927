"""Relations as data: how a table's rows belong to those of others, and which of them are to be loaded along."""

from greenroom.protocol.relations.descriptors import (
    RelationDescriptor,
    Relations,
    Relationship,
    ResolvedRelation,
    belongs_to,
    has_many,
    has_morph,
    has_one,
    has_through,
    resolve_relation,
    resolve_relation_map,
)
from greenroom.protocol.relations.includes import Include, expand_include

__all__ = [
    "Include",
    "RelationDescriptor",
    "Relations",
    "Relationship",
    "ResolvedRelation",
    "belongs_to",
    "expand_include",
    "has_many",
    "has_morph",
    "has_one",
    "has_through",
    "resolve_relation",
    "resolve_relation_map",
]
