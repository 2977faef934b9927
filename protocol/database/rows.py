"""Rows: what is written becomes cells, cells become what is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, final

from greenroom.protocol.database.columns import Misfit, Reader, reader
from greenroom.protocol.database.tables import TableSchema
from greenroom.protocol.database.values import (
    Cell,
    Key,
    KeyFunction,
    Rank,
    Row,
    invalid,
    is_key,
    is_mapping,
    operand,
    rank_of,
    whole,
)

__all__ = ["Cells", "Layout"]

Cells: TypeAlias = Sequence[Cell | None]
"""A row as it is stored: a cell for each declared column, `None` where it is absent."""

_RANKS: Final[Mapping[str, Rank]] = {
    "string": Rank.STRING,
    "integer": Rank.NUMBER,
    "number": Rank.NUMBER,
    "boolean": Rank.BOOLEAN,
}


@final
class Layout:
    """A table's schema, compiled for reading and writing many rows."""

    __slots__ = ("_columns", "_decoders", "_key_of", "key_at", "names", "position", "schema")

    def __init__(self, schema: TableSchema) -> None:
        self.schema: Final = schema
        self.names: Final = tuple(column.name for column in schema.columns)
        self.position: Final = {name: index for index, name in enumerate(self.names)}
        self.key_at: Final = self.position[schema.primary]
        """Where in a row's cells its key is."""
        self._columns: Final[tuple[tuple[str, Reader, bool], ...]] = tuple(
            (column.name, reader(column), column.optional and column.name != schema.primary)
            for column in schema.columns
        )
        self._decoders: Final[tuple[Callable[[Any], Cell] | None, ...]] = tuple(
            _DECODERS.get(column.storage) for column in schema.columns
        )

    @property
    def name(self) -> str:
        """The table's name."""
        return self.schema.name

    def rank(self, column: str) -> Rank | None:
        """The kind of a column's cells; `None` for a column that the table has not, whose cells are all absent."""
        index = self.position.get(column)
        return None if index is None else _RANKS[self.schema.columns[index].storage]

    def is_exact(self, column: str) -> bool:
        """Whether the column's cells are integers, which keep all their digits."""
        index = self.position.get(column)
        return index is not None and self.schema.columns[index].storage == "integer"

    # ---------------------------------------------------------------- writing

    def write(self, row: Any, generate: KeyFunction) -> list[Cell | None]:
        """The cells of a row that is to be written; `generate` makes the key of one that has none.

        Undeclared columns are dropped. Raises `DatabaseError` VALIDATION, naming the column, and what `generate`
        raises.
        """
        if not is_mapping(row):
            raise invalid(f"table {self.name!r}: a row is an object with its cells by column, not {row!r:.60}")
        cells: list[Cell | None] = []
        column = ""
        try:
            for column, read, optional in self._columns:
                if column in row:
                    cells.append(read(row[column]))
                elif column == self.schema.primary:
                    cells.append(read(generate()))
                elif optional:
                    cells.append(None)
                else:
                    raise Misfit("it is required, and missing")
        except Misfit as misfit:
            raise self._misfit(column, misfit) from None
        key = cells[self.key_at]
        if key is True or key is False:
            raise self._misfit(self.schema.primary, "a boolean cannot be a key; name another column in `primary`")
        return cells

    def change(self, stored: Row, key: Key, changes: Any, *, clear: bool) -> list[Cell | None]:
        """The cells of a stored row with some of them changed, and all of them read anew.

        With `clear`, null takes an optional cell away. Raises `DatabaseError` VALIDATION, also for another key.
        """
        if not is_mapping(changes):
            raise invalid(f"table {self.name!r}: changes are an object with cells by column, not {changes!r:.60}")
        primary = self.schema.primary
        if primary in changes and not _same(changes[primary], key):
            raise self._misfit(primary, "a key cannot be changed; remove the row and add it under the other key")
        merged: dict[Any, Any] = {**stored, **changes}
        if clear:
            for column in self.schema.columns:
                if column.optional and column.name != primary and merged.get(column.name, key) is None:
                    del merged[column.name]
        return self.write(merged, lambda: key)

    def _misfit(self, column: str, why: object) -> Exception:
        return invalid(f"table {self.name!r}, column {column!r}: {why}", table=self.name, column=column)

    # ---------------------------------------------------------------- reading

    def key(self, cells: Sequence[Any]) -> Key:
        """The key of a row, as it is handed out."""
        return self.told(cells[self.key_at])

    def told(self, key: Any) -> Key:
        """A stored key, as it is handed out."""
        return whole(key) if isinstance(key, float) else key

    def row(self, cells: Sequence[Any]) -> Row:
        """The row that the stored cells are."""
        return {
            name: cell if decode is None else decode(cell)
            for name, decode, cell in zip(self.names, self._decoders, cells, strict=True)
            if cell is not None
        }

    def fitting(self, row: Mapping[str, Any]) -> list[Cell | None] | None:
        """The cells of a row that another program may have stored; `None` if it is no row of this table."""
        cells: list[Cell | None] = []
        for column in self.schema.columns:
            cell = row.get(column.name)
            if cell is None:
                if column.name in row or not column.optional:
                    return None
            elif rank_of(cell) is not _RANKS[column.storage] or not _is_exact(cell, column.storage):
                return None
            cells.append(cell)
        return cells

    def lookup(self, key: Any) -> Key | None:
        """The key as it is stored, or `None` if no row can have it: keys are told apart by type.

        Raises `DatabaseError` VALIDATION for what is no key, and for a number whose digits may have been lost.
        """
        where = f"table {self.name!r}: the key"
        if not is_key(key):
            raise invalid(f"{where} {key!r:.60} is neither text nor a finite number", table=self.name)
        primary = self.schema.primary
        exact = self.is_exact(primary)
        found = operand(key, exact=exact, where=where)
        if rank_of(found) != self.rank(primary):
            return None
        if exact and isinstance(found, float):
            return int(found) if found.is_integer() and abs(found) < 2**63 else None
        return found if isinstance(found, str | int) and (exact or isinstance(found, str)) else float(found)


def _is_exact(cell: Cell, storage: str) -> bool:
    """Whether a cell of the right rank is one of the column's."""
    if storage == "integer":
        return isinstance(cell, int)
    return storage != "number" or math.isfinite(float(cell))


def _same(value: Any, key: Key) -> bool:
    """Whether the value is the key, by type and value."""
    return rank_of(value) == rank_of(key) and value == key


_DECODERS: Final[Mapping[str, Callable[[Any], Cell]]] = {"number": whole, "boolean": bool}
