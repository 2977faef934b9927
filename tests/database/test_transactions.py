"""Transactions: all of it or nothing, whoever ends it, and nobody in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.database import Database, json_driver, memory_driver, sqlite_driver
from greenroom.protocol.errors import ActorDeadlock, DatabaseError
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.context import current_node
from greenroom.runtime.messages import Request
from greenroom.runtime.tree import Tree

TABLES: Any = {"t": {"columns": {"id": "string"}}, "u": {"columns": {"id": "string"}}}


@pytest.fixture(params=["memory", "sqlite", "json"])
def database(tree: Tree, tmp_path: Path, request: pytest.FixtureRequest) -> Database:
    drivers: dict[str, Callable[[], Any]] = {
        "memory": memory_driver,
        "sqlite": lambda: sqlite_driver(tmp_path / "file"),
        "json": lambda: json_driver(tmp_path / "file"),
    }
    return Database(tree, drivers[request.param](), TABLES)


@pytest.fixture
def told(database: Database) -> list[Any]:
    """What its listeners hear."""
    told: list[Any] = []
    for event in ("transaction", "commit"):
        database.emitter.on(event, lambda event=event: told.append(event))
    database.emitter.on("rollback", lambda error: told.append(("rollback", type(error).__name__)))
    database.table("t").emitter.on("write", lambda key: told.append(("write", key)))
    return told


async def code(call: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(DatabaseError) as caught:
        await call(*args)
    return caught.value.code


async def test_what_is_stored_within_stays_at_the_end(database: Database, told: list[Any]) -> None:
    async with database.transaction() as held:
        table = held.table("t")
        assert await table.add([{"id": "a"}, {"id": "b"}]) == ["a", "b"]
        assert await table.keys() == ["a", "b"]  # it sees what it has stored
        await held.table("u").add({"id": "x"})
        assert told == ["transaction"]
    assert told == ["transaction", ("write", "a"), ("write", "b"), "commit"]
    assert await database.table("t").keys() == ["a", "b"]
    assert await database.table("u").count() == 1


async def test_an_exception_undoes_all_and_goes_on_unchanged(database: Database, told: list[Any]) -> None:
    raised = ValueError("mine")

    async def fail() -> None:
        async with database.transaction() as held:
            await held.table("t").add({"id": "a"})
            raise raised

    with pytest.raises(ValueError, match="mine") as caught:
        await fail()
    assert caught.value is raised
    assert told == ["transaction", ("rollback", "ValueError")]
    assert await database.table("t").count() == 0


async def test_cancellation_undoes_all(database: Database, told: list[Any]) -> None:
    with trio.CancelScope() as scope:
        async with database.transaction() as held:
            await held.table("t").add({"id": "a"})
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert told == ["transaction", ("rollback", "Cancelled")]
    assert await database.table("t").count() == 0


async def test_cancellation_in_time_is_no_commit(database: Database) -> None:
    with trio.CancelScope() as scope:
        async with database.transaction() as held:
            await held.table("t").add({"id": "a"})
            scope.cancel()
    assert scope.cancelled_caught
    assert await database.table("t").count() == 0


async def test_a_failure_spoils_the_whole_even_where_it_was_caught(database: Database, told: list[Any]) -> None:
    async def spoil() -> None:
        async with database.transaction() as held:
            table = held.table("t")
            await table.add({"id": "a"})
            assert await code(table.add, {"id": "a"}) == "CONFLICT"
            await table.add({"id": "b"})

    assert await code(spoil) == "CONFLICT"
    assert told == ["transaction", ("rollback", "DatabaseError")]
    assert await database.table("t").count() == 0


async def test_a_call_that_was_cancelled_half_done_spoils_the_whole(database: Database) -> None:
    async def spoil() -> None:
        async with database.transaction() as held:
            with trio.CancelScope() as scope:
                scope.cancel()
                await held.table("t").add({"id": "a"})

    with pytest.raises(DatabaseError, match="half done"):
        await spoil()
    assert await database.table("t").count() == 0


async def test_others_wait_for_its_end(database: Database) -> None:
    order: list[str] = []

    async def other() -> None:
        await database.table("t").add({"id": "other"})
        order.append("other")

    async with trio.open_nursery() as nursery:
        async with database.transaction() as held:
            nursery.start_soon(other)
            await trio.testing.wait_all_tasks_blocked()
            assert await held.table("t").keys() == []
            await held.table("t").add({"id": "mine"})
            order.append("mine")
    assert order == ["mine", "other"]
    assert await database.table("t").keys() == ["mine", "other"]


async def test_from_within_the_database_itself_is_refused(database: Database) -> None:
    """Waiting for the end of the transaction there would be waiting for oneself."""
    async with database.transaction() as held:
        await held.table("t").add({"id": "a"})
        assert await code(database.table("t").count) == "CONFLICT"
        assert await code(database.open) == "CONFLICT"
        assert await code(database.close) == "CONFLICT"
        assert await code(database.transaction().__aenter__) == "CONFLICT"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(code, database.table("t").count)
    assert await database.table("t").count() == 1


async def test_after_its_end_its_tables_are_refused(database: Database) -> None:
    async with database.transaction() as held:
        table = held.table("t")
    assert await code(table.count) == "CONFLICT"
    with pytest.raises(DatabaseError) as caught:
        held.table("t")
    assert caught.value.code == "CONFLICT"


async def test_an_unknown_table_is_named(database: Database) -> None:
    async with database.transaction() as held:
        with pytest.raises(DatabaseError) as caught:
            held.table("q")
        assert caught.value.code == "NOT_FOUND"
        await held.table("t").add({"id": "a"})
    assert await database.table("t").count() == 1  # nothing was done to it


async def test_two_databases_can_be_held_at_once(tree: Tree, database: Database) -> None:
    another = Database(tree, memory_driver(), TABLES)
    async with database.transaction() as one, another.transaction() as other:
        await one.table("t").add({"id": "a"})
        await other.table("t").add({"id": "a"})
    assert await database.table("t").count() == await another.table("t").count() == 1


async def test_closing_a_database_ends_the_transaction_of_somebody_else(database: Database) -> None:
    holding = trio.Event()
    codes: list[str] = []

    async def hold() -> None:
        try:
            async with database.transaction() as held:
                await held.table("t").add({"id": "a"})
                holding.set()
                with trio.CancelScope(shield=True):
                    while not database.closed:
                        await trio.lowlevel.checkpoint()
                await held.table("t").add({"id": "b"})
        except DatabaseError as error:
            codes.append(error.code)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold)
        await holding.wait()
        await database.close()
    assert codes == ["CLOSED"]


async def test_a_transaction_that_waits_for_its_turn_can_be_cancelled(database: Database) -> None:
    waiting = trio.CancelScope()

    async def wait() -> None:
        with waiting:
            async with database.transaction():
                pytest.fail("it was not its turn")

    async with trio.open_nursery() as nursery:
        async with database.transaction() as held:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            waiting.cancel()
            await trio.testing.wait_all_tasks_blocked()
            assert waiting.cancelled_caught
            await held.table("t").add({"id": "a"})
    assert await database.table("t").count() == 1


# -------------------------------------------------------------------- who waits for whom


async def test_two_plain_tasks_that_hold_a_database_each_do_not_wait_for_each_other(tree: Tree) -> None:
    first, second = Database(tree, memory_driver(), TABLES, name="a"), Database(tree, memory_driver(), TABLES, name="b")
    paths: list[list[str]] = []
    done: list[str] = []

    async def move(source: Database, target: Database) -> None:
        async with source.transaction() as held:
            await held.table("t").add({"id": source.name})
            await trio.testing.wait_all_tasks_blocked()
            try:
                await target.table("t").count()
            except ActorDeadlock as error:
                paths.append(error.path)
        done.append(source.name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(move, first, second)
        nursery.start_soon(move, second, first)
    a, b = ([f"transaction on /databases/{name}", f"/databases/{name}"] for name in "ab")
    assert paths in ([[a[0], b[1], b[0], a[1], a[0]]], [[b[0], a[1], a[0], b[1], b[0]]])
    assert set(done) == {"a", "b"}
    assert tree.snapshot().waits == ()


class Count(Request[int], frozen=True):
    """How many rows there are."""


async def test_a_plain_task_that_holds_a_database_cannot_ask_whom_it_keeps_waiting(
    database: Database, tree: Tree
) -> None:
    class Reader(Actor):
        @handles(Count)
        async def count(self, message: Count) -> int:
            return await database.table("t").count()

    reader = tree.spawn(Reader(), "reader")
    async with database.transaction():
        assert current_node() is not None
        with pytest.raises(ActorDeadlock) as caught:
            await reader.ask(Count())
    assert caught.value.path == ["/reader", database.ref.path, f"transaction on {database.ref.path}", "/reader"]
    assert current_node() is None
    assert await reader.ask(Count()) == 0


async def test_work_of_an_actor_waits_its_turn_while_other_work_of_it_holds_the_database(
    database: Database, tree: Tree
) -> None:
    counted: list[int] = []
    held, done = trio.Event(), trio.Event()

    class Busy(Actor):
        async def on_start(self) -> None:
            self.start_soon(self.store)
            self.start_soon(self.count)

        async def store(self) -> None:
            async with database.transaction() as transaction:
                held.set()
                await trio.testing.wait_all_tasks_blocked()
                await transaction.table("t").add({"id": "a"})

        async def count(self) -> None:
            await held.wait()
            counted.append(await database.table("t").count())
            done.set()

    busy = tree.spawn(Busy(), "busy")
    await done.wait()
    assert counted == [1]
    assert busy.alive


async def test_whoever_waits_for_the_work_of_a_holder_waits_for_its_transaction(database: Database, tree: Tree) -> None:
    """The work asks, within its transaction, an actor that waits for the work to end."""
    refused: list[list[str]] = []

    class Busy(Actor):
        async def on_start(self) -> None:
            self.start_soon(self.store)

        async def store(self) -> None:
            async with database.transaction():
                await trio.testing.wait_all_tasks_blocked()
                try:
                    await watcher.ask(Count())
                except ActorDeadlock as error:
                    refused.append(error.path)
            self.end()

    class Watcher(Actor):
        @handles(Count)
        async def count(self, message: Count) -> int:
            await busy.join()
            return 0

    watcher, busy = tree.spawn(Watcher(), "watcher"), tree.spawn(Busy(), "busy")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watcher.ask, Count())
    assert refused == [["/busy", "/watcher", "/busy"]]


async def test_a_task_that_was_started_within_but_lives_elsewhere_waits_for_the_end(database: Database) -> None:
    counted: list[int] = []

    async def count() -> None:
        counted.append(await database.table("t").count())

    async with trio.open_nursery() as nursery:
        async with database.transaction() as held:
            nursery.start_soon(count)
            await trio.testing.wait_all_tasks_blocked()
            assert counted == []
            await held.table("t").add({"id": "a"})
    assert counted == [1]
