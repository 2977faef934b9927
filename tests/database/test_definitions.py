"""Definitions, where they are kept, and databases that are made from them when they are first used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.database import (
    DEFINITION_TABLES,
    Database,
    DatabaseResolver,
    DefinitionStore,
    MemoryDefinitionStore,
    TableDefinitionStore,
    memory_driver,
    sqlite_driver,
)
from greenroom.actors.toolbox.database import database_tool
from greenroom.protocol.database import DatabaseDefinition, is_database_definition, parse_definition
from greenroom.protocol.errors import DatabaseError, ToolError
from greenroom.runtime.tree import Tree
from tests.database.conftest import Shop

P: Any = {"p": {"columns": {"id": "string", "n": {"type": "integer", "optional": True}}}}
SHOP = DatabaseDefinition("shop", "memory", P)
WHOLE = DatabaseDefinition("whole", "memory", P, {"p": "n"}, {"p": [["n"], ["id", "n"]]}, 1.5)


@pytest.fixture(params=["memory", "table"])
def store(tree: Tree, request: pytest.FixtureRequest) -> DefinitionStore:
    if request.param == "memory":
        return MemoryDefinitionStore()
    return TableDefinitionStore(Database(tree, memory_driver(), DEFINITION_TABLES))


async def test_a_store_keeps_one_definition_for_each_id(store: DefinitionStore) -> None:
    assert await store.get("shop") is None
    assert await store.delete("shop") is False
    await store.set(SHOP)
    await store.set(WHOLE)
    assert await store.get("shop") == SHOP
    assert await store.get("whole") == WHOLE
    await store.set(msgspec.structs.replace(SHOP, version=2))
    found = await store.get("shop")
    assert found is not None
    assert found.version == 2
    assert await store.delete("shop") is True
    assert await store.get("shop") is None
    assert await store.get("whole") == WHOLE


async def test_a_store_copies_in_and_out(store: DefinitionStore) -> None:
    tables: Any = {"p": {"columns": {"id": "string"}}}
    await store.set(DatabaseDefinition("shop", "memory", tables))
    tables["p"]["columns"]["more"] = "string"
    found: Any = await store.get("shop")
    assert found.tables == {"p": {"columns": {"id": "string"}}}
    found.tables["q"] = {}
    again: Any = await store.get("shop")
    assert list(again.tables) == ["p"]


@pytest.mark.parametrize(
    "kept", ["", "{", "[]", "null", '{"id": "shop"}', '{"id": "shop", "driver": "", "tables": {}}']
)
async def test_a_stored_value_that_is_no_definition_reads_as_none(tree: Tree, kept: str) -> None:
    database = Database(tree, memory_driver(), DEFINITION_TABLES)
    await database.table("definitions").set({"id": "shop", "definition": kept})
    assert await TableDefinitionStore(database).get("shop") is None


@pytest.mark.parametrize(
    ("changes", "is_one"),
    [
        ({}, True),
        ({"more": 1}, True),
        ({"keys": {}}, False),
        ({"id": ""}, False),
        ({"driver": 5}, False),
        ({"tables": []}, False),
        ({"tables": {"p": {}}}, False),
        ({"tables": {"p": {"columns": {"id": "text"}}}}, False),
        ({"tables": {"p": {"columns": {"id": {"type": "string", "optional": 1}}}}}, False),
        ({"tables": {"p": {"columns": {"id": {"primitive": "string"}}}}}, True),
        ({"tables": {"p": {"columns": {"id": {"type": "string", "primitive": "x"}}}}}, True),
        ({"primary": {"p": "id"}}, True),
        ({"primary": {"p": ""}}, False),
        ({"primary": None}, False),
        ({"indexes": {"p": []}}, True),
        ({"indexes": {"p": [[]]}}, False),
        ({"indexes": {"p": [["", "id"]]}}, False),
        ({"version": 1}, True),
        ({"version": -1.5}, True),
        ({"version": True}, False),
        ({"version": float("inf")}, False),
        ({"version": "1"}, False),
    ],
)
def test_a_definition_is_told_by_its_members(changes: dict[str, Any], is_one: bool) -> None:
    document = {"id": "shop", "driver": "memory", "tables": P, **changes}
    assert is_database_definition(document) is is_one
    parsed = parse_definition(document)
    assert (parsed is not None) is is_one
    if parsed is not None:
        assert (parsed.id, parsed.driver) == ("shop", "memory")


names = st.sampled_from(["id", "driver", "tables", "columns", "primary", "indexes", "version"])
plain = st.none() | st.booleans() | st.text() | st.integers()


@given(st.recursive(plain, lambda part: st.lists(part) | st.dictionaries(names, part)))
def test_no_value_breaks_the_guard(value: Any) -> None:
    assert is_database_definition(value) is (parse_definition(value) is not None)


async def test_a_database_is_made_from_its_definition_when_it_is_first_used(tree: Tree, store: DefinitionStore) -> None:
    first = Shop(database_tool(tree, store=store))
    await first.call("create", tables=P)
    await first.table("add", row={"id": "a"})
    second = Shop(database_tool(tree, store=store))
    assert (await second.refused("create", tables=P)).context == {"id": "shop"}
    assert await second.table("count") == {"count": 0}  # the definition comes back, and no row of a memory
    assert await second.table("add", row={"id": "b"}) == {"key": "b"}
    assert await second.table("count") == {"count": 1}
    assert await second.call("destroy") == {"id": "shop", "destroyed": True}
    third = Shop(database_tool(tree, store=store))
    assert (await third.refused("tables")).context == {"id": "shop"}


async def test_a_stored_definition_is_destroyed_without_being_made(tree: Tree) -> None:
    store = MemoryDefinitionStore()
    await store.set(DatabaseDefinition("shop", "gone", P))
    shop = Shop(database_tool(tree, store=store))
    assert await shop.call("destroy") == {"id": "shop", "destroyed": True}
    assert await shop.call("destroy") == {"id": "shop", "destroyed": False}


async def test_a_file_is_found_again_by_its_id_unless_it_is_erased(tree: Tree, tmp_path: Path) -> None:
    drivers = {"file": lambda id: sqlite_driver(tmp_path / f"{id}.db")}
    for erase, rows in ((False, 1), (True, 0)):
        shop = Shop(database_tool(tree, drivers=drivers, erase=erase))
        await shop.call("create", tables=P, driver="file", version=1)
        await shop.table("set", row={"id": "a"})
        await shop.call("destroy")
        await shop.call("create", tables=P, driver="file", version=1)
        assert await shop.table("count") == {"count": rows}
        await shop.call("destroy")


async def test_a_file_that_cannot_be_opened_shows_at_the_first_use(tree: Tree, tmp_path: Path) -> None:
    shop = Shop(database_tool(tree, drivers={"file": lambda id: sqlite_driver(tmp_path / "no" / id)}))
    assert await shop.call("create", tables=P, driver="file") == {"id": "shop", "tables": ["p"]}
    assert await shop.code("count") == "DRIVER"


class Failing:
    """A store that keeps nothing."""

    async def get(self, id: str) -> DatabaseDefinition | None:
        return None

    async def set(self, definition: DatabaseDefinition) -> None:
        raise OSError("the disk is full")

    async def delete(self, id: str) -> bool:
        raise OSError("the disk is full")


async def test_what_a_store_raises_passes_and_leaves_nothing_behind(tree: Tree) -> None:
    shop = Shop(database_tool(tree, store=Failing()))
    with pytest.raises(OSError, match="disk"):
        await shop.call("create", tables=P)
    assert (await shop.refused("tables")).context == {"id": "shop"}
    assert tree.snapshot().root.children[0].children == ()


async def test_a_resolver_serves_what_it_is_given(tree: Tree) -> None:
    store = MemoryDefinitionStore()
    given = Database(tree, memory_driver(), P, name="given")
    resolver = DatabaseResolver(tree, handles={"given": given}, store=store)
    assert resolver.has("given")
    assert await resolver.resolve("given") is given
    assert resolver.get("shop") is None
    await store.set(SHOP)
    shop = await resolver.resolve("shop")
    assert resolver.get("shop") is shop
    assert await resolver.resolve("shop") is shop
    assert resolver.delete("shop")
    assert not resolver.delete("shop")
    assert not shop.closed
    resolver.set("shop", shop)
    assert await resolver.destroy("shop")
    assert shop.closed
    with pytest.raises(ToolError, match="live ones are: given"):
        await resolver.resolve("shop")


async def test_first_uses_at_the_same_time_make_one_database(tree: Tree) -> None:
    store = MemoryDefinitionStore()
    await store.set(SHOP)
    resolver = DatabaseResolver(tree, store=store)
    found: list[Database] = []

    async def resolve() -> None:
        found.append(await resolver.resolve("shop"))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(resolve)
    assert len(found) == 5
    assert len({id(database) for database in found}) == 1
    assert len(tree.snapshot().root.children[0].children) == 1


async def test_databases_live_beneath_one_place_under_names_of_their_own(tree: Tree) -> None:
    odd = [Database(tree, memory_driver(), {}, name=name) for name in ("shop", "shop", "a/b", "", "\U0001f600")]
    assert [each.ref.path for each in odd] == [
        "/databases/shop",
        "/databases/shop.2",
        "/databases/a%2Fb",
        "/databases/database",
        "/databases/%F0%9F%98%80",
    ]
    await odd[0].close()
    assert Database(tree, memory_driver(), {}, name="shop").ref.path == "/databases/shop"


async def test_a_row_that_must_be_there_is_missed(tree: Tree) -> None:
    table = Database(tree, memory_driver(), P).table("p")
    await table.add([{"id": "a"}, {"id": "b"}])
    assert await table.resolve(["a", "b"]) == [{"id": "a"}, {"id": "b"}]
    with pytest.raises(DatabaseError) as caught:
        await table.resolve(["a", "zz"])
    assert (caught.value.code, caught.value.context) == ("NOT_FOUND", {"table": "p", "key": "zz"})
    assert await table.has("a") is True
    assert await table.has(["a", "zz"]) == [True, False]
