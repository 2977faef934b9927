"""Rows with what belongs to them."""

from __future__ import annotations

from typing import Any

import pytest

from greenroom.actors.database import Database, memory_driver
from greenroom.actors.database.sqlite import SqliteStorage
from greenroom.actors.relation import RelationManager
from greenroom.protocol.errors import RelationError
from greenroom.protocol.relations import belongs_to, has_many
from greenroom.runtime.tree import Tree
from tests.relation.conftest import RELATIONS, Accounts


def case(number: int) -> pytest.MarkDecorator:
    return pytest.mark.case("relations", number)


A1 = {"id": "a1", "name": "Acme", "tierId": "t1"}
CONTACTS = [{"id": "c1", "accountId": "a1"}, {"id": "c2", "accountId": "a1"}]
ALL = ("tier", "contacts", "profile", "reps", "notes")


@case(1)
async def test_nothing_is_loaded_that_is_not_asked_for(accounts: Accounts) -> None:
    assert await accounts.row("a1") == A1
    assert await accounts.call("load", key="a1") == {"row": A1}


@case(2)
async def test_each_relation_is_attached_under_its_name(accounts: Accounts) -> None:
    assert await accounts.row("a1", *ALL) == {
        **A1,
        "tier": {"id": "t1"},
        "contacts": CONTACTS,
        "profile": {"id": "p1", "accountId": "a1"},
        "reps": [],
        "notes": [{"id": "n1", "entityId": "a1", "entityType": "account"}],
    }


@case(3)
async def test_a_relation_without_rows_is_left_out_or_an_empty_list(accounts: Accounts) -> None:
    expected: dict[str, Any] = {"id": "a2", "name": "Beta", "contacts": [], "reps": [], "notes": []}
    assert await accounts.row("a2", *ALL) == expected


@case(4)
async def test_a_key_that_leads_nowhere_stays(accounts: Accounts) -> None:
    assert await accounts.row("a3", "tier") == {"id": "a3", "name": "Cyan", "tierId": "zz"}


@case(5)
async def test_a_list_of_keys_is_answered_in_its_order(accounts: Accounts) -> None:
    rows = (await accounts.call("load", key=["a1", "zz", "a2", "a1"], include=["contacts"]))["rows"]
    full = {**A1, "contacts": CONTACTS}
    assert rows == [full, None, {"id": "a2", "name": "Beta", "contacts": []}, full]
    assert rows[0] is not rows[3]
    assert rows[0]["contacts"][0] is not rows[3]["contacts"][0]


@case(6)
async def test_a_missing_row_has_no_row(accounts: Accounts) -> None:
    assert await accounts.call("load", key="zz") == {}
    assert await accounts.call("load", key=5) == {}
    assert await accounts.call("load", key=[]) == {"rows": []}


@case(7)
async def test_unknown_relations_are_passed_over_at_every_level(accounts: Accounts) -> None:
    assert await accounts.row("a1", "ghost") == A1
    assert await accounts.row("a1", "contacts.ghost") == {**A1, "contacts": CONTACTS}
    assert await accounts.row("a1", "tier.x.y") == {**A1, "tier": {"id": "t1"}}


@case(8)
async def test_relations_are_followed_level_by_level(accounts: Accounts) -> None:
    account = {**A1, "tier": {"id": "t1"}}
    row = await accounts.row("a1", "contacts.account.tier")
    assert row == {**A1, "contacts": [{**contact, "account": account} for contact in CONTACTS]}
    first, second = row["contacts"]
    assert first["account"] is not second["account"]  # one row in two places is two objects


@case(9)
async def test_a_path_that_is_too_deep_or_empty_is_refused(accounts: Accounts) -> None:
    deep = await accounts.refused("load", key="a1", include=["contacts", "a.b.c.d"])
    assert (deep.code, deep.context) == ("TOOL", {"path": "a.b.c.d", "depth": 3})
    for path in ("", "contacts."):
        assert (await accounts.refused("find", include=[path])).code == "TOOL"


@case(10)
async def test_the_longer_path_wins(accounts: Accounts) -> None:
    row = await accounts.row("a1", "contacts.account", "contacts")
    assert row["contacts"] == [{**contact, "account": A1} for contact in CONTACTS]


