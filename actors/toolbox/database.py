"""The tool `database`: a model creates databases, reads them and changes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import trio
from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.actors.database import (
    Database,
    DatabaseResolver,
    DefinitionStore,
    DriverFactory,
    Table,
)
from greenroom.protocol.database import (
    PRIMITIVES,
    Aggregate,
    DatabaseDefinition,
    KeyFunction,
    Query,
    clamp_query,
)
from greenroom.protocol.errors import DatabaseError, ToolError
from greenroom.runtime.tools import Tool
from greenroom.runtime.tree import Tree

__all__ = ["DATABASE_TOOL_LIMIT", "DATABASE_TOOL_MUTATIONS", "database_tool", "infer_database_code"]

DATABASE_TOOL_LIMIT: Final = 1000
"""How many rows a call of `records` gets where nothing else is said."""

DATABASE_TOOL_MUTATIONS: Final = ("create", "add", "set", "update", "remove", "destroy")
"""The operations that a readonly tool refuses."""

SUMMARY: Final = "Creates small databases, and reads and changes their rows; see describe({name!r}) for how."

DESCRIPTION: Final = """\
Creates databases of typed tables, and reads and changes their rows. Every call names an `operation` and the `id` of a \
database.

- create: `tables` is {table: {"columns": {column: type}}}; a type is string, integer, number or boolean, or \
{"type": one of them, "optional": true} for a column whose cells may be absent. The column `id` holds the key of a row \
unless `primary` ({table: column}) names another. `indexes` ({table: [[column, ...]]}) makes columns fast to find. \
Returns {"id", "tables"}.
- tables: returns {"tables": [{"name", "primary", "columns"}]}, the columns as a JSON Schema.
- add: stores a new `row`, or a list of rows, and returns its {"key"}, or {"keys"}. A row without a key gets one.
- set: the same, but in place of the whole row of that key.
- update: changes the cells in `changes` of the row of `key`, or of each in a list; returns {"updated"}.
- remove: removes the row of `key`, or each in a list; returns {"removed"}.
- get: returns {"row"} for a `key`, {} if there is none; {"rows"} for a list of keys, with null for each missing one.
- records: returns {"rows", "count", "truncated", "limit"}; `truncated` says that there are more.
- count: returns {"count"} of the rows that meet the conditions.
- aggregate: `function` (count, sum, average, minimum, maximum) of a `column`; returns {"value"}, or {} without one.
- destroy: closes the database and forgets it; returns {"id", "destroyed"}.

`query`, for records, count and aggregate, is {"conditions": [{"column", "operator", "values", "connector"}], "order": \
[{"column", "direction"}], "limit", "offset"}. `values` is always a list. Operators: equals, not, above, below, from, \
to (with one value; from and to include it), between (two, both included), any, none (any number), like (text with % \
for any run of characters and _ for one, case ignored), glob (with * and ?, case counts), starts, ends, absent, \
present. A `connector` joins its condition to the result of all before it: a, then or b, then and c is (a or b) and c.

Values are compared by type: "5" is not 5. A cell is absent, never null; an absent one is below every value.

