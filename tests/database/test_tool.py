"""The tool: its operations, what it refuses by itself, and how a database's refusals reach a model."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from greenroom.actors.database import Database, MemoryDefinitionStore, memory_driver
from greenroom.actors.toolbox.database import DATABASE_TOOL_MUTATIONS, database_tool, infer_database_code
from greenroom.protocol.database import DatabaseDefinition
from greenroom.protocol.errors import DatabaseError, ToolError
from greenroom.protocol.schemas import advertising_faults
from greenroom.runtime.tree import Tree
from tests.conformance.departures import load_rules
from tests.conformance.runner import Case, load_area, run_case
from tests.database.conftest import COLUMNS, Shop, refusal

P = {"p": {"columns": COLUMNS}}


def case(number: int) -> pytest.MarkDecorator:
    return pytest.mark.case("database", number)


@case(35)
async def test_an_unknown_table_is_named_with_the_known_ones(shop: Shop) -> None:
    error = await shop.refused("records", table="q")
    assert error.code == "DATABASE"
    assert error.context == {"code": "NOT_FOUND", "operation": "records", "id": "shop", "table": "q"}
    assert "there are: p" in error.message


@case(36)
async def test_a_table_without_its_key_column_is_not_created(empty: Shop) -> None:
    error = await empty.refused("create", tables={"p": {"columns": {"name": "string"}}})
    assert error.context == {"code": "VALIDATION", "operation": "create", "id": "shop"}
    assert (await empty.refused("tables")).context == {"id": "shop"}


@case(37)
async def test_layouts_are_checked_when_a_database_is_created(empty: Shop) -> None:
    assert await empty.call("create", "none", tables={}) == {"id": "none", "tables": []}
    assert await empty.call("tables", "none") == {"tables": []}
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("DATABASE", {"tables": {"p": {"columns": {}}}}),
        ("TOOL", {"tables": P, "indexes": {"p": [[]]}}),
        ("DATABASE", {"tables": P, "indexes": {"p": [["ghost"]]}}),
        ("DATABASE", {"tables": P, "indexes": {"p": [["name"], ["name"]]}}),
        ("DATABASE", {"tables": {"": {"columns": {"id": "string"}}}}),
        ("DATABASE", {"tables": {"p": {"columns": {"id": "string", "": "string"}}}}),
        ("TOOL", {"tables": {"p": {"columns": {"id": "text"}}}}),
    ]
    for code, declared in wrong:
        assert (await empty.refused("create", **declared)).code == code
    assert (await empty.refused("tables")).code == "TOOL"
    ignored: dict[str, Any] = {"primary": {"q": "x"}, "indexes": {"q": [["x"]], "p": [["name", "n"], ["n", "name"]]}}
    assert await empty.call("create", tables=P, **ignored) == {"id": "shop", "tables": ["p"]}


@case(38)
async def test_an_id_is_created_once_and_with_a_known_driver(shop: Shop) -> None:
    again = await shop.refused("create", tables=P)
    assert (again.code, again.context) == ("TOOL", {"id": "shop"})
    strange = await shop.refused("create", "other", tables=P, driver="nope")
    assert (strange.code, strange.context) == ("TOOL", {"id": "other", "driver": "nope"})
    assert "memory" in strange.message


@case(43)
async def test_destroying_forgets_a_database(shop: Shop) -> None:
    assert await shop.call("destroy", "ghost") == {"id": "ghost", "destroyed": False}
    assert await shop.call("destroy") == {"id": "shop", "destroyed": True}
    assert (await shop.refused("tables")).context == {"id": "shop"}
    assert await shop.call("destroy") == {"id": "shop", "destroyed": False}


@case(44)
async def test_a_database_in_memory_is_created_anew_without_rows(shop: Shop) -> None:
    await shop.call("destroy")
    await shop.call("create", tables=P)
    assert await shop.table("count") == {"count": 0}


@case(45)
async def test_a_readonly_tool_reads(tree: Tree) -> None:
    database = Database(tree, memory_driver(), P)
    await database.table("p").add({"id": "a", "name": "Ada"})
    shop = Shop(database_tool(tree, databases={"shop": database}, readonly=True))
    assert (await shop.refused("destroy", "ghost")).context == {"operation": "destroy"}
    assert list((await shop.refused("add", table="p")).context) == ["args"]
    assert (await shop.table("records"))["count"] == 1
    assert await shop.row("a") == {"id": "a", "name": "Ada"}


@pytest.mark.case("reports/database", 1)
async def test_a_readonly_tool_refuses_every_change_before_anything_is_looked_up(tree: Tree) -> None:
    class Untouched:
        async def get(self, id: str) -> DatabaseDefinition | None:
            raise AssertionError("the store was asked")

        async def set(self, definition: DatabaseDefinition) -> None:
            raise AssertionError("the store was written")

        async def delete(self, id: str) -> bool:
            raise AssertionError("the store was written")

    def opened(id: str) -> Any:
        raise AssertionError("a driver was made")

    tool = database_tool(tree, store=Untouched(), drivers={"memory": opened}, readonly=True)
    odd = 'users"; DROP TABLE t; --'
    fields: dict[str, dict[str, Any]] = {
        "create": {"tables": {odd: {"columns": {"id": "string"}}}},
        "add": {"table": odd, "row": {"id": "a"}},
        "set": {"table": odd, "row": [{"id": "a"}]},
        "update": {"table": odd, "key": ["a", "b"], "changes": {}},
        "remove": {"table": odd, "key": ["a"]},
        "destroy": {},
    }
    assert list(fields) == list(DATABASE_TOOL_MUTATIONS)
    for operation, given in fields.items():
        for spelled in (operation, f" {operation} "):
            error = await refusal(tool, {"operation": spelled, "id": "a' OR 1=1", **given})
            assert (error.code, error.context) == ("TOOL", {"operation": operation})


@case(46)
async def test_a_stored_definition_needs_its_driver(tree: Tree) -> None:
    store = MemoryDefinitionStore()
    await store.set(DatabaseDefinition("shop", "gone", P))
    shop = Shop(database_tool(tree, store=store))
    assert (await shop.refused("tables")).context == {"id": "shop", "driver": "gone"}
    assert (await shop.refused("create", tables=P)).context == {"id": "shop"}


@case(47)
async def test_a_closed_database_is_gone_until_it_is_destroyed(tree: Tree) -> None:
    database = Database(tree, memory_driver(), P)
    await database.close()
    shop = Shop(database_tool(tree, databases={"shop": database}))
    assert await shop.code("records") == "CLOSED"
    assert (await shop.refused("create", tables=P)).context == {"id": "shop"}
    assert await shop.call("destroy") == {"id": "shop", "destroyed": True}
    await shop.call("create", tables=P)
    assert await shop.table("count") == {"count": 0}


@case(50)
async def test_a_table_is_described_by_the_schema_of_its_rows(empty: Shop) -> None:
    tables = {
        "p": {"columns": {"id": {"type": "string", "optional": True}, "n": {"primitive": "number", "optional": True}}}
    }
    await empty.call("create", tables=tables)
    (told,) = (await empty.call("tables"))["tables"]
    properties = {"id": {"type": "string"}, "n": {"type": "number"}}
    columns = {"type": "object", "properties": properties, "additionalProperties": False}
    assert told == {"name": "p", "primary": "id", "columns": columns}


async def test_both_spellings_of_a_type_are_read_and_stored_as_sent(tree: Tree) -> None:
    store = MemoryDefinitionStore()
    shop = Shop(database_tool(tree, store=store))
    columns = {"id": {"primitive": "string"}, "n": {"type": "number", "optional": True}}
    await shop.call("create", tables={"p": {"columns": columns}})
    definition = await store.get("shop")
    assert definition is not None
    assert definition.tables == {"p": {"columns": columns}}
    assert await shop.table("add", row={"id": "a", "n": "2"}) == {"key": "a"}


async def test_arguments_that_spell_no_call_are_refused_as_such(shop: Shop) -> None:
    wrong: list[Any] = [{}, [], {"operation": "records"}, {"operation": "records", "id": "shop", "table": ""}]
    for args in wrong:
        error = await refusal(shop.tool, args)
        assert (error.code, error.context) == ("TOOL", {"args": args})
    condition = {"column": "n", "operator": "equals", "values": 1}
    error = await shop.refused("records", table="p", query={"conditions": [condition]})
    assert "values" in error.message


async def test_odd_fields_are_dropped_and_numbers_read(shop: Shop) -> None:
    records = await shop.tool.execute(
        {"operation": " records ", "id": "shop", "table": "p", "query": {"limit": "1", "page": 3}, "why": "not"}
    )
    assert records["count"] == 1


@pytest.mark.parametrize("timeout", [-1, 1.5, True, "5", 2**53])
async def test_a_timeout_is_a_number_of_milliseconds(tree: Tree, timeout: Any) -> None:
    with pytest.raises(ToolError) as caught:
        database_tool(tree, timeout_ms=timeout)
    assert (caught.value.code, caught.value.context) == ("TOOL", {"timeout": timeout})


async def test_a_call_that_has_no_time_is_aborted(tree: Tree) -> None:
    shop = Shop(database_tool(tree, timeout_ms=0))
    await shop.call("create", tables=P)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("records", {}),
        ("count", {}),
        ("aggregate", {"function": "sum", "column": "n"}),
        ("add", {"row": {"id": "a", "name": "A"}}),
        ("set", {"row": {"id": "a", "name": "A"}}),
        ("update", {"key": "a", "changes": {}}),
        ("remove", {"key": "a"}),
    ]
    for operation, fields in calls:
        assert await shop.code(operation, **fields) == "ABORTED"
    assert await shop.table("get", key="a") == {}  # which no time bounds
    assert (await shop.call("tables"))["tables"][0]["name"] == "p"
    assert (await shop.call("destroy"))["destroyed"]


async def test_two_callers_create_a_database_once(tree: Tree) -> None:
    shop = Shop(database_tool(tree, store=MemoryDefinitionStore()))
    told: list[Any] = []

    async def create() -> None:
        try:
            told.append(await shop.call("create", tables=P))
        except ToolError as error:
            told.append(error.context)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(create)
    assert sorted(told, key=len) == [{"id": "shop"}, {"id": "shop"}, {"id": "shop", "tables": ["p"]}]


async def test_a_query_on_an_unknown_column_is_refused_if_that_is_wanted(tree: Tree) -> None:
    shop = Shop(database_tool(tree, strict=True))
    await shop.call("create", tables=P)
    below = {"conditions": [{"column": "prize", "operator": "below", "values": [1]}]}
    for operation in ("records", "count"):
        error = await shop.refused(operation, table="p", query=below)
        assert error.context["code"] == "VALIDATION"
        assert "'prize'" in error.message
        assert "price" in error.message
    order = {"order": [{"column": "prize", "direction": "ascending"}]}
    assert await shop.code("records", query=order) == "VALIDATION"
    assert await shop.code("aggregate", function="sum", column="prize") == "VALIDATION"


async def test_what_models_are_shown_is_fit_for_every_provider(tree: Tree) -> None:
    tool = database_tool(tree)
    assert tool.parameters is not None
    assert advertising_faults(tool.parameters) == []
    assert tool.parameters["properties"]["operation"]["enum"][0] == "create"
    assert "describe('database')" in (tool.summary or "")


def test_a_recorded_schema_knows_one_spelling_of_a_type() -> None:
    def without(schema: Any) -> Any:
        if isinstance(schema, list):
            parts: list[Any] = schema
            return [
                without(part)
                for part in parts
                if not (isinstance(part, dict) and part.get("required") == ["primitive"])
            ]
        if isinstance(schema, dict):
            members: dict[str, Any] = schema
            return {name: without(member) for name, member in members.items()}
        return schema

    given = {"tool": "database"}
    ops = load_area("tools")
    told = run_case(ops, Case("c", "tools.parameters", given, {}), load_rules())
    assert told.failure is not None
    record = without(trio.run(ops["tools.parameters"], given))
    assert run_case(ops, Case("c", "tools.parameters", given, record), load_rules()).departure is not None


def test_a_code_is_a_database_errors_own() -> None:
    assert infer_database_code(DatabaseError("CONFLICT", "")) == "CONFLICT"
    assert infer_database_code(ToolError("TOOL", "")) is None
