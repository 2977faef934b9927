"""Databases in files that an operator named: a file says by itself which tables it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from greenroom.actors.database import FILE, MEMORY_DRIVERS, Database, DatabaseFiles, sqlite_driver
from greenroom.actors.toolbox.database import database_tool
from greenroom.runtime.tree import Tree, run_tree
from tests.cancelling import Doomed, at_every_step
from tests.database.conftest import COLUMNS, ROWS, Shop

P: Any = {"p": {"columns": COLUMNS}}


@pytest.fixture(params=["shop.db", "shop.JSON"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path: Path = tmp_path / request.param
    return path


def serving(tree: Tree, file: Path) -> Shop:
    """The tool as a program has it that was given this file."""
    files = DatabaseFiles({"shop": file})
    drivers = {**MEMORY_DRIVERS, FILE: files.storage}
    return Shop(database_tool(tree, store=files, drivers=drivers, driver=FILE))


async def test_a_file_is_found_again_with_all_that_it_holds(file: Path) -> None:
    async with run_tree() as tree:
        shop = serving(tree, file)
        assert (await shop.refused("tables")).code == "TOOL"
        assert list(file.parent.iterdir()) == [], "asking makes no file"
        await shop.call("create", tables=P, primary={"p": "name"}, indexes={"p": [["price", "n"], ["ok"]]})
        await shop.table("add", row=ROWS)
        before = await shop.call("tables"), await shop.table("records")
    async with run_tree() as tree:
        shop = serving(tree, file)
        assert (await shop.call("tables"), await shop.table("records")) == before
        assert (await shop.row("Ada"))["ok"] is True
        assert (await shop.refused("create", tables=P)).code == "TOOL"


async def test_what_was_created_is_there_before_it_was_used(file: Path) -> None:
    async with run_tree() as tree:
        await serving(tree, file).call("create", tables=P)
        async with run_tree() as other:  # of another process, say, after this one was killed
            assert await serving(other, file).table("records") == {
                "rows": [],
                "count": 0,
                "truncated": False,
                "limit": 1000,
            }


async def test_a_destroyed_database_leaves_its_file_and_comes_back_with_it(file: Path) -> None:
    async with run_tree() as tree:
        shop = serving(tree, file)
        await shop.call("create", tables=P, version=3)
        await shop.table("add", row=ROWS)
        assert await shop.call("destroy") == {"id": "shop", "destroyed": True}
        assert await shop.call("destroy") == {"id": "shop", "destroyed": False}
        assert (await shop.refused("tables")).code == "TOOL"
        wrong = await shop.refused("create", tables={"p": {"columns": {"id": "string"}}})
        assert wrong.context["code"] == "MIGRATION"
        await shop.call("create", tables=P)
        assert await shop.ids() == "abcd"
        await shop.call("destroy")
    async with run_tree() as tree:
        assert await serving(tree, file).ids() == "abcd"


async def test_a_later_version_is_created_over_an_earlier_one(file: Path) -> None:
    async with run_tree() as tree:
        shop = serving(tree, file)
        await shop.call("create", tables=P)
        await shop.table("add", row=ROWS)
        await shop.call("destroy")
        more = {"p": {"columns": {**COLUMNS, "note": {"type": "string", "optional": True}}}}
        await shop.call("create", tables=more, version=2)
        await shop.table("update", key="a", changes={"note": "new"})
    async with run_tree() as tree:
        assert (await serving(tree, file).row("a"))["note"] == "new"


async def test_only_the_named_files_are_used(tree: Tree, file: Path) -> None:
    shop = serving(tree, file)
    error = await shop.refused("create", id="other", tables=P)
    assert (error.code, error.context) == ("TOOL", {"id": "other", "driver": "file"})
    assert "shop" in error.message
    await shop.call("create", id="other", tables=P, driver="memory")
    assert list(file.parent.iterdir()) == []
    assert await shop.call("destroy", id="other") == {"id": "other", "destroyed": True}


@pytest.fixture(params=[b"no database at all, but a text", b"[]", b"\xff" * 4096])
def foreign(request: pytest.FixtureRequest, file: Path) -> bytes:
    """What the file holds already."""
    content: bytes = request.param
    file.write_bytes(content)
    return content


async def test_a_file_that_holds_something_else_is_refused_and_left_as_it_is(
    tree: Tree, file: Path, foreign: bytes
) -> None:
    shop = serving(tree, file)
    for operation, fields in (("create", {"tables": P}), ("tables", {}), ("destroy", {})):
        error = await shop.refused(operation, **fields)
        assert error.context["code"] == "DRIVER"
        assert str(file) in error.message
    assert [each.read_bytes() for each in file.parent.iterdir()] == [foreign]


async def test_a_file_that_a_program_made_without_a_stamp_can_be_taken_over(tree: Tree, tmp_path: Path) -> None:
    file = tmp_path / "file"
    database = Database(tree, sqlite_driver(file), P)
    await database.table("p").add(ROWS)
    await database.close()
    shop = serving(tree, file)
    assert (await shop.refused("tables")).code == "TOOL"
    await shop.call("create", tables=P)
    assert await shop.ids() == "abcd"


async def test_a_folder_that_is_not_there_is_told_when_the_database_is_created(tree: Tree, tmp_path: Path) -> None:
    shop = serving(tree, tmp_path / "nowhere" / "file")
    error = await shop.refused("create", tables=P)
    assert (error.code, error.context["code"]) == ("DATABASE", "DRIVER")
    assert await shop.call("destroy") == {"id": "shop", "destroyed": False}


async def test_a_cancelled_creation_is_whole_or_was_none(tmp_path: Path) -> None:
    file = tmp_path / "shop.json"

    async def scenario(doomed: Doomed) -> None:
        file.unlink(missing_ok=True)
        async with run_tree() as tree:
            ended = await doomed(create, tree)
        definition = await DatabaseFiles({"shop": file}).get("shop")
        assert definition is not None or ended.cancelled
        async with run_tree() as tree:
            if definition is None:
                await create(tree)
            assert await serving(tree, file).ids() == ""

    async def create(tree: Tree) -> None:
        await serving(tree, file).call("create", tables=P)

    await at_every_step(scenario)
