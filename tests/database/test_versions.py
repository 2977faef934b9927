"""Stamps and migrations: what a file becomes when other tables are declared over it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from greenroom.actors.database import Database, Storage, json_driver, sqlite_driver
from greenroom.protocol.database import Migration
from greenroom.protocol.errors import DatabaseError
from greenroom.runtime.tree import Tree

Open = Callable[..., Database]

BASE: dict[str, Any] = {"id": "string", "name": "string"}
EMAIL: dict[str, Any] = {"type": "string", "optional": True}


def case(number: int) -> pytest.MarkDecorator:
    return pytest.mark.case("database", number)


@pytest.fixture(params=["sqlite", "json"])
def over(tree: Tree, tmp_path: Path, request: pytest.FixtureRequest) -> Open:
    """Declares a database over one and the same file."""

    def open(columns: Any, version: float | None = None, *, tables: Any = None, **options: Any) -> Database:
        driver: Storage = (
            sqlite_driver(tmp_path / "file") if request.param == "sqlite" else json_driver(tmp_path / "file")
        )
        declared = {"t": {"columns": columns}} if tables is None else tables
        return Database(tree, driver, declared, version=version, **options)

    return open


async def refused(database: Database) -> DatabaseError:
    with pytest.raises(DatabaseError) as caught:
        await database.open()
    await database.close()
    return caught.value


async def filled(database: Database) -> None:
    await database.table("t").add({"id": "a", "name": "Ada"})
    await database.close()


@case(48)
async def test_a_later_version_with_an_optional_column_keeps_the_rows(over: Open) -> None:
    await filled(over(BASE, 1))
    changed = await refused(over({**BASE, "email": EMAIL}, 1))
    assert changed.code == "MIGRATION"
    later = over({**BASE, "email": EMAIL}, 2)
    assert await later.table("t").records() == [{"id": "a", "name": "Ada"}]
    await later.table("t").update("a", {"email": "a@b.co"})
    await later.close()
    earlier = await refused(over(BASE, 1))
    assert (earlier.code, earlier.context) == ("MIGRATION", {"from": 2, "to": 1})
    again = over({"email": EMAIL, **BASE}, 2)  # in another order, which is the same
    assert await again.table("t").records() == [{"id": "a", "name": "Ada", "email": "a@b.co"}]


@case(49)
@pytest.mark.parametrize(
    "columns",
    [
        {**BASE, "age": "integer"},
        {"id": "string", "name": "number"},
        {"id": "string", "name": {"type": "string", "optional": True}},
        {"id": "integer", "name": "string"},
    ],
)
async def test_what_would_need_invented_cells_is_no_migration(over: Open, columns: Any) -> None:
    await filled(over(BASE, 1))
    assert (await refused(over(columns, 2))).code == "MIGRATION"
    unchanged = over(BASE, 1)
    assert await unchanged.table("t").records() == [{"id": "a", "name": "Ada"}]


async def test_a_migration_goes_step_by_step_and_is_told(over: Open) -> None:
    before = {"t": {"columns": {**BASE, "old": EMAIL}}, "gone": {"columns": {"id": "string"}}}
    first = over(None, 1, tables=before, indexes={"t": [["old"], ["name"]]})
    await first.table("t").add({"id": "a", "name": "Ada", "old": "x"})
    await first.close()

    told: list[Any] = []
    after = {"t": {"columns": {**BASE, "new": EMAIL}}, "come": {"columns": {"id": "integer"}}}
    second = over(None, 2.5, tables=after, indexes={"t": [["name"], ["new"]]}, on={"migrate": told.append})
    assert await second.table("t").records() == [{"id": "a", "name": "Ada"}]
    assert await second.table("come").add({"id": 1}) == 1
    await second.close()
    (migration,) = told
    assert isinstance(migration, Migration)
    assert (migration.from_, migration.to) == (1, 2.5)
    assert [type(step).__name__ for step in migration.steps] == [
        "DropTable",
        "AddTable",
        "DropIndex",
        "DropColumn",
        "AddColumn",
        "AddIndex",
    ]
    third = over(None, 2.5, tables=after, indexes={"t": [["new"], ["name"]]}, on={"migrate": told.append})
    assert await third.table("t").count() == 1
    assert len(told) == 1


async def test_another_primary_column_is_no_migration(over: Open) -> None:
    await filled(over(BASE, 1))
    assert (await refused(over(BASE, 2, primary={"t": "name"}))).code == "MIGRATION"


async def test_without_a_version_a_stamp_tells_only_which_tables_there_are(over: Open) -> None:
    await filled(over(BASE, 1))
    plain = over(BASE)
    assert await plain.table("t").count() == 1


async def test_a_file_without_a_stamp_gets_one(over: Open) -> None:
    await filled(over(BASE))
    stamped = over(BASE, 3)
    assert await stamped.table("t").count() == 1
    await stamped.close()
    assert (await refused(over(BASE, 2))).code == "MIGRATION"


async def test_a_refused_database_is_tried_again_at_the_next_call(over: Open) -> None:
    await filled(over(BASE, 2))
    database = over(BASE, 1)
    for _ in range(2):
        with pytest.raises(DatabaseError, match="declare the later"):
            await database.table("t").count()
    await database.close()
    with pytest.raises(DatabaseError, match="closed"):
        await database.open()
