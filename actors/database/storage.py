"""What a database keeps its rows in: the blocking side, of which one thread at a time makes use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, final, runtime_checkable

from greenroom.protocol.database import Aggregate, Cell, Cells, Comparison, Key, Layout, Migration, Order
from greenroom.protocol.errors import DatabaseError

__all__ = ["Exists", "Stop", "Storage", "driver_failure"]


@final
class Stop:
    """The wish that one piece of blocking work ends early: requested in one thread, seen in another.

    `outside()` tells, in the thread of the work, whether it is also wished elsewhere.
    """

    __slots__ = ("_outside", "_requested")

    def __init__(self, outside: Callable[[], bool] = lambda: False) -> None:
        self._outside = outside
        self._requested = False

    @property
    def requested(self) -> bool:
        """Whether it is wished. Asked in the thread of the work."""
        return self._requested or self._outside()

    def request(self) -> None:
        """Wish it, in any thread."""
        self._requested = True

    def check(self) -> None:
        """Raises `DatabaseError` ABORTED if it is wished."""
        if self._requested or self._outside():
            raise DatabaseError("ABORTED", "the call was ended before it was done; what it had stored until then stays")


class Exists(Exception):
    """A row could not be inserted: there is one of its key."""


def driver_failure(message: str, *, retryable: bool = False, **context: Any) -> DatabaseError:
    """`DatabaseError` DRIVER: the storage failed. `retryable` tells that the same call may succeed a little later."""
    return DatabaseError("DRIVER", message, {**context, **({"retryable": True} if retryable else {})})


@runtime_checkable
class Storage(Protocol):
    """Keeps rows, and finds them. Every method blocks, and none is called while another one runs.

    What fails raises `DatabaseError`: DRIVER for the storage itself, ABORTED where `stop` was requested in time.
    """

    stop: Stop
    """The wish of whoever uses it now. Waiting for other programs heeds it, and reading."""

    def open(self, tables: Mapping[str, Layout], version: int | float | None) -> Migration | None:
        """Make it ready for these tables, and return the migration that this took, if one.

        Raises MIGRATION if what it holds has another version and cannot become this one. After a failure it is not
        open, holds what it held, and may be opened again.
        """
        ...

    def close(self) -> None:
        """Give everything back; a transaction that is open is rolled back. Closing again does nothing."""
        ...

    def begin(self) -> None:
        """Begin a transaction that may write."""
        ...

    def commit(self) -> None:
        """Make what was written since `begin` last. If it fails, nothing of it does, and the transaction is over."""
        ...

    def rollback(self) -> None:
        """Undo what was written since `begin`. Without a transaction it does nothing."""
        ...

    @property
    def active(self) -> bool:
        """Whether a transaction is open; a failure may have ended it."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """All reads within the block see one state, and a request to stop interrupts them."""
        ...

    def read(self, layout: Layout, key: Key) -> Sequence[Any] | None:
        """The cells of the row of that key, as it is stored; `None` if there is none that fits the columns."""
        ...

    def holds(self, layout: Layout, key: Key) -> bool:
        """Whether there is a row of that key."""
        ...

    def keys(self, layout: Layout) -> list[Key]:
        """The keys of all rows, ascending."""
        ...

    def insert(self, layout: Layout, rows: Iterable[Cells]) -> None:
        """Store new rows, one after another. Raises `Exists` at the first whose key is taken; those before it stay."""
        ...

    def write(self, layout: Layout, rows: Iterable[Cells]) -> None:
        """Store rows, one after another, each in place of one of its key."""
        ...

    def delete(self, layout: Layout, key: Key) -> bool:
        """Remove the row of that key; whether there was one."""
        ...

    def clear(self, layout: Layout) -> None:
        """Remove all rows of the table."""
        ...

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
        """The cells of the rows that fit the columns and meet the conditions, in order, the rest by key; `after` leaves
        out all up to that key."""
        ...

    def count(self, layout: Layout, conditions: Sequence[Comparison], *, fitting: bool = True) -> int:
        """How many rows meet the conditions; with `fitting`, of those that fit the columns."""
        ...

    def cells(self, layout: Layout, column: str, conditions: Sequence[Comparison]) -> Iterable[Cell]:
        """The cells that are present of one column, in key order, of all rows that meet the conditions."""
        ...

    def extreme(
        self, layout: Layout, function: Aggregate, column: str, conditions: Sequence[Comparison]
    ) -> int | float | None:
        """The minimum or maximum of a column of numbers over the rows that meet the conditions."""
        ...

    def backup(self, path: str) -> None:
        """Write what it holds to another file, which is replaced."""
        ...

    def erase(self) -> None:
        """Remove what it has on disk. Only when it is closed."""
        ...
