"""Migrations: the way from the tables that a database was stamped with to the ones that are declared now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from greenroom.protocol.database.columns import ColumnSchema
from greenroom.protocol.database.tables import TableSchema
from greenroom.protocol.errors import DatabaseError

__all__ = [
    "AddColumn",
    "AddIndex",
    "AddTable",
    "DropColumn",
    "DropIndex",
    "DropTable",
    "Migration",
    "Stamp",
    "Step",
    "check_stamp",
    "plan_migration",
]

Tables: TypeAlias = Mapping[str, TableSchema]


class DropTable(Struct, frozen=True, tag="drop-table", tag_field="step"):
    """The table goes, with all its rows."""

    table: str


class AddTable(Struct, frozen=True, tag="add-table", tag_field="step"):
    """An empty table comes."""

    table: TableSchema


class DropIndex(Struct, frozen=True, tag="drop-index", tag_field="step"):
    """The columns are no longer found fast."""

    table: str
    columns: tuple[str, ...]


class DropColumn(Struct, frozen=True, tag="drop-column", tag_field="step"):
    """The column goes, with its cells."""

    table: str
    column: str


class AddColumn(Struct, frozen=True, tag="add-column", tag_field="step"):
    """An optional column comes, absent in every row."""

    table: str
    column: ColumnSchema


class AddIndex(Struct, frozen=True, tag="add-index", tag_field="step"):
    """The columns are found fast from now on."""

    table: str
    columns: tuple[str, ...]


Step: TypeAlias = DropTable | AddTable | DropIndex | DropColumn | AddColumn | AddIndex


class Migration(Struct, frozen=True, rename={"from_": "from"}):
    """What is done, in order, to come from one version to a later one."""

    from_: int | float
    to: int | float
    steps: tuple[Step, ...]


class Stamp(Struct, frozen=True):
    """The version that a database has reached, and the tables that it had then."""

    version: int | float
    schema: tuple[TableSchema, ...]

    @property
    def tables(self) -> dict[str, TableSchema]:
        """Its tables by name."""
        return {table.name: table for table in self.schema}


def check_stamp(stamp: Stamp, tables: Tables, version: int | float) -> Migration | None:
    """What is to be done where a database with this stamp is opened as `version` with `tables`; `None`: nothing.

    Raises `DatabaseError` MIGRATION: for a stamp of a later version, for one of the same version with other tables, and
    where no migration leads from the one to the other.
    """
    if stamp.version > version:
        raise _refused(
            f"it was written as version {stamp.version:g}, and {version:g} is declared; declare the later one",
            stamp,
            version,
        )
    if stamp.version < version:
        return plan_migration(stamp, tables, version)
    if {name: _unordered(table) for name, table in stamp.tables.items()} != {
        name: _unordered(table) for name, table in tables.items()
    }:
        raise _refused(
            f"it was written as version {version:g} with other tables; declare the changed ones as a later version",
            stamp,
            version,
        )
    return None


def plan_migration(stamp: Stamp, tables: Tables, version: int | float) -> Migration:
    """The steps from the stamped tables to the declared ones. Raises `DatabaseError` MIGRATION for what no step can do
    without inventing cells or turning them into others."""
    before = stamp.tables
    steps: list[Step] = [DropTable(name) for name in before if name not in tables]
    steps += [AddTable(table) for name, table in tables.items() if name not in before]
    for name, table in tables.items():
        if name in before:
            steps += _between(before[name], table, stamp, version)
    return Migration(stamp.version, version, tuple(steps))


def _between(old: TableSchema, new: TableSchema, stamp: Stamp, version: int | float) -> list[Step]:
    if old.primary != new.primary:
        raise _refused(f"table {new.name!r} has its keys in {old.primary!r}, not in {new.primary!r}", stamp, version)
    had = {column.name: column for column in old.columns}
    has = {column.name: column for column in new.columns}
    for name, column in has.items():
        if name in had and had[name] != column:
            raise _refused(
                f"column {name!r} of table {new.name!r} is {_kind(had[name])} and cannot become {_kind(column)};"
                " add a column of another name",
                stamp,
                version,
            )
        if name not in had and not column.optional:
            raise _refused(
                f"column {name!r} is added to table {new.name!r}, whose rows would lack it; declare it optional",
                stamp,
                version,
            )
    return [
        *(DropIndex(new.name, group) for group in old.indexes if group not in new.indexes),
        *(DropColumn(new.name, name) for name in had if name not in has),
        *(AddColumn(new.name, column) for name, column in has.items() if name not in had),
        *(AddIndex(new.name, group) for group in new.indexes if group not in old.indexes),
    ]


def _unordered(table: TableSchema) -> Any:
    return table.name, table.primary, frozenset(table.columns), frozenset(table.indexes)


def _kind(column: ColumnSchema) -> str:
    return f"an optional {column.storage}" if column.optional else f"a required {column.storage}"


def _refused(why: str, stamp: Stamp, version: int | float) -> DatabaseError:
    return DatabaseError("MIGRATION", f"the database cannot be opened: {why}", {"from": stamp.version, "to": version})
