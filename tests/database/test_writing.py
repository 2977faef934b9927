"""What is stored: how values are read, keys, lists that fail half way, changes and removal."""

from __future__ import annotations

import math
from itertools import count
from typing import Any

import pytest

from greenroom.actors.database import Database, memory_driver
from greenroom.actors.toolbox.database import database_tool
from greenroom.protocol.errors import DatabaseError
from greenroom.protocol.forms import NumberField, parse_value
from greenroom.runtime.tree import Tree
from tests.database.conftest import COLUMNS, Shop


def case(number: int) -> pytest.MarkDecorator:
    return pytest.mark.case("database", number)


@case(26)
async def test_values_are_read_for_their_columns(shop: Shop) -> None:
    row = {"id": 5, "name": 6, "extra": 1, "price": "1e3", "n": "7.0", "ok": "1"}
    assert await shop.table("add", row=row) == {"key": "5"}
    stored = await shop.row("5")
    assert stored == {"id": "5", "name": "6", "price": 1000, "n": 7, "ok": True}
    assert stored["ok"] is True
    assert await shop.table("get", key=5) == {}


@case(27)
@pytest.mark.parametrize(
    "wrong",
    [
        *({"price": value} for value in (None, "abc", "", True)),
        {"n": 1.5},
        {"ok": "yes"},
        {"ok": 2},
        {"name": True},
        {"name": None},
        {},
    ],
)
async def test_what_is_no_value_of_a_column_is_refused(shop: Shop, wrong: dict[str, Any]) -> None:
    row = wrong if "name" in wrong or not wrong else {"name": "x", **wrong}
    error = await shop.refused("add", table="p", row=row)
    assert error.context == {"code": "VALIDATION", "operation": "add", "id": "shop", "table": "p"}
    column = next(iter(wrong), "name")
    assert f"column '{column}'" in error.message
    assert await shop.ids() == "abcd"


READ: list[tuple[str, Any, Any]] = [
    ("string", 5, "5"),
    ("string", 1.0, "1"),
    ("string", 1e21, "1e+21"),
    ("string", 1e-7, "1e-7"),
    ("string", -0.0, "0"),
    ("string", "a\0b", "a\0b"),
    ("number", " 42 ", 42),
    ("number", "1e3", 1000),
    ("number", ".5", 0.5),
    ("number", "5.", 5),
    ("number", "+5", 5),
    ("number", "0x10", 16),
    ("number", "\ufeff7", 7),
    ("integer", 7.0, 7),
    ("integer", "7.0", 7),
    ("integer", 2**63 - 1, 2**63 - 1),
    ("integer", str(-(2**63)), -(2**63)),
    ("integer", "9007199254740993", 9007199254740993),
    ("boolean", "true", True),
    ("boolean", "0", False),
    ("boolean", 1.0, True),
]
REFUSED: list[tuple[str, Any]] = [
    ("string", [1]),
    ("string", "\ud800"),
    ("string", 2**53 + 1),
    ("number", "1_000"),
    ("number", "\u0661"),
    ("number", "inf"),
    ("number", math.inf),
    ("number", math.nan),
    ("number", 2**53 + 1),
    ("number", 10**400),
    ("integer", 2**63),
    ("integer", "9223372036854775808"),
    ("integer", 1e19),
    ("integer", "1" * 5000),
    ("integer", True),
    ("boolean", "TRUE"),
    ("boolean", " 1 "),
    ("boolean", "yes"),
    ("boolean", {"a": 1}),
]


@pytest.fixture
def columns(tree: Tree) -> Database:
    kinds = ("string", "number", "integer", "boolean")
    return Database(
        tree,
        memory_driver(),
        {kind: {"columns": {"id": "string", "v": {"type": kind, "optional": True}}} for kind in kinds},
    )


@pytest.mark.parametrize(("kind", "written", "stored"), READ)
async def test_a_value_is_read_back_as_it_was_meant(columns: Database, kind: str, written: Any, stored: Any) -> None:
    await columns.table(kind).add({"id": "x", "v": written})
    row = await columns.table(kind).resolve("x")
    assert row == {"id": "x", "v": stored}
    assert type(row["v"]) is type(stored)


@pytest.mark.parametrize(("kind", "written"), REFUSED)
async def test_a_value_that_would_be_changed_is_refused(columns: Database, kind: str, written: Any) -> None:
    with pytest.raises(DatabaseError) as caught:
        await columns.table(kind).add({"id": "x", "v": written})
    assert caught.value.code == "VALIDATION"
    assert caught.value.context == {"table": kind, "column": "v"}
    assert await columns.table(kind).count() == 0


