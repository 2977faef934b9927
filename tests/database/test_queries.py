"""What a query finds: every operator over cells of every kind, connectors, order, pages and aggregates."""

from __future__ import annotations

from typing import Any

import pytest

from tests.database.conftest import Shop


def case(number: int) -> pytest.MarkDecorator:
    return pytest.mark.case("database", number)


@case(1)
async def test_absent_cells_are_left_out_and_written_text_is_read(shop: Shop) -> None:
    rows = (await shop.table("records"))["rows"]
    assert [row["id"] for row in rows] == ["a", "b", "c", "d"]
    assert rows[1] == {"id": "b", "name": "bob", "price": 15, "n": 2, "ok": False}
    assert rows[1]["ok"] is False
    assert "price" not in rows[2]
    assert list(rows[0]) == ["id", "name", "price", "n", "ok", "tag"]


FOUND: list[tuple[int, tuple[str, str, list[Any]], str]] = [
    (2, ("price", "equals", [5]), "a"),
    (2, ("price", "equals", ["5"]), ""),
    (2, ("price", "equals", []), "c"),
    (2, ("price", "equals", [None]), ""),
    (3, ("price", "not", [5]), "bcd"),
    (3, ("price", "not", []), "abd"),
    (3, ("price", "not", [None]), "abcd"),
    (4, ("price", "above", [5]), "bd"),
    (4, ("price", "below", [20]), "abc"),
    (4, ("price", "from", [15]), "bd"),
    (4, ("price", "to", [15]), "abc"),
    (5, ("price", "above", ["0"]), ""),
    (5, ("price", "below", ["0"]), "abcd"),
    (5, ("price", "above", [True]), "abd"),
    (6, ("price", "above", []), "abd"),
    (6, ("price", "from", []), "abcd"),
    (6, ("price", "below", []), ""),
    (6, ("price", "to", []), "c"),
    (7, ("price", "below", [None]), "c"),
    (7, ("price", "above", [None]), "abd"),
    (8, ("price", "between", [5, 15]), "ab"),
    (8, ("price", "between", [15, 5]), ""),
    (8, ("price", "between", [5]), ""),
    (9, ("name", "above", [100]), "abcd"),
    (9, ("name", "above", ["B"]), "bcd"),
    (10, ("name", "like", ["a%"]), "a"),
    (10, ("name", "like", ["ADA"]), "a"),
    (10, ("name", "like", [""]), ""),
    (10, ("n", "like", ["1"]), ""),
    (10, ("tag", "like", ["50\\%%"]), ""),
    (11, ("name", "glob", ["A*"]), "a"),
    (11, ("name", "glob", ["a*"]), ""),
    (11, ("name", "glob", ["[A-C]*"]), ""),
    (11, ("name", "glob", ["?o?"]), "b"),
    (12, ("tag", "starts", [""]), "acd"),
    (12, ("name", "starts", ["a"]), ""),
    (12, ("name", "ends", ["d"]), "c"),
    (13, ("price", "any", []), ""),
    (13, ("price", "none", []), "abcd"),
    (13, ("price", "none", [5]), "bcd"),
    (13, ("price", "any", [None]), ""),
    (14, ("price", "absent", [1, 2]), "c"),
    (14, ("ghost", "absent", []), "abcd"),
    (14, ("ghost", "below", [1]), "abcd"),
    (14, ("ghost", "equals", [1]), ""),
    (15, ("ok", "equals", [1]), ""),
    (15, ("ok", "equals", [False]), "bc"),
    (15, ("ok", "below", [True]), "bcd"),
]


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        pytest.param(condition, ids, marks=case(number), id=f"{number}-{condition[0]}-{condition[1]}-{condition[2]}")
        for number, condition, ids in FOUND
    ],
)
async def test_a_condition_finds_rows(shop: Shop, condition: tuple[str, str, list[Any]], ids: str) -> None:
    assert await shop.ids(condition) == ids
    column, operator, values = condition
    counted = await shop.table(
        "count", query={"conditions": [{"column": column, "operator": operator, "values": values}]}
    )
    assert counted == {"count": len(ids)}


