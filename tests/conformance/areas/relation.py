"""Relations: scripts over one relation tool, declarations, and include paths."""

from __future__ import annotations

from itertools import count
from typing import Any

import trio

from greenroom.actors.database import Database, memory_driver
from greenroom.actors.relation import RelationManager
from greenroom.actors.system import open_runtime
from greenroom.actors.toolbox.relation import relation_tool
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.relations import expand_include
from greenroom.runtime.tree import Tree
from tests.conformance.recorded import error, fixture

__all__ = ["OPS"]


async def script(given: Any) -> Any:
    async with open_runtime(wall_clock=trio.current_time) as runtime:
        managers: dict[str, RelationManager] = {}
        for name, shop in given["managers"].items():
            told = fixture(f"relation-{shop}.json")
            database = _database(runtime.tree, told)
            for table, rows in told["rows"].items():
                await database.table(table).add(rows)
            managers[name] = RelationManager(database, told["relations"])
        options = given.get("options", {})
        tool = relation_tool(managers, **{name: options[name] for name in ("limit", "depth") if name in options})
        steps: list[Any] = []
        for step in given["steps"]:
            try:
                steps.append({"value": await tool.execute(step)})
            except GreenroomError as raised:
                steps.append(error(raised))
        return {"steps": steps}


async def declare(given: Any) -> Any:
    async with open_runtime(wall_clock=trio.current_time) as runtime:
        try:
            manager = RelationManager(_database(runtime.tree, fixture("relation-shop.json")), given["relations"])
        except GreenroomError as raised:
            return error(raised)
        return {"models": manager.models(), "count": manager.count}


def include(given: Any) -> Any:
    try:
        return expand_include(given.get("paths"), given["depth"])
    except GreenroomError as raised:
        return error(raised)


def _database(tree: Tree, shop: Any) -> Database:
    numbers = count(1)
    return Database(tree, memory_driver(), shop["tables"], generator=lambda: f"g{next(numbers)}")


OPS = {"relation.script": script, "relation.declare": declare, "relation.include": include}
