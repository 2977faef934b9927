"""A small set of accounts and what belongs to them, and the tool over it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest

from greenroom.actors.database import Database, memory_driver
from greenroom.actors.relation import RelationManager
from greenroom.actors.toolbox.relation import relation_tool
from greenroom.protocol.errors import ToolError
from greenroom.runtime.tree import Tree, run_tree

__all__ = ["RELATIONS", "TABLES", "Accounts"]


def _table(*columns: str, **optional: str) -> dict[str, Any]:
    more = {name: {"type": kind, "optional": True} for name, kind in optional.items()}
    return {"columns": {"id": "string", **dict.fromkeys(columns, "string"), **more}}


TABLES: dict[str, Any] = {
    "accounts": _table("name", tierId="string"),
    "tiers": _table(),
    "contacts": _table(accountId="string"),
    "profiles": _table("accountId"),
    "reps": _table(),
    "accountReps": _table("accountId", "repId"),
    "notes": _table("entityId", "entityType"),
    "strictReps": _table("accountId", "repId", "since"),
}
RELATIONS: dict[str, Any] = {
    "accounts": {
        "tier": {"relationship": "belongs", "column": "tierId", "model": "tiers"},
        "contacts": ["accountId"],
        "profile": {"key": "accountId", "model": "profiles"},
        "reps": {"through": "accountReps", "source": "accountId", "target": "repId"},
        "notes": {"key": "entityId", "tag": "entityType", "label": "account"},
        "name": {"relationship": "many", "key": "accountId", "model": "contacts"},
        "strict": {"through": "strictReps", "source": "accountId", "target": "repId", "model": "reps"},
    },
    "contacts": {"account": {"column": "accountId", "model": "accounts"}},
    "tiers": {},
}
ROWS: dict[str, list[dict[str, Any]]] = {
    "accounts": [
        {"id": "a1", "name": "Acme", "tierId": "t1"},
        {"id": "a2", "name": "Beta"},
        {"id": "a3", "name": "Cyan", "tierId": "zz"},
    ],
    "tiers": [{"id": "t1"}],
    "contacts": [{"id": "c1", "accountId": "a1"}, {"id": "c2", "accountId": "a1"}, {"id": "c3"}],
    "profiles": [{"id": "p1", "accountId": "a1"}, {"id": "p2", "accountId": "a1"}],
    "reps": [{"id": "r1"}, {"id": "r2"}],
    "notes": [
        {"id": "n1", "entityId": "a1", "entityType": "account"},
        {"id": "n2", "entityId": "a1", "entityType": "contact"},
    ],
}


class Accounts:
    """The manager `shop` over the database, as a program and as a model get at it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.manager = RelationManager(database, RELATIONS)
        self.tool = relation_tool({"shop": self.manager})

    async def call(self, operation: str, model: str = "accounts", **fields: Any) -> Any:
        return await self.tool.execute({"operation": operation, "model": model, **fields})

    async def row(self, key: Any, *include: str, model: str = "accounts") -> Any:
        return (await self.call("load", model, key=key, include=list(include))).get("row")

    async def refused(self, operation: str, model: str = "accounts", **fields: Any) -> ToolError:
        with pytest.raises(ToolError) as caught:
            await self.call(operation, model, **fields)
        return caught.value


@pytest.fixture
async def tree() -> AsyncIterator[Tree]:
    async with run_tree() as tree:
        yield tree


@pytest.fixture
async def database(tree: Tree) -> Database:
    numbers = count(1)
    database = Database(tree, memory_driver(), TABLES, generator=lambda: f"g{next(numbers)}")
    for table, rows in ROWS.items():
        await database.table(table).add(rows)
    return database


@pytest.fixture
def accounts(database: Database) -> Accounts:
    return Accounts(database)
