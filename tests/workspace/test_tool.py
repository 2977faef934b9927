"""The workspace tool: how calls are read, and what they do where no workspace is active."""

from __future__ import annotations

from typing import Any

import pytest

from greenroom.actors.toolbox import workspace_tool
from greenroom.protocol.errors import GreenroomError, ToolError, WorkspaceError
from greenroom.protocol.workspace import create_file
from tests.workspace.conftest import PNG, Desk, texts

PARAMETERS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "read": ({"path": "string"}, {}),
    "list": ({}, {}),
    "has": ({"path": "string"}, {}),
    "search": ({"query": "string"}, {"regex": "boolean", "sensitive": "boolean", "limit": "integer"}),
    "replace": (
        {"query": "string", "replacement": "string"},
        {"regex": "boolean", "sensitive": "boolean", "limit": "integer"},
    ),
    "write": ({"path": "string", "content": "string"}, {}),
    "splice": (
        {
            "path": "string",
            "content": "string",
            "fromLine": "integer",
            "fromColumn": "integer",
            "toLine": "integer",
            "toColumn": "integer",
        },
        {},
    ),
    "prepend": ({"path": "string", "content": "string"}, {}),
    "append": ({"path": "string", "content": "string"}, {}),
    "move": ({"from": "string", "to": "string"}, {}),
    "remove": ({"path": "string"}, {}),
    "workspaces": ({}, {}),
    "switch": ({"id": "string"}, {}),
}
"""Required and optional fields of each operation."""


async def test_calls_are_checked_against_thirteen_operations(desk: Desk) -> None:
    def field(kind: str) -> dict[str, Any]:
        return {"type": "integer", "minimum": 1} if kind == "integer" else {"type": kind}

    assert desk.tool.arguments is not None
    variants: list[Any] = desk.tool.arguments.canonical["anyOf"]
    for variant in variants:
        for part in variant["properties"].values():
            part.pop("description")
    assert variants == [
        {
            "type": "object",
            "properties": {
                "operation": {"enum": [operation]},
                **{name: field(kind) for name, kind in (required | optional).items()},
            },
            "required": ["operation", *required],
            "additionalProperties": False,
        }
        for operation, (required, optional) in PARAMETERS.items()
    ]


async def test_undo_is_shown_only_where_it_is_switched_on(desk: Desk) -> None:
    tool = workspace_tool(desk.workspaces, undo=True)
    shown = [each.parameters["properties"]["operation"]["enum"] for each in (desk.tool, tool) if each.parameters]
    assert shown == [[*PARAMETERS], [*PARAMETERS, "undo"]]
    assert [("`undo`" in (each.description or "")) for each in (desk.tool, tool)] == [False, True]


async def test_undo_puts_the_last_call_back(desk: Desk) -> None:
    tool = workspace_tool(desk.workspaces, undo=True)
    assert await tool.execute({"operation": "undo"}) == {"undone": False, "paths": []}
    assert desk.workspaces.count == 0
    desk.seed(texts(a="xx", b="x"))
    await desk.call("replace", query="x", replacement="y")
    assert await tool.execute({"operation": "undo"}) == {"undone": True, "paths": ["a", "b"]}
    assert await desk.call("read", path="a") == "xx"
    assert await tool.execute({"operation": "undo"}) == {"undone": False, "paths": []}


# -------------------------------------------------------------------- nothing active


@pytest.mark.case("workspace", 1)
async def test_looking_without_a_workspace_finds_nothing_and_makes_none(desk: Desk) -> None:
    assert await desk.call("search", query="(", regex=True) == []
    assert await desk.call("read", path="a") is None
    assert await desk.call("list") == []
    assert await desk.call("has", path="a") is False
    assert await desk.call("workspaces") == []


async def only_an_empty_workspace(desk: Desk) -> bool:
    (listed,) = await desk.call("workspaces")
    return bool(listed == {"id": desk.active.id, "files": 0, "active": True})


@pytest.mark.case("workspace", 2)
async def test_a_refused_splice_has_made_a_workspace(desk: Desk) -> None:
    numbers = {"fromLine": 1, "fromColumn": 1, "toLine": 1, "toColumn": 1}
    assert await desk.refused("splice", path="a", content="x", **numbers) == ("MODALITY", {"path": "a"})
    assert await only_an_empty_workspace(desk)


@pytest.mark.case("workspace", 3)
async def test_a_refused_pattern_has_made_a_workspace(desk: Desk) -> None:
    assert await desk.refused("replace", query="(", replacement="", regex=True) == ("PATTERN", {"query": "("})
    assert await only_an_empty_workspace(desk)


@pytest.mark.case("workspace", 4)
async def test_a_move_of_nothing_has_made_a_workspace(desk: Desk) -> None:
    assert await desk.call("move", from_="a", to="b") == {"from": "a", "to": "b", "moved": False}
    assert await only_an_empty_workspace(desk)


@pytest.mark.case("workspace", 34)
async def test_after_the_active_one_is_removed_a_write_adds_another(desk: Desk) -> None:
    desk.seed(texts(a="1"), "w1")
    desk.seed(texts(a="2"), "w2")
    await desk.workspaces.remove("w1")
    assert await desk.call("read", path="a") is None
    await desk.call("write", path="a", content="3")
    added = desk.active.id
    assert added not in ("w1", "w2")
    assert await desk.call("workspaces") == [
        {"id": "w2", "files": 1, "active": False},
        {"id": added, "files": 1, "active": True},
    ]