@case(28)
async def test_an_empty_list_does_nothing_and_a_flag_is_no_key(shop: Shop) -> None:
    assert await shop.table("add", row=[]) == {"keys": []}
    assert await shop.table("get", key=[]) == {"rows": []}
    assert (await shop.refused("get", table="p", key=True)).code == "TOOL"


@case(29)
async def test_what_a_list_stored_before_it_failed_stays(shop: Shop) -> None:
    rows = [{"id": "b1", "name": "1"}, {"id": "a", "name": "2"}, {"id": "b2", "name": "3"}]
    assert await shop.code("add", row=rows) == "CONFLICT"
    assert await shop.row("b1") == {"id": "b1", "name": "1"}
    assert await shop.row("b2") is None
    assert (await shop.row("a"))["name"] == "Ada"


async def test_an_atomic_list_is_stored_whole_or_not_at_all(tree: Tree) -> None:
    shop = Shop(database_tool(tree, atomic=True))
    await shop.call("create", tables={"p": {"columns": COLUMNS}})
    await shop.table("add", row={"id": "a", "name": "A"})
    for operation in ("add", "set"):
        rows = [{"id": "b", "name": "B"}, {"id": "a"}]
        assert await shop.code(operation, row=rows) == "VALIDATION"
    assert await shop.code("add", row=[{"id": "b", "name": "B"}, {"id": "a", "name": "A"}]) == "CONFLICT"
    assert await shop.ids() == "a"


@case(30)
async def test_set_replaces_the_whole_row(shop: Shop) -> None:
    assert await shop.table("set", row={"id": "a", "name": "x"}) == {"key": "a"}
    assert await shop.row("a") == {"id": "a", "name": "x"}


@case(31)
async def test_the_last_row_of_a_key_stays(shop: Shop) -> None:
    rows = [{"id": "e", "name": "first"}, {"id": "e", "name": "last"}]
    assert await shop.table("set", row=rows) == {"keys": ["e", "e"]}
    assert (await shop.row("e"))["name"] == "last"


@case(32)
async def test_changes_of_a_missing_row_are_not_looked_at(shop: Shop) -> None:
    assert await shop.table("update", key="zz", changes={"price": "abc", "id": "q"}) == {"updated": False}


@case(33)
async def test_a_change_keeps_the_key_and_the_other_cells(shop: Shop) -> None:
    assert await shop.table("update", key="a", changes={"id": "a", "name": "y"}) == {"updated": True}
    assert await shop.row("a") == {"id": "a", "name": "y", "price": 5, "n": 1, "ok": True, "tag": "x"}
    wrong: list[dict[str, Any]] = [{"id": "q"}, {"id": None}, {"price": None}]
    for changes in wrong:
        assert await shop.code("update", key="a", changes=changes) == "VALIDATION"
    for nothing in ({}, {"ghost": 1}):
        assert await shop.table("update", key="a", changes=nothing) == {"updated": True}
    assert (await shop.row("a"))["price"] == 5


async def test_null_takes_an_optional_cell_away_if_that_is_wanted(tree: Tree) -> None:
    shop = Shop(database_tool(tree, clear=True))
    await shop.call("create", tables={"p": {"columns": COLUMNS}})
    await shop.table("add", row={"id": "a", "name": "A", "price": 1, "n": 2})
    assert await shop.table("update", key="a", changes={"price": None}) == {"updated": True}
    assert await shop.row("a") == {"id": "a", "name": "A", "n": 2}
    assert await shop.code("update", key="a", changes={"name": None}) == "VALIDATION"


@case(34)
async def test_lists_of_keys_tell_of_each_key(shop: Shop) -> None:
    assert await shop.table("update", key=["a", "zz"], changes={"n": 9}) == {"updated": [True, False]}
    assert await shop.table("remove", key=["a", "a", "zz"]) == {"removed": [True, False, False]}
    assert await shop.ids() == "bcd"


@case(39)
async def test_a_key_that_fits_no_column_is_not_made_up(tree: Tree) -> None:
    tables = {"p": {"columns": {"id": "integer"}}}
    plain = Shop(database_tool(tree))
    await plain.call("create", tables=tables)
    assert await plain.code("add", row={}) == "VALIDATION"

    numbers = count(1)
    counting = Shop(database_tool(tree, generator=lambda: next(numbers)))
    await counting.call("create", tables=tables)
    assert await counting.table("add", row=[{}, {}]) == {"keys": [1, 2]}


