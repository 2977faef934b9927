"""The operations on tables, as one piece of blocking work does them on the storage."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, final

from greenroom.actors.database.storage import Exists, Stop, Storage, driver_failure
from greenroom.protocol.database import (
    Aggregate,
    Cells,
    Comparison,
    Key,
    KeyFunction,
    Layout,
    Query,
    Row,
    aggregate,
    compile_conditions,
    invalid,
    numbers,
    unknown_columns,
    unknown_table,
)
from greenroom.protocol.errors import DatabaseError

__all__ = ["Happening", "Session", "key_maker"]


class Happening(NamedTuple):
    """Something that listeners are told once it has come to stay: an event of a table, or of the database itself."""

    table: str | None
    event: str
    told: Sequence[Any] | None = None
    """What listeners are told, once for each; `None` for an event of which there is nothing to tell."""


@final
class Session:
    """One call's use of the storage, in the thread that does it.

    Lists are worked one item after the other, within one transaction: if an item fails, those before it are committed
    and the error is raised; with `atomic` nothing is stored then. Within a `bound` session the transaction is somebody
    else's, who begins and ends it.

    Raises `DatabaseError`: NOT_FOUND for a table that is not declared; VALIDATION, CONFLICT, ABORTED, DRIVER.
    """

    def __init__(
        self,
        storage: Storage,
        layouts: Mapping[str, Layout],
        generate: KeyFunction,
        stop: Stop,
        *,
        strict: bool = False,
        bound: bool = False,
    ) -> None:
        storage.stop = stop
        self._storage = storage
        self._layouts = layouts
        self._generate = generate
        self._stop = stop
        self._strict = strict
        self._bound = bound
        self.happened: Final[list[Happening]] = []
        """What has come to stay, in order; in a bound session, what will have once the transaction is committed."""

    def layout(self, table: str) -> Layout:
        """The layout of a table."""
        layout = self._layouts.get(table)
        if layout is None:
            raise unknown_table(table, self._layouts)
        return layout

    def begin(self) -> None:
        """Begin a transaction which outlasts this session."""
        self._storage.begin()

    def backup(self, path: str) -> None:
        """Write all that the storage holds to another file."""
        self._storage.backup(path)

    # ---------------------------------------------------------------- reading

    @contextmanager
    def reading(self) -> Generator[None]:
        """All reads within the block see one state."""
        with self._storage.reading():
            yield

    def get(self, table: str, keys: Iterable[Any]) -> list[Row | None]:
        """The rows of these keys, `None` where there is none."""
        layout = self.layout(table)
        with self.reading():
            return [self._row(layout, key) for key in keys]

    def has(self, table: str, keys: Iterable[Any]) -> list[bool]:
        """Whether there is a row of each key."""
        layout = self.layout(table)
        with self.reading():
            found = [layout.lookup(key) for key in keys]
            return [key is not None and self._storage.holds(layout, key) for key in found]

    def keys(self, table: str) -> list[Key]:
        """All keys, ascending."""
        layout = self.layout(table)
        with self.reading():
            return self._storage.keys(layout)

    def records(self, table: str, query: Query, *, after: Key | None = None) -> list[Row]:
        """The rows that a query describes."""
        layout, conditions = self._compiled(table, query)
        limit = query.limit if isinstance(query.limit, int) else None
        return self.select(layout, conditions, query, limit=limit, after=after)

    def select(
        self,
        layout: Layout,
        conditions: Sequence[Comparison],
        query: Query | None = None,
        *,
        limit: int | None = None,
        after: Key | None = None,
    ) -> list[Row]:
        """The rows that meet conditions which are compiled already, in the order and from the offset of the query."""
        query = query or Query()
        with self.reading():
            found = self._storage.select(layout, conditions, query.order, limit=limit, offset=query.offset, after=after)
            return [layout.row(cells) for cells in found]

    def count(self, table: str, query: Query) -> int:
        """How many rows meet the conditions of a query."""
        layout, conditions = self._compiled(table, query)
        with self.reading():
            return self._storage.count(layout, conditions)

    def aggregate(self, table: str, function: Aggregate, column: str, query: Query) -> int | float | None:
        """What the function makes of a column's cells in the rows that meet the conditions."""
        layout, conditions = self._compiled(table, query)
        if self._strict and function != "count" and column not in layout.position:
            raise _unknown(layout, [column])
        with self.reading():
            if function == "count":
                return self._storage.count(layout, conditions, fitting=False)
            kind = next((each.storage for each in layout.schema.columns if each.name == column), "boolean")
            if kind == "boolean":
                return None
            if kind != "string" and function in ("minimum", "maximum"):
                return self._storage.extreme(layout, function, column, conditions)
            return aggregate(function, numbers(self._storage.cells(layout, column, conditions)))

    # ---------------------------------------------------------------- writing

    def add(self, table: str, rows: Sequence[Any], *, atomic: bool = False) -> list[Key]:
        """Store new rows; their keys. CONFLICT for a key that is taken."""
        return self._store(table, rows, self._storage.insert, atomic)

    def set(self, table: str, rows: Sequence[Any], *, atomic: bool = False) -> list[Key]:
        """Store rows, each whole and in place of the one of its key; their keys."""
        return self._store(table, rows, self._storage.write, atomic)

    def update(
        self, table: str, keys: Sequence[Any], changes: Any, *, atomic: bool = False, clear: bool = False
    ) -> list[bool]:
        """Change cells of the rows of these keys; whether there was a row. With `clear`, null takes a cell away."""
        layout = self.layout(table)

        def update(key: Any) -> bool:
            stored = self._row(layout, key)
            if stored is None:
                return False
            key = stored[layout.schema.primary]
            self._storage.write(layout, (layout.change(stored, key, changes, clear=clear),))
            self.happened.append(Happening(table, "write", (key,)))
            return True

        return self._each(keys, update, atomic)

    def remove(self, table: str, keys: Sequence[Any], *, atomic: bool = False) -> list[bool]:
        """Remove the rows of these keys; whether there was a row."""
        layout = self.layout(table)

        def remove(key: Any) -> bool:
            found = layout.lookup(key)
            if found is None or not self._storage.delete(layout, found):
                return False
            self.happened.append(Happening(table, "remove", (layout.told(found),)))
            return True

        return self._each(keys, remove, atomic)

    def clear(self, table: str) -> None:
        """Remove all rows of a table."""
        layout = self.layout(table)
        with self.writing(atomic=True):
            self._storage.clear(layout)
            self.happened.append(Happening(table, "clear"))

    @contextmanager
    def writing(self, *, atomic: bool) -> Generator[None]:
        """What is stored within the block stays after it. If it raises, nothing stays with `atomic`, and otherwise what
        was stored before that. Calls within it are parts of it.
        """
        if self._bound:
            yield
            return
        mark = len(self.happened)
        self._bound = True
        try:
            self._storage.begin()
            try:
                yield
                if atomic:
                    self._stop.check()
            except Exception:
                if atomic or not self._storage.active:
                    raise
                self._storage.commit()
                mark = len(self.happened)
                raise
            self._storage.commit()
        except BaseException:
            self._storage.rollback()
            del self.happened[mark:]
            raise
        finally:
            self._bound = False

    def _store(
        self, table: str, rows: Sequence[Any], store: Callable[[Layout, Iterable[Cells]], None], atomic: bool
    ) -> list[Key]:
        layout = self.layout(table)
        keys: list[Key] = []
        stored = 0

        def cells() -> Iterator[Cells]:
            nonlocal stored
            for row in rows:
                self._stop.check()
                written = layout.write(row, self._generate)
                keys.append(layout.key(written))
                yield written
                stored += 1  # asked for the next one, the storage has taken this one

        with self.writing(atomic=atomic or len(rows) == 1):
            try:
                store(layout, cells())
            except Exists:
                key = keys[-1]
                raise DatabaseError(
                    "CONFLICT",
                    f"table {table!r} has a row with the key {key!r} already; `set` replaces it, `update` changes it",
                    {"table": table, "key": key},
                ) from None
            finally:
                self.happened.append(Happening(table, "write", keys[:stored]))
        return keys

    def _each(self, keys: Sequence[Any], work: Callable[[Any], bool], atomic: bool) -> list[bool]:
        done: list[bool] = []
        with self.writing(atomic=atomic or len(keys) == 1):
            for key in keys:
                self._stop.check()
                done.append(work(key))
        return done

    def _row(self, layout: Layout, key: Any) -> Row | None:
        found = layout.lookup(key)
        cells = None if found is None else self._storage.read(layout, found)
        return None if cells is None else layout.row(cells)

    def _compiled(self, table: str, query: Query) -> tuple[Layout, list[Comparison]]:
        layout = self.layout(table)
        if self._strict and (stray := unknown_columns(query, layout)):
            raise _unknown(layout, stray)
        return layout, compile_conditions(query.conditions, layout)


def key_maker(generator: KeyFunction | None) -> KeyFunction:
    """What makes the keys of rows that have none: the generator, or random UUIDs.

    It raises `DatabaseError`: VALIDATION for whatever the generator raises, DRIVER if the system gives no randomness.
    """

    def generate() -> Key:
        try:
            return str(uuid.uuid4()) if generator is None else generator()
        except Exception as error:
            told = f"no key could be made: {error}"
            raise driver_failure(told) if generator is None else invalid(told) from error

    return generate


def _unknown(layout: Layout, columns: list[str]) -> DatabaseError:
    named, known = ", ".join(map(repr, columns)), ", ".join(layout.names)
    return invalid(f"table {layout.name!r} has no column {named}; it has {known}", table=layout.name)
