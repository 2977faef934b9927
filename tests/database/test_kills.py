"""Processes that are killed while they write: the file is as before, or as after."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from greenroom.actors.database import Database, json_driver, sqlite_driver
from greenroom.runtime.tree import Tree

TABLES: Any = {"t": {"columns": {"id": "string"}}}

WRITER = """
import os, sys, time, trio
from greenroom.actors.database import Database, json_driver, sqlite_driver
from greenroom.runtime.tree import run_tree

kind, path, where = sys.argv[1:]

def stand_still():
    print("here", flush=True)
    time.sleep(600)

made = 0
def generator():
    global made
    made += 1
    if where == "row" and made == 60:
        stand_still()
    return f"{made:04}"

synced, fsync = 0, os.fsync
def counted(descriptor):
    global synced
    synced += 1
    if where == f"sync {synced}":
        stand_still()
    fsync(descriptor)
    if where == f"synced {synced}":
        stand_still()

async def main():
    async with run_tree() as tree:
        driver = sqlite_driver(path) if kind == "sqlite" else json_driver(path)
        database = Database(tree, driver, {"t": {"columns": {"id": "string"}}}, generator=generator)
        await database.table("t").add([{} for _ in range(50)])
        os.fsync = counted
        if where == "held":
            async with database.transaction() as held:
                await held.table("t").add([{} for _ in range(50)])
                stand_still()
        await database.table("t").add([{} for _ in range(50)])
        stand_still()

trio.run(main)
"""


def killed(kind: str, path: Path, where: str) -> None:
    """Run the writer, and kill it there."""
    command = [sys.executable, "-c", WRITER, kind, str(path), where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "here\n"
        writer.send_signal(signal.SIGKILL)


@pytest.mark.parametrize(("where", "rows"), [("row", 50), ("held", 50), ("end", 100)])
async def test_a_killed_sqlite_file_holds_whole_calls(tree: Tree, tmp_path: Path, where: str, rows: int) -> None:
    killed("sqlite", tmp_path / "file", where)
    database = Database(tree, sqlite_driver(tmp_path / "file"), TABLES)
    assert await database.table("t").keys() == [f"{index:04}" for index in range(1, rows + 1)]


@pytest.mark.parametrize(
    ("where", "rows"), [("row", 50), ("held", 50), ("sync 1", 50), ("synced 1", 50), ("sync 2", 100), ("synced 2", 100)]
)
async def test_a_killed_document_is_as_before_or_as_after(tree: Tree, tmp_path: Path, where: str, rows: int) -> None:
    path = tmp_path / "rows.json"
    killed("json", path, where)
    assert len(json.loads(path.read_text())["tables"]["t"]) == rows
    database = Database(tree, json_driver(path), TABLES)
    assert await database.table("t").keys() == [f"{index:04}" for index in range(1, rows + 1)]