@case(16)
async def test_the_first_connector_means_nothing_and_one_left_out_is_and(shop: Shop) -> None:
    assert await shop.ids(("id", "equals", ["a"], "or"), ("id", "equals", ["b"])) == ""


@case(17)
async def test_connectors_join_to_all_before_them(shop: Shop) -> None:
    conditions = [("id", "equals", ["a"]), ("id", "equals", ["b"], "or"), ("price", "equals", [15], "and")]
    assert await shop.ids(*conditions) == "b"


async def test_two_hundred_alternating_conditions_are_joined_all_the_same(shop: Shop) -> None:
    conditions: list[Any] = [
        ("id", "present" if index % 3 else "absent", [], "or" if index % 2 else "and") for index in range(200)
    ]
    met = True
    for index in range(200):
        holds = index % 3 != 0
        met = holds if index == 0 else (met or holds) if index % 2 else (met and holds)
    assert await shop.ids(*conditions) == ("abcd" if met else "")


async def test_a_query_has_at_most_200_conditions_and_10000_values(shop: Shop) -> None:
    condition = {"column": "id", "operator": "present", "values": []}
    assert await shop.code("count", query={"conditions": [condition] * 201}) == "VALIDATION"
    values = {"column": "n", "operator": "any", "values": [*range(10_001)]}
    assert await shop.code("count", query={"conditions": [values]}) == "VALIDATION"
    values["values"] = [*range(10_000)]
    assert await shop.table("count", query={"conditions": [values]}) == {"count": 3}


@pytest.mark.parametrize("size", [1, 500, 501, 2000])
async def test_lists_of_any_length_are_compared_exactly(shop: Shop, size: int) -> None:
    await shop.table("add", row=[{"id": "e", "name": "x\0y", "price": 0.1}, {"id": "f", "name": "x\0z", "price": 0.3}])
    texts = ["x\0y", *(f"other {index}" for index in range(size - 1))]
    assert await shop.ids(("name", "any", texts)) == "e"
    assert await shop.ids(("name", "none", texts)) == "abcdf"
    numbers = [0.1, *(index + 0.5 for index in range(100, 99 + size))]
    assert await shop.ids(("price", "any", numbers)) == "e"


@case(18)
async def test_absent_cells_come_first_and_last(shop: Shop) -> None:
    assert await shop.ids(order=[{"column": "price", "direction": "ascending"}]) == "cabd"
    assert await shop.ids(order=[{"column": "price", "direction": "descending"}]) == "dbac"


@case(19)
async def test_order_terms_apply_in_turn_and_the_rest_goes_by_key(shop: Shop) -> None:
    order = [{"column": "ok", "direction": "ascending"}, {"column": "name", "direction": "descending"}]
    assert await shop.ids(order=order) == "dbca"
    assert await shop.ids(order=[{"column": "ghost", "direction": "descending"}]) == "abcd"


async def test_text_stands_in_the_order_of_its_utf16_units(shop: Shop) -> None:
    await shop.table("set", row=[{"id": "\U0001f600", "name": "\U0001f600"}, {"id": "\uffee", "name": "\uffee"}])
    assert await shop.ids() == "abcd\U0001f600\uffee"
    assert await shop.ids(("name", "above", ["\U0001f600"])) == "\uffee"
    assert await shop.ids(order=[{"column": "name", "direction": "descending"}], limit=2) == "\uffee\U0001f600"


@case(20)
async def test_a_limit_lowers_the_cap_and_tells_that_there_is_more(shop: Shop) -> None:
    none = {"rows": [], "count": 0, "truncated": True, "limit": 0}
    assert await shop.table("records", query={"limit": 0}) == none
    four = await shop.table("records", query={"limit": 4})
    assert (four["count"], four["truncated"], four["limit"]) == (4, False, 4)
    assert (await shop.table("records", query={"limit": 5000}))["limit"] == 1000