async def test_a_generator_that_raises_refuses_the_row(tree: Tree) -> None:
    def generator() -> str:
        raise RuntimeError("no more names")

    shop = Shop(database_tool(tree, generator=generator))
    await shop.call("create", tables={"p": {"columns": COLUMNS}})
    error = await shop.refused("add", table="p", row={"name": "x"})
    assert error.context["code"] == "VALIDATION"
    assert "no more names" in error.message
    assert await shop.table("add", row={"id": "given", "name": "x"}) == {"key": "given"}


async def test_a_row_without_a_key_gets_one_of_its_own(shop: Shop) -> None:
    keys = (await shop.table("add", row=[{"name": "x"}, {"name": "y"}]))["keys"]
    assert len({*keys}) == 2
    assert all(len(key) == 36 and key[14] == "4" for key in keys)  # a UUID of version 4
    assert (await shop.row(keys[1]))["name"] == "y"
    assert await shop.code("add", row={"id": None, "name": "x"}) == "VALIDATION"


@case(40)
async def test_keys_are_found_by_their_type(empty: Shop) -> None:
    await empty.call("create", tables={"p": {"columns": {"id": "integer"}}})
    assert await empty.table("add", row={"id": "7"}) == {"key": 7}
    assert await empty.table("get", key="7") == {}
    assert await empty.table("get", key=7) == {"row": {"id": 7}}
    assert await empty.table("get", key=7.0) == {"row": {"id": 7}}
    assert await empty.table("get", key=7.5) == {}
    assert await empty.code("add", row={"id": 7}) == "CONFLICT"


@case(42)
async def test_a_boolean_is_no_key(empty: Shop) -> None:
    await empty.call("create", tables={"p": {"columns": {"id": "boolean"}}})
    assert await empty.code("add", row={"id": True}) == "VALIDATION"
    assert await empty.table("get", key=1) == {}


async def test_the_empty_text_is_a_key(shop: Shop) -> None:
    assert await shop.table("add", row={"id": "", "name": "nobody"}) == {"key": ""}
    assert await shop.table("get", key="") == {"row": {"id": "", "name": "nobody"}}


@pytest.mark.parametrize("id", ["integer", "string", "number"])
@pytest.mark.case("reports/database", 2)
async def test_a_long_number_is_kept_to_the_digit_or_refused_with_advice(empty: Shop, id: str) -> None:
    key = 2512292042121000001
    await empty.call("create", tables={"p": {"columns": {"id": id}}})
    query = {"conditions": [{"column": "id", "operator": "equals", "values": [key]}]}
    if id == "integer":
        assert await empty.table("add", row={"id": key}) == {"key": key}
        assert await empty.table("get", key=key) == {"row": {"id": key}}
        assert (await empty.table("records", query=query))["rows"] == [{"id": key}]
        assert await empty.table("get", key=key + 1) == {}
    else:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("add", {"row": {"id": key}}),
            ("get", {"key": key}),
            ("update", {"key": key, "changes": {}}),
            ("remove", {"key": key}),
            ("records", {"query": query}),
        ]
        for operation, fields in calls:
            error = await empty.refused(operation, table="p", **fields)
            assert error.context["code"] == "VALIDATION"
            assert str(key) in error.message
            assert "text" in error.message or "string" in error.message
        assert await empty.table("count") == {"count": 0}


@pytest.mark.case("reports/database", 2)
async def test_a_long_number_as_text_is_a_text_like_any_other(empty: Shop) -> None:
    key = "2512292042121000001"
    await empty.call("create", tables={"p": {"columns": {"id": "string"}}})
    assert await empty.table("add", row={"id": key}) == {"key": key}
    assert await empty.table("get", key=key) == {"row": {"id": key}}
    query = {"conditions": [{"column": "id", "operator": "equals", "values": [key]}]}
    assert (await empty.table("records", query=query))["count"] == 1


@pytest.mark.case("reports/database", 2)
def test_a_form_takes_no_number_whose_digits_it_would_change() -> None:
    field = NumberField(name="n")
    assert parse_value(field, "9007199254740993") is None
    assert parse_value(field, 9007199254740993) is None
    assert parse_value(field, 9007199254740992) == 9007199254740992
