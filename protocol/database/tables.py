"""Tables: their layout, and the JSON Schema of their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from greenroom.protocol.database.columns import ColumnSchema, ColumnSpec, compile_column, compile_column_primitive
from greenroom.protocol.database.values import invalid, is_mapping
from greenroom.protocol.errors import DatabaseError
from greenroom.protocol.schemas.gates import encodable

__all__ = [
    "DEFAULT_PRIMARY",
    "MAX_COLUMNS",
    "TableSchema",
    "TableSpec",
    "expand_tables",
    "row_parameters",
    "unknown_table",
]

DEFAULT_PRIMARY: Final = "id"

MAX_COLUMNS: Final = 1000
"""How many columns a table may have, which leaves room within SQLite's own limits for every statement about it."""

TableSpec: TypeAlias = Mapping[str, Mapping[str, Mapping[str, ColumnSpec]]]
"""`{table: {"columns": {column: spec}}}`"""


class TableSchema(Struct, frozen=True):
    """A table as it is stored: its columns in declared order, and the groups of columns that have an index."""

    name: str
    primary: str
    columns: tuple[ColumnSchema, ...]
    indexes: tuple[tuple[str, ...], ...] = ()

    def column(self, name: str) -> ColumnSchema | None:
        """The column of that name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)


def expand_tables(
    tables: TableSpec,
    primary: Mapping[str, str] | None = None,
    indexes: Mapping[str, Sequence[Sequence[str]]] | None = None,
) -> dict[str, TableSchema]:
    """The layouts that the specs declare, by table. `primary` names the key column of a table where it is not `id`,
    `indexes` the groups of columns that are to be found fast; entries for tables that are not declared are ignored.

    Raises `DatabaseError` VALIDATION, with `table` and what else is at fault in its context.
    """
    return {
        name: _expand(name, spec, (primary or {}).get(name, DEFAULT_PRIMARY), (indexes or {}).get(name, ()))
        for name, spec in tables.items()
    }


def row_parameters(table: TableSchema) -> dict[str, Any]:
    """The JSON Schema of a whole row."""
    properties = {column.name: compile_column_primitive(column.storage) for column in table.columns}
    required = [column.name for column in table.columns if not column.optional]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def unknown_table(name: str, known: Iterable[str]) -> DatabaseError:
    """`DatabaseError` NOT_FOUND for a table that is not declared."""
    declared = sorted(known)
    return DatabaseError(
        "NOT_FOUND",
        f"there is no table {name!r}; there are: {', '.join(declared) or 'none'}",
        {"table": name, "known": declared},
    )


def _expand(name: str, spec: Any, primary: str, indexes: Sequence[Sequence[str]]) -> TableSchema:
    _check_name("table", name, table=name)
    specs = spec.get("columns") if is_mapping(spec) else None
    if not is_mapping(specs):
        raise invalid(
            f'table {name!r} is declared without `columns`, as in {{"columns": {{"id": "string"}}}}', table=name
        )
    if len(specs) > MAX_COLUMNS:
        raise invalid(f"table {name!r} has {len(specs)} columns, and may have {MAX_COLUMNS}", table=name)
    for column in specs:
        _check_name(f"column of table {name!r}", column, table=name, column=column)
    columns = tuple(compile_column(column, spec) for column, spec in specs.items())
    known = ", ".join(specs) or "none"
    if primary not in specs:
        raise invalid(
            f"table {name!r} has no column {primary!r} for its keys; it has {known}. Name another one in `primary`",
            table=name,
            column=primary,
        )
    groups = tuple(tuple(group) for group in indexes)
    for group in groups:
        stray = [column for column in group if column not in specs]
        if stray or not group:
            told = f"names {', '.join(map(repr, stray))}, and there are {known}" if group else "names no column"
            raise invalid(f"an index of table {name!r} {told}", table=name, index=list(group))
    if len(set(groups)) < len(groups):
        raise invalid(f"table {name!r} declares the same index twice", table=name)
    return TableSchema(name, primary, columns, groups)


def _check_name(what: str, name: Any, **context: Any) -> None:
    if not isinstance(name, str) or not name or not encodable(name):
        raise invalid(f"a {what} is called {name!r}; a name is text, not empty and without lone surrogates", **context)
