"""A database, as the program that owns it sees it."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar, final
from urllib.parse import quote

import trio
from trio.lowlevel import current_task

from greenroom.actors.database.actor import DatabaseActor, Databases, Hold
from greenroom.actors.database.job import Job, Perform, Work, closed, perform
from greenroom.actors.database.plain import Driver, DriverStorage
from greenroom.actors.database.session import Happening, key_maker
from greenroom.actors.database.storage import Storage, driver_failure
from greenroom.actors.database.table import TABLE_EVENTS, Table
from greenroom.actors.database.transaction import Transaction, misuse
from greenroom.protocol.database import KeyFunction, Layout, TableSchema, TableSpec, expand_tables, unknown_table
from greenroom.protocol.emitter import Emitter, ErrorHandler, Listener
from greenroom.runtime.context import as_nobody
from greenroom.runtime.ref import Ref
from greenroom.runtime.tree import Tree

__all__ = ["DATABASE_EVENTS", "Database"]

R = TypeVar("R")

DATABASE_EVENTS: Final = ("open", "close", "transaction", "commit", "rollback", "migrate")


@final
class Database:
    """Typed tables over one storage.

    ::

        columns = {"id": "string", "name": "string", "price": {"type": "number", "optional": True}}
        shop = Database(runtime.tree, sqlite_driver("shop.db"), {"products": {"columns": columns}})
        products = shop.table("products")
        key = await products.add({"name": "Widget", "price": "25"})
        cheap = await products.records(Query([Condition("price", "below", [50])], limit=10))

    `driver` keeps the rows: one of `memory_driver`, `sqlite_driver` and `json_driver`, or a `Driver` of your own.

    It is an actor beneath `/databases`, which alone uses the storage. The storage is opened at the first call and
    closed with the actor: by `close`, or at the end of the tree.

    `primary` names the key column of a table where it is not `id`, `indexes` the columns by which rows are found fast.
    `generator` makes the keys of rows that have none (default: random UUIDs); it is called in a worker thread, one call
    at a time. A `version` stamps the storage; one that was stamped with an earlier version is migrated where no cell
    has to be invented. With `strict`, a query that names a column which the table has not is refused; otherwise every
    such cell counts as absent. `on` registers first listeners, and `error(exception, event)` hears what listeners
    raise.

    Events of its `emitter`, after the fact: `open()`, `close()`, `transaction()`, `commit()`, `rollback(error)`,
    `migrate(migration)`.

    Raises `DatabaseError` VALIDATION for tables that cannot be.
    """

    def __init__(
        self,
        tree: Tree,
        driver: Storage | Driver,
        tables: TableSpec,
        *,
        primary: Mapping[str, str] | None = None,
        indexes: Mapping[str, Sequence[Sequence[str]]] | None = None,
        name: str = "database",
        generator: KeyFunction | None = None,
        version: int | float | None = None,
        strict: bool = False,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
    ) -> None:
        self.name: Final = name
        layouts = {table: Layout(schema) for table, schema in expand_tables(tables, primary, indexes).items()}
        self.emitter: Final = Emitter(DATABASE_EVENTS, on=on, error=error)
        self._tables: Final = {
            table: Table(layout, self.perform, Emitter(TABLE_EVENTS, error=error)) for table, layout in layouts.items()
        }
        storage = driver if isinstance(driver, Storage) else DriverStorage(driver)
        self._storage: Final = storage
        self._held: Transaction | None = None
        """The transaction that is open now."""
        self._actor: Final = DatabaseActor(
            storage, layouts, version=version, generate=key_maker(generator), strict=strict, announce=self._announce
        )
        self.ref: Final = _spawn(tree, self._actor, name)
        """The address of its actor."""

    def __repr__(self) -> str:
        return f"<Database {self.name}>"

    @property
    def closed(self) -> bool:
        """Whether it is closed, for good."""
        return not self.ref.alive

    def tables(self) -> list[str]:
        """The names of its tables, in declared order."""
        return list(self._tables)

    @property
    def schemas(self) -> dict[str, TableSchema]:
        """The layouts of its tables, by name."""
        return {name: table.schema for name, table in self._tables.items()}

    def table(self, name: str) -> Table:
        """The table of that name. Raises `DatabaseError` NOT_FOUND, naming those that there are, and CLOSED."""
        if self.closed:
            raise closed(self.name)
        found = self._tables.get(name)
        if found is None:
            raise unknown_table(name, self._tables)
        return found

    async def open(self) -> None:
        """Open the storage, unless it is. Raises `DatabaseError` DRIVER or MIGRATION; the next call tries again."""
        await self.perform(lambda session: None)

    async def close(self) -> None:
        """Close it; return when its file is closed. What runs is ended early, what waits fails with CLOSED.

        Raises `DatabaseError` CONFLICT within a transaction of its own. Cancelled: it is closed all the same.
        """
        self._refuse_own()
        await self.ref.stop()

    async def perform(self, work: Work[R]) -> R:
        """Do a piece of blocking work on the storage, all of it in one turn; it must not keep the session.

        Raises what the work raises, and `DatabaseError` CLOSED, DRIVER or MIGRATION; CONFLICT from within a
        transaction, where it would wait for itself; ActorDeadlock if waiting for the actor would close a circle. For
        cancellation see `Table`.
        """
        self._refuse_own()
        return await perform(self.ref, Perform(Job(work)), self.name)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        """A transaction for the length of an `async with` block: what its tables store comes to stay at the end of it.

        An exception that leaves the block, or its cancellation, undoes all and goes on unchanged. A call in it that
        failed does so too, even where its error was caught: it is raised again at the end. Others wait until it has
        ended; within it, use its tables. Raises `DatabaseError` CONFLICT for one within another.
        """
        self._refuse_own()
        held = Transaction(self.name, self._actor, self._announce)
        hold: Hold[None] = Hold(Job(lambda session: session.begin()), held)
        await perform(self.ref, hold, self.name)
        self._held = held
        try:
            self._announce([Happening(None, "transaction")])
            held.enter()
            yield held
            await held.commit()
        except BaseException as error:
            if not held.ended:
                await held.rollback(error)
            raise
        finally:
            held.leave()
            self._held = None

    async def backup(self, path: str | os.PathLike[str]) -> None:
        """Write all rows to another file, as they are at one moment. Raises `DatabaseError` DRIVER."""
        await self.perform(lambda session: session.backup(os.fspath(path)))

    async def erase(self) -> None:
        """Close it, and remove what it has on disk. Raises `DatabaseError` DRIVER."""
        await self.close()
        try:
            await trio.to_thread.run_sync(self._storage.erase, limiter=self._actor.limiter)
        except OSError as error:
            raise driver_failure(f"the file of {self.name!r} cannot be removed: {error.strerror}") from error

    def _refuse_own(self) -> None:
        held = self._held
        if held is None:
            return
        if held.needs(current_task()):
            raise misuse(
                self.name, "within a transaction it would wait for itself; use the tables of the transaction, or end it"
            )
        held.leave()  # a task that was only started there, in somebody else's nursery, may well wait for its end

    def _announce(self, happened: Iterable[Happening]) -> None:
        for table, event, told in happened:
            emitter = self.emitter if table is None else self._tables[table].emitter
            if told is None:
                as_nobody(emitter.emit, event)
            elif emitter.heard:
                for value in told:
                    as_nobody(emitter.emit, event, value)


def _spawn(tree: Tree, actor: DatabaseActor, name: str) -> Ref:
    """Under its own name, or that with a number if another database has it."""
    parent = (tree.root.children or {}).get("databases") or tree.spawn(Databases(), "databases")
    segment = quote(name, safe="", errors="surrogatepass") or "database"
    taken = parent.children or {}
    number = 1
    path = segment
    while path in taken:
        number += 1
        path = f"{segment}.{number}"
    return tree.spawn(actor, path, parent=parent)
