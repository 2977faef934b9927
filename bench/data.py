"""Workspaces, databases and what is built on them."""

from __future__ import annotations

import statistics
import time

from bench import database, relation, schemas
from bench.harness import rate, times
from greenroom import open_runtime
from greenroom.actors.workspace import WorkspaceManager
from greenroom.protocol.workspace import create_file

FILES, LINES = 1_000, 100
LINE = "def process(value: int) -> int: return value + 1\n"
NEEDLE = "the one line that is looked for\n"


@times("workspace/search-1000-files")
async def search() -> float:
    """Milliseconds of a search in a thousand files of a hundred lines each; every tenth has the line once."""
    taken: list[float] = []
    async with open_runtime() as runtime:
        found = NEEDLE + LINE * (LINES - 1)
        files = [create_file(f"src/{number}.py", LINE * LINES if number % 10 else found) for number in range(FILES)]
        workspace = WorkspaceManager(runtime.tree).add("w", files)
        for _ in range(9):
            start = time.perf_counter()
            assert len(await workspace.search("looked for")) == FILES // 10
            taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1000


# -------------------------------------------------------------------- databases


@rate("database/add")
async def database_add() -> float:
    """Single rows per second, each a call of its own."""
    return await database.add()


@times("database/batch-1000")
async def database_batch() -> float:
    """Rows per second, a thousand to a call."""
    return await database.batch()


@times("database/query-10k")
async def database_query() -> float:
    """Milliseconds of a query that filters, sorts and limits ten thousand rows without an index."""
    return await database.query()


@times("database/indexed-equality-10k")
async def database_equality() -> float:
    """Milliseconds of finding the ten rows of one name among ten thousand by an index."""
    return await database.equality()


# -------------------------------------------------------------------- relations


@times("relation/two-levels-100-rows")
async def relation_two_levels() -> float:
    """Statements that read rows, for a hundred rows with what belongs to them and what belongs to that."""
    return await relation.two_levels()


# -------------------------------------------------------------------- schemas


@times("infer/1000-samples")
async def infer_samples() -> float:
    """Milliseconds of inferring what a thousand nested records have in common."""
    return await schemas.infer()


@times("endpoint/check")
async def endpoint_check() -> float:
    """Microseconds of a call whose arguments are checked against what samples have in common."""
    return await schemas.check()
