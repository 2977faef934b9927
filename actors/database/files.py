"""Databases in files that an operator names; each file says by itself which tables it holds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, final

import trio
from msgspec import UNSET

from greenroom.actors.database.document import DocumentStorage
from greenroom.actors.database.sqlite import SqliteStorage
from greenroom.protocol.database import ColumnSchema, ColumnSpec, DatabaseDefinition, Layout, Stamp, expand_tables
from greenroom.protocol.errors import ToolError

__all__ = ["FILE", "DatabaseFiles"]

FILE: Final = "file"
"""The name under which `DatabaseFiles.storage` is registered as a driver."""

_FIRST: Final = 1
"""The version that tables get which are created without one."""


@final
class DatabaseFiles:
    """Which file each database is kept in, by id: a JSON document if its name ends so, else SQLite.

    It is the store of their definitions too (a `DefinitionStore`): a definition is kept as the stamp of its file, so
    that a database is found again wherever its file is. One that is destroyed is forgotten until the program ends, and
    its file stays. Databases that other drivers keep are not its matter; `set` passes over them.

    Raises `DatabaseError` DRIVER for a file that cannot be read or holds something else, and MIGRATION for tables that
    it cannot be brought to.
    """

    def __init__(self, files: Mapping[str, str | os.PathLike[str]]) -> None:
        self._files = {id: Path(path) for id, path in files.items()}
        self._forgotten: set[str] = set()

    def storage(self, id: str) -> SqliteStorage:
        """The storage of that database. Raises `ToolError` TOOL (`id`, `driver`) for an id that has no file."""
        path = self._files.get(id)
        if path is None:
            raise ToolError(
                "TOOL",
                f"no file was named for a database {id!r}; files were named for: {', '.join(sorted(self._files))}. "
                "Choose another driver",
                {"id": id, "driver": FILE},
            )
        return DocumentStorage(path) if path.suffix.lower() == ".json" else SqliteStorage(path)

    async def get(self, id: str) -> DatabaseDefinition | None:
        """The definition that the file of that id holds; `None` if it holds none, or it was deleted."""
        if id not in self._files or id in self._forgotten:
            return None
        stamp = await trio.to_thread.run_sync(self.storage(id).stamped)
        return None if stamp is None else _definition(id, stamp)

    async def set(self, definition: DatabaseDefinition) -> None:
        """Create the tables in the file, and stamp it. Cancelled: it is done whole all the same."""
        if definition.driver != FILE:
            return
        await trio.to_thread.run_sync(self._stamp, definition)
        self._forgotten.discard(definition.id)

    async def delete(self, id: str) -> bool:
        """Forget the database, but leave its file; whether there was one."""
        there = await self.get(id) is not None
        self._forgotten.add(id)
        return there

    def _stamp(self, definition: DatabaseDefinition) -> None:
        primary = {} if definition.primary is UNSET else definition.primary
        indexes = {} if definition.indexes is UNSET else definition.indexes
        tables = expand_tables(definition.tables, primary, indexes)
        storage = self.storage(definition.id)
        version = definition.version
        if version is UNSET:
            before = storage.stamped()
            version = _FIRST if before is None else before.version
        try:
            storage.open({name: Layout(table) for name, table in tables.items()}, version)
        finally:
            storage.close()


def _definition(id: str, stamp: Stamp) -> DatabaseDefinition:
    tables = stamp.schema
    return DatabaseDefinition(
        id,
        FILE,
        {table.name: {"columns": {column.name: _spec(column) for column in table.columns}} for table in tables},
        {table.name: table.primary for table in tables},
        {table.name: [list(group) for group in table.indexes] for table in tables},
        stamp.version,
    )


def _spec(column: ColumnSchema) -> ColumnSpec:
    return {"type": column.storage, "optional": column.optional}
