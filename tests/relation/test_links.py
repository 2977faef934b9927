"""Links of rows by a table between them."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from greenroom.actors.relation import RelationManager
from greenroom.actors.toolbox.relation import relation_tool
from greenroom.protocol.errors import ToolError
from tests.relation.conftest import RELATIONS, Accounts


def case(number: int) -> pytest.MarkDecorator:
    return pytest.mark.case("relations", number)


async def links(accounts: Accounts, key: str = "a1") -> list[Any]:
    keys: list[Any] = (await accounts.call("links", key=key, relation="reps"))["keys"]
    return keys


@case(21)
async def test_links_are_cut_at_the_limit(accounts: Accounts) -> None:
    for target in ("r1", "r2", "r3"):
        await accounts.call("link", key="a1", relation="reps", target=target)
    tool = relation_tool({"shop": accounts.manager}, limit=2)
    told = await tool.execute({"operation": "links", "model": "accounts", "key": "a1", "relation": "reps"})
    assert told == {"keys": ["r1", "r2"], "count": 2, "truncated": True, "limit": 2}


@case(22)
async def test_a_pair_is_linked_once(accounts: Accounts) -> None:
    for target in ("r2", "r1", "r1"):
        assert await accounts.call("link", key="a1", relation="reps", target=target) == {"linked": True}
    assert await accounts.database.table("accountReps").count() == 2
    assert await links(accounts) == ["r2", "r1"]  # in the order of the links' own keys
    assert (await accounts.row("a1", "reps"))["reps"] == [{"id": "r2"}, {"id": "r1"}]


@case(23)
async def test_neither_end_of_a_link_has_to_be_there(accounts: Accounts) -> None:
    for target in ("ghost", "r1"):
        assert await accounts.call("link", key="a1", relation="reps", target=target) == {"linked": True}
    assert await links(accounts) == ["ghost", "r1"]
    assert (await accounts.row("a1", "reps"))["reps"] == [{"id": "r1"}]
    assert await accounts.call("link", key="nobody", relation="reps", target="r1") == {"linked": True}


@case(24)
async def test_a_row_may_have_no_links(accounts: Accounts) -> None:
    told = await accounts.call("links", key="a1", relation="reps")
    assert told == {"keys": [], "count": 0, "truncated": False, "limit": 1000}


@case(25)
async def test_a_link_has_one_key(accounts: Accounts) -> None:
    for key in (["a1"], True):
        error = await accounts.refused("link", key=key, relation="reps", target="r1")
        assert (error.code, list(error.context)) == ("TOOL", ["args"])


@case(26)
async def test_only_a_relation_through_a_table_has_links(accounts: Accounts) -> None:
    for operation, fields in (("link", {"target": "r1"}), ("unlink", {"target": "r1"}), ("links", {})):
        for relation, code in (("contacts", "NOT_THROUGH"), ("ghost", "UNKNOWN_RELATION")):
            error = await accounts.refused(operation, key="a1", relation=relation, **fields)
            assert error.code == "RELATION"
            context = {"code": code, "operation": operation, "model": "accounts", "relation": relation}
            assert error.context == context


@case(27)
async def test_a_table_of_links_that_needs_more_refuses_them(accounts: Accounts) -> None:
    error = await accounts.refused("link", key="a1", relation="strict", target="r1")
    assert (error.code, error.context) == ("DATABASE", {"code": "VALIDATION", "operation": "link"})
    assert "since" in error.message


@case(28)
async def test_a_pair_that_is_there_twice_counts_twice_and_goes_at_once(accounts: Accounts) -> None:
    row = {"accountId": "a2", "repId": "r1"}
    await accounts.database.table("accountReps").add([row, row])
    assert await links(accounts, "a2") == ["r1", "r1"]
    reps = (await accounts.row("a2", "reps"))["reps"]
    assert reps == [{"id": "r1"}, {"id": "r1"}]
    assert reps[0] is not reps[1]
    assert await accounts.call("unlink", key="a2", relation="reps", target="r1") == {"unlinked": True}
    assert await links(accounts, "a2") == []


@case(29)
async def test_a_pair_that_is_not_linked_can_be_unlinked(accounts: Accounts) -> None:
    assert await accounts.call("unlink", key="a1", relation="reps", target="r1") == {"unlinked": True}


async def test_ends_are_compared_by_type_and_stored_as_read(accounts: Accounts) -> None:
    for _ in range(2):
        await accounts.call("link", key="a1", relation="reps", target=7)
    assert await links(accounts) == ["7", "7"]
    await accounts.call("unlink", key="a1", relation="reps", target=7)
    assert await links(accounts) == ["7", "7"]
    await accounts.call("unlink", key="a1", relation="reps", target="7")
    assert await links(accounts) == []


async def test_linking_tells_what_changed(accounts: Accounts) -> None:
    told: list[Any] = []
    model = accounts.manager.model("accounts")
    for event in ("link", "unlink"):
        model.emitter.on(event, lambda key, relation, event=event: told.append((event, key, relation)))
    assert await model.link("a1", "reps", "r1") is True
    assert await model.link("a1", "reps", "r1") is False
    assert await model.unlink("a1", "reps", "r1") == 1
    assert await model.unlink("a1", "reps", "r1") == 0
    assert told == [("link", "a1", "reps"), ("unlink", "a1", "reps"), ("unlink", "a1", "reps")]


async def test_many_who_link_the_same_pair_make_one_link(accounts: Accounts) -> None:
    model = accounts.manager.model("accounts")
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(model.link, "a1", "reps", "r1")
    assert await model.links("a1", "reps") == ["r1"]
    assert await accounts.database.table("accountReps").count() == 1


async def test_a_readonly_tool_links_nothing(accounts: Accounts) -> None:
    tool = relation_tool({"shop": RelationManager(accounts.database, RELATIONS)}, readonly=True)
    for operation in ("link", "unlink"):
        call = {"operation": operation, "model": "ghost", "key": "a1", "relation": "reps", "target": "r1"}
        with pytest.raises(ToolError) as caught:
            await tool.execute(call)
        assert (caught.value.code, caught.value.context) == ("TOOL", {"operation": operation})
    told = await tool.execute({"operation": "links", "model": "accounts", "key": "a1", "relation": "reps"})
    assert told["keys"] == []
