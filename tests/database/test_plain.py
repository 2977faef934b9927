"""Drivers of a program's own: a database over one, and the battery that tries it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import trio

from greenroom.actors.database import Database, check_driver
from greenroom.protocol.database import Key, Row
from greenroom.protocol.errors import DatabaseError
from greenroom.runtime.tree import Tree
from tests.database.dictdriver import DictDriver

OPTIONAL = {"n": {"type": "integer", "optional": True}, "ok": {"type": "boolean", "optional": True}}
TABLES: Any = {"t": {"columns": {"id": "string", **OPTIONAL}}}


def test_a_driver_that_keeps_to_the_rules_passes() -> None:
    check_driver(DictDriver)


class NoCopyIn(DictDriver):
    def write(self, table: str, key: Key, row: Row) -> None:
        self.tables[table][isinstance(key, str), key] = row


class NoCopyOut(DictDriver):
    def read(self, table: str, key: Key) -> Row | None:
        return self.tables[table].get((isinstance(key, str), key))


class Merging(DictDriver):
    def write(self, table: str, key: Key, row: Row) -> None:
        super().write(table, key, {**(self.read(table, key) or {}), **row})


class Replacing(DictDriver):
    def insert(self, table: str, key: Key, row: Row) -> bool:
        self.write(table, key, row)
        return True


class Hasty(DictDriver):
    """It looks and then writes; threads meet in between."""

    together = threading.Barrier(8)

    def insert(self, table: str, key: Key, row: Row) -> bool:
        there = self.read(table, key) is not None
        if threading.current_thread() is not threading.main_thread():
            self.together.wait()
        if not there:
            self.write(table, key, row)
        return not there


class Unsorted(DictDriver):
    def keys(self, table: str) -> Iterable[Key]:
        return [key for _, key in self.tables[table]]


class ByCodePoint(DictDriver):
    def scan(self, table: str) -> Iterable[Row]:
        return [dict(self.tables[table][key]) for key in sorted(self.tables[table])]


class ClearsAll(DictDriver):
    def clear(self, table: str) -> None:
        for rows in self.tables.values():
            rows.clear()


class Loose(DictDriver):
    def read(self, table: str, key: Key) -> Row | None:
        return super().read(table, key) or super().read(table, str(key))


class NoWayBack(DictDriver):
    def snapshot(self) -> Callable[[], None]:
        return lambda: None


@pytest.mark.parametrize(
    ("driver", "rule"),
    [
        (NoCopyIn, "copied"),
        (NoCopyOut, "copied"),
        (Merging, "whole row"),
        (Replacing, "once"),
        (Hasty, "simultaneous"),
        (Unsorted, "ascending"),
        (ByCodePoint, "by key"),
        (ClearsAll, "leaves the others alone"),
        (Loose, "by type"),
        (NoWayBack, "puts everything back"),
    ],
)
def test_a_driver_that_breaks_a_rule_is_told_which(driver: Callable[[], DictDriver], rule: str) -> None:
    with pytest.raises(DatabaseError, match=rule) as caught:
        check_driver(driver)
    assert caught.value.code == "CONFORMANCE"
    assert rule in caught.value.context["rule"]


async def test_a_database_over_a_driver_is_like_any_other(tree: Tree) -> None:
    driver = DictDriver()
    first = Database(tree, driver, TABLES, version=1)
    table = first.table("t")
    assert await table.add([{"id": "b", "n": "2"}, {"id": "a", "n": 1, "ok": 1}]) == ["b", "a"]
    assert await table.records({"conditions": [{"column": "n", "operator": "from", "values": [2]}]}) == [
        {"id": "b", "n": 2}
    ]
    assert await table.aggregate("sum", "n") == 3
    assert await table.aggregate("maximum", "n") == 2
    with pytest.raises(DatabaseError) as caught:
        await table.add([{"id": "c"}, {"id": "a"}, {"id": "d"}])
    assert caught.value.code == "CONFLICT"
    assert await table.keys() == ["a", "b", "c"]
    with pytest.raises(DatabaseError):
        await table.add([{"id": "d"}, {"id": "a"}], atomic=True)
    assert await table.keys() == ["a", "b", "c"]
    assert [row["id"] async for row in table.scan()] == ["a", "b", "c"]
    with pytest.raises(DatabaseError) as caught:
        await first.backup("somewhere")
    assert caught.value.code == "DRIVER"
    await first.close()
    again = Database(tree, driver, TABLES).table("t")
    assert await again.count() == 3
    await again.clear()
    assert await again.count() == 0


async def test_a_transaction_over_a_driver_is_undone_by_its_snapshot(tree: Tree) -> None:
    database = Database(tree, DictDriver(), TABLES)
    table = database.table("t")
    await table.add({"id": "a", "n": 1})
    with trio.CancelScope() as scope:
        async with database.transaction() as held:
            await held.table("t").update("a", {"n": 2})
            await held.table("t").add({"id": "b"})
            scope.cancel()
            await trio.sleep_forever()
    assert await table.records() == [{"id": "a", "n": 1}]
    async with database.transaction() as held:
        await held.table("t").remove("a")
    assert await table.count() == 0


async def test_a_row_that_fits_no_more_is_seen_by_aggregates_only(tree: Tree) -> None:
    driver = DictDriver()
    database = Database(tree, driver, TABLES)
    table = database.table("t")
    await table.add([{"id": "a", "n": 1}, {"id": "b", "n": 2}])
    strange: list[Any] = [
        {"id": "c", "n": 3.5},
        {"id": "d", "n": 4, "ok": 7},
        {"id": "e", "n": None},
        {"id": "f", "n": 5, "ok": "x"},
    ]
    for row in strange:
        driver.write("t", row["id"], row)
    assert [row["id"] for row in await table.records()] == ["a", "b"]
    assert await table.count() == 2
    assert await table.get("d") is None
    assert await table.aggregate("sum", "n") == 1 + 2 + 3.5 + 4 + 5
    assert await table.aggregate("count", "n") == 6


async def test_what_a_driver_raises_is_its_failure(tree: Tree) -> None:
    class Broken(DictDriver):
        def read(self, table: str, key: Key) -> Row | None:
            raise OSError("the cable")

    table = Database(tree, Broken(), TABLES).table("t")
    with pytest.raises(DatabaseError, match="the cable") as caught:
        await table.get("a")
    assert caught.value.code == "DRIVER"
    assert await table.count() == 0
