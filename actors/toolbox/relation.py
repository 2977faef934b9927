"""The tool `relation`: a model reads rows with what belongs to them, and links rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NoReturn

from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.actors.relation import Model, RelationManager
from greenroom.actors.toolbox.database import infer_database_code
from greenroom.protocol.database import Direction, resolve_limit
from greenroom.protocol.errors import DatabaseError, RelationError, ToolError
from greenroom.protocol.relations import expand_include
from greenroom.runtime.tools import Tool

__all__ = [
    "RELATION_TOOL_DEPTH",
    "RELATION_TOOL_LIMIT",
    "infer_relation_code",
    "relation_tool",
    "resolve_relation_manager",
    "resolve_relation_model",
]

RELATION_TOOL_LIMIT: Final = 1000
"""How many rows or keys a call gets where nothing else is said."""

RELATION_TOOL_DEPTH: Final = 3
"""How many relations an include path may follow."""

SUMMARY: Final = (
    "Reads rows together with the rows that belong to them, and links rows; see describe({name!r}) for how."
)

DESCRIPTION: Final = """\
Reads rows of a table together with the rows that belong to them, and links rows of two tables. `model` is the \
table. `manager` says which set of relations, and is left out where there is only one.

- load: the row of `key`, or of each key in a list; returns {"row"}, {} if there is none, or {"rows"} with null for \
each missing one.
- find: rows by key, or sorted by a column (`sort`, `direction`), at most `limit` after `offset` others; returns \
{"rows", "count", "truncated", "limit"}; `truncated` says that there are more.
- link: links the row of `key` to the row `target` by a `relation` that has a table of links; returns \
{"linked": true}, also if they were linked.
- unlink: takes such a link away; returns {"unlinked": true}, also if there was none.
- links: the keys that the row of `key` is linked to; returns {"keys", "count", "truncated", "limit"}.

`include`, for load and find, lists what is loaded along: ["contacts"] attaches to each row the rows of its relation \
`contacts`, ["contacts.account"] also the account of each of those. A relation to one row is left out where there is \
none; a relation to many is a list.

Keys are compared by type: "5" is not 5.