@case(11)
async def test_a_relation_takes_the_place_of_a_column_of_its_name(accounts: Accounts) -> None:
    assert await accounts.row("a1", "name") == {**A1, "name": CONTACTS}


async def test_a_relation_to_one_takes_its_column_away_where_there_is_none(database: Database) -> None:
    manager = RelationManager(database, {"accounts": {"tierId": belongs_to("tierId", "tiers")}})
    model = manager.model("accounts")
    assert await model.load("a1", {"tierId": True}) == {"id": "a1", "name": "Acme", "tierId": {"id": "t1"}}
    assert await model.load("a3", {"tierId": True}) == {"id": "a3", "name": "Cyan"}


@case(12)
async def test_an_include_is_a_list(accounts: Accounts) -> None:
    error = await accounts.refused("load", key="a1", include="contacts")
    assert (error.code, list(error.context)) == ("TOOL", ["args"])


@case(16)
async def test_find_gives_all_rows_by_key(accounts: Accounts) -> None:
    told = await accounts.call("find")
    assert [row["id"] for row in told["rows"]] == ["a1", "a2", "a3"]
    assert (told["count"], told["truncated"], told["limit"]) == (3, False, 1000)


@case(17)
async def test_a_page_may_be_empty(accounts: Accounts) -> None:
    assert await accounts.call("find", limit=0) == {"rows": [], "count": 0, "truncated": True, "limit": 0}
    beyond = await accounts.call("find", offset=9)
    assert (beyond["count"], beyond["truncated"]) == (0, False)


@case(18)
async def test_a_page_is_sorted_and_says_that_there_is_more(accounts: Accounts) -> None:
    told = await accounts.call("find", limit=1, sort="name", direction="descending")
    assert ([row["id"] for row in told["rows"]], told["truncated"]) == (["a3"], True)


@case(19)
@pytest.mark.parametrize(
    ("fields", "ids"),
    [
        ({"direction": "descending"}, ["a1", "a2", "a3"]),
        ({"sort": "ghost"}, ["a1", "a2", "a3"]),
        ({"sort": "tierId"}, ["a2", "a1", "a3"]),
    ],
)
async def test_rows_without_an_order_come_by_key(accounts: Accounts, fields: Any, ids: list[str]) -> None:
    assert [row["id"] for row in (await accounts.call("find", **fields))["rows"]] == ids


async def test_a_page_has_its_relations(accounts: Accounts) -> None:
    rows = (await accounts.call("find", limit=1, offset=1, include=["contacts", "tier"]))["rows"]
    assert rows == [{"id": "a2", "name": "Beta", "contacts": []}]


async def test_false_in_an_include_passes_over_and_a_tree_follows(accounts: Accounts) -> None:
    model = accounts.manager.model("accounts")
    assert await model.load("a1", {"contacts": False}) == A1
    assert await model.load("a1", {"tier": {}, "contacts": {"account": False}}) == {
        **A1,
        "tier": {"id": "t1"},
        "contacts": CONTACTS,
    }


async def test_keys_match_by_type(tree: Tree) -> None:
    tables: Any = {
        "owners": {"columns": {"id": "integer"}},
        "things": {"columns": {"id": "string", "as_text": "string", "as_number": "number"}},
    }
    database = Database(tree, memory_driver(), tables)
    await database.table("owners").add({"id": 1})
    await database.table("things").add({"id": "x", "as_text": "1", "as_number": 1})
    manager = RelationManager(
        database,
        {
            "owners": {"by_text": has_many("as_text", "things"), "by_number": has_many("as_number", "things")},
            "things": {"text": belongs_to("as_text", "owners"), "number": belongs_to("as_number", "owners")},
        },
    )
    thing = {"id": "x", "as_text": "1", "as_number": 1}
    owner = await manager.model("owners").load(1, {"by_text": True, "by_number": True})
    assert owner == {"id": 1, "by_text": [], "by_number": [thing]}
    assert await manager.model("things").load("x", {"text": True, "number": True}) == {**thing, "number": {"id": 1}}


