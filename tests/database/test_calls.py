"""How calls share a database: in turn, ended early or by a deadline, interrupted, and in spite of other programs."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.database import Database, memory_driver, sqlite_driver
from greenroom.actors.database.sqlite import storage
from greenroom.actors.toolbox.database import database_tool
from greenroom.protocol.errors import ActorError, DatabaseError, ToolError
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.messages import Request
from greenroom.runtime.tree import Tree, run_tree

TABLES: Any = {"t": {"columns": {"id": "string", "text": {"type": "string", "optional": True}}}}

SLOW = {"conditions": [{"column": "text", "operator": "like", "values": [f"%{'a_' * 200}c%"]}]}
"""A query that takes half a minute over one row of `a`s."""


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": f"{index:04}"} for index in range(count)]


class At:
    """A generator of keys that does something at one of its calls, in the worker thread."""

    def __init__(self, call: int, act: Callable[[], object]) -> None:
        self.calls = 0
        self.call = call
        self.act = act

    def __call__(self) -> str:
        self.calls += 1
        if self.calls == self.call:
            self.act()
        return f"{self.calls:04}"


def in_trio(function: Callable[[], object]) -> None:
    """Run it in trio's thread, and let trio draw every consequence before the worker thread goes on."""
    trio.from_thread.run_sync(function)
    for _ in range(3):
        trio.from_thread.run_sync(lambda: None)


# -------------------------------------------------------------------- ended early


async def test_a_call_that_is_cancelled_before_its_turn_never_begins(tree: Tree) -> None:
    database = Database(tree, memory_driver(), TABLES)
    table = database.table("t")
    waiting = trio.CancelScope()

    async def second() -> None:
        with waiting:
            await table.add({"id": "second"})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(table.add, rows(2000))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(second)
        await trio.testing.wait_all_tasks_blocked()
        waiting.cancel()
    assert waiting.cancelled_caught
    assert await table.count() == 2000


async def test_a_cancelled_list_stops_between_two_rows_and_what_it_stored_stays(tree: Tree) -> None:
    scope = trio.CancelScope()
    database = Database(tree, memory_driver(), TABLES, generator=At(3, lambda: in_trio(scope.cancel)))
    written: list[str] = []
    database.table("t").emitter.on("write", written.append)
    with scope:
        await database.table("t").add([{} for _ in range(10)])
    assert scope.cancelled_caught
    assert await database.table("t").keys() == ["0001", "0002", "0003"]
    assert written == ["0001", "0002", "0003"]


async def test_an_atomic_list_that_is_cancelled_stores_nothing(tree: Tree) -> None:
    scope = trio.CancelScope()
    database = Database(tree, memory_driver(), TABLES, generator=At(3, lambda: in_trio(scope.cancel)))
    with scope:
        await database.table("t").add([{} for _ in range(10)], atomic=True)
    assert scope.cancelled_caught
    assert await database.table("t").count() == 0


async def test_a_call_that_was_done_when_it_was_cancelled_says_so(tree: Tree) -> None:
    """Else its caller would not know whether the row is there."""
    scope = trio.CancelScope()
    database = Database(tree, memory_driver(), TABLES, generator=At(2, lambda: in_trio(scope.cancel)))
    with scope:
        keys = await database.table("t").add([{}, {}])  # cancelled at the last row, which is stored all the same
        assert keys == ["0001", "0002"]
        await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught


async def test_a_single_row_is_not_stored_if_its_call_was_cancelled_in_time(tree: Tree) -> None:
    scope = trio.CancelScope()
    database = Database(tree, memory_driver(), TABLES, generator=At(1, lambda: in_trio(scope.cancel)))
    with scope:
        await database.table("t").add({})
    assert scope.cancelled_caught
    assert await database.table("t").count() == 0


async def test_a_deadline_in_the_middle_of_a_list_keeps_what_was_stored(
    tree: Tree, mock_clock: trio.testing.MockClock
) -> None:
    generator = At(3, lambda: in_trio(lambda: mock_clock.jump(2)))
    tool = database_tool(tree, generator=generator, timeout_ms=1000)
    await tool.execute({"operation": "create", "id": "d", "tables": TABLES})
    with pytest.raises(ToolError) as caught:
        await tool.execute({"operation": "add", "id": "d", "table": "t", "row": [{} for _ in range(10)]})
    assert caught.value.context == {"code": "ABORTED", "operation": "add", "id": "d", "table": "t"}
    assert await tool.execute({"operation": "count", "id": "d", "table": "t"}) == {"count": 3}


