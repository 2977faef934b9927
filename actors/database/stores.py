"""Where definitions of databases are kept. Rows are never among them."""

from __future__ import annotations

import copy
from typing import Final, Protocol, final

import msgspec
from trio.lowlevel import checkpoint

from greenroom.actors.database.database import Database
from greenroom.protocol.database import DatabaseDefinition, TableSpec, parse_definition

__all__ = ["DEFINITION_TABLES", "DefinitionStore", "MemoryDefinitionStore", "TableDefinitionStore"]

DEFINITION_TABLES: Final[TableSpec] = {"definitions": {"columns": {"id": "string", "definition": "string"}}}
"""The tables of a database that is to keep definitions."""


class DefinitionStore(Protocol):
    """Keeps one definition for each id. Implementations may raise; whoever uses the store passes it on."""

    async def get(self, id: str) -> DatabaseDefinition | None:
        """The definition of that id; `None` if there is none, or none that can be read."""
        ...

    async def set(self, definition: DatabaseDefinition) -> None:
        """Keep it under its own id, in place of an earlier one."""
        ...

    async def delete(self, id: str) -> bool:
        """Forget it; whether there was one."""
        ...


@final
class MemoryDefinitionStore:
    """Definitions for as long as the process lives. They are copied in and out."""

    def __init__(self) -> None:
        self._definitions: dict[str, DatabaseDefinition] = {}

    async def get(self, id: str) -> DatabaseDefinition | None:
        await checkpoint()
        return copy.deepcopy(self._definitions.get(id))

    async def set(self, definition: DatabaseDefinition) -> None:
        await checkpoint()
        self._definitions[definition.id] = copy.deepcopy(definition)

    async def delete(self, id: str) -> bool:
        await checkpoint()
        return self._definitions.pop(id, None) is not None


@final
class TableDefinitionStore:
    """Definitions in a table of a database, one row each, with the definition as JSON. What is no definition there is
    passed over."""

    def __init__(self, database: Database, *, table: str = "definitions") -> None:
        self._table = database.table(table)

    async def get(self, id: str) -> DatabaseDefinition | None:
        row = await self._table.get(id)
        if row is None:
            return None
        try:
            return parse_definition(msgspec.json.decode(str(row.get("definition"))))
        except (msgspec.DecodeError, RecursionError):
            return None

    async def set(self, definition: DatabaseDefinition) -> None:
        document = msgspec.json.encode(definition).decode()
        await self._table.set({"id": definition.id, "definition": document})

    async def delete(self, id: str) -> bool:
        return await self._table.remove(id)
