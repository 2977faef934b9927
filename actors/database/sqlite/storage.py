"""Rows in SQLite: in memory, or in a file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import sqlite_utils

from greenroom.actors.database.sqlite import schema
from greenroom.actors.database.sqlite.conditions import Sql
from greenroom.actors.database.sqlite.faults import is_busy, is_taken, typed
from greenroom.actors.database.sqlite.functions import register_functions
from greenroom.actors.database.sqlite.statements import Statements
from greenroom.actors.database.storage import Exists, Stop, driver_failure
from greenroom.protocol.database import Aggregate, Cell, Cells, Comparison, Key, Layout, Migration, Order, Stamp, whole

__all__ = ["MEMORY", "PATIENCE", "SqliteStorage"]

MEMORY: Final = ":memory:"
"""The path that means no file: what is stored is gone when it is closed."""

PATIENCE: Final = 5.0
"""Seconds to wait for another program that holds the file."""

_PAUSE: Final = 0.005

_OPERATIONS: Final = 2000
"""Of SQLite's virtual machine, a millisecond at most, after which a statement looks whether it is to end.

`sqlite3_interrupt` would be quicker, but is lost on a statement that is just about to begin.
"""


class SqliteStorage:
    """One connection, in autocommit mode but for `begin`, and for any thread, of which one at a time may use it.

    A file that is new holds text as UTF-16: SQLite compares bytes, and so compares text as ECMAScript does, by UTF-16
    units. A file that another program made keeps its encoding; in UTF-8, U+E000 to U+FFFF stand before what is beyond.
    """

    def __init__(self, path: str | os.PathLike[str] = MEMORY) -> None:
        self.path: Final = MEMORY if path == MEMORY else str(Path(path).absolute())
        self._connection: sqlite3.Connection | None = None
        self._cursor: sqlite3.Cursor | None = None
        self.database: sqlite_utils.Database
        """The connection, as sqlite-utils has it. Set when it is opened."""
        self._readers = 0
        """How many blocks of `reading` the thread is within."""
        self._statements: dict[str, Statements] = {}
        self.stop = Stop()

    # ---------------------------------------------------------------- opening

    def open(self, tables: Mapping[str, Layout], version: int | float | None) -> Migration | None:
        """See `Storage.open`. A file is made if there is none; its folder must be there."""
        with typed(self.path, self.stop):
            connection = self._connect()
            try:
                self._connection, self._cursor = connection, connection.cursor()
                self.database = sqlite_utils.Database(connection, execute_plugins=False)
                register_functions(self.database, self._tick)
                connection.set_progress_handler(self._is_interrupted, _OPERATIONS)
                self._execute('PRAGMA encoding = "UTF-16be"')
                self.begin()
                self._restore(self.database)
                wanted = {name: layout.schema for name, layout in tables.items()}
                migration = schema.prepare(self.database, wanted, version, self.path)
                for layout in tables.values():
                    self.prepare(layout)
                self.commit()
                if self.path != MEMORY:  # not before it is known to be ours: a file that is refused is left as it is
                    self._execute("PRAGMA journal_mode = WAL").fetchone()
                    self._execute("PRAGMA synchronous = FULL")
            except BaseException:
                self._connection = self._cursor = None
                connection.close()
                raise
        return migration

    def close(self) -> None:
        """See `Storage.close`."""
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            with typed(self.path):
                connection.close()

    def _connect(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=0)
        except ValueError as error:
            raise driver_failure(f"{self.path!r} is no path of a file: {error}") from None

    def prepare(self, layout: Layout) -> None:
        """Make the statements about a table ready, in place of earlier ones."""
        self._statements[layout.name] = Statements(layout)

    def _restore(self, database: sqlite_utils.Database) -> None:
        """Within the transaction that opens: bring in what is kept elsewhere."""

    def _keep(self) -> None:
        """Before each commit: bring out what is to be kept elsewhere. Raising makes the commit a rollback."""

    # ---------------------------------------------------------------- transactions

    def begin(self) -> None:
        """See `Storage.begin`. It waits `PATIENCE` seconds for another program that writes the file."""
        self.stop.check()
        with typed(self.path, self.stop):
            self._execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """See `Storage.commit`."""
        try:
            with typed(self.path):
                self._keep()
                self._execute("COMMIT")
        except BaseException:
            self.rollback()
            raise

    def rollback(self) -> None:
        """See `Storage.rollback`."""
        if self.active:
            with typed(self.path):
                self._execute("ROLLBACK")

    @property
    def active(self) -> bool:
        """See `Storage.active`."""
        return self._connection is not None and self._connection.in_transaction

    @contextmanager
    def reading(self) -> Generator[None]:
        """See `Storage.reading`. Within a transaction it reads what that has written so far."""
        connection = self._opened
        within = connection.in_transaction
        self.stop.check()
        self._readers += 1
        try:
            with typed(self.path, self.stop):
                if not within:
                    self._execute("BEGIN")
                yield
        finally:
            self._readers -= 1
            if not within and connection.in_transaction:
                with typed(self.path):
                    self._execute("ROLLBACK")  # nothing was written

    # ---------------------------------------------------------------- rows by key

    def read(self, layout: Layout, key: Key) -> Sequence[Any] | None:
        """See `Storage.read`."""
        return self._first((self._of(layout).read, [key]))

    def holds(self, layout: Layout, key: Key) -> bool:
        """See `Storage.holds`."""
        return self._first((self._of(layout).holds, [key])) is not None

    def keys(self, layout: Layout) -> list[Key]:
        """See `Storage.keys`."""
        return [whole(key) for (key,) in self._all((self._of(layout).keys, []))]

    def insert(self, layout: Layout, rows: Iterable[Cells]) -> None:
        """See `Storage.insert`."""
        self._many(self._of(layout).insert, rows)

    def write(self, layout: Layout, rows: Iterable[Cells]) -> None:
        """See `Storage.write`."""
        self._many(self._of(layout).write, rows)

    def delete(self, layout: Layout, key: Key) -> bool:
        """See `Storage.delete`."""
        with typed(self.path, self.stop):
            return self._execute(self._of(layout).delete, [key]).rowcount > 0

    def clear(self, layout: Layout) -> None:
        """See `Storage.clear`."""
        with typed(self.path, self.stop):
            self._execute(self._of(layout).clear)

    # ---------------------------------------------------------------- rows by condition

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
        return self._all(self._of(layout).select(conditions, order, limit, offset, after))

    def count(self, layout: Layout, conditions: Sequence[Comparison], *, fitting: bool = True) -> int:
        """See `Storage.count`."""
        ((count,),) = self._all(self._of(layout).count(conditions, fitting=fitting))
        return int(count)

    def cells(self, layout: Layout, column: str, conditions: Sequence[Comparison]) -> Iterable[Cell]:
        """See `Storage.cells`."""
        return [cell for (cell,) in self._all(self._of(layout).cells(column, conditions))]

    def extreme(
        self, layout: Layout, function: Aggregate, column: str, conditions: Sequence[Comparison]
    ) -> int | float | None:
        """See `Storage.extreme`."""
        least = "MIN" if function == "minimum" else "MAX"
        ((cell,),) = self._all(self._of(layout).extreme(least, column, conditions))
        return None if cell is None else whole(cell)

    # ---------------------------------------------------------------- files

    def stamped(self) -> Stamp | None:
        """What the file says of its tables; `None` without a file, or a stamp in it. Nothing is made or changed."""
        if not Path(self.path).exists():
            return None
        with typed(self.path), contextlib.closing(self._connect()) as connection:
            connection.execute(f"PRAGMA busy_timeout = {PATIENCE * 1000:.0f}")
            return schema.read_stamp(sqlite_utils.Database(connection, execute_plugins=False), self.path)

    def backup(self, path: str) -> None:
        """See `Storage.backup`. It uses SQLite's backup interface, so that others may go on writing."""
        with typed(self.path), contextlib.closing(sqlite3.connect(path)) as target:
            self._opened.backup(target)

    def erase(self) -> None:
        """See `Storage.erase`."""
        if self.path != MEMORY:
            for suffix in ("", "-wal", "-shm", "-journal"):
                Path(self.path + suffix).unlink(missing_ok=True)

    # ---------------------------------------------------------------- statements

    @property
    def _opened(self) -> sqlite3.Connection:
        assert self._connection is not None, "it is opened before it is used"
        return self._connection

    def _of(self, layout: Layout) -> Statements:
        return self._statements[layout.name]

    def _first(self, sql: Sql) -> Sequence[Any] | None:
        found: Sequence[Any] | None = self._execute(*sql).fetchone()
        return found

    def _all(self, sql: Sql) -> list[Any]:
        return self._execute(*sql).fetchall()

    def _many(self, text: str, rows: Iterable[Cells]) -> None:
        assert self._cursor is not None, "it is opened before it is used"
        with typed(self.path, self.stop):
            try:
                self._cursor.executemany(text, rows)
            except sqlite3.IntegrityError as error:
                if is_taken(error):
                    raise Exists from None
                raise

    def _execute(self, text: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run a statement. One that another program's lock refuses is tried again for a while, until stopped."""
        cursor = self._cursor
        assert cursor is not None, "it is opened before it is used"
        end = None
        while True:
            try:
                return cursor.execute(text, parameters)
            except sqlite3.OperationalError as error:
                now = time.monotonic()
                end = now + PATIENCE if end is None else end
                if not is_busy(error) or now >= end:
                    raise
            time.sleep(_PAUSE)
            self.stop.check()

    def _is_interrupted(self) -> bool:
        """Whether the statement is to end at once. Not one that writes: SQLite would undo all that came before it."""
        return self._readers > 0 and self.stop.requested

    def _tick(self) -> None:
        self.stop.check()
