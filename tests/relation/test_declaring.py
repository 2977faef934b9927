"""How relations are declared, which models there are, and how a call finds its own."""

from __future__ import annotations

from typing import Any

import pytest

from greenroom.actors.database import Database
from greenroom.actors.relation import RelationManager
from greenroom.actors.toolbox.relation import infer_relation_code, relation_tool
from greenroom.protocol.errors import DatabaseError, RelationError, ToolError
from greenroom.protocol.relations import (
    belongs_to,
    expand_include,
    has_many,
    has_morph,
    has_one,
    has_through,
    resolve_relation,
    resolve_relation_map,
)
from tests.relation.conftest import RELATIONS, Accounts


def case(number: int) -> pytest.MarkDecorator:
    return pytest.mark.case("relations", number)


@case(13)
async def test_a_model_needs_an_entry(accounts: Accounts) -> None:
    error = await accounts.refused("find", "reps")
    assert (error.code, error.context) == ("TOOL", {"model": "reps", "models": ["accounts", "contacts", "tiers"]})
    assert (await accounts.call("find", "tiers"))["rows"] == [{"id": "t1"}]


@case(14)
async def test_a_manager_is_looked_for_before_its_model(accounts: Accounts) -> None:
    error = await accounts.refused("find", "ghost", manager="x")
    assert (error.code, error.context) == ("TOOL", {"manager": "x", "managers": ["shop"]})
    assert (await accounts.call("find", "tiers", manager="shop"))["count"] == 1


@case(15)
async def test_the_manager_may_be_left_out_where_there_is_one(accounts: Accounts) -> None:
    for managers in ({"one": accounts.manager, "two": accounts.manager}, {}):
        with pytest.raises(ToolError) as caught:
            await relation_tool(managers).execute({"operation": "find", "model": "accounts"})
        assert (caught.value.code, caught.value.context) == ("TOOL", {"managers": list(managers)})


@case(20)
async def test_arguments_are_read_and_refused_as_those_of_any_tool(accounts: Accounts) -> None:
    wrong: list[dict[str, Any]] = [{"limit": -1}, {"direction": "up"}, {"sort": ""}, {"manager": ""}]
    for fields in wrong:
        error = await accounts.refused("find", **fields)
        assert (error.code, list(error.context)) == ("TOOL", ["args"])
    assert (await accounts.call("find", limit="2"))["count"] == 2
    tool = relation_tool({"shop": accounts.manager}, limit=1)
    told = await tool.execute({"operation": "find", "model": "accounts", "limit": 50})
    assert (told["count"], told["limit"], told["truncated"]) == (1, 1, True)


@case(30)
@pytest.mark.parametrize(
    ("value", "relationship"),
    [
        ("x", "belongs"),
        (["x"], "many"),
        ({"key": "x"}, "one"),
        ({"column": "x"}, "belongs"),
        ({"column": "x", "key": "y"}, "belongs"),
        ({"key": "x", "tag": "y", "label": "z"}, "morph"),
        ({"through": "x", "source": "y", "target": "z"}, "through"),
        ({"relationship": "many", "key": "x"}, "many"),
        ({"key": "x", "tag": "y"}, None),
        ({"through": "x", "column": "y"}, None),
        ({"relationship": "several", "key": "x"}, None),
        ({"key": 5}, None),
        ({"key": "x", "model": 5}, None),
        ({}, None),
        ([], None),
        ([5], None),
        (5, None),
        (None, None),
    ],
)
def test_a_value_tells_which_relation_it_is(value: Any, relationship: str | None) -> None:
    if relationship is None:
        with pytest.raises(RelationError) as caught:
            resolve_relation("r", value)
        assert (caught.value.code, caught.value.context) == ("INVALID", {"relation": "r"})
    else:
        resolved = resolve_relation("r", value)
        assert (resolved.name, resolved.relationship, resolved.model) == ("r", relationship, "r")


@case(31)
def test_a_named_relationship_wants_its_own_fields() -> None:
    with pytest.raises(RelationError) as caught:
        resolve_relation("r", {"relationship": "one", "column": "x"})
    assert caught.value.code == "INVALID"
    assert "key" in caught.value.message
    assert resolve_relation("r", ["x", "more"]).key == "x"


@pytest.mark.parametrize(
    "relations", ["x", ["t"], 5, False, {"t": "x"}, {"t": ["x"]}, {"t": None}, {1: {}}, {"t": {1: "x"}}]
)
def test_relations_are_declared_by_table_and_name(relations: Any) -> None:
    with pytest.raises(RelationError) as caught:
        resolve_relation_map(relations)
    assert caught.value.code == "INVALID"


