"""Calls that are cancelled at every moment: what was stored is told, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from greenroom.actors.database import (
    Database,
    MemoryDefinitionStore,
    Storage,
    json_driver,
    memory_driver,
    sqlite_driver,
)
from greenroom.actors.relation import RelationManager
from greenroom.actors.toolbox.database import database_tool
from greenroom.protocol.errors import DatabaseError, ToolError
from greenroom.protocol.relations import has_through
from greenroom.runtime.tree import Tree, run_tree
from tests.cancelling import Doomed, at_every_step

TABLES: Any = {
    "t": {"columns": {"id": "string"}},
    "u": {"columns": {"id": "string"}},
    "tu": {"columns": {"id": "string", "t": "string", "u": "string"}},
}
ROWS = [{"id": "a"}, {"id": "b"}, {"id": "c"}]


class Place:
    """A file that each run of a scenario finds empty."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name

    def new(self, tree: Tree) -> Database:
        for each in self.path.parent.glob(f"{self.path.name}*"):
            each.unlink()
        return self.again(tree)

    def again(self, tree: Tree) -> Database:
        storage: Storage = json_driver(self.path) if self.path.suffix == ".json" else sqlite_driver(self.path)
        return Database(tree, storage, TABLES)


@pytest.fixture(params=["rows.db", "rows.json"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, request.param)


async def test_a_cancelled_list_is_stored_whole_from_its_beginning_on(place: Place) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with run_tree() as tree:
            database = place.new(tree)
            ended = await doomed(database.table("t").add, ROWS)
            there = await database.table("t").keys()
            assert there == ["a", "b", "c"][: len(there)]
            assert ended.cancelled or there == ended.value == ["a", "b", "c"]
            await database.close()
            assert await place.again(tree).table("t").keys() == there

    await at_every_step(scenario)


async def test_a_cancelled_transaction_came_to_stay_or_nothing_of_it() -> None:
    async def transaction(database: Database) -> None:
        async with database.transaction() as held:
            for row in ROWS:
                await held.table("t").add(row)

    async def scenario(doomed: Doomed) -> None:
        async with run_tree() as tree:
            database = Database(tree, memory_driver(), TABLES)
            ended = await doomed(transaction, database)
            there = await database.table("t").keys()
            assert there in ([], ["a", "b", "c"])
            assert ended.cancelled or there
            async with database.transaction() as held:  # nobody holds it any more
                await held.table("t").clear()
            assert tree.snapshot().waits == ()

    await at_every_step(scenario)


async def test_a_cancelled_link_is_there_once_or_not_at_all() -> None:
    async def scenario(doomed: Doomed) -> None:
        async with run_tree() as tree:
            database = Database(tree, memory_driver(), TABLES)
            model = RelationManager(database, {"t": {"us": has_through("tu", "t", "u", "u")}}).model("t")
            ended = await doomed(model.link, "a", "us", "b")
            there = await model.links("a", "us")
            assert there == ["b"] or (ended.cancelled and there == [])

    await at_every_step(scenario)


async def test_a_database_whose_creation_or_destruction_was_cancelled_is_there_or_not() -> None:
    for operation in ("create", "destroy"):

        async def scenario(doomed: Doomed, operation: str = operation) -> None:
            async with run_tree() as tree:
                tool = database_tool(tree, store=MemoryDefinitionStore())
                creation = {"operation": "create", "id": "d", "tables": TABLES}
                destruction = {"operation": "destroy", "id": "d"}
                if operation == "destroy":
                    await tool.execute(creation)
                ended = await doomed(tool.execute, creation if operation == "create" else destruction)
                there = (await tool.execute(destruction))["destroyed"]
                assert ended.cancelled or there is (operation == "create")
                await tool.execute(creation)
                assert await tool.execute({"operation": "count", "id": "d", "table": "t"}) == {"count": 0}

        await at_every_step(scenario)


async def test_a_database_that_was_told_to_close_closes_whoever_is_cancelled(place: Place) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with run_tree() as tree:
            database = place.new(tree)
            await database.table("t").add(ROWS)
            await doomed(database.close)
            with trio.fail_after(5):
                await database.close()
            assert database.closed
            with pytest.raises(DatabaseError) as caught:
                database.table("t")
            assert caught.value.code == "CLOSED"
            assert await place.again(tree).table("t").count() == 3

    await at_every_step(scenario)


async def test_a_cancelled_query_leaves_the_database_to_others() -> None:
    async def scenario(doomed: Doomed) -> None:
        async with run_tree() as tree:
            tool = database_tool(tree, databases={"d": Database(tree, memory_driver(), TABLES)})
            await tool.execute({"operation": "add", "id": "d", "table": "t", "row": ROWS})
            ended = await doomed(tool.execute, {"operation": "records", "id": "d", "table": "t"})
            assert ended.cancelled or ended.value["rows"] == ROWS
            with pytest.raises(ToolError):
                await tool.execute({"operation": "add", "id": "d", "table": "t", "row": ROWS[0]})
            assert await tool.execute({"operation": "count", "id": "d", "table": "t"}) == {"count": 3}

    await at_every_step(scenario)
