"""Tables of stores: declared once, created, brought up to date in one transaction, and refused when they are newer."""

# ruff: noqa: ASYNC240  # nothing else runs that looking at a file could hold up

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlite_utils

from greenroom.protocol.errors import JournalError
from greenroom.runtime.journal import Table, open_reader
from tests.journal.stage import NOTES, code_of, opened, shell


def add_owner(database: sqlite_utils.Database) -> None:
    database.table("runs").add_column("owner", str)


def add_steps(database: sqlite_utils.Database) -> None:
    database.table("runs").add_column("steps", int, not_null_default=0)
    database.execute("UPDATE runs SET steps = length(snapshot)")


def fail(database: sqlite_utils.Database) -> None:
    add_steps(database)
    raise LookupError("the third version cannot be made")


def shape_twice(database: sqlite_utils.Database) -> None:
    database.table("runs").transform(rename={"snapshot": "state"})
    database.table("runs").create_index(["state"])
    raise LookupError("late")


FIRST = Table("runs", {"id": str, "snapshot": str}, "id")
SECOND = Table("runs", {"id": str, "snapshot": str, "owner": str}, "id", version=2, migrations={2: add_owner})
THIRD = Table(
    "runs",
    {"id": str, "snapshot": str, "owner": str, "steps": int},
    "id",
    indexes=[("owner", "steps")],
    version=3,
    migrations={2: add_owner, 3: add_steps},
)


def versions(path: Path) -> dict[str, int]:
    return dict(shell(path, "SELECT name, version FROM versions"))