def test_the_functions_spell_the_descriptors() -> None:
    resolved = resolve_relation_map(
        {
            "t": {
                "a": belongs_to("c", "m"),
                "b": has_many("k"),
                "c": has_one("k", "m"),
                "d": has_through("j", "s", "t"),
                "e": has_morph("k", "g", "l", "m"),
            }
        }
    )["t"]
    assert [(each.relationship, each.model) for each in resolved.values()] == [
        ("belongs", "m"),
        ("many", "b"),
        ("one", "m"),
        ("through", "d"),
        ("morph", "m"),
    ]
    assert (resolved["d"].through, resolved["d"].source, resolved["d"].target) == ("j", "s", "t")
    assert (resolved["e"].key, resolved["e"].tag, resolved["e"].label) == ("k", "g", "l")


@case(32)
async def test_related_tables_have_to_be_declared(database: Database) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"ghosts": ["id"]}, "ghosts"),
        ({"reps": {"through": "ghosts", "source": "x", "target": "y"}}, "ghosts"),
        ({"ghosts": {"through": "accountReps", "source": "x", "target": "y"}}, "ghosts"),
    ]
    for relations, table in wrong:
        with pytest.raises(RelationError) as caught:
            RelationManager(database, {"accounts": relations})
        (relation,) = relations
        assert caught.value.code == "INVALID"
        assert caught.value.context == {"model": "accounts", "relation": relation, "table": table}
    manager = RelationManager(database, {"ghosts": {"contacts": ["accountId"]}, "tiers": {}})
    assert (manager.models(), manager.count) == (["ghosts", "tiers"], 2)
    assert manager.has("ghosts")
    assert manager.has("tiers")
    assert not manager.has("accounts")
    assert manager.model("accounts").relations == {}
    with pytest.raises(DatabaseError) as missing:
        manager.model("ghosts")
    assert missing.value.code == "NOT_FOUND"


async def test_a_strict_manager_wants_every_name_to_be_there(database: Database) -> None:
    strict: list[tuple[dict[str, Any], str]] = [
        ({"ghosts": {"contacts": ["accountId"]}}, "ghosts"),
        ({"accounts": {"tier": belongs_to("ghost", "tiers")}}, "accounts"),
        ({"accounts": {"contacts": ["ghost"]}}, "contacts"),
        ({"accounts": {"notes": has_morph("entityId", "ghost", "account")}}, "notes"),
        ({"accounts": {"reps": has_through("accountReps", "ghost", "repId")}}, "accountReps"),
        ({"accounts": {"reps": has_through("accountReps", "id", "repId")}}, "accountReps"),
    ]
    for relations, table in strict:
        RelationManager(database, relations)
        with pytest.raises(RelationError) as caught:
            RelationManager(database, relations, strict=True)
        assert (caught.value.code, caught.value.context["table"]) == ("INVALID", table)
    RelationManager(database, RELATIONS, strict=True)


@case(33)
def test_dotted_paths_are_one_tree() -> None:
    assert expand_include(["a", "a.b"], 3) == expand_include(["a.b", "a"], 3) == {"a": {"b": True}}
    assert expand_include(["a.b.c", "a.b"], 3) == {"a": {"b": {"c": True}}}
    assert expand_include(["a.b", "a.c", "d"], 3) == {"a": {"b": True, "c": True}, "d": True}
    assert expand_include(["__proto__"], 3) == {"__proto__": True}
    assert expand_include(None, 3) == expand_include([], 3) == {}
    for path, depth in (("a", 0), (".a", 3), ("a..b", 3), ("a.", 3), ("", 3)):
        with pytest.raises(ToolError) as caught:
            expand_include([path], depth)
        assert (caught.value.code, caught.value.context) == ("TOOL", {"path": path, "depth": depth})


@case(34)
async def test_a_closed_database_says_so(accounts: Accounts) -> None:
    await accounts.database.close()
    error = await accounts.refused("load", key="a1")
    assert (error.code, error.context) == ("DATABASE", {"code": "CLOSED", "operation": "load"})


def test_a_code_is_a_relation_errors_own() -> None:
    assert infer_relation_code(RelationError("INVALID", "")) == "INVALID"
    assert infer_relation_code(DatabaseError("CLOSED", "")) is None
