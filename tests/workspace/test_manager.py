"""Workspaces by id: which is active, what a store keeps, what listeners hear."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from greenroom.actors.system import open_runtime
from greenroom.actors.workspace import MemoryWorkspaceStore, Workspace, WorkspaceManager
from greenroom.protocol.emitter import Listener
from greenroom.protocol.errors import ActorError, WorkspaceError
from greenroom.protocol.workspace import WORKSPACE_EVENTS, File, Snapshot, create_file
from tests.workspace.conftest import PNG, Desk, texts


class Told:
    """What a workspace has told its listeners, shortly."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def listeners(self) -> dict[str, Listener]:
        return {event: self._listener(event) for event in WORKSPACE_EVENTS}

    def _listener(self, event: str) -> Listener:
        def listener(*values: Any) -> None:
            shown = [(value.path, value.text) if isinstance(value, File) else value for value in values]
            self.events.append((event, *shown))

        return listener


# -------------------------------------------------------------------- which is active


async def test_the_first_one_and_any_that_is_added_while_none_is_active_become_active(desk: Desk) -> None:
    workspaces = desk.workspaces
    assert workspaces.active is None
    first = workspaces.add()
    assert uuid.UUID(first.id).version == 4
    assert workspaces.active is first
    second = workspaces.add("b")
    assert (workspaces.active, workspaces.count) == (first, 2)
    assert await workspaces.remove(first.id)
    assert workspaces.active is None
    assert workspaces.workspaces() == [second]
    third = workspaces.add("c")
    assert workspaces.active is third
    assert workspaces.switch("b") is second
    assert workspaces.active is workspaces.workspace("b") is second


async def test_a_known_id_is_replaced_in_its_place_and_the_selection_follows(desk: Desk) -> None:
    workspaces = desk.workspaces
    before, other = workspaces.add("a", texts(x="1")), workspaces.add("b")
    after = workspaces.add("a", texts(y="2"))
    assert workspaces.workspaces() == [after, other]
    assert workspaces.active is after
    assert await after.read(["x", "y"]) == {"y": "2"}
    with pytest.raises(ActorError):
        await before.read("x")


async def test_several_are_removed_at_once_and_nothing_of_them_is_left() -> None:
    async with open_runtime() as runtime:
        workspaces = WorkspaceManager(runtime.tree)
        for id in ("a", "b", "c/d"):
            workspaces.add(id)
        (parent,) = [each for each in runtime.snapshot().root.children if each.path == "/workspaces"]
        assert [child.path for child in parent.children] == [
            "/workspaces/a",
            "/workspaces/b",
            "/workspaces/c%2Fd",
        ]
        assert await workspaces.remove(["b", "z"])
        assert not await workspaces.remove(["b", "z"])
        await workspaces.clear()
        (parent,) = [each for each in runtime.snapshot().root.children if each.path == "/workspaces"]
        assert (workspaces.count, parent.children) == (0, ())


async def test_of_a_repeated_path_the_last_file_stays_and_seeds_keep_their_state(desk: Desk) -> None:
    modified = create_file("b", "2", state="modified")
    workspace = desk.seed([*texts(a="1"), modified, *texts(a="3")])
    assert [(file.path, file.text, file.state) for file in await workspace.files()] == [
        ("a", "3", "created"),
        ("b", "2", "modified"),
    ]


# -------------------------------------------------------------------- stores


@pytest.fixture
def store() -> MemoryWorkspaceStore:
    return MemoryWorkspaceStore()


async def test_a_workspace_is_saved_when_that_is_asked_for_and_outlives_its_removal(
    store: MemoryWorkspaceStore,
) -> None:
    async with open_runtime() as runtime:
        workspaces = WorkspaceManager(runtime.tree, store=store)
        workspace = workspaces.add("a", [*texts(x="1"), PNG])
        await workspace.write("x", "2")
        assert await store.get("a") is None
        assert await workspaces.save("a")
        await workspace.write("x", "3")
        assert await workspaces.remove("a")
        assert not await workspaces.save("a")
        other = workspaces.add("other")
        opened = await workspaces.open("a")
        assert opened is not None
        assert workspaces.active is opened is not other
        assert await opened.files() == (create_file("x", "2", state="modified"), PNG)