Example: {"operation": "records", "id": "shop", "table": "products", "query": {"conditions": [{"column": "price", \
"operator": "below", "values": [50]}], "order": [{"column": "price", "direction": "descending"}], "limit": 10}}
"""

Name = Annotated[str, Meta(min_length=1)]
KeyList = list[str | int | float]
Record = dict[str, Any]


def _object(**properties: Any) -> dict[str, Any]:
    first = next(iter(properties))
    return {"type": "object", "properties": properties, "required": [first], "additionalProperties": False}


_WORD: Final[dict[str, Any]] = {"enum": list(PRIMITIVES)}
_OPTIONAL: Final[dict[str, Any]] = {"type": "boolean", "description": "Whether a cell may be absent."}

Column = Annotated[
    Any,
    Meta(
        extra_json_schema={
            "anyOf": [_WORD, _object(type=_WORD, optional=_OPTIONAL), _object(primitive=_WORD, optional=_OPTIONAL)]
        }
    ),
]
"""Left as it was sent, since a definition is stored so. `primitive` is another spelling of `type`."""


class TableDeclaration(Struct):
    columns: Annotated[dict[str, Column], Meta(description="The columns by name, in the order in which they are read.")]


class Create(Struct, tag_field="operation", tag="create"):
    """Creates a database."""

    id: Annotated[str, Meta(min_length=1, description="A name for the new database.")]
    tables: Annotated[dict[str, TableDeclaration], Meta(description="The tables by name.")]
    driver: Annotated[str, Meta(min_length=1, description="What keeps the rows; usually left out.")] | UnsetType = UNSET
    primary: (
        Annotated[dict[str, Name], Meta(description="The key column of each table where it is not id.")] | UnsetType
    ) = UNSET
    indexes: (
        Annotated[
            dict[str, list[Annotated[list[Name], Meta(min_length=1)]]],
            Meta(description="For each table, the groups of columns that are often looked for."),
        ]
        | UnsetType
    ) = UNSET
    version: (
        Annotated[int | float, Meta(description="The version of these tables, for storage that lasts.")] | UnsetType
    ) = UNSET


class _Named(Struct, tag_field="operation"):
    id: Annotated[str, Meta(min_length=1, description="The database.")]


class _OfTable(_Named):
    table: Annotated[str, Meta(min_length=1, description="The table.")]


class Tables(_Named, tag="tables"):
    """Lists the tables of a database."""


class Get(_OfTable, tag="get"):
    """Reads rows by key."""

    key: Annotated[KeyList | str | int | float, Meta(description="The key of a row, or a list of keys.")]


class Records(_OfTable, tag="records"):
    """Reads the rows that meet conditions."""

    query: Query | UnsetType = UNSET


class Count(_OfTable, tag="count"):
    """Counts the rows that meet conditions."""

    query: Query | UnsetType = UNSET


class AggregateCells(_OfTable, tag="aggregate"):
    """Makes one value of a column."""

    function: Aggregate
    column: Annotated[str, Meta(min_length=1, description="The column.")]
    query: Query | UnsetType = UNSET


class Add(_OfTable, tag="add"):
    """Stores new rows."""

    row: Annotated[list[Record] | Record, Meta(description="The row by column, or a list of rows.")]


class Set(_OfTable, tag="set"):
    """Stores rows, each in place of the one of its key."""

    row: Annotated[list[Record] | Record, Meta(description="The row by column, or a list of rows.")]


class Update(_OfTable, tag="update"):
    """Changes some cells of rows."""

    key: Annotated[KeyList | str | int | float, Meta(description="The key of a row, or a list of keys.")]
    changes: Annotated[Record, Meta(description="The new cells by column; the others stay.")]


class Remove(_OfTable, tag="remove"):
    """Removes rows by key."""

    key: Annotated[KeyList | str | int | float, Meta(description="The key of a row, or a list of keys.")]


class Destroy(_Named, tag="destroy"):
    """Closes a database and forgets it."""


Call = Create | Tables | Get | Records | Count | AggregateCells | Add | Set | Update | Remove | Destroy


def database_tool(
    tree: Tree,
    *,
    databases: Mapping[str, Database] | None = None,
    store: DefinitionStore | None = None,
    drivers: Mapping[str, DriverFactory] | None = None,
    driver: str = "memory",
    generator: KeyFunction | None = None,
    limit: int = DATABASE_TOOL_LIMIT,
    timeout_ms: int | None = None,
    readonly: bool = False,
    atomic: bool = False,
    strict: bool = False,
    clear: bool = False,
    erase: bool = False,
    name: str = "database",
    description: str | None = None,
) -> Tool:
    """The tool `database` over the databases given and those that it creates, which are actors of the tree.

    `drivers` are the kinds of storage that may be named, each a function that makes the one of an id (default: `memory`
    alone), and `driver` is the one that is taken where none is named; `store` keeps the definitions of created
    databases, which are made anew when they are first used. A closed or destroyed database given in `databases` is gone
    for its owner too. `limit` caps the rows of `records`, `timeout_ms` bounds what reads or changes rows by condition
    or in number (None: no bound), `readonly` refuses every change. `atomic` lets a list of rows be stored whole or not
    at all; `strict` refuses queries on unknown columns; `clear` lets null in `changes` take an optional cell away;
    `erase` lets `destroy` remove a database's file.

    It raises `ToolError`: TOOL for what no database was asked, DATABASE for what one refused, with its own code in the
    context. Raises `ToolError` TOOL here for a `timeout_ms` that is no such number.
    """
    if timeout_ms is not None and (type(timeout_ms) is not int or not 0 <= timeout_ms <= 2**53 - 1):
        raise ToolError(
            "TOOL", f"timeout_ms is a whole number of milliseconds from 0 to {2**53 - 1}", {"timeout": timeout_ms}
        )
    resolver = DatabaseResolver(
        tree, handles=databases, drivers=drivers, generator=generator, store=store, strict=strict
    )
    seconds = None if timeout_ms is None else timeout_ms / 1000
    operations = _Operations(resolver, driver, limit, seconds, atomic=atomic, clear=clear, erase=erase)

    async def database(call: Call) -> dict[str, Any]:
        operation = str(call.__struct_config__.tag)
        if readonly and operation in DATABASE_TOOL_MUTATIONS:
            raise ToolError(
                "TOOL", f"this tool only reads: {operation} is not among what it does", {"operation": operation}
            )
        try:
            return await operations.carry_out(call)
        except DatabaseError as error:
            context = {"code": error.code, "operation": operation, "id": call.id}
            if isinstance(call, _OfTable):
                context["table"] = call.table
            raise ToolError("DATABASE", error.message, context) from error

    return Tool(
        name,
        database,
        summary=SUMMARY.format(name=name),
        description=DESCRIPTION if description is None else description,
        parameters=Call,
    )


def infer_database_code(error: BaseException) -> str | None:
    """The code of a database's error; `None` for an error of another kind, which is to be raised again as it is."""
    return error.code if isinstance(error, DatabaseError) else None