Example: {"operation": "load", "model": "accounts", "key": "acc1", "include": ["contacts.account", "tags"]}
"""

Key = str | int | float


class _Call(Struct, tag_field="operation", kw_only=True):
    manager: Annotated[str, Meta(min_length=1, description="The set of relations.")] | UnsetType = UNSET
    model: Annotated[str, Meta(min_length=1, description="The table.")]


class Load(_Call, tag="load", kw_only=True):
    """Reads rows by key, with what belongs to them."""

    key: Annotated[list[Key] | Key, Meta(description="The key of a row, or a list of keys.")]
    include: Annotated[list[str], Meta(description="Dotted paths of relations.")] | UnsetType = UNSET


class Find(_Call, tag="find", kw_only=True):
    """Reads a page of rows, with what belongs to them."""

    include: Annotated[list[str], Meta(description="Dotted paths of relations.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=0, description="How many rows at most.")] | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=0, description="How many rows to pass over first.")] | UnsetType = UNSET
    sort: Annotated[str, Meta(min_length=1, description="A column to sort by.")] | UnsetType = UNSET
    direction: Direction | UnsetType = UNSET


class _OfRelation(_Call, kw_only=True):
    key: Annotated[Key, Meta(description="The key of the row.")]
    relation: Annotated[str, Meta(min_length=1, description="The relation, one that has a table of links.")]


class Link(_OfRelation, tag="link", kw_only=True):
    """Links two rows."""

    target: Annotated[Key, Meta(description="The key of the related row.")]


class Unlink(_OfRelation, tag="unlink", kw_only=True):
    """Takes the link of two rows away."""

    target: Annotated[Key, Meta(description="The key of the related row.")]


class Links(_OfRelation, tag="links", kw_only=True):
    """Lists the keys that a row is linked to."""


Call = Load | Find | Link | Unlink | Links


def relation_tool(
    managers: Mapping[str, RelationManager],
    *,
    limit: int = RELATION_TOOL_LIMIT,
    depth: int = RELATION_TOOL_DEPTH,
    readonly: bool = False,
    name: str = "relation",
    description: str | None = None,
) -> Tool:
    """The tool `relation` over these managers; a call need not name the only one.

    `limit` caps the rows of `find` and the keys of `links`, `depth` how many relations an include path follows;
    `readonly` refuses to link and unlink.

    It raises `ToolError`: TOOL for an unknown manager or model, a wrong include path or a refused operation, RELATION
    for what a relation refuses and DATABASE for what the database does, with their own codes in the context.
    """
    known = dict(managers)

    async def relation(call: Call) -> dict[str, Any]:
        operation = str(call.__struct_config__.tag)
        if readonly and isinstance(call, Link | Unlink):
            raise ToolError(
                "TOOL", f"this tool only reads: {operation} is not among what it does", {"operation": operation}
            )
        manager = resolve_relation_manager(known, None if call.manager is UNSET else call.manager)
        try:
            model = resolve_relation_model(manager, call.model)
            return await _carry_out(call, model, limit, depth)
        except (DatabaseError, RelationError) as error:
            _reraise(error, operation, call)

    return Tool(
        name,
        relation,
        summary=SUMMARY.format(name=name),
        description=DESCRIPTION if description is None else description,
        parameters=Call,
    )


def resolve_relation_manager(managers: Mapping[str, RelationManager], name: str | None) -> RelationManager:
    """The manager of that name, or the only one. Raises `ToolError` TOOL with `managers`, and `manager` if one was
    named.
    """
    names = list(managers)
    told = f"there are: {', '.join(names) or 'none'}"
    if name is None:
        if len(managers) != 1:
            raise ToolError("TOOL", f"name a `manager`; {told}", {"managers": names})
        return managers[names[0]]
    if name not in managers:
        raise ToolError("TOOL", f"there is no manager {name!r}; {told}", {"manager": name, "managers": names})
    return managers[name]


def resolve_relation_model(manager: RelationManager, name: str) -> Model:
    """The model of that name, which has to have an entry. Raises `ToolError` TOOL with `model` and `models`."""
    models = manager.models()
    if not manager.has(name):
        told = f"there is no model {name!r}; there are: {', '.join(models) or 'none'}"
        raise ToolError("TOOL", told, {"model": name, "models": models})
    return manager.model(name)


def infer_relation_code(error: BaseException) -> str | None:
    """The code of a relation's error; `None` for an error of another kind."""
    return error.code if isinstance(error, RelationError) else None


async def _carry_out(call: Call, model: Model, limit: int, depth: int) -> dict[str, Any]:
    match call:
        case Load():
            include = expand_include(call.include or None, depth)
            if isinstance(call.key, list):
                return {"rows": await model.load(call.key, include)}
            row = await model.load(call.key, include)
            return {} if row is None else {"row": row}
        case Find():
            include = expand_include(call.include or None, depth)
            most = resolve_limit(call.limit, limit)
            rows = await model.find(
                include,
                limit=most + 1,
                offset=call.offset or 0,
                sort=call.sort or None,
                direction=call.direction or "ascending",
            )
            return _page("rows", rows, most)
        case Link():
            await model.link(call.key, call.relation, call.target)
            return {"linked": True}
        case Unlink():
            await model.unlink(call.key, call.relation, call.target)
            return {"unlinked": True}
        case Links():
            return _page("keys", await model.links(call.key, call.relation), max(0, limit))


def _page(name: Literal["rows", "keys"], found: list[Any], most: int) -> dict[str, Any]:
    sent = found[:most]
    return {name: sent, "count": len(sent), "truncated": len(found) > most, "limit": most}


def _reraise(error: DatabaseError | RelationError, operation: str, call: Call) -> NoReturn:
    context: dict[str, Any] = {"code": error.code, "operation": operation}
    if infer_database_code(error) is not None:
        raise ToolError("DATABASE", error.message, context) from error
    context["model"] = call.model
    if isinstance(call, _OfRelation):
        context["relation"] = call.relation
    raise ToolError("RELATION", error.message, context) from error
