"""A file's tables: recognised or created, stamped, and migrated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import sqlite_utils

from greenroom.actors.database.sqlite.names import METADATA, physical, quoted
from greenroom.actors.database.sqlite.statements import TYPES, create_index, create_table, declared_column
from greenroom.actors.database.storage import driver_failure
from greenroom.protocol.database import (
    AddColumn,
    AddIndex,
    AddTable,
    DropColumn,
    DropIndex,
    DropTable,
    Migration,
    Stamp,
    Step,
    TableSchema,
    check_stamp,
    whole,
)

__all__ = ["create", "prepare", "read_stamp", "write_stamp"]

_COLLATION = re.compile(r"\bcollate\b", re.IGNORECASE)
_IDENTIFIER = re.compile(r'"(?:[^"]|"")*"')


def prepare(
    database: sqlite_utils.Database, tables: Mapping[str, TableSchema], version: int | float | None, path: str
) -> Migration | None:
    """Bring the file to these tables and this version, within the transaction that is open. Tables of others are left
    alone.

    Raises `DatabaseError` MIGRATION, or DRIVER where a table is not what it should be.
    """
    stamp = read_stamp(database, path)
    if version is None or stamp is None:
        there = set(database.table_names())
        for table in tables.values():
            if physical(table.name) in there:
                _check(database, table, path)
            elif stamp is not None and table.name in stamp.tables:
                raise _missing(table, path)
            else:
                create(database, table)
        if version is not None:
            write_stamp(database, Stamp(version, tuple(tables.values())))
        return None
    migration = check_stamp(stamp, tables, version)
    there = set(database.table_names())
    for table in stamp.schema:
        if physical(table.name) not in there:
            raise _missing(table, path)
        _check(database, table, path)
    if migration is not None:
        for step in migration.steps:
            _apply(database, step, there, path)
        write_stamp(database, Stamp(version, tuple(tables.values())))
    return migration


def create(database: sqlite_utils.Database, table: TableSchema) -> None:
    """Create a table with its indexes."""
    database.conn.execute(create_table(table))
    for columns in table.indexes:
        database.conn.execute(create_index(table.name, columns))


def read_stamp(database: sqlite_utils.Database, path: str) -> Stamp | None:
    """The stamp of the file, if it has one. Raises `DatabaseError` DRIVER for one that cannot be read."""
    if METADATA not in database.table_names():
        return None
    row = database.conn.execute(f'SELECT version, schema FROM "{METADATA}" WHERE id = 1').fetchone()
    if row is None:
        return None
    try:
        return Stamp(whole(float(row[0])), msgspec.json.decode(row[1], type=tuple[TableSchema, ...]))
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise driver_failure(f"the stamp of {path} cannot be read: {error}") from None


def write_stamp(database: sqlite_utils.Database, stamp: Stamp) -> None:
    """Stamp the file, in place of an earlier stamp."""
    database.conn.execute(
        f'CREATE TABLE IF NOT EXISTS "{METADATA}"'
        " (id INTEGER PRIMARY KEY NOT NULL, version REAL NOT NULL, schema TEXT NOT NULL) STRICT"
    )
    schema = msgspec.json.encode(stamp.schema).decode()
    database.conn.execute(f'INSERT OR REPLACE INTO "{METADATA}" VALUES (1, ?, ?)', (float(stamp.version), schema))


def _apply(database: sqlite_utils.Database, step: Step, there: set[str], path: str) -> None:
    match step:
        case DropTable(table):
            database.conn.execute(f"DROP TABLE {quoted(table)}")
        case AddTable(table):
            if physical(table.name) in there:
                raise driver_failure(f"{path} has a table {table.name!r} already, which its stamp does not know of")
            create(database, table)
        case DropIndex(table, columns):
            wanted = tuple(map(physical, columns))
            for name in (each.name for each in _indexes(database, table) if each.columns == wanted):
                inner = name.replace('"', '""')
                database.conn.execute(f'DROP INDEX "{inner}"')
        case DropColumn(table, column):
            database.conn.execute(f"ALTER TABLE {quoted(table)} DROP COLUMN {quoted(column)}")
        case AddColumn(table, column):
            database.conn.execute(f"ALTER TABLE {quoted(table)} ADD COLUMN {declared_column(column)}")
        case AddIndex(table, columns):
            database.conn.execute(create_index(table, columns))


def _check(database: sqlite_utils.Database, table: TableSchema, path: str) -> None:
    """Whether the table is what rows of this layout can be kept in; raises `DatabaseError` DRIVER otherwise."""
    found = database.table(physical(table.name))
    wanted = {
        physical(column.name): (TYPES[column.storage], column.name == table.primary or not column.optional)
        for column in table.columns
    }
    columns: list[Any] = found.columns
    has = {str(column.name): (str(column.type).upper(), bool(column.notnull)) for column in columns}
    if has != wanted:
        raise _differs(table, path, f"has the columns {has}, and {wanted} are declared")
    if found.pks != [physical(table.primary)]:
        raise _differs(table, path, f"has its keys in {', '.join(found.pks)}, and {table.primary!r} is declared")
    if not found.strict:
        raise _differs(table, path, "is not STRICT, so that a cell may be of any type")
    if found.triggers:
        raise _differs(table, path, "has a trigger, which may change what is written")
    if _COLLATION.search(_IDENTIFIER.sub("", found.schema)):
        raise _differs(table, path, "compares text in a way of its own (COLLATE)")
    indexes = _indexes(database, table.name)
    if any(index.unique and index.origin != "pk" for index in indexes):
        raise _differs(table, path, "has a further unique index, which may refuse rows")
    usable = {index.columns for index in indexes if index.origin == "c" and not index.partial}
    for group in table.indexes:
        if tuple(map(physical, group)) not in usable:
            raise _differs(table, path, f"has no index on {', '.join(group)}, which is declared")


class _Index(NamedTuple):
    """What SQLite says of an index; `origin` is `c` for one that a CREATE INDEX made."""

    name: str
    origin: str
    unique: bool
    partial: bool
    columns: tuple[str, ...]


def _indexes(database: sqlite_utils.Database, table: str) -> list[_Index]:
    found: list[Any] = database.table(physical(table)).indexes
    return [
        _Index(each.name, each.origin, bool(each.unique), bool(each.partial), tuple(each.columns)) for each in found
    ]


def _missing(table: TableSchema, path: str) -> Exception:
    return driver_failure(f"{path} has no table {table.name!r}, though its stamp names it", table=table.name)


def _differs(table: TableSchema, path: str, how: str) -> Exception:
    return driver_failure(f"the table {table.name!r} of {path} {how}", table=table.name)