async def test_a_fresh_file_has_the_present_shape(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    async with opened(path, THIRD) as journal:
        await journal.write(THIRD.insert(id="r", snapshot="{}", steps=3))
    assert versions(path) == {"streams": 1, "events": 1, "runs": 3}
    assert shell(path, "SELECT * FROM runs") == [("r", "{}", None, 3)]
    assert shell(path, "SELECT name FROM pragma_index_info('idx_runs_owner_steps')") == [("owner",), ("steps",)]


@pytest.mark.parametrize("late", [False, True])
async def test_an_older_file_is_brought_up_to_date(tmp_path: Path, late: bool) -> None:
    path = tmp_path / "j.db"
    async with opened(path, FIRST) as journal:
        await journal.write(FIRST.insert(id="r", snapshot="abc"))
    async with opened(path, *() if late else (THIRD,)) as journal:
        if late:
            await journal.register(THIRD, NOTES)
        await journal.write(THIRD.upsert(id="r", owner="me"))
    assert shell(path, "SELECT id, snapshot, owner, steps FROM runs") == [("r", "abc", "me", 3)]
    assert versions(path)["runs"] == 3


@pytest.mark.parametrize("last", [fail, shape_twice])
async def test_a_migration_that_fails_changes_nothing_of_any_table(tmp_path: Path, last: Any) -> None:
    path = tmp_path / "j.db"
    async with opened(path, FIRST) as journal:
        await journal.write(FIRST.insert(id="r", snapshot="abc"))
    before = shell(path, "SELECT name, sql FROM sqlite_master")
    broken = Table("runs", {"id": str}, "id", version=3, migrations={2: add_owner, 3: last})
    with pytest.raises(LookupError):
        async with opened(path, NOTES, broken):
            pass
    assert shell(path, "SELECT name, sql FROM sqlite_master") == before
    assert versions(path) == {"streams": 1, "events": 1, "runs": 1}
    async with opened(path, NOTES) as journal:
        with pytest.raises(LookupError):
            await journal.register(broken)
        assert await journal.select("SELECT id, snapshot FROM runs") == [("r", "abc")]
        await journal.append("s", "said", "it is open all the same")


@pytest.mark.parametrize("late", [False, True])
async def test_a_newer_file_is_refused_with_both_versions_and_left_as_it_is(tmp_path: Path, late: bool) -> None:
    path = tmp_path / "j.db"
    async with opened(path, THIRD):
        pass
    before = path.read_bytes()
    with pytest.raises(JournalError) as refused:
        async with opened(path, *(NOTES, FIRST) if not late else ()) as journal:
            await journal.register(NOTES, FIRST)
    assert code_of(refused) == "NEWER"
    assert refused.value.context == {"path": str(path), "table": "runs", "version": 3, "known": 1}
    assert "version 3 of 'runs'" in refused.value.message
    assert "up to version 1" in refused.value.message
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["j.db"], "and nobody holds it"


async def test_a_file_of_a_newer_journal_is_refused_also_for_a_look(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    async with opened(path):
        pass
    shell(path, "UPDATE versions SET version = 99 WHERE name = 'events'")
    for attempt in (opened(path), open_reader(path)):
        with pytest.raises(JournalError) as refused:
            async with attempt:
                pass
        assert code_of(refused) == "NEWER"
        assert refused.value.context["version"] == 99


async def test_a_table_that_nobody_registers_any_more_stays(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    async with opened(path, NOTES) as journal:
        await journal.write(NOTES.insert(id="n", text="t"))
    async with opened(path):
        pass
    async with opened(path, NOTES) as journal:
        assert await journal.select("SELECT text FROM notes") == [("t",)]


async def test_rows_are_inserted_changed_and_deleted() -> None:
    pairs = Table("pairs", {"a": int, "b": int, "text": str}, ("a", "b"))
    async with opened(":memory:", pairs, NOTES) as journal:
        assert await journal.write(pairs.insert(a=1, b=1, text="x"), pairs.insert(a=1, b=2)) == (1, 1)
        assert await journal.write(
            pairs.upsert(a=1, b=1, text="y"), pairs.upsert(a=2, b=2), pairs.upsert(a=2, b=2)
        ) == (1, 1, 0)
        assert await journal.select("SELECT * FROM pairs ORDER BY a, b") == [(1, 1, "y"), (1, 2, None), (2, 2, None)]
        assert await journal.write(pairs.delete(1, 2), pairs.delete(7, 7)) == (1, 0)
        assert await journal.write(NOTES.upsert(id="n", text="t", owner="me"), NOTES.upsert(id="n", text="u")) == (1, 1)
        assert await journal.select("SELECT * FROM notes") == [("n", "u", "me")]


async def test_a_unique_index_is_one() -> None:
    keyed = Table("keyed", {"id": int, "key": str}, "id", unique=[("key",)])
    async with opened(":memory:", keyed) as journal:
        await journal.write(keyed.insert(id=1, key="a"))
        with pytest.raises(JournalError) as refused:
            await journal.write(keyed.insert(id=2, key="a"))
        assert code_of(refused) == "REFUSED"
        assert "keyed.key" in refused.value.message


@pytest.mark.parametrize(
    ("arguments", "options", "why"),
    [
        (("Runs", {"id": str}, "id"), {}, "lower case"),
        (("runs", {"id; DROP": str}, "id; DROP"), {}, "lower case"),
        (("runs", {"id": str}, "key"), {}, "has no column key; it has id"),
        (("runs", {"id": str}, "id"), {"not_null": ["key"]}, "has no column key"),
        (("runs", {"id": str}, "id"), {"indexes": [("key",)]}, "has no column key"),
        (("runs", {"id": str}, "id"), {"version": 3, "migrations": {3: fail}}, "one migration for each of 2 to 3"),
    ],
)
def test_a_wrong_declaration_is_refused_at_once(arguments: Any, options: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Table(*arguments, **options)


@pytest.mark.parametrize("name", ["events", "streams", "versions", "notes"])
async def test_a_name_that_is_taken_is_refused(name: str) -> None:
    mine = Table(name, {"id": str}, "id")
    with pytest.raises(ValueError, match=f"has a table '{name}' already"):
        async with opened(":memory:", NOTES, mine):
            pass


async def test_columns_may_be_called_as_the_language_is() -> None:
    words = Table("table", {"order": int, "group": str, "index": str}, "order", indexes=[("group",)])
    async with opened(":memory:", words) as journal:
        await journal.write(words.insert(order=1, group="a"), words.upsert(order=1, index="b"), words.upsert(order=2))
        assert await journal.select('SELECT * FROM "table"') == [(1, "a", "b"), (2, None, None)]
        assert await journal.write(words.delete(1)) == (1,)


def test_a_row_of_columns_that_are_not_there_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="has no column txt; it has id, text, owner"):
        NOTES.insert(id="n", txt="t")
