"""Odd names and values: each is stored as it is and found again, or refused by name; no statement is ever broken."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.database import Database, Table, memory_driver, sqlite_driver
from greenroom.actors.database.sqlite import SqliteStorage
from greenroom.actors.database.sqlite.names import index_name, physical
from greenroom.protocol.errors import DatabaseError
from greenroom.runtime.tree import Tree
from tests.database.conftest import Shop

ODD = [
    "select",
    '"',
    '""',
    "'",
    "a' OR 1=1",
    'users"; DROP TABLE t; --',
    "[x]",
    "`x`",
    "?",
    ":x",
    "%s",
    "a.b",
    " ",
    "\n",
    "a\0b",
    "\0",
    "\U0001f600",
    "e\u0301",
    "x" * 128,
    "sqlite_master",
    "SQLITE_x",
    "_metadata",
    "_x",
    "^",
    "^.",
    "^.x",
    "^0",
    "rowid",
    "oid",
    "Name",
    "name",
    "NAME",
    "É",
    "é",
    "__proto__",
    "constructor",
    "idx_5_users_4_name",
    "{",
    "{0}",
    "-- x",
    "/* x */",
]


@pytest.mark.case("reports/database", 1)
@pytest.mark.parametrize("file", [False, True])
async def test_every_name_is_a_plain_name(tree: Tree, tmp_path: Any, file: bool) -> None:
    tables: Any = {name: {"columns": dict.fromkeys(ODD, "string")} for name in ODD}
    primary = dict.fromkeys(ODD, "select")
    indexes = {name: [[other] for other in ODD if other != "select"] for name in ODD[:6]}
    for _ in range(2 if file else 1):
        driver = sqlite_driver(tmp_path / "file") if file else memory_driver()
        database = Database(tree, driver, tables, primary=primary, indexes=indexes, version=1)
        for name in ODD:
            await _use(database.table(name))
        await database.close()


async def _use(table: Table) -> None:
    """Every operation, with the names as columns, in conditions and in order, and as values."""
    row = {name: f"{name}\0{table.name}" for name in ODD}
    key = await table.set(row)
    assert await table.get(key) == row
    for name in {table.name, '"'}:
        query = {
            "conditions": [{"column": name, "operator": "equals", "values": [row[name]]}],
            "order": [{"column": name, "direction": "descending"}],
        }
        assert await table.records(query) == [row]
        assert await table.count({"conditions": [{"column": name, "operator": "starts", "values": [name]}]}) == 1
        assert await table.aggregate("sum", name) is None
    assert await table.update(key, {"'": "changed"})
    assert await table.records() == [{**row, "'": "changed"}]
    assert await table.count() == 1


@pytest.mark.parametrize("value", ODD)
async def test_every_value_is_a_plain_value(shop: Shop, value: str) -> None:
    await shop.table("set", row={"id": value, "name": value, "tag": value})
    assert await shop.row(value) == {"id": value, "name": value, "tag": value}
    for operator in ("equals", "any", "from", "starts", "ends"):
        assert value in {row["id"] for row in await _found(shop, operator, [value])}
    assert {row["id"] for row in await _found(shop, "none", [value])} == {"a", "b", "c", "d"}
    assert await shop.table("remove", key=value) == {"removed": True}
    assert await shop.ids() == "abcd"


async def _found(shop: Shop, operator: str, values: list[Any]) -> list[Any]:
    condition = {"column": "name", "operator": operator, "values": values}
    rows: list[Any] = (await shop.table("records", query={"conditions": [condition]}))["rows"]
    return rows


@pytest.mark.parametrize(
    "query",
    [
        {"conditions": [{"column": "id", "operator": "equals; DROP TABLE p", "values": [1]}]},
        {"conditions": [{"column": "id", "operator": "equals", "values": [1], "connector": "or 1=1 --"}]},
        {"order": [{"column": "id", "direction": "ascending; DROP TABLE p"}]},
        {"limit": "1; DROP TABLE p"},
        {"offset": "0 UNION SELECT 1"},
    ],
)
async def test_words_of_a_query_are_the_known_ones(shop: Shop, query: Any) -> None:
    assert (await shop.refused("records", table="p", query=query)).code == "TOOL"
    assert await shop.ids() == "abcd"


async def test_odd_columns_in_a_query_are_unknown_ones(shop: Shop) -> None:
    for name in ODD:
        if name in ("name", "oid", "rowid"):
            continue
        assert await shop.ids((name, "absent", [])) == "abcd"
        assert await shop.ids((name, "equals", [1])) == ""
        assert await shop.ids(order=[{"column": name, "direction": "descending"}]) == "abcd"
        assert await shop.table("aggregate", function="sum", column=name) == {}
    assert await shop.ids(("rowid", "present", [])) == ""  # SQLite's own name for something else


@given(st.lists(st.text(max_size=5) | st.text("aA^._0\0sqlite_", max_size=8), min_size=2, max_size=2, unique=True))
def test_different_names_are_different_to_sqlite(names: list[str]) -> None:
    def as_sqlite_has_it(name: str) -> str:
        return "".join(letter.lower() if letter.isascii() else letter for letter in physical(name))

    one, other = map(as_sqlite_has_it, names)
    assert one != other
    assert not one.startswith(("sqlite_", "_"))
    assert "\0" not in one
    assert index_name(names[0], [names[1]]).strip('"').replace('""', '"') not in map(physical, names)
    assert index_name(names[0], names) != index_name(names[1], names)


@pytest.mark.parametrize(("unit", "size"), [("a", 100_000_000), ("\U0001f600", 8_000_000)])
async def test_a_value_of_100_megabytes_is_stored_right(tree: Tree, unit: str, size: int) -> None:
    value = unit * (size // len(unit.encode()))
    database = Database(tree, memory_driver(), {"t": {"columns": {"id": "string", "v": "string"}}})
    table = database.table("t")
    await table.add({"id": "a", "v": value})
    row = await table.resolve("a")
    assert row["v"] == value
    assert await table.count({"conditions": [{"column": "v", "operator": "ends", "values": [unit * 2]}]}) == 1


async def test_a_value_that_sqlite_cannot_hold_is_refused_by_what_it_is(tree: Tree) -> None:
    storage = SqliteStorage()
    table = Database(tree, storage, {"t": {"columns": {"id": "string", "v": "string"}}}).table("t")
    await table.add({"id": "a", "v": "b"})
    storage.database.conn.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)  # from a thousand million
    with pytest.raises(DatabaseError) as caught:
        await table.add([{"id": "b", "v": "x"}, {"id": "c", "v": "a" * 1_000_001}])
    assert caught.value.code == "VALIDATION"
    assert "larger than can be stored" in caught.value.message
    assert await table.keys() == ["a", "b"]


async def test_a_name_has_to_be_text_that_can_be_stored(tree: Tree) -> None:
    wrong: list[Any] = [
        {"": {"columns": {"id": "string"}}},
        {"\ud800": {"columns": {"id": "string"}}},
        {"t": {"columns": {"id": "string", "\udfff": "string"}}},
        {"t": {"columns": {"id": "string", "": "string"}}},
        {"t": {"columns": {"id": "string", 5: "string"}}},
        {"t": {"columns": {"id": "string", **{f"c{index}": "string" for index in range(1000)}}}},
        {"t": {"columns": ["id"]}},
        {"t": {}},
        {"t": {"columns": {"id": {"type": "string", "optional": "yes"}}}},
    ]
    for tables in wrong:
        with pytest.raises(DatabaseError) as caught:
            Database(tree, memory_driver(), tables)
        assert caught.value.code == "VALIDATION"
    most = {"t": {"columns": {"id": "string", **{f"c{index}": "string" for index in range(999)}}}}
    table = Database(tree, memory_driver(), most).table("t")
    row = {name: name for name in most["t"]["columns"]}
    assert await table.set(row) == "id"
    assert await table.records() == [row]
