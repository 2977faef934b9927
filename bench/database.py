"""Databases: what storing one row or many costs, and finding them among ten thousand. `data` declares the figures."""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from greenroom.actors.database import Database, Table, memory_driver
from greenroom.protocol.database import Condition, Order, Query
from greenroom.runtime.tree import run_tree

__all__ = ["add", "batch", "equality", "query"]

ADDS = 400
BATCHES = 20
BATCH = 1_000
ROWS = 10_000
QUERIES = 10

COLUMNS: dict[str, Any] = {
    "id": "string",
    "name": "string",
    "price": "number",
    "stock": "integer",
    "note": {"type": "string", "optional": True},
}


@asynccontextmanager
async def a_table(rows: int = 0, *index: str) -> AsyncGenerator[Table]:
    """A table in memory with so many rows, which is open, and with an index on these columns if there are any."""
    indexes = {"products": [index]} if index else {}
    async with run_tree() as tree:
        database = Database(tree, memory_driver(), {"products": {"columns": COLUMNS}}, indexes=indexes)
        table = database.table("products")
        assert len(await table.add([product(index) for index in range(rows)])) == rows
        yield table


def product(index: int) -> dict[str, Any]:
    return {
        "id": f"p{index:08}",
        "name": f"product {index % 1000}",
        "price": index % 977 / 4,
        "stock": index % 100,
        **({"note": f"number {index}"} if index % 2 else {}),
    }


async def add() -> float:
    """Single rows per second, each a call of its own."""
    async with a_table(1) as table:
        rows = [product(index) for index in range(1, ADDS + 1)]
        start = time.perf_counter()
        for row in rows:
            await table.add(row)
        taken = time.perf_counter() - start
        assert await table.count() == ADDS + 1
        return ADDS / taken


async def batch() -> float:
    """Rows per second, a thousand to a call."""
    async with a_table(1) as table:
        batches = [[product(1 + number * BATCH + index) for index in range(BATCH)] for number in range(BATCHES)]
        start = time.perf_counter()
        for rows in batches:
            await table.add(rows)
        taken = time.perf_counter() - start
        assert await table.count() == BATCHES * BATCH + 1
        return BATCHES * BATCH / taken


async def query() -> float:
    """Milliseconds of a query that filters ten thousand rows by two columns without an index, sorts and limits them."""
    cheap = [Condition("price", "below", [100]), Condition("note", "present", [])]
    wanted = Query(cheap, [Order("stock", "descending"), Order("name", "ascending")], 100)
    async with a_table(ROWS) as table:
        found = await table.records(wanted)
        assert len(found) == 100
        assert all("note" in row and float(row["price"]) < 100 for row in found)
        return await _milliseconds(table, wanted)


async def equality() -> float:
    """Milliseconds of finding the ten rows of one name among ten thousand, by an index."""
    wanted = Query([Condition("name", "equals", ["product 7"])])
    async with a_table(ROWS, "name") as table:
        assert len(await table.records(wanted)) == ROWS // 1000
        return await _milliseconds(table, wanted)


async def _milliseconds(table: Table, wanted: Query) -> float:
    taken: list[float] = []
    for _ in range(QUERIES):
        start = time.perf_counter()
        await table.records(wanted)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1000
