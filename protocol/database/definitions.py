"""Definitions: what a database is made from anew, without its rows."""

from __future__ import annotations

import math
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from greenroom.protocol.database.columns import is_column_spec
from greenroom.protocol.database.tables import TableSpec
from greenroom.protocol.schemas.gates import is_array, is_record

__all__ = ["DatabaseDefinition", "is_database_definition", "parse_definition"]


class DatabaseDefinition(Struct, frozen=True):
    """A database as it was declared. `driver` names what keeps its rows; the rest is as it was sent."""

    id: str
    driver: str
    tables: TableSpec
    primary: dict[str, str] | UnsetType = UNSET
    indexes: dict[str, list[list[str]]] | UnsetType = UNSET
    version: int | float | UnsetType = UNSET


def is_database_definition(value: object) -> bool:
    """Whether the value, as JSON has it, is a definition. Members that are not known are ignored, but for `keys`, which
    an older form had."""
    if not is_record(value) or "keys" in value:
        return False
    return (
        _is_name(value.get("id"))
        and _is_name(value.get("driver"))
        and is_record(value.get("tables"))
        and all(map(_is_table, value["tables"].values()))
        and ("primary" not in value or _is_primary(value["primary"]))
        and ("indexes" not in value or _are_indexes(value["indexes"]))
        and ("version" not in value or _is_version(value["version"]))
    )


def parse_definition(value: object) -> DatabaseDefinition | None:
    """The definition that the value is, or `None`."""
    if not is_record(value) or not is_database_definition(value):
        return None
    return DatabaseDefinition(
        **{field: value[field] for field in DatabaseDefinition.__struct_fields__ if field in value}
    )


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_table(value: Any) -> bool:
    return is_record(value) and is_record(value.get("columns")) and all(map(is_column_spec, value["columns"].values()))


def _is_primary(value: Any) -> bool:
    return is_record(value) and all(map(_is_name, value.values()))


def _are_indexes(value: Any) -> bool:
    return is_record(value) and all(is_array(groups) and all(map(_is_group, groups)) for groups in value.values())


def _is_group(value: Any) -> bool:
    return is_array(value) and len(value) > 0 and all(map(_is_name, value))


def _is_version(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
