"""A driver of a program's own, in dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from greenroom.protocol.database import Key, Row, TableSchema

__all__ = ["DictDriver"]


class DictDriver:
    """Everything in memory; it outlasts the database over it."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[tuple[bool, Key], Row]] = {}

    def open(self, tables: Sequence[TableSchema]) -> None:
        for table in tables:
            self.tables.setdefault(table.name, {})

    def close(self) -> None:
        pass

    def read(self, table: str, key: Key) -> Row | None:
        row = self.tables[table].get(_typed(key))
        return None if row is None else dict(row)

    def write(self, table: str, key: Key, row: Row) -> None:
        self.tables[table][_typed(key)] = dict(row)

    def insert(self, table: str, key: Key, row: Row) -> bool:
        kept = dict(row)
        return self.tables[table].setdefault(_typed(key), kept) is kept

    def delete(self, table: str, key: Key) -> bool:
        return self.tables[table].pop(_typed(key), None) is not None

    def keys(self, table: str) -> Iterable[Key]:
        return [key for _, key in self._sorted(table)]

    def scan(self, table: str) -> Iterable[Row]:
        return [dict(self.tables[table][key]) for key in self._sorted(table)]

    def clear(self, table: str) -> None:
        self.tables[table].clear()

    def snapshot(self) -> Callable[[], None]:
        kept = {name: {key: dict(row) for key, row in rows.items()} for name, rows in self.tables.items()}

        def restore() -> None:
            self.tables = kept

        return restore

    def _sorted(self, table: str) -> list[tuple[bool, Key]]:
        def order(key: tuple[bool, Key]) -> tuple[bool, Key | bytes]:
            is_text, value = key
            return is_text, value.encode("utf-16-be") if isinstance(value, str) else value

        return sorted(self.tables[table], key=order)


def _typed(key: Key) -> tuple[bool, Key]:
    return isinstance(key, str), key
