"""Storage of a program's own: ten plain methods, over which queries are worked out row by row."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, final

from greenroom.actors.database.storage import Exists, Stop, driver_failure
from greenroom.protocol.database import (
    Aggregate,
    Cell,
    Cells,
    Comparison,
    Key,
    Layout,
    Migration,
    Order,
    Row,
    TableSchema,
    arranged,
    compare,
    compile_filter,
    numbers,
)
from greenroom.protocol.errors import DatabaseError

__all__ = ["Driver", "DriverStorage"]


class Driver(Protocol):
    """Keeps rows by table and key. Every method blocks, and none is called while another one runs.

    Rows are copied in and out: what a caller does to one it gave or got changes nothing that is kept. What a method
    raises reaches the caller as `DatabaseError` DRIVER. `check_driver` tries whether it keeps to all this.
    """

    def open(self, tables: Sequence[TableSchema]) -> None:
        """Make these tables ready; new ones are empty."""
        ...

    def close(self) -> None:
        """Give everything back. Closing again does nothing."""
        ...

    def read(self, table: str, key: Key) -> Row | None:
        """The row of that key; `"5"` is not 5."""
        ...

    def write(self, table: str, key: Key, row: Row) -> None:
        """Keep a row, in place of one of its key."""
        ...

    def insert(self, table: str, key: Key, row: Row) -> bool:
        """Keep a new row; False, and nothing happens, if there is one of its key."""
        ...

    def delete(self, table: str, key: Key) -> bool:
        """Remove the row of that key; whether there was one."""
        ...

    def keys(self, table: str) -> Iterable[Key]:
        """All keys, ascending: numbers by size, text by UTF-16 units."""
        ...

    def scan(self, table: str) -> Iterable[Row]:
        """All rows, by key."""
        ...

    def clear(self, table: str) -> None:
        """Remove all rows of the table, and of no other."""
        ...

    def snapshot(self) -> Callable[[], None]:
        """A function that puts all tables back as they are now; it is called once, or never."""
        ...


@final
class DriverStorage:
    """A driver as the storage of a database. It has no stamp, so that versions mean nothing."""

    def __init__(self, driver: Driver) -> None:
        self.stop = Stop()
        self._driver = driver
        self._restore: Callable[[], None] | None = None

    def open(self, tables: Mapping[str, Layout], version: int | float | None) -> Migration | None:
        """See `Storage.open`."""
        with _typed():
            self._driver.open([layout.schema for layout in tables.values()])
        return None

    def close(self) -> None:
        """See `Storage.close`."""
        self.rollback()
        with _typed():
            self._driver.close()

    def begin(self) -> None:
        """See `Storage.begin`."""
        self.stop.check()
        with _typed():
            self._restore = self._driver.snapshot()

    def commit(self) -> None:
        """See `Storage.commit`."""
        self._restore = None

    def rollback(self) -> None:
        """See `Storage.rollback`."""
        restore, self._restore = self._restore, None
        if restore is not None:
            with _typed():
                restore()

    @property
    def active(self) -> bool:
        """See `Storage.active`."""
        return self._restore is not None

    def reading(self) -> AbstractContextManager[None]:
        """See `Storage.reading`."""
        return _typed()

    def read(self, layout: Layout, key: Key) -> Sequence[Any] | None:
        """See `Storage.read`."""
        with _typed():
            row = self._driver.read(layout.name, key)
        return None if row is None else layout.fitting(row)

    def holds(self, layout: Layout, key: Key) -> bool:
        """See `Storage.holds`."""
        with _typed():
            return self._driver.read(layout.name, key) is not None

    def keys(self, layout: Layout) -> list[Key]:
        """See `Storage.keys`."""
        with _typed():
            return list(self._driver.keys(layout.name))

    def insert(self, layout: Layout, rows: Iterable[Cells]) -> None:
        """See `Storage.insert`."""
        for cells in rows:
            with _typed():
                inserted = self._driver.insert(layout.name, layout.key(cells), layout.row(cells))
            if not inserted:
                raise Exists

    def write(self, layout: Layout, rows: Iterable[Cells]) -> None:
        """See `Storage.write`."""
        for cells in rows:
            with _typed():
                self._driver.write(layout.name, layout.key(cells), layout.row(cells))

    def delete(self, layout: Layout, key: Key) -> bool:
        """See `Storage.delete`."""
        with _typed():
            return self._driver.delete(layout.name, key)

    def clear(self, layout: Layout) -> None:
        """See `Storage.clear`."""
        with _typed():
            self._driver.clear(layout.name)

    def select(
        self,
        layout: Layout,
        conditions: Sequence[Comparison],
        order: Sequence[Order] = (),
        *,
        limit: int | None = None,
        offset: int = 0,
        after: Key | None = None,
    ) -> list[Sequence[Any]]:
        """See `Storage.select`."""
        primary = layout.schema.primary
        rows = [
            row
            for row in self._matching(layout, conditions)
            if layout.fitting(row) is not None and (after is None or compare(row[primary], after) > 0)
        ]
        page = arranged(rows, order, primary)[offset : None if limit is None else offset + limit]
        return [[row.get(name) for name in layout.names] for row in page]

    def count(self, layout: Layout, conditions: Sequence[Comparison], *, fitting: bool = True) -> int:
        """See `Storage.count`."""
        rows = self._matching(layout, conditions)
        return sum(not fitting or layout.fitting(row) is not None for row in rows)

    def cells(self, layout: Layout, column: str, conditions: Sequence[Comparison]) -> Iterable[Cell]:
        """See `Storage.cells`."""
        return [row[column] for row in self._matching(layout, conditions) if column in row]

    def extreme(
        self, layout: Layout, function: Aggregate, column: str, conditions: Sequence[Comparison]
    ) -> int | float | None:
        """See `Storage.extreme`."""
        found = list(numbers(self.cells(layout, column, conditions)))
        return None if not found else min(found) if function == "minimum" else max(found)

    def backup(self, path: str) -> None:
        """See `Storage.backup`; a driver has none."""
        raise driver_failure("a driver of your own makes no backup; copy what it keeps its rows in")

    def erase(self) -> None:
        """See `Storage.erase`; a driver is not asked to."""

    def _matching(self, layout: Layout, conditions: Sequence[Comparison]) -> list[Row]:
        meets = compile_filter(conditions)
        found: list[Row] = []
        with _typed():
            for row in self._driver.scan(layout.name):
                self.stop.check()
                if meets(row):
                    found.append(row)
        return found


@contextmanager
def _typed() -> Generator[None]:
    """Lets whatever a driver raises be a `DatabaseError`."""
    try:
        yield
    except (DatabaseError, Exists):
        raise
    except Exception as error:
        raise driver_failure(f"the driver failed: {error!r}") from error