async def test_a_wrong_column_matches_nothing(database: Database) -> None:
    manager = RelationManager(
        database,
        {
            "accounts": {
                "one": belongs_to("ghost", "tiers"),
                "many": has_many("ghost", "contacts"),
                "linked": {"through": "accountReps", "source": "ghost", "target": "ghost", "model": "reps"},
            }
        },
    )
    everything = {"one": True, "many": True, "linked": True}
    assert await manager.model("accounts").load("a1", everything) == {**A1, "many": [], "linked": []}


async def test_a_relation_with_the_name_of_the_column_it_came_by_hides_its_rows(database: Database) -> None:
    """The column is gone by then; which is why such a relation wants another name."""
    manager = RelationManager(
        database,
        {"accounts": {"contacts": ["accountId"]}, "contacts": {"accountId": belongs_to("accountId", "accounts")}},
    )
    row = await manager.model("accounts").load("a1", {"contacts": {"accountId": True}})
    assert row == {**A1, "contacts": []}
    contact = await manager.model("contacts").load("c1", {"accountId": True})
    assert contact == {"id": "c1", "accountId": A1}


async def test_what_is_loaded_is_told_afterwards(accounts: Accounts) -> None:
    told: list[Any] = []
    for name in ("accounts", "contacts"):
        model = accounts.manager.model(name)
        model.emitter.on("load", lambda relation, count, name=name: told.append((name, relation, count)))
    await accounts.row("a1", "contacts.account", "profile", "reps")
    assert told == [
        ("contacts", "account", 2),
        ("accounts", "contacts", 2),
        ("accounts", "profile", 1),
        ("accounts", "reps", 0),
    ]


async def test_a_call_takes_one_query_for_each_relation_however_many_rows_there_are(tree: Tree) -> None:
    storage = SqliteStorage()
    tables: Any = {
        "a": {"columns": {"id": "string", "up": "string"}},
        "b": {"columns": {"id": "string", "a": "string"}},
        "ab": {"columns": {"id": "string", "x": "string", "y": "string"}},
    }
    database = Database(tree, storage, tables)
    await database.table("a").add([{"id": f"a{index}", "up": f"a{index // 2}"} for index in range(700)])
    await database.table("b").add([{"id": f"b{index:04}", "a": f"a{index % 700}"} for index in range(2100)])
    await database.table("ab").add([{"x": f"a{index}", "y": f"b{index:04}"} for index in range(700)])
    manager = RelationManager(
        database,
        {
            "a": {
                "up": belongs_to("up", "a"),
                "bs": has_many("a", "b"),
                "linked": {"through": "ab", "source": "x", "target": "y", "model": "b"},
            },
            "b": {"owner": belongs_to("a", "a")},
        },
    )
    statements: list[str] = []
    storage.database.conn.set_trace_callback(statements.append)
    rows = await manager.model("a").find({"up": {"up": True}, "bs": {"owner": True}, "linked": True})
    storage.database.conn.set_trace_callback(None)
    assert len(rows) == 700
    assert rows[0]["bs"][2]["owner"]["id"] == rows[0]["id"]
    assert rows[5]["linked"][0]["id"] == "b" + rows[5]["id"][1:].rjust(4, "0")
    queries = [statement for statement in statements if statement.startswith("SELECT")]
    assert len(queries) == 1 + 2 + 2 + 2  # the rows; up and up of those; bs and their owners; links and what they link
    assert [statement for statement in statements if statement not in queries] == ["BEGIN", "ROLLBACK"]


async def test_a_strict_manager_refuses_an_unknown_relation(database: Database) -> None:
    manager = RelationManager(database, {name: RELATIONS[name] for name in ("accounts", "contacts")}, strict=True)
    with pytest.raises(RelationError) as caught:
        await manager.model("accounts").load("a1", {"contacts": {"ghost": True}})
    assert caught.value.code == "UNKNOWN_RELATION"
    assert caught.value.context == {"model": "contacts", "relation": "ghost"}
    assert "account" in caught.value.message


async def test_a_bound_on_attached_rows_is_an_error_and_no_cut(database: Database) -> None:
    for most, fits in ((4, True), (3, False)):
        model = RelationManager(database, RELATIONS, most=most).model("accounts")
        include = {"contacts": {"account": True}}
        if fits:
            assert await model.load("a1", include) is not None
        else:
            with pytest.raises(RelationError) as caught:
                await model.load("a1", include)
            assert (caught.value.code, caught.value.context) == ("LIMIT", {"limit": 3})
