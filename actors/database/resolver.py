"""Live databases by id, made from their definitions when they are first asked for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeAlias, TypeVar, final

import trio
from msgspec import UNSET, UnsetType

from greenroom.actors.database.database import Database
from greenroom.actors.database.drivers import memory_driver
from greenroom.actors.database.plain import Driver
from greenroom.actors.database.storage import Storage
from greenroom.actors.database.stores import DefinitionStore
from greenroom.protocol.database import DatabaseDefinition, KeyFunction
from greenroom.protocol.errors import ToolError
from greenroom.runtime.tree import Tree

__all__ = ["MEMORY_DRIVERS", "DatabaseResolver", "DriverFactory", "in_memory"]

T = TypeVar("T")

DriverFactory: TypeAlias = Callable[[str], Storage | Driver]
"""Makes the storage of the database of an id."""


def in_memory(_id: str) -> Storage:
    """A new and empty storage in memory, for the database of whatever id."""
    return memory_driver()


MEMORY_DRIVERS: Final[Mapping[str, DriverFactory]] = {"memory": in_memory}


@final
class DatabaseResolver:
    """The databases that a tool serves: those given, those created since, and those whose definitions are stored.

    `drivers` are the kinds of storage by registered name. Creating, resolving and destroying happen one at a time for
    each id, so that two callers never make two databases of one id.

    What it raises itself is `ToolError` TOOL: for an id that is nowhere (context `id`), an id that exists already
    (`id`), a driver that is not registered (`id`, `driver`).
    """

    def __init__(
        self,
        tree: Tree,
        *,
        handles: Mapping[str, Database] | None = None,
        drivers: Mapping[str, DriverFactory] | None = None,
        generator: KeyFunction | None = None,
        store: DefinitionStore | None = None,
        strict: bool = False,
    ) -> None:
        self._tree = tree
        self._handles = dict(handles or {})
        self._drivers = dict(MEMORY_DRIVERS if drivers is None else drivers)
        self._generator = generator
        self._store = store
        self._strict = strict
        self._turns: dict[str, _Turn] = {}

    def has(self, id: str) -> bool:
        """Whether there is a live database of that id."""
        return id in self._handles

    def get(self, id: str) -> Database | None:
        """The live database of that id; the store is not asked."""
        return self._handles.get(id)

    def set(self, id: str, database: Database) -> None:
        """Serve a live database under that id."""
        self._handles[id] = database

    def delete(self, id: str) -> bool:
        """Serve it no more, without closing it; whether it was served."""
        return self._handles.pop(id, None) is not None

    async def create(self, definition: DatabaseDefinition) -> Database:
        """Make a database, store its definition and serve it. Its storage is not opened yet.

        Raises `DatabaseError` VALIDATION for tables that cannot be, besides what the class says. If it raises, or is
        cancelled, nothing is served.
        """
        id = definition.id
        async with self._turn(id):
            if id in self._handles or (self._store is not None and await self._store.get(id) is not None):
                raise ToolError(
                    "TOOL", f"there is a database {id!r} already; use it, destroy it, or choose another id", {"id": id}
                )
            database = self._made(definition)
            try:
                if self._store is not None:
                    await self._store.set(definition)
            except BaseException:
                with trio.CancelScope(shield=True):  # without a deadline: it has opened nothing
                    await database.close()
                raise
            self._handles[id] = database
            return database

    async def resolve(self, id: str) -> Database:
        """The live database of that id, made from its stored definition if there is none yet."""
        found = self._handles.get(id)
        if found is not None:
            return found
        async with self._turn(id):
            found = self._handles.get(id)
            if found is None:
                definition = None if self._store is None else await self._store.get(id)
                if definition is None:
                    raise self._unknown(id)
                found = self._handles[id] = self._made(definition)
            return found

    async def destroy(self, id: str, *, erase: bool = False) -> bool:
        """Close the live database of that id, given ones included, and forget its definition; whether there was any.

        Its file stays, and is found again by a database that is created over it, unless `erase`.
        """
        async with self._turn(id):
            database = self._handles.get(id)
            if database is not None:
                await (database.erase() if erase else database.close())
                self._handles.pop(id, None)
            deleted = self._store is not None and await self._store.delete(id)
            return database is not None or deleted

    def _made(self, definition: DatabaseDefinition) -> Database:
        driver = self._drivers.get(definition.driver)
        if driver is None:
            raise ToolError(
                "TOOL",
                f"there is no driver {definition.driver!r}; there are: {', '.join(sorted(self._drivers)) or 'none'}",
                {"id": definition.id, "driver": definition.driver},
            )
        return Database(
            self._tree,
            driver(definition.id),
            definition.tables,
            primary=_given(definition.primary),
            indexes=_given(definition.indexes),
            version=_given(definition.version),
            name=definition.id,
            generator=self._generator,
            strict=self._strict,
        )

    def _unknown(self, id: str) -> ToolError:
        known = ", ".join(sorted(self._handles)[:20])
        return ToolError(
            "TOOL",
            f"there is no database {id!r}; {f'live ones are: {known}' if known else 'create it first'}",
            {"id": id},
        )

    @asynccontextmanager
    async def _turn(self, id: str) -> AsyncGenerator[None]:
        """One at a time for each id; ids that nobody waits for are forgotten."""
        turn = self._turns.setdefault(id, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[id]


class _Turn:
    """Who is at work on an id, and how many want to be."""

    def __init__(self) -> None:
        self.lock = trio.Lock()
        self.users = 0


def _given(value: T | UnsetType) -> T | None:
    return None if value is UNSET else value
