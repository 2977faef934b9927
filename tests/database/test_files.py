"""Files: what is recognised in them, what is refused, and that a refused file is left as it is."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from greenroom.actors.database import Database, json_driver, sqlite_driver
from greenroom.protocol.errors import DatabaseError
from greenroom.runtime.tree import Tree

COLUMNS: Any = {"id": "string", "name": "string", "n": {"type": "integer", "optional": True}}
TABLES: Any = {"t": {"columns": COLUMNS}}
SOUND = 'CREATE TABLE "t" ("id" TEXT PRIMARY KEY NOT NULL, "name" TEXT NOT NULL, "n" INTEGER) STRICT'


def over(tree: Tree, path: Path, tables: Any = TABLES, **options: Any) -> Database:
    return Database(tree, sqlite_driver(path), tables, **options)


def document(tree: Tree, path: Path, tables: Any = TABLES, **options: Any) -> Database:
    return Database(tree, json_driver(path), tables, **options)


async def refused(database: Database) -> DatabaseError:
    with pytest.raises(DatabaseError) as caught:
        await database.open()
    await database.close()
    return caught.value


def entries(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def read(path: Path) -> bytes:
    return path.read_bytes()


def run(path: Path, *statements: str) -> list[Any]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return [connection.execute(statement).fetchall() for statement in statements]


# -------------------------------------------------------------------- SQLite


async def test_rows_outlast_the_database_and_its_destruction(tree: Tree, tmp_path: Path) -> None:
    first = over(tree, tmp_path / "file")
    await first.table("t").add([{"id": "b", "name": "B"}, {"id": "a", "name": "A", "n": 1}])
    await first.close()
    second = over(tree, tmp_path / "file")
    assert await second.table("t").records() == [{"id": "a", "name": "A", "n": 1}, {"id": "b", "name": "B"}]
    await second.erase()
    assert entries(tmp_path) == []


async def test_a_sound_table_of_another_program_is_used(tree: Tree, tmp_path: Path) -> None:
    run(tmp_path / "file", SOUND, "INSERT INTO t VALUES ('a', 'A', 7)", "CREATE TABLE other (x)")
    database = over(tree, tmp_path / "file")
    assert await database.table("t").get("a") == {"id": "a", "name": "A", "n": 7}
    await database.table("t").set({"id": "b", "name": "B"})
    await database.close()
    assert run(tmp_path / "file", "SELECT id FROM t", "SELECT name FROM sqlite_master WHERE name = 'other'") == [
        [("a",), ("b",)],
        [("other",)],
    ]


@pytest.mark.parametrize(
    "statements",
    [
        [SOUND.replace(" STRICT", "")],
        [SOUND.replace('"n" INTEGER', '"n" TEXT')],
        [SOUND.replace('"n" INTEGER', '"n" INTEGER NOT NULL')],
        [SOUND.replace(', "n" INTEGER', "")],
        [SOUND.replace('"n" INTEGER', '"n" INTEGER, "more" TEXT')],
        [SOUND.replace('"name" TEXT NOT NULL', '"name" TEXT NOT NULL COLLATE NOCASE')],
        [SOUND.replace("PRIMARY KEY NOT NULL", "NOT NULL").replace('"name" TEXT', '"name" TEXT PRIMARY KEY')],
        [SOUND, "CREATE UNIQUE INDEX i ON t (name)"],
        [SOUND, "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM t; END"],
    ],
)
async def test_a_table_that_could_not_hold_the_rows_is_refused(
    tree: Tree, tmp_path: Path, statements: list[str]
) -> None:
    run(tmp_path / "file", *statements)
    before = read(tmp_path / "file")
    error = await refused(over(tree, tmp_path / "file"))
    assert error.code == "DRIVER"
    assert "'t'" in error.message
    assert read(tmp_path / "file") == before


async def test_a_declared_index_has_to_be_there(tree: Tree, tmp_path: Path) -> None:
    run(tmp_path / "file", SOUND)
    assert (await refused(over(tree, tmp_path / "file", indexes={"t": [["name"]]}))).code == "DRIVER"
    run(tmp_path / "file", "CREATE INDEX whatever ON t (name)")
    database = over(tree, tmp_path / "file", indexes={"t": [["name"]]})
    assert await database.table("t").count() == 0


async def test_a_stamped_table_that_is_gone_is_missed(tree: Tree, tmp_path: Path) -> None:
    first = over(tree, tmp_path / "file", version=1)
    await first.open()
    await first.close()
    run(tmp_path / "file", "DROP TABLE t")
    for version in (None, 1, 2):
        assert (await refused(over(tree, tmp_path / "file", version=version))).code == "DRIVER"


async def test_a_row_that_no_longer_fits_is_seen_by_aggregates_only(tree: Tree, tmp_path: Path) -> None:
    tables: Any = {"t": {"columns": {"id": "string", "ok": "boolean", "x": "number", "n": "integer"}}}
    first = over(tree, tmp_path / "file", tables)
    await first.table("t").add([{"id": id, "ok": True, "x": 1, "n": 1} for id in "abc"])
    await first.close()
    run(tmp_path / "file", "UPDATE t SET ok = 7, n = 100 WHERE id = 'b'", "UPDATE t SET x = 9e999 WHERE id = 'c'")
    table = over(tree, tmp_path / "file", tables).table("t")
    assert await table.get(["a", "b", "c"]) == [{"id": "a", "ok": True, "x": 1, "n": 1}, None, None]
    assert [row["id"] for row in await table.records()] == ["a"]
    assert [row["id"] async for row in table.scan()] == ["a"]
    assert await table.count() == 1
    assert await table.aggregate("sum", "n") == 102
    assert await table.aggregate("count", "n") == 3
    assert await table.update("b", {"ok": True}) is False
    with pytest.raises(DatabaseError) as caught:
        await table.add({"id": "b", "ok": True, "x": 1, "n": 1})
    assert caught.value.code == "CONFLICT"
    assert await table.set({"id": "b", "ok": True, "x": 1, "n": 1}) == "b"
    assert await table.count() == 2


@pytest.mark.parametrize(
    "content", [b"this is no database, but rather a text of some length" * 20, b"SQLite format 3\0"]
)
async def test_a_file_that_is_no_database_is_refused(tree: Tree, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert (await refused(over(tree, tmp_path / "file"))).code == "DRIVER"
    assert (tmp_path / "file").read_bytes() == content


async def test_a_path_without_a_folder_is_refused(tree: Tree, tmp_path: Path) -> None:
    assert (await refused(over(tree, tmp_path / "no" / "file"))).code == "DRIVER"
    assert (await refused(document(tree, tmp_path / "no" / "file"))).code == "DRIVER"
    assert (await refused(over(tree, tmp_path / "a\0b"))).code == "DRIVER"


async def test_a_backup_holds_what_there_is_at_one_moment(tree: Tree, tmp_path: Path) -> None:
    for make in (over, document):
        name = make.__name__
        database = make(tree, tmp_path / name)
        await database.table("t").add({"id": "a", "name": "A"})
        await database.backup(tmp_path / f"{name} copy")
        await database.table("t").clear()
        copy = make(tree, tmp_path / f"{name} copy")
        assert await copy.table("t").records() == [{"id": "a", "name": "A"}]


# -------------------------------------------------------------------- documents


async def test_a_document_holds_the_rows_in_key_order(tree: Tree, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    tables: Any = {
        "t": {"columns": {**COLUMNS, "x": {"type": "number", "optional": True}}},
        "u": {"columns": {"id": "integer"}},
    }
    database = document(tree, path, tables, version=1)
    await database.table("t").add([{"id": "b", "name": "B", "x": 5.0}, {"id": "a", "name": "A\0 \u2028", "n": 2**62}])
    await database.table("u").add([{"id": 10}, {"id": 9}])
    stored = json.loads(path.read_text())
    assert stored["tables"] == {
        "t": [{"id": "a", "name": "A\0 \u2028", "n": 2**62}, {"id": "b", "name": "B", "x": 5}],
        "u": [{"id": 9}, {"id": 10}],
    }
    assert stored["metadata"]["version"] == 1
    assert entries(tmp_path) == ["rows.json"]
    await database.close()
    again = document(tree, path, tables, version=1)
    assert await again.table("t").count() == 2
    assert await again.table("u").remove(9)
    assert json.loads(path.read_text())["tables"]["u"] == [{"id": 10}]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"tables": []}',
        '{"tables": {}}',
        '{"tables": {"t": [], "more": []}}',
        '{"tables": {"t": {}}}',
        '{"tables": {"t": [1]}}',
        '{"tables": {"t": [{"name": "A"}]}}',
        '{"tables": {"t": [{"id": "a", "name": "A"}, {"id": "a", "name": "B"}]}}',
        '{"tables": {"t": [{"id": "a"}]}}',
        '{"tables": {"t": [{"id": "a", "name": "A", "n": 1.5}]}}',
        '{"tables": {"t": []}, "metadata": 5}',
        '{"tables": {"t": []}, "metadata": {"version": 1, "schema": []}}',
        '{"tables": {"t": []}, "what": 1}',
        '{"tables": {"t": [{"id": "a", "name": "A", "n": NaN}]}}',
    ],
)
async def test_a_document_that_holds_something_else_is_left_as_it_is(tree: Tree, tmp_path: Path, content: str) -> None:
    path = tmp_path / "rows.json"
    path.write_text(content)
    error = await refused(document(tree, path))
    assert error.code == "DRIVER"
    assert path.read_text() == content


async def test_a_document_that_was_only_read_is_not_written(tree: Tree, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    content = '{"tables":{"t":[{"name":"B","id":"b"},{"id":"a","name":"A"}]}}'
    path.write_text(content)
    database = document(tree, path)
    assert [row["id"] for row in await database.table("t").records()] == ["a", "b"]
    await database.table("t").update("b", {"name": "B"})  # which it is already
    assert path.read_text() == content
    await database.table("t").update("b", {"name": "C"})
    assert json.loads(path.read_text())["tables"]["t"][1] == {"id": "b", "name": "C"}


async def test_a_document_that_another_program_has_changed_is_not_overwritten(tree: Tree, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    one, other = document(tree, path), document(tree, path)
    await one.table("t").add({"id": "a", "name": "A"})
    await other.table("t").add({"id": "b", "name": "B"})
    before = path.read_text()
    with pytest.raises(DatabaseError, match="changed by another program") as caught:
        await one.table("t").add({"id": "c", "name": "C"})
    assert caught.value.code == "DRIVER"
    assert path.read_text() == before
    assert await one.table("t").keys() == ["a"]
    await one.close()
    assert await document(tree, path).table("t").keys() == ["a", "b"]


async def test_a_document_that_cannot_be_written_changes_nothing_in_memory(tree: Tree, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    database = document(tree, folder / "rows.json")
    table = database.table("t")
    await table.add({"id": "a", "name": "A"})
    (folder / "rows.json").unlink()
    folder.rmdir()
    with pytest.raises(DatabaseError) as caught:
        await table.add({"id": "b", "name": "B"})
    assert caught.value.code == "DRIVER"
    assert await table.records() == [{"id": "a", "name": "A"}]
    folder.mkdir()
    await table.add({"id": "b", "name": "B"})
    assert len(json.loads((folder / "rows.json").read_text())["tables"]["t"]) == 2
