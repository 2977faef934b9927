"""A tree a test, and the tool over a database with one small table in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from greenroom.actors.toolbox.database import database_tool
from greenroom.protocol.errors import ToolError
from greenroom.runtime.tools import Tool
from greenroom.runtime.tree import Tree, run_tree

__all__ = ["COLUMNS", "ROWS", "Shop", "refusal"]


def _optional(kind: str) -> dict[str, Any]:
    return {"type": kind, "optional": True}


COLUMNS: dict[str, Any] = {
    "id": "string",
    "name": "string",
    "price": _optional("number"),
    "n": _optional("integer"),
    "ok": _optional("boolean"),
    "tag": _optional("string"),
}
ROWS: list[dict[str, Any]] = [
    {"id": "a", "name": "Ada", "price": 5, "n": 1, "ok": True, "tag": "x"},
    {"id": "b", "name": "bob", "price": "15", "n": "2", "ok": "false"},
    {"id": "c", "name": "Cyd", "n": 3, "ok": 0, "tag": "50%_off"},
    {"id": "d", "name": "dan", "price": 25.5, "tag": "12"},
]


class Shop:
    """A database `shop` with the table `p`, as a model gets at it."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    async def call(self, operation: str, id: str = "shop", **fields: Any) -> Any:
        return await self.tool.execute({"operation": operation, "id": id, **fields})

    async def table(self, operation: str, **fields: Any) -> Any:
        """A call about the table `p`."""
        return await self.call(operation, table="p", **fields)

    async def ids(self, *conditions: Any, **query: Any) -> str:
        """The ids of the matching rows, in order and as one word. A condition is (column, operator, values, ...)."""
        names = ("column", "operator", "values", "connector")
        spelled = [dict(zip(names, condition, strict=False)) for condition in conditions]
        records = await self.table("records", query={"conditions": spelled, **query})
        return "".join(row["id"] for row in records["rows"])

    async def row(self, key: Any) -> Any:
        return (await self.table("get", key=key)).get("row")

    async def refused(self, operation: str, id: str = "shop", **fields: Any) -> ToolError:
        return await refusal(self.tool, {"operation": operation, "id": id, **fields})

    async def code(self, operation: str, **fields: Any) -> str:
        """The database's own code with which a call about `p` is refused."""
        error = await self.refused(operation, table="p", **fields)
        assert error.code == "DATABASE", error
        code: str = error.context["code"]
        return code


async def refusal(tool: Tool, args: Any) -> ToolError:
    """The error of a call that must fail."""
    with pytest.raises(ToolError) as caught:
        await tool.execute(args)
    return caught.value


@pytest.fixture
async def tree() -> AsyncIterator[Tree]:
    async with run_tree() as tree:
        yield tree


@pytest.fixture
async def shop(tree: Tree) -> Shop:
    """With the rows in it."""
    shop = Shop(database_tool(tree))
    await shop.call("create", tables={"p": {"columns": COLUMNS}})
    await shop.table("add", row=ROWS)
    return shop


@pytest.fixture
def empty(tree: Tree) -> Shop:
    """Without any database."""
    return Shop(database_tool(tree))
