"""Calls of a workspace's actor: one after another, whole or not at all, and nobody else waits for them."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.workspace import Limits, Workspace, WorkspaceManager
from greenroom.protocol.errors import ActorError, WorkspaceError
from greenroom.protocol.forms import evaluate_form, parse_form
from greenroom.protocol.workspace import create_file
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.messages import Request
from tests.cancelling import Doomed, at_every_step
from tests.workspace.conftest import texts

EXPLOSIVE = ["(a+)+$", "(a|a)*b", "(x(a+)+y)"]
QUADRATIC = "(a+b)|a"
"""Each match of it looks at the whole rest of a text of nothing but `a`."""


class Ping(Request[int], frozen=True):
    number: int


class Other(Actor):
    """An actor that has nothing to do with workspaces."""

    @handles(Ping)
    def ping(self, message: Ping) -> int:
        return message.number


class Pinging:
    """Asks another actor again and again, until it is told to stop."""

    def __init__(self, runtime: Runtime) -> None:
        self.other = runtime.spawn(Other(), "other")
        self.answered = 0

    async def run(self) -> None:
        while True:
            assert await self.other.ask(Ping(self.answered)) == self.answered
            self.answered += 1


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    async with open_runtime() as opened:
        yield opened


@pytest.fixture(params=["memory", "directory"])
async def workspace(request: pytest.FixtureRequest, runtime: Runtime, tmp_path: Path) -> Workspace:
    workspaces = WorkspaceManager(runtime.tree)
    return workspaces.add("w") if request.param == "memory" else await workspaces.mount(tmp_path, "w")


# -------------------------------------------------------------------- one after another


async def test_writers_take_turns_and_every_call_is_whole(workspace: Workspace) -> None:
    async def write(number: int) -> None:
        for _ in range(5):
            await workspace.append({"a": f"{number} ", "b": f"{number} "})

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(write, number)
    a, b = (await workspace.read(["a", "b"])).values()
    assert a == b
    assert sorted(a.split()) == sorted("01234" * 5)


async def test_a_search_goes_through_the_files_of_its_turn(workspace: Workspace) -> None:
    await workspace.write({"a": "x", "b": "x"})
    found: list[int] = []

    async def search() -> None:
        found.append(len(await workspace.search("x")))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(search)
            nursery.start_soon(workspace.append, "a", "x")
    assert set(found) <= {2, 3, 4, 5}
    assert len(await workspace.search("x")) == 5


async def test_two_directories_that_are_one_report_each_others_writes(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    workspaces = WorkspaceManager(runtime.tree)
    outcomes: list[str] = []

    async def write(workspace: Workspace) -> None:
        for _ in range(20):
            try:
                await workspace.append("a", workspace.id)
                outcomes.append(workspace.id)
            except WorkspaceError as error:
                outcomes.extend([] if error.code == "CHANGED" else [error.code])
                await workspace.read("a")

    async with trio.open_nursery() as nursery:
        for id in ("1", "2"):
            nursery.start_soon(write, await workspaces.mount(tmp_path, id))
    assert sorted((tmp_path / "a").read_text()) == sorted(outcomes)


# -------------------------------------------------------------------- cancelled


async def test_a_cancelled_write_is_whole_or_was_none() -> None:
    async def scenario(doomed: Doomed) -> None:
        async with open_runtime() as runtime:
            workspace = WorkspaceManager(runtime.tree).add("w", texts(a="1", b="1"))
            ended = await doomed(workspace.write, {"a": "2", "b": "2"})
            await trio.testing.wait_all_tasks_blocked()
            written = set((await workspace.read(["a", "b"])).values())
            assert written == {"2"} or (ended.cancelled and written == {"1"})
            assert await workspace.undo() == (("a", "b") if written == {"2"} else ())
            assert runtime.snapshot().waits == ()

    await at_every_step(scenario)


async def test_a_cancelled_save_is_whole_or_was_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")

    async def scenario(doomed: Doomed) -> None:
        async with open_runtime() as runtime:
            workspace = await WorkspaceManager(runtime.tree).mount(tmp_path, "w")
            before = await workspace.read("a")
            ended = await doomed(workspace.append, "a", "x")
            after = await workspace.read("a")
            assert after == f"{before}x" or (ended.cancelled and after == before)
            assert os.listdir(tmp_path) == ["a"]

    await at_every_step(scenario)


async def test_a_cancelled_search_ends(runtime: Runtime) -> None:
    workspace = WorkspaceManager(runtime.tree, seconds=None).add("w", texts(a="a" * 1_000_000))
    pinging = Pinging(runtime)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(workspace.search, QUADRATIC, regex=True))
        nursery.start_soon(pinging.run)
        while pinging.answered < 100:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert await workspace.count() == 1


async def test_a_cancelled_mount_leaves_nothing_open(tmp_path: Path) -> None:
    before = open_descriptors()

    async def scenario(doomed: Doomed) -> None:
        async with open_runtime() as runtime:
            workspaces = WorkspaceManager(runtime.tree)
            ended = await doomed(workspaces.mount, tmp_path)
            assert workspaces.count == (0 if ended.cancelled else 1)

    await at_every_step(scenario)
    assert open_descriptors() == before


async def test_a_removed_directory_is_let_go(runtime: Runtime, tmp_path: Path) -> None:
    workspaces = WorkspaceManager(runtime.tree)
    await trio.to_thread.run_sync(os.getpid)  # what threads need is open from now on
    before = open_descriptors()
    workspace = await workspaces.mount(tmp_path, "w")
    await workspace.write("a/b", "x")
    assert open_descriptors() == before + 1
    await workspaces.remove("w")
    assert open_descriptors() == before
    with pytest.raises(ActorError):
        await workspace.read("a/b")
    assert (tmp_path / "a" / "b").read_text() == "x"


async def test_a_workspace_that_is_stopped_in_the_middle_of_a_replacement_changes_nothing(runtime: Runtime) -> None:
    workspaces = WorkspaceManager(runtime.tree, seconds=None)
    workspace = workspaces.add("w", texts(a="a" * 1_000_000))
    pinging = Pinging(runtime)
    told: list[object] = []
    workspace.emitter.on("write", told.append)

    async def replace() -> None:
        with pytest.raises(ActorError) as caught:
            await workspace.replace(QUADRATIC, "", regex=True)
        assert caught.value.code == "STOPPED"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(replace)
        nursery.start_soon(pinging.run)
        while pinging.answered < 100:
            await trio.lowlevel.checkpoint()
        await workspaces.remove("w")
        nursery.cancel_scope.cancel()
    assert told == []


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# -------------------------------------------------------------------- nobody waits


@pytest.mark.case("reports/workspace", 4)
@pytest.mark.parametrize("pattern", EXPLOSIVE)
async def test_no_pattern_explodes_and_no_ping_is_missed(runtime: Runtime, workspace: Workspace, pattern: str) -> None:
    line = "a" * 60 + "!"
    await workspace.write("a", line)
    pinging = Pinging(runtime)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pinging.run)
        before = time.perf_counter()
        assert await workspace.search(pattern, regex=True) == []
        assert (await workspace.replace(pattern, "", regex=True)).occurrences == 0
        assert time.perf_counter() - before < 1
        nursery.cancel_scope.cancel()
    assert pinging.answered > 0
    schema = parse_form({"fields": [{"control": "text", "name": "x", "rule": {"pattern": pattern}}]})
    assert schema is not None
    before = time.perf_counter()
    assert [error.rule for error in evaluate_form(schema, {"x": line})] == ["pattern"]
    assert time.perf_counter() - before < 1


@pytest.mark.case("reports/workspace", 4)
async def test_a_search_that_takes_too_long_is_given_up_and_holds_nobody_up(runtime: Runtime) -> None:
    workspace = WorkspaceManager(runtime.tree, seconds=0.5).add("w", texts(a="a" * 1_000_000))
    pinging = Pinging(runtime)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pinging.run)
        for operation in (workspace.search(QUADRATIC, regex=True), workspace.replace(QUADRATIC, "", regex=True)):
            with pytest.raises(WorkspaceError) as caught:
                await operation
            assert (caught.value.code, caught.value.context) == ("LIMIT", {"query": QUADRATIC, "seconds": 0.5})
        nursery.cancel_scope.cancel()
    assert pinging.answered > 30
    assert (await workspace.read("a")) == "a" * 1_000_000


async def test_a_search_gives_no_more_than_the_manager_allows(runtime: Runtime) -> None:
    workspace = WorkspaceManager(runtime.tree, hits=2).add("w", texts(a="xxxx"))
    assert len(await workspace.search("x")) == 2
    assert len(await workspace.search("x", limit=1)) == 1
    assert len(await workspace.search("x", limit=9)) == 2
    assert (await workspace.replace("x", "y")).occurrences == 4


async def test_a_hundred_megabytes_are_stored_right_and_hold_nobody_up(runtime: Runtime) -> None:
    large = "0123456789" * 10_000_000
    workspace = WorkspaceManager(runtime.tree).add("w", [create_file("a", "x" * 2_000_000)])
    pinging = Pinging(runtime)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pinging.run)
        assert (await workspace.append("a", large)).size == 102_000_000
        assert len(await workspace.search("90", limit=5)) == 5
        assert await workspace.read("a") == "x" * 2_000_000 + large
        nursery.cancel_scope.cancel()
    assert pinging.answered > 0


async def test_a_directory_has_limits_of_its_own(runtime: Runtime, tmp_path: Path) -> None:
    workspaces = WorkspaceManager(runtime.tree)
    workspace = await workspaces.mount(tmp_path, "w", limits=Limits(file_bytes=3), private=("secret",))
    assert (workspace.root, await workspaces.save("w")) == (str(tmp_path), False)
    for path, code in (("a", "LIMIT"), ("secret/a", "PATH")):
        with pytest.raises(WorkspaceError) as caught:
            await workspace.write(path, "four")
        assert caught.value.code == code
    await workspace.write(".git/a", "abc")
    assert [file.path for file in await workspace.files()] == [".git/a"]
