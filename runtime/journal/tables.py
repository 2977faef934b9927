"""Tables of a journal's file, their versions, and how an older file is brought up to date."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, final

import sqlite_utils

from greenroom.protocol.errors import JournalError
from greenroom.runtime.journal.steps import Statement

__all__ = ["CORE", "Migration", "Table", "declared", "refuse_newer", "upgrade"]

Migration = Callable[[sqlite_utils.Database], None]
"""Brings the table from the version before to its own. It runs within a transaction and must not end it."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@final
class Table:
    """The declaration of one table: its present shape, and the way there from every earlier one.

    ::

        RUNS = Table("runs", {"id": str, "snapshot": bytes, "owner": str}, "id", version=2, migrations={2: add_owner})

        await journal.register(RUNS)
        await journal.write(RUNS.upsert(id="release", snapshot=b"..."), Append("runs/release", "started"))

    Names are lower case. `columns` maps a name to a Python type, as sqlite-utils takes them; `pk` is one column or
    several; every entry of `unique` and of `indexes` is the columns of one index. A fresh file gets `columns`; an older
    one each migration above its version, in order, so there is one for every version from 2 on.
    """

    __slots__ = ("columns", "indexes", "key", "migrations", "name", "not_null", "unique", "version")

    def __init__(
        self,
        name: str,
        columns: Mapping[str, Any],
        pk: str | tuple[str, ...],
        *,
        not_null: Iterable[str] = (),
        unique: Iterable[tuple[str, ...]] = (),
        indexes: Iterable[tuple[str, ...]] = (),
        version: int = 1,
        migrations: Mapping[int, Migration] | None = None,
    ) -> None:
        self.name: Final = name
        self.columns: Final = dict(columns)
        self.key: Final = (pk,) if isinstance(pk, str) else pk
        self.not_null: Final = frozenset(not_null)
        self.unique: Final = tuple(unique)
        self.indexes: Final = tuple(indexes)
        self.version: Final = version
        self.migrations: Final = dict(migrations or {})
        indexed = {column for index in (*self.unique, *self.indexes) for column in index}
        unknown = {*self.key, *self.not_null, *indexed} - set(self.columns)
        if unknown:
            raise self._has_no(unknown)
        if bad := [word for word in (name, *self.columns) if not _NAME.fullmatch(word)]:
            raise ValueError(f"{', '.join(bad)}: names of tables and columns are lower case letters, digits and _")
        if sorted(self.migrations) != list(range(2, version + 1)):
            raise ValueError(f"{name} is at version {version}, so it needs one migration for each of 2 to {version}")

    def insert(self, **row: Any) -> Statement:
        """A new row; the unit is refused if there is one of this key. Columns left out are NULL."""
        return Statement(self._insert(row), tuple(row.values()))

    def upsert(self, **row: Any) -> Statement:
        """The row of this key, made or changed; columns left out stay as they are. The key must be given, and every
        column that is not NULL."""
        changed = [column for column in row if column not in self.key]
        action = "UPDATE SET " + ", ".join(f'"{column}" = excluded."{column}"' for column in changed)
        conflict = f"ON CONFLICT ({_names(self.key)}) DO {action if changed else 'NOTHING'}"
        return Statement(f"{self._insert(row)} {conflict}", tuple(row.values()))

    def delete(self, *key: Any) -> Statement:
        """The row of this key away; nothing, if there is none."""
        where = " AND ".join(f'"{column}" = ?' for column in self.key)
        return Statement(f'DELETE FROM "{self.name}" WHERE {where}', key)

    def _insert(self, row: Mapping[str, Any]) -> str:
        if unknown := row.keys() - self.columns.keys():
            raise self._has_no(unknown)
        return f'INSERT INTO "{self.name}" ({_names(row)}) VALUES ({", ".join("?" * len(row))})'

    def _has_no(self, columns: Iterable[str]) -> ValueError:
        return ValueError(f"{self.name} has no column {', '.join(sorted(columns))}; it has {', '.join(self.columns)}")

    def create(self, database: sqlite_utils.Database) -> None:
        """Create it in a file that has no version of it."""
        table = database.table(self.name)
        key = self.key[0] if len(self.key) == 1 else self.key
        table.create(self.columns, pk=key, not_null=self.not_null)
        for columns in self.unique:
            table.create_index(columns, unique=True)
        for columns in self.indexes:
            table.create_index(columns)


def _names(columns: Iterable[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


VERSIONS = Table("versions", {"name": str, "version": int}, pk="name", not_null={"version"})
"""Which version each table of the file has."""

STREAMS = Table(
    "streams",
    {"id": int, "name": str, "first": int, "began": float, "ended": float},
    pk="id",
    not_null={"name", "first", "began"},
    unique=[("name",)],
)
"""`first` is the lowest number that is kept; where nothing is kept, the next one to be given."""

EVENTS = Table(
    "events",
    {"stream": int, "seq": int, "time": float, "kind": str, "payload": bytes},
    pk=("stream", "seq"),
    not_null={"time", "kind", "payload"},
)

CORE: Final = (STREAMS, EVENTS)
"""What the journal keeps for itself."""


def declared(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Tables that somebody else declared. Raises ValueError for two of one name, and for the name of one of the
    journal's."""
    found = {table.name: table for table in (VERSIONS, *CORE)}
    own = tuple(tables)
    for table in own:
        if found.setdefault(table.name, table) is not table:
            raise ValueError(f"a journal has a table {table.name!r} already; give this one another name")
    return own


def upgrade(connection: sqlite3.Connection, tables: Iterable[Table], path: str) -> None:
    """Bring every table to the version that this program has, in one transaction: all of them, or none.

    Raises JournalError NEWER, before anything is changed, if the file has a later version of one; and whatever a
    migration raises. `connection` is in autocommit mode.
    """
    database = sqlite_utils.Database(connection, execute_plugins=False)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not database.table(VERSIONS.name).exists():
            VERSIONS.create(database)
        due = tuple(tables)
        recorded = refuse_newer(connection, due, path)
        for table in due:
            version = recorded.get(table.name)
            if version is None:
                table.create(database)
            for step in range((version or table.version) + 1, table.version + 1):
                table.migrations[step](database)
            if version != table.version:
                connection.execute("INSERT OR REPLACE INTO versions VALUES (?, ?)", (table.name, table.version))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def refuse_newer(connection: sqlite3.Connection, tables: Iterable[Table], path: str) -> dict[str, int]:
    """The versions of all tables of the file, by name. Raises JournalError NEWER if one of `tables` is known only up to
    an earlier version."""
    recorded: dict[str, int] = dict(connection.execute("SELECT name, version FROM versions"))
    for table in tables:
        version = recorded.get(table.name, 0)
        if version > table.version:
            raise _newer(path, table, version)
    return recorded


def _newer(path: str, table: Table, version: int) -> JournalError:
    return JournalError(
        "NEWER",
        f"The journal {path} holds version {version} of {table.name!r}, and this program knows it up to version "
        f"{table.version}. Use the newer greenroom that wrote it, or another file. Nothing was changed.",
        {"path": path, "table": table.name, "version": version, "known": table.version},
    )