async def test_a_query_is_interrupted_by_its_deadline(tree: Tree, autojump_clock: trio.testing.MockClock) -> None:
    """The clock jumps as soon as everything waits for the thread; only an interruption brings that back soon."""
    database = Database(tree, memory_driver(), TABLES)
    await database.table("t").add({"id": "a", "text": "a" * 1_000_000})
    tool = database_tool(tree, databases={"d": database}, timeout_ms=1000)
    for operation in ("records", "count"):
        begun = time.monotonic()
        with pytest.raises(ToolError) as caught:
            await tool.execute({"operation": operation, "id": "d", "table": "t", "query": SLOW})
        assert caught.value.context["code"] == "ABORTED"
        assert time.monotonic() - begun < 5
    assert await tool.execute({"operation": "get", "id": "d", "table": "t", "key": "zz"}) == {}


async def test_a_query_over_many_rows_is_interrupted_between_them(tree: Tree) -> None:
    database = Database(tree, memory_driver(), TABLES)
    await database.table("t").add([{"id": f"{index}", "text": "x" * 20} for index in range(20_000)])
    many = {
        "conditions": [
            {"column": "text", "operator": "like", "values": [f"%{i}%"], "connector": "or"} for i in range(200)
        ]
    }
    begun = time.monotonic()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(database.table("t").count, many)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert time.monotonic() - begun < 1
    assert await database.table("t").count() == 20_000


async def test_closing_ends_what_runs_and_refuses_what_waits(tree: Tree) -> None:
    database = Database(tree, memory_driver(), TABLES)
    table = database.table("t")
    await table.add({"id": "a", "text": "a" * 1_000_000})
    codes: list[str] = []

    async def refused(call: Callable[..., Any], *args: Any) -> None:
        with pytest.raises(DatabaseError) as caught:
            await call(*args)
        codes.append(caught.value.code)

    begun = time.monotonic()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(refused, table.records, SLOW)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(refused, table.add, {"id": "b"})
        nursery.start_soon(refused, table.count)
        await trio.testing.wait_all_tasks_blocked()
        await database.close()
    assert codes == ["CLOSED"] * 3
    assert time.monotonic() - begun < 5
    assert database.closed
    calls: list[Callable[[], Any]] = [lambda: table.get("a"), database.open, table.keys, lambda: table.add({"id": "c"})]
    for call in calls:
        await refused(call)
    with pytest.raises(DatabaseError):
        database.table("t")
    await database.close()


async def test_nothing_is_left_of_a_database_that_a_cancelled_tree_takes_along(tmp_path: Path) -> None:
    with trio.CancelScope() as scope:
        async with run_tree() as tree:
            database = Database(tree, sqlite_driver(tmp_path / "file"), TABLES)
            await database.table("t").add({"id": "a", "text": "a" * 1_000_000})
            async with trio.open_nursery() as nursery:
                nursery.start_soon(database.table("t").records, SLOW)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
    assert scope.cancelled_caught
    assert _entries(tmp_path) == ["file"]  # without a log: it was closed
    with closing(sqlite3.connect(tmp_path / "file")) as connection:
        assert connection.execute("SELECT id FROM t").fetchall() == [("a",)]


# -------------------------------------------------------------------- side by side


async def test_the_storage_is_opened_once_for_all_who_wait(tree: Tree, tmp_path: Path) -> None:
    told: list[str] = []
    on = {event: lambda event=event: told.append(event) for event in ("open", "close")}
    database = Database(tree, sqlite_driver(tmp_path / "file"), TABLES, on=on)
    assert _entries(tmp_path) == []
    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(database.open)
    assert told == ["open"]
    await database.close()
    assert told == ["open", "close"]


async def test_calls_happen_in_the_order_in_which_they_were_made(tree: Tree) -> None:
    database = Database(tree, memory_driver(), TABLES)
    table = database.table("t")
    written: list[str] = []
    table.emitter.on("write", written.append)
    async with trio.open_nursery() as nursery:
        for index in range(20):
            nursery.start_soon(table.add, [{"id": f"{index}-1"}, {"id": f"{index}-2"}])
            await trio.testing.wait_all_tasks_blocked()
    assert written == [f"{index}-{part}" for index in range(20) for part in (1, 2)]


