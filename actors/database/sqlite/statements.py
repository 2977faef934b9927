"""The statements about one table, as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, final

from greenroom.actors.database.sqlite.conditions import Sql, where
from greenroom.actors.database.sqlite.names import index_name, quoted
from greenroom.protocol.database import ColumnSchema, Comparison, Key, Layout, Order, TableSchema

__all__ = ["TYPES", "Statements", "create_index", "create_table", "declared_column"]

TYPES: Final = {"string": "TEXT", "integer": "INTEGER", "number": "REAL", "boolean": "INTEGER"}

_FITTING: Final = {
    "boolean": "({0} IS NULL OR {0} IN (0, 1))",
    "number": "({0} IS NULL OR ({0} > -9e999 AND {0} < 9e999))",
}
"""What a cell of the column's SQLite type has to be beyond that; another program may have stored what we never would.
"""


@final
class Statements:
    """What is asked of a table again and again."""

    __slots__ = (
        "_columns",
        "_fitting",
        "_layout",
        "_primary",
        "_table",
        "clear",
        "delete",
        "holds",
        "insert",
        "keys",
        "read",
        "write",
    )

    def __init__(self, layout: Layout) -> None:
        schema = layout.schema
        names = [quoted(name) for name in layout.names]
        self._layout: Final = layout
        self._table: Final = quoted(schema.name)
        self._primary: Final = quoted(schema.primary)
        self._columns: Final = ", ".join(names)
        checks = [
            _FITTING[column.storage].format(quoted(column.name))
            for column in schema.columns
            if column.storage in _FITTING
        ]
        self._fitting: Final = "".join(f" AND {check}" for check in checks)
        the_row = f"{self._primary} = ?"
        assigned = ", ".join(f"{name} = excluded.{name}" for name in names)
        self.read: Final = f"SELECT {self._columns} FROM {self._table} WHERE {the_row}{self._fitting}"
        self.holds: Final = f"SELECT 1 FROM {self._table} WHERE {the_row}"
        self.keys: Final = f"SELECT {self._primary} FROM {self._table} ORDER BY {self._primary}"
        self.insert: Final = f"INSERT INTO {self._table} ({self._columns}) VALUES ({', '.join('?' * len(names))})"
        self.write: Final = f"{self.insert} ON CONFLICT ({self._primary}) DO UPDATE SET {assigned}"
        self.delete: Final = f"DELETE FROM {self._table} WHERE {the_row}"
        self.clear: Final = f"DELETE FROM {self._table}"

    def select(
        self,
        conditions: Sequence[Comparison],
        order: Iterable[Order],
        limit: int | None,
        offset: int,
        after: Key | None,
    ) -> Sql:
        """Rows; see `Storage.select`. SQLite itself puts NULL first when ascending, and last when descending."""
        condition, parameters = where(conditions)
        if after is not None:
            condition += f" AND {self._primary} > ?"
            parameters = [*parameters, after]
        terms = [
            f"{quoted(term.column)} {'DESC' if term.direction == 'descending' else 'ASC'}"
            for term in order
            if term.column in self._layout.position
        ]
        text = (
            f"SELECT {self._columns} FROM {self._table} WHERE {condition}{self._fitting}"
            f" ORDER BY {', '.join([*terms, self._primary])}"
        )
        if limit is None and offset == 0:
            return text, parameters
        return f"{text} LIMIT ? OFFSET ?", [*parameters, -1 if limit is None else min(limit, _MOST), min(offset, _MOST)]

    def count(self, conditions: Sequence[Comparison], *, fitting: bool) -> Sql:
        """The number of rows."""
        condition, parameters = where(conditions)
        return f"SELECT COUNT(*) FROM {self._table} WHERE {condition}{self._fitting if fitting else ''}", parameters

    def cells(self, column: str, conditions: Sequence[Comparison]) -> Sql:
        """The present cells of a column in key order."""
        condition, parameters = where(conditions)
        cell = quoted(column)
        text = f"SELECT {cell} FROM {self._table} WHERE {condition} AND {cell} IS NOT NULL ORDER BY {self._primary}"
        return text, parameters

    def extreme(self, function: str, column: str, conditions: Sequence[Comparison]) -> Sql:
        """The least (`MIN`) or greatest (`MAX`) cell of a column."""
        condition, parameters = where(conditions)
        return f"SELECT {function}({quoted(column)}) FROM {self._table} WHERE {condition}", parameters


_MOST: Final = 2**62


def create_table(table: TableSchema) -> str:
    """The statement that creates a table."""
    columns = ", ".join(declared_column(column, primary=column.name == table.primary) for column in table.columns)
    return f"CREATE TABLE {quoted(table.name)} ({columns}) STRICT"


def declared_column(column: ColumnSchema, *, primary: bool = False) -> str:
    """A column as it stands in the declaration of its table."""
    constraint = " PRIMARY KEY NOT NULL" if primary else "" if column.optional else " NOT NULL"
    return f"{quoted(column.name)} {TYPES[column.storage]}{constraint}"


def create_index(table: str, columns: Sequence[str]) -> str:
    """The statement that creates an index."""
    return f"CREATE INDEX {index_name(table, columns)} ON {quoted(table)} ({', '.join(map(quoted, columns))})"