class _Operations:
    """What each call comes to."""

    def __init__(
        self,
        resolver: DatabaseResolver,
        driver: str,
        limit: int,
        seconds: float | None,
        *,
        atomic: bool,
        clear: bool,
        erase: bool,
    ) -> None:
        self._resolver = resolver
        self._driver = driver
        self._limit = limit
        self._seconds = seconds
        self._atomic = atomic
        self._clear = clear
        self._erase = erase

    async def carry_out(self, call: Call) -> dict[str, Any]:
        if isinstance(call, Create):
            return await self._create(call)
        if isinstance(call, Destroy):
            return {"id": call.id, "destroyed": await self._resolver.destroy(call.id, erase=self._erase)}
        database = await self._resolver.resolve(call.id)
        if isinstance(call, Tables):
            tables = map(database.table, database.tables())
            return {
                "tables": [{"name": each.name, "primary": each.primary, "columns": each.parameters} for each in tables]
            }
        table = database.table(call.table)
        if isinstance(call, Get):
            if isinstance(call.key, list):
                return {"rows": await table.get(call.key)}
            row = await table.get(call.key)
            return {} if row is None else {"row": row}
        with trio.move_on_after(float("inf") if self._seconds is None else self._seconds):
            return await self._bounded(call, table)
        raise DatabaseError("ABORTED", f"it was not done within {self._seconds} s and was ended")

    async def _create(self, call: Create) -> dict[str, Any]:
        definition = DatabaseDefinition(
            call.id,
            self._driver if call.driver is UNSET else call.driver,
            {name: {"columns": table.columns} for name, table in call.tables.items()},
            call.primary,
            call.indexes,
            call.version,
        )
        database = await self._resolver.create(definition)
        return {"id": call.id, "tables": database.tables()}

    async def _bounded(
        self, call: Records | Count | AggregateCells | Add | Set | Update | Remove, table: Table
    ) -> dict[str, Any]:
        match call:
            case Records():
                query, limit = clamp_query(_query(call), self._limit)
                rows = await table.records(query)
                sent = rows[:limit]
                return {"rows": sent, "count": len(sent), "truncated": len(rows) > limit, "limit": limit}
            case Count():
                return {"count": await table.count(_query(call))}
            case AggregateCells():
                value = await table.aggregate(call.function, call.column, _query(call))
                return {} if value is None else {"value": value}
            case Add():
                if isinstance(call.row, list):
                    return {"keys": await table.add(call.row, atomic=self._atomic)}
                return {"key": await table.add(call.row, atomic=self._atomic)}
            case Set():
                if isinstance(call.row, list):
                    return {"keys": await table.set(call.row, atomic=self._atomic)}
                return {"key": await table.set(call.row, atomic=self._atomic)}
            case Update():
                updated = await table.update(call.key, call.changes, atomic=self._atomic, clear=self._clear)
                return {"updated": updated}
            case Remove():
                return {"removed": await table.remove(call.key, atomic=self._atomic)}


def _query(call: Records | Count | AggregateCells) -> Query:
    return Query() if call.query is UNSET else call.query