async def test_one_of_many_who_add_the_same_key_succeeds(tree: Tree) -> None:
    database = Database(tree, memory_driver(), TABLES)
    codes: list[str] = []

    async def add() -> None:
        try:
            await database.table("t").add({"id": "a"})
        except DatabaseError as error:
            codes.append(error.code)

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(add)
    assert codes == ["CONFLICT"] * 19


async def test_two_databases_write_one_file_at_a_time(tree: Tree, tmp_path: Path) -> None:
    one, other = (Database(tree, sqlite_driver(tmp_path / "file"), TABLES, name=name) for name in ("one", "other"))

    async def write(database: Database) -> None:
        for batch in range(20):
            await database.table("t").add([{"id": f"{database.name} {batch} {index}"} for index in range(20)])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write, one)
        nursery.start_soon(write, other)
    assert await one.table("t").count() == await other.table("t").count() == 800


async def test_a_file_that_another_program_holds_is_waited_for_and_then_given_up(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(tree, sqlite_driver(tmp_path / "file"), TABLES)
    table = database.table("t")
    await table.add({"id": "a"})
    with closing(sqlite3.connect(tmp_path / "file", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert await table.count() == 1  # reading needs no lock
        async with trio.open_nursery() as nursery:
            nursery.start_soon(table.add, {"id": "b"})
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()  # which ends the waiting
        monkeypatch.setattr(storage, "PATIENCE", 0.02)
        with pytest.raises(DatabaseError) as caught:
            await table.add({"id": "c"})
        assert (caught.value.code, caught.value.context) == ("DRIVER", {"retryable": True})
        connection.execute("ROLLBACK")
    await table.add({"id": "c"})
    assert await table.keys() == ["a", "c"]


async def test_a_listener_that_raises_disturbs_nobody(tree: Tree) -> None:
    heard: list[Any] = []

    def raises(*told: Any) -> None:
        raise RuntimeError("listener")

    database = Database(
        tree, memory_driver(), TABLES, on={"open": raises}, error=lambda error, event: heard.append((str(error), event))
    )
    table = database.table("t")
    table.emitter.on("write", raises)
    table.emitter.on("clear", lambda: heard.append("clear"))
    table.emitter.on("remove", heard.append)
    assert await table.add({"id": "a"}) == "a"
    assert await table.remove(["a", "zz"]) == [True, False]
    await table.clear()
    assert heard == [("listener", "open"), ("listener", "write"), "a", "clear"]


async def test_a_wait_that_would_close_a_circle_is_refused(tree: Tree) -> None:
    """The owner of a transaction asks somebody who would have to wait for that transaction."""

    class Look(Request[int], frozen=True):
        pass

    class Reader(Actor):
        @handles(Look)
        async def look(self, message: Look) -> int:
            return await database.table("t").count()

    class Write(Request[str], frozen=True):
        pass

    class Writer(Actor):
        @handles(Write)
        async def write(self, message: Write) -> str:
            async with database.transaction() as held:
                await held.table("t").add({"id": "a"})
                try:
                    await reader.ask(Look())
                except ActorError as error:
                    return error.code
            return "none"

    database = Database(tree, memory_driver(), TABLES)
    reader, writer = tree.spawn(Reader(), "reader"), tree.spawn(Writer(), "writer")
    assert await writer.ask(Write()) == "DEADLOCK"
    assert tree.snapshot().waits == ()


async def test_a_scan_goes_through_all_rows_in_key_order(tree: Tree) -> None:
    database = Database(tree, memory_driver(), TABLES)
    table = database.table("t")
    await table.add(list(reversed(rows(1203))))
    assert [row["id"] async for row in table.scan()] == [row["id"] for row in rows(1203)]
    late = {"conditions": [{"column": "id", "operator": "above", "values": ["0600"]}]}
    page = {**late, "order": [{"column": "id", "direction": "descending"}], "limit": 550, "offset": 2}
    assert [row["id"] async for row in table.scan(page)] == [f"{index:04}" for index in range(603, 1153)]
    assert [row async for row in table.scan({"limit": 0})] == []


def _entries(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())