async def test_an_open_workspace_is_only_selected(store: MemoryWorkspaceStore) -> None:
    async with open_runtime() as runtime:
        workspaces = WorkspaceManager(runtime.tree, store=store)
        here, _ = workspaces.add("a", texts(x="1")), workspaces.add("b")
        workspaces.switch("b")
        await store.set(Snapshot("a", tuple(texts(x="0"))))
        assert await workspaces.open("a") is here
        assert workspaces.active is here
        assert await here.read("x") == "1"
        assert await workspaces.open("nowhere") is None
        assert workspaces.active is here
        await store.delete("a")
        await store.delete("a")
        assert await store.get("a") is None


async def test_without_a_store_nothing_is_saved_or_opened(desk: Desk) -> None:
    desk.seed(texts(a="1"))
    assert not await desk.workspaces.save("w")
    assert await desk.workspaces.open("z") is None


async def test_auto_save_stores_every_change_before_it_answers(store: MemoryWorkspaceStore) -> None:
    async with open_runtime() as runtime:
        workspace = WorkspaceManager(runtime.tree, store=store, auto_save=True).add("a", texts(x="1"))
        await workspace.read("x")
        assert await store.get("a") is None
        await workspace.append({"x": "2", "y": "3"})
        stored = await store.get("a")
        assert stored == await workspace.snapshot()


# -------------------------------------------------------------------- events


async def test_each_change_is_told_after_it_was_made(desk: Desk) -> None:
    told = Told()
    workspace = desk.workspaces.add("a", texts(x="1"), on=told.listeners())
    await workspace.write({"x": "2", "y": "3"})
    await workspace.move("x", "z")
    await workspace.remove("y")
    await workspace.clear()
    assert told.events == [
        ("write", ("x", "2")),
        ("write", ("y", "3")),
        ("move", "x", "z"),
        ("remove", "y"),
        ("clear",),
    ]


async def test_what_does_nothing_is_not_told(desk: Desk) -> None:
    told = Told()
    workspace = desk.workspaces.add("a", texts(x="1"), on=told.listeners())
    await workspace.read("x")
    await workspace.search("1")
    assert not await workspace.move("x", "x")
    assert not await workspace.move("y", "z")
    assert not await workspace.remove(["y", "z"])
    await workspace.replace("9", "0")
    with pytest.raises(WorkspaceError):
        await workspace.edit("x", "9", "0")
    await workspace.remove("x")
    await workspace.clear()
    assert told.events == [("remove", "x")]


async def test_a_raising_listener_stops_neither_its_siblings_nor_the_call(desk: Desk) -> None:
    raised: list[Any] = []
    told = Told()

    def refuse(*values: object) -> None:
        raise ValueError("no")

    workspace = desk.workspaces.add("a", on={"write": refuse}, error=lambda error, event: raised.append((error, event)))
    workspace.emitter.on("write", told.listeners()["write"])
    assert (await workspace.write("x", "1")).state == "created"
    assert told.events == [("write", ("x", "1"))]
    assert [(type(error), event) for error, event in raised] == [(ValueError, "write")]


async def test_a_destroyed_workspace_tells_nothing_and_can_still_be_edited(desk: Desk) -> None:
    told = Told()
    workspace = desk.workspaces.add("a", on=told.listeners())
    workspace.destroy()
    workspace.destroy()
    await workspace.write("x", "1")
    assert await workspace.read("x") == "1"
    assert told.events == []


# -------------------------------------------------------------------- several items


async def several(workspace: Workspace) -> list[Any]:
    return [(file.path, file.text) for file in await workspace.files()]


async def test_items_are_done_one_after_another_and_those_before_a_refused_one_stay(desk: Desk) -> None:
    told = Told()
    workspace = desk.workspaces.add("a", [PNG], on=told.listeners())
    with pytest.raises(WorkspaceError) as caught:
        await workspace.prepend({"x": "1", "pic.png": "2", "y": "3"})
    assert (caught.value.code, caught.value.context) == ("MODALITY", {"path": "pic.png"})
    assert await several(workspace) == [("pic.png", None), ("x", "1")]
    assert told.events == [("write", ("x", "1"))]
    assert await workspace.undo() == ("x",)
    assert await several(workspace) == [("pic.png", None)]


async def test_several_paths_are_asked_for_at_once(desk: Desk) -> None:
    workspace = desk.workspaces.add("a", [PNG, *texts(x="1", y="2")])
    assert await workspace.has(["z", "y"])
    assert not await workspace.has(["z"])
    assert await workspace.has("pic.png")
    assert await workspace.read(["y", "pic.png", "z", "x"]) == {"y": "2", "x": "1"}
    assert await workspace.remove(["x", "z", "y"])
    assert await workspace.count() == 1
