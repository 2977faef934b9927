"""One table, as the program that owns the database sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar, cast, final, overload

import msgspec
from msgspec import UNSET

from greenroom.actors.database.job import Work
from greenroom.protocol.database import (
    Aggregate,
    Key,
    Layout,
    Query,
    Row,
    TableSchema,
    normalize_query,
    row_parameters,
)
from greenroom.protocol.emitter import Emitter
from greenroom.protocol.errors import DatabaseError

__all__ = ["TABLE_EVENTS", "Table"]

R = TypeVar("R")
K = TypeVar("K", bound=Key)

TABLE_EVENTS: Final = ("write", "remove", "clear")

_PAGE: Final = 500
"""Rows that a scan fetches at once."""


class Perform(Protocol):
    """Does a piece of work on the storage, and returns or raises what that does."""

    async def __call__(self, work: Work[R], /) -> R: ...


@final
class Table:
    """A table of a database. Made by `Database.table`, or by `Transaction.table`, and then bound to that.

    Every call is one message to the database's actor, so that calls never mix. It raises `DatabaseError`: CLOSED,
    DRIVER, and what is said with it. Cancelled while it waits for its turn, a call never begins; cancelled while it
    runs, it ends early, and what a list had stored until then stays. Where it was done all the same, it returns.

    Keys are told apart by type: the row `"5"` is not found by 5.

    Events of its `emitter`, once a change has come to stay: `write(key)`, `remove(key)` and `clear()`.
    """

    def __init__(self, layout: Layout, perform: Perform, emitter: Emitter | None = None) -> None:
        self._layout = layout
        self._perform = perform
        self.emitter: Final = emitter or Emitter(TABLE_EVENTS)
        """Where its events can be listened to. Those of a bound table come from the database's own."""

    def __repr__(self) -> str:
        return f"<Table {self.name}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self._layout.name

    @property
    def primary(self) -> str:
        """The column of its keys."""
        return self._layout.schema.primary

    @property
    def schema(self) -> TableSchema:
        """Its layout."""
        return self._layout.schema

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of a whole row."""
        return row_parameters(self._layout.schema)

    # ---------------------------------------------------------------- reading

    @overload
    async def get(self, key: Key) -> Row | None: ...
    @overload
    async def get(self, key: list[K]) -> list[Row | None]: ...
    async def get(self, key: Key | list[K]) -> Row | list[Row | None] | None:
        """The row of a key, or `None`; for a list, one of them for each key."""
        rows = await self._perform(lambda session: session.get(self.name, _listed(key)))
        return rows if _is_many(key) else rows[0]

    @overload
    async def resolve(self, key: Key) -> Row: ...
    @overload
    async def resolve(self, key: list[K]) -> list[Row]: ...
    async def resolve(self, key: Key | list[K]) -> Row | list[Row]:
        """The row of a key, which must be there; for a list, all of them. Raises NOT_FOUND."""
        keys = _listed(key)
        rows = await self.get(keys)
        for index, row in enumerate(rows):
            if row is None:
                raise DatabaseError(
                    "NOT_FOUND",
                    f"table {self.name!r} has no row with the key {keys[index]!r}",
                    {"table": self.name, "key": keys[index]},
                )
        found = cast("list[Row]", rows)
        return found if _is_many(key) else found[0]

    @overload
    async def has(self, key: Key) -> bool: ...
    @overload
    async def has(self, key: list[K]) -> list[bool]: ...
    async def has(self, key: Key | list[K]) -> bool | list[bool]:
        """Whether there is a row of a key; for a list, of each."""
        found = await self._perform(lambda session: session.has(self.name, _listed(key)))
        return found if _is_many(key) else found[0]

    async def keys(self) -> list[Key]:
        """The keys of all rows, ascending."""
        return await self._perform(lambda session: session.keys(self.name))

    async def records(self, query: Query | Mapping[str, Any] | None = None) -> list[Row]:
        """The rows that a query describes. Raises VALIDATION for one that cannot be compared with the columns."""
        wanted = normalize_query(query)
        return await self._perform(lambda session: session.records(self.name, wanted))

    async def count(self, query: Query | Mapping[str, Any] | None = None) -> int:
        """How many rows meet the conditions of a query; its order and page mean nothing."""
        wanted = normalize_query(query)
        return await self._perform(lambda session: session.count(self.name, wanted))

    async def aggregate(
        self, function: Aggregate, column: str, query: Query | Mapping[str, Any] | None = None
    ) -> int | float | None:
        """What the function makes of the column's cells in the rows that meet the conditions; `None` if nothing.

        `count` counts the rows. The others read numbers, and text that spells one, and pass over the rest. Raises
        VALIDATION if the result is beyond the largest number.
        """
        wanted = normalize_query(query)
        return await self._perform(lambda session: session.aggregate(self.name, function, column, wanted))

    async def scan(self, query: Query | Mapping[str, Any] | None = None) -> AsyncIterator[Row]:
        """The rows that meet the conditions, in key order and a few hundred at a time; the order of the query means
        nothing. What others change meanwhile is seen if it comes after the rows that were given.
        """
        wanted = msgspec.structs.replace(normalize_query(query), order=[])
        left = wanted.limit
        after: Key | None = None
        while left is UNSET or left > 0:
            size = _PAGE if left is UNSET else min(left, _PAGE)
            page = msgspec.structs.replace(wanted, limit=size)
            rows = await self._perform(lambda session: session.records(self.name, page, after=after))  # noqa: B023
            for row in rows:
                yield row
            if len(rows) < size:
                return
            after = rows[-1][self.primary]
            wanted = msgspec.structs.replace(wanted, offset=0)
            left = left if left is UNSET else left - size

    # ---------------------------------------------------------------- writing

    @overload
    async def add(self, row: Mapping[str, Any], *, atomic: bool = False) -> Key: ...
    @overload
    async def add(self, row: Sequence[Mapping[str, Any]], *, atomic: bool = False) -> list[Key]: ...
    async def add(
        self, row: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, atomic: bool = False
    ) -> Key | list[Key]:
        """Store a new row, or a list of them, and return its key. A row without a key gets one.

        Undeclared columns are dropped. Of a list, the rows before one that fails stay, unless `atomic`. Raises
        VALIDATION, naming the column, and CONFLICT if there is a row of the key.
        """
        keys = await self._perform(lambda session: session.add(self.name, _listed(row), atomic=atomic))
        return keys if _is_many(row) else keys[0]

    @overload
    async def set(self, row: Mapping[str, Any], *, atomic: bool = False) -> Key: ...
    @overload
    async def set(self, row: Sequence[Mapping[str, Any]], *, atomic: bool = False) -> list[Key]: ...
    async def set(
        self, row: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, atomic: bool = False
    ) -> Key | list[Key]:
        """Store a row as `add` does, but in place of the whole row of its key if there is one."""
        keys = await self._perform(lambda session: session.set(self.name, _listed(row), atomic=atomic))
        return keys if _is_many(row) else keys[0]

    @overload
    async def update(
        self, key: Key, changes: Mapping[str, Any], *, atomic: bool = False, clear: bool = False
    ) -> bool: ...
    @overload
    async def update(
        self, key: list[K], changes: Mapping[str, Any], *, atomic: bool = False, clear: bool = False
    ) -> list[bool]: ...
    async def update(
        self, key: Key | list[K], changes: Mapping[str, Any], *, atomic: bool = False, clear: bool = False
    ) -> bool | list[bool]:
        """Change some cells of a row; whether there was one. The whole row is read anew, as if it were written.

        Of a list of keys, the rows before one that fails stay changed, unless `atomic`. With `clear`, null takes an
        optional cell away; it is refused otherwise. Raises VALIDATION, also for another key among the changes.
        """
        done = await self._perform(
            lambda session: session.update(self.name, _listed(key), changes, atomic=atomic, clear=clear)
        )
        return done if _is_many(key) else done[0]

    @overload
    async def remove(self, key: Key, *, atomic: bool = False) -> bool: ...
    @overload
    async def remove(self, key: list[K], *, atomic: bool = False) -> list[bool]: ...
    async def remove(self, key: Key | list[K], *, atomic: bool = False) -> bool | list[bool]:
        """Remove a row; whether there was one. Of a list, for each key."""
        done = await self._perform(lambda session: session.remove(self.name, _listed(key), atomic=atomic))
        return done if _is_many(key) else done[0]

    async def clear(self) -> None:
        """Remove all rows."""
        await self._perform(lambda session: session.clear(self.name))


def _is_many(one_or_more: Any) -> bool:
    return isinstance(one_or_more, list | tuple)


def _listed(one_or_more: Any) -> list[Any]:
    return list(one_or_more) if _is_many(one_or_more) else [one_or_more]