@case(21)
async def test_a_page_is_of_whole_numbers_from_zero(shop: Shop) -> None:
    beyond = await shop.table("records", query={"offset": 30})
    assert (beyond["count"], beyond["truncated"]) == (0, False)
    for limit in (-1, 1.5):
        assert (await shop.refused("records", table="p", query={"limit": limit})).code == "TOOL"
    spelled = await shop.table("records", query={"limit": "2"})
    assert (spelled["count"], spelled["truncated"]) == (2, True)


@case(22)
async def test_a_pattern_has_at_most_1024_units(shop: Shop) -> None:
    def like(column: str, pattern: str) -> Any:
        return {"conditions": [{"column": column, "operator": "like", "values": [pattern]}]}

    assert await shop.code("records", query=like("name", "x" * 1025)) == "VALIDATION"
    assert await shop.code("records", query=like("name", "\U0001f600" * 513)) == "VALIDATION"
    assert (await shop.table("records", query=like("name", "x" * 1024)))["count"] == 0
    assert (await shop.table("records", query=like("price", "x" * 1025)))["count"] == 0


@pytest.mark.parametrize(
    ("function", "column", "told"),
    [
        pytest.param("sum", "price", {"value": 45.5}, marks=case(23)),
        pytest.param("average", "n", {"value": 2}, marks=case(23)),
        pytest.param("sum", "tag", {"value": 12}, marks=case(23)),
        pytest.param("minimum", "name", {}, marks=case(23)),
        pytest.param("sum", "ok", {}, marks=case(23)),
        pytest.param("count", "ghost", {"value": 4}, marks=case(24)),
        ("maximum", "price", {"value": 25.5}),
        ("minimum", "price", {"value": 5}),
        ("maximum", "ghost", {}),
        ("minimum", "tag", {"value": 12}),
    ],
)
async def test_an_aggregate_reads_cells_as_numbers(shop: Shop, function: str, column: str, told: Any) -> None:
    assert await shop.table("aggregate", function=function, column=column) == told


@case(24)
async def test_an_aggregate_of_nothing_has_no_value(shop: Shop) -> None:
    absent = {"conditions": [{"column": "price", "operator": "absent", "values": []}]}
    assert await shop.table("aggregate", function="sum", column="price", query=absent) == {}


@case(25)
async def test_counts_and_aggregates_know_no_page(shop: Shop) -> None:
    assert await shop.table("count", query={"limit": 1, "offset": 2}) == {"count": 4}
    assert await shop.table("aggregate", function="sum", column="price", query={"limit": 1}) == {"value": 45.5}


async def test_a_sum_is_added_up_cell_by_cell_in_key_order(shop: Shop) -> None:
    """Python's own `sum` would compensate the rounding, and SQLite's newer one too."""
    await shop.call("create", "sums", tables={"p": {"columns": {"id": "string", "x": "number", "n": "integer"}}})
    cells = [1e16, 1.0, 1.0, 1.0, 1.0, -1e16, 0.1]
    rows = [{"id": str(index), "x": cell, "n": 2**62} for index, cell in enumerate(cells)]
    await shop.call("add", "sums", table="p", row=rows)
    plain = 0.0
    for cell in cells:
        plain += cell
    assert await shop.call("aggregate", "sums", table="p", function="sum", column="x") == {"value": plain}
    assert await shop.call("aggregate", "sums", table="p", function="sum", column="n") == {"value": 7 * 2**62}


async def test_a_sum_beyond_every_number_is_refused_rather_than_infinite(shop: Shop) -> None:
    await shop.table("set", row=[{"id": "a", "name": "A", "price": 1e308}, {"id": "b", "name": "B", "price": 1e308}])
    assert await shop.code("aggregate", function="sum", column="price") == "VALIDATION"


@case(41)
@pytest.mark.parametrize(
    ("kind", "keys", "order"),
    [("string", ["10", "9", "B", "a"], ["10", "9", "B", "a"]), ("integer", [10, 9, 1], [1, 9, 10])],
)
async def test_keys_go_by_their_type(empty: Shop, kind: str, keys: list[Any], order: list[Any]) -> None:
    await empty.call("create", tables={"p": {"columns": {"id": kind}}})
    await empty.table("add", row=[{"id": key} for key in keys])
    records = await empty.table("records")
    assert [row["id"] for row in records["rows"]] == order