@pytest.mark.case("workspace", 35)
async def test_a_switch_to_an_unknown_workspace_changes_nothing(desk: Desk) -> None:
    desk.seed(texts(a="1"), "w1")
    desk.seed(texts(a="1", b="2"), "w2")
    assert await desk.call("switch", id="w3") == {"id": "w3", "switched": False}
    assert desk.active.id == "w1"
    assert await desk.call("switch", id="w2") == {"id": "w2", "switched": True, "files": 2}
    assert desk.active.id == "w2"


# -------------------------------------------------------------------- how calls are read


@pytest.mark.case("workspace", 5)
@pytest.mark.case("workspace", 6)
async def test_a_write_says_whether_the_file_is_new(desk: Desk) -> None:
    assert await desk.call("write", path="notes.txt", content="hello") == {"path": "notes.txt", "state": "created"}
    assert await desk.call("write", path="notes.txt", content="hello") == {"path": "notes.txt", "state": "modified"}
    assert await desk.call(" read ", path="notes.txt") == "hello"


@pytest.mark.case("workspace", 7)
async def test_numbers_are_read_as_text_where_text_is_wanted(desk: Desk) -> None:
    await desk.call("write", path="n", content=7)
    assert await desk.call("read", path="n") == "7"
    assert await desk.call("read", path=5) is None


@pytest.mark.case("workspace", 8)
async def test_a_limit_is_a_whole_number_from_one(desk: Desk) -> None:
    desk.seed(texts(a="xx"))
    for limit in (0, 1.5, None):
        code, context = await desk.refused("search", query="x", limit=limit)
        assert (code, context) == ("TOOL", {"args": {"operation": "search", "query": "x", "limit": limit}})
    assert await desk.places("x", limit="1") == [(1, 1, 1)]
    for limit in (2**63, 10**30, 1e300):
        assert await desk.places("x", limit=limit) == await desk.places("x")
        assert (await desk.call("replace", query="x", replacement="x", limit=limit))["occurrences"] > 0


@pytest.mark.case("workspace", 9)
async def test_a_flag_may_come_as_text(desk: Desk) -> None:
    desk.seed(texts(a="hello"))
    assert await desk.places("L", sensitive="false") == [(1, 3, 1), (1, 4, 1)]


@pytest.mark.parametrize(
    "args", [{}, {"operation": "frob"}, {"operation": "read"}, {"operation": "write", "path": "a"}, ["read"], "read", 5]
)
async def test_what_spells_no_operation_is_refused_and_makes_no_workspace(desk: Desk, args: Any) -> None:
    with pytest.raises(ToolError) as caught:
        await desk.tool.execute(args)
    assert (caught.value.code, caught.value.context) == ("TOOL", {"args": args})
    assert desk.workspaces.count == 0


async def test_a_listing_tells_what_each_file_is(desk: Desk) -> None:
    desk.seed([*texts(a="x\n"), PNG])
    await desk.call("append", path="a", content="é")
    assert await desk.call("list") == [
        {"path": "a", "state": "modified", "size": 4, "lines": 2, "kind": "text"},
        {"path": "pic.png", "state": "created", "size": 3, "lines": 0, "kind": "binary"},
    ]
    assert await desk.call("remove", path="a") == {"path": "a", "removed": True}
    assert await desk.call("remove", path="a") == {"path": "a", "removed": False}


# -------------------------------------------------------------------- half a character


HALF = "ab\né\ud83d!"


async def test_a_text_with_half_a_character_stays_but_is_not_told(desk: Desk) -> None:
    desk.seed([create_file("a", HALF)])
    where = {"path": "a", "line": 2, "column": 2}
    assert await desk.refused("read", path="a") == ("SURROGATE", where)
    assert await desk.refused("search", query="!") == ("SURROGATE", where)
    assert await desk.places("b") == [(1, 2, 1)]
    assert await desk.active.read("a") == HALF


async def test_a_name_with_half_a_character_is_refused_before_anything_is_done(desk: Desk) -> None:
    code, context = await desk.refused("write", path="\ud83d", content="x")
    assert (code, context) == ("SURROGATE", {"path": "\\ud83d", "line": 1, "column": 1})
    assert (await desk.refused("move", from_="a", to="\udc00"))[0] == "SURROGATE"
    assert desk.workspaces.count == 0
    desk.seed([create_file("\ud83d", "x")])
    assert (await desk.refused("list"))[0] == "SURROGATE"
    assert (await desk.refused("search", query="x"))[0] == "SURROGATE"


async def test_every_refusal_can_be_written_as_utf_8(desk: Desk) -> None:
    desk.seed([create_file("a", HALF)])
    for operation, args in (
        ("read", {"path": "a"}),
        ("write", {"path": "\ud83d", "content": ""}),
        ("search", {"query": "(\ud83d", "regex": True}),
    ):
        with pytest.raises(GreenroomError) as caught:
            await desk.call(operation, **args)
        assert isinstance(caught.value, WorkspaceError)
        caught.value.message.encode()
