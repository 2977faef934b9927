"""Transactions: all of it or nothing, whoever ends it, and nobody in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.database import Database, json_driver, memory_driver, sqlite_driver
from greenroom.protocol.errors import DatabaseError
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
