"""`write` and `edit`: what they come to, what they refuse, and who is asked before."""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from greenroom.actors.system import open_runtime
from greenroom.protocol.errors import ToolError
from greenroom.protocol.workspace import BinaryContent
from greenroom.runtime.bus import Next
from greenroom.runtime.file_access import EditIntent, FileObserved, Precondition, WriteIntent
from greenroom.runtime.pipeline.approvals import ApprovalRequest, Decision
from greenroom.runtime.pipeline.handling import Card
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.verdicts import Ask, Verdict
from tests.cancelling import Doomed, at_every_step
from tests.filetools.conftest import Desk, Use

ROOT = Path(__file__).resolve().parent.parent.parent


def on_disk(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


async def test_a_write_tells_what_was_there_and_what_is(desk: Desk, tmp_path: Path) -> None:
    await desk.mount(tmp_path)
    made = await desk.call("write", file_path="src/a.py", content="one\n")
    assert made == {"path": "src/a.py", "operation": "create", "before": None, "after": "one\n"}
    changed = await desk.call("write", file_path="src/a.py", content="zwölf\n")
    assert changed == {"path": "src/a.py", "operation": "update", "before": "one\n", "after": "zwölf\n"}
    assert (tmp_path / "src" / "a.py").read_text("utf-8") == "zwölf\n"
    assert await desk.shown("write", file_path="src/a.py", content="ä") == "Updated src/a.py, 2 bytes."
    assert await desk.shown("write", file_path="b", content="") == "Created b, 0 bytes."


async def test_an_edit_replaces_one_text_or_all(desk: Desk) -> None:
    desk.seed({"a": "x = 1\nx = 1\n"})
    assert await desk.refused("edit", file_path="a", old_string="x = 1", new_string="x = 2") == "FS_AMBIGUOUS_EDIT"
    assert await desk.refused("edit", file_path="a", old_string="", new_string="x") == "FS_AMBIGUOUS_EDIT"
    assert await desk.refused("edit", file_path="a", old_string="y", new_string="x") == "FS_EDIT_NOT_FOUND"
    edited = await desk.call("edit", file_path="a", old_string="x = 1", new_string="x = 2", replace_all=True)
    assert edited == {"path": "a", "before": "x = 1\nx = 1\n", "after": "x = 2\nx = 2\n"}
    told = await desk.shown("edit", file_path="a", old_string="x = 2\nx", new_string="x")
    assert told == "Edited a."


async def test_what_cannot_be_changed_is_left_as_it_is(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "text")
    (tmp_path / "bytes").write_bytes(b"\xe9\x00")
    await desk.mount(tmp_path, file_bytes=10)
    codes = {
        "folder": "FS_NOT_REGULAR_FILE",
        "link": "FS_NOT_REGULAR_FILE",
        "text/beneath": "FS_NOT_REGULAR_FILE",
        "bytes": "FS_NOT_TEXT",
        "../out": "FS_PATH",
        ".GIT/config": "FS_PATH",
    }
    assert {path: await desk.refused("write", file_path=path, content="y") for path in codes} == codes
    assert await desk.refused("write", file_path="text", content="y" * 11) == "FS_TOO_LARGE"
    assert await desk.refused("write", file_path="text", content="\ud800") == "SURROGATE"
    assert await desk.refused("write", file_path="\ud800", content="") == "SURROGATE"
    assert await desk.refused("edit", file_path="text", old_string="x", new_string="\ud800") == "SURROGATE"
    assert await desk.refused("edit", file_path="missing", old_string="x", new_string="y") == "FS_NOT_FOUND"
    assert on_disk(tmp_path) == {"text": b"x", "link": b"x", "bytes": b"\xe9\x00"}


async def test_bytes_in_memory_are_not_written_over(desk: Desk) -> None:
    desk.seed({"pic.png": BinaryContent("AAAA", "image/png")})
    assert await desk.refused("write", file_path="pic.png", content="x") == "FS_NOT_TEXT"
    assert await desk.refused("edit", file_path="pic.png", old_string="x", new_string="y") == "FS_NOT_TEXT"


async def test_a_change_that_could_not_be_told_is_not_made(desk: Desk) -> None:
    desk.seed({"a": "x\ud83d"})
    assert await desk.refused("edit", file_path="a", old_string="x", new_string="y") == "SURROGATE"
    assert await desk.refused("write", file_path="a", content="whole") == "SURROGATE"
    workspace = desk.workspaces.active
    assert workspace is not None
    assert await workspace.read("a") == "x\ud83d"


async def test_without_a_policy_a_directory_still_keeps_what_others_wrote(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    await desk.mount(tmp_path)
    (tmp_path / "a").write_text("theirs, and longer")
    assert await desk.refused("write", file_path="a", content="x") == "FS_STALE_VERSION"
    await desk.call("read", file_path="a")
    assert (await desk.call("write", file_path="a", content="x"))["before"] == "theirs, and longer"


async def test_whoever_has_to_approve_of_a_change_is_shown_it(desk: Desk) -> None:
    cards: list[Card] = []

    async def refuse(request: ApprovalRequest, next: Next[Decision]) -> Decision:
        cards.append(request.card)
        return Decision("rejected")

    async def ask(call: Invocation, next: Next[Verdict]) -> Verdict:
        return Ask()

    desk.runtime.bus.on("tools/pre-execute", ask)
    desk.runtime.bus.on("approval/request", refuse)
    await desk.refused("write", file_path="a", content="one\n")
    await desk.refused("edit", file_path="a", old_string="one\ntwo", new_string="1", replace_all=True)
    await desk.refused("edit", file_path="a")
    assert cards == [
        Card("write a", "one\n"),
        Card("edit a, everywhere", "- one\n- two\n+ 1"),
        Card("edit", '{"file_path":"a"}'),
    ]
    assert desk.workspaces.count == 0


# -------------------------------------------------------------------- who is asked before


async def test_the_first_who_decides_is_alone(desk: Desk) -> None:
    asked: list[Any] = []

    async def only_new(intent: WriteIntent, next: Next[Precondition]) -> Precondition:
        asked.append(intent)
        return Precondition(None)

    async def never(intent: WriteIntent, next: Next[Precondition]) -> Precondition:
        raise AssertionError("the one before has decided")

    desk.runtime.bus.on("fs/write-intent", only_new)
    desk.runtime.bus.on("fs/write-intent", never)
    desk.seed({"a": "x"})
    assert await desk.refused("write", "ada", file_path="a", content="y") == "FS_STALE_VERSION"
    await desk.call("write", file_path="b", content="y")
    assert asked == [
        WriteIntent(agent="/ada", workspace="w", path="a", content="y"),
        WriteIntent(agent=None, workspace="w", path="b", content="y"),
    ]


async def test_who_is_against_a_change_raises(desk: Desk) -> None:
    async def locked(intent: EditIntent, next: Next[Precondition]) -> Precondition:
        if intent.path == "LICENSE":
            raise ToolError("LOCKED", "The licence is not edited: leave it.")
        return await next()

    desk.runtime.bus.on("fs/edit-intent", locked)
    desk.seed({"LICENSE": "x", "a": "x"})
    assert await desk.refused("edit", file_path="LICENSE", old_string="x", new_string="y") == "LOCKED"
    assert (await desk.call("edit", file_path="a", old_string="x", new_string="y"))["after"] == "y"


@pytest.mark.parametrize("decided", [None, True, "anything", {"version": None}])
async def test_what_is_no_precondition_lets_nothing_pass(desk: Desk, decided: Any) -> None:
    async def broken(intent: WriteIntent, next: Next[Precondition]) -> Any:
        return decided

    desk.runtime.bus.on("fs/write-intent", broken)
    desk.seed({"a": "x"})
    assert await desk.refused("write", file_path="a", content="y") == "INVALID_PRECONDITION"
    assert (await desk.call("read", file_path="a"))["lines"][0]["text"] == "x"


async def test_what_an_agent_has_seen_is_announced(desk: Desk) -> None:
    seen: list[FileObserved] = []
    desk.runtime.bus.on("fs/observed", seen.append)
    desk.seed({"a": "x"})
    await desk.call("read", "ada", file_path="a")
    await desk.refused("read", "ada", file_path="b")
    await desk.call("write", file_path="b", content="x")
    await desk.call("edit", "bob", file_path="b", old_string="x", new_string="y")
    assert [(each.agent, each.path) for each in seen] == [("/ada", "a"), ("/ada", "b"), (None, "b"), ("/bob", "b")]
    first, missing, second, third = [each.version for each in seen]
    assert missing is None
    assert first == second != third, "the same content has the same version, whoever wrote it"


# -------------------------------------------------------------------- what is left


async def test_a_cancelled_write_is_whole_or_not_there_and_must_be_looked_at_again() -> None:
    async def scenario(doomed: Doomed) -> None:
        async with open_runtime() as runtime:
            desk = Desk(runtime)
            desk.observe()
            desk.seed({"a": "old"})
            await desk.call("read", "ada", file_path="a")
            ended = await doomed(desk.parties["ada"].ask, Use("write", {"file_path": "a", "content": "new"}))
            workspace = desk.workspaces.active
            assert workspace is not None
            content = await workspace.read("a")
            assert content == "new" if not ended.cancelled else content in ("old", "new")
            if not ended.cancelled:
                assert (await desk.call("edit", "ada", file_path="a", old_string="w", new_string="t"))["after"] == "net"

    await at_every_step(scenario)


async def test_who_stands_in_line_for_a_file_may_leave(desk: Desk, autojump_clock: MockClock) -> None:
    async def slowly(intent: WriteIntent, next: Next[Precondition]) -> Precondition:
        await trio.sleep(10)
        return await next()

    desk.runtime.bus.on("fs/write-intent", slowly)
    desk.seed({})
    begin = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(desk.call, "write", file_path="a", content="first"))
        with trio.move_on_after(5) as waiting:
            await trio.testing.wait_all_tasks_blocked()
            await desk.call("write", file_path="a", content="never")
        assert waiting.cancelled_caught
        await desk.call("write", file_path="b", content="not in that line")
        assert trio.current_time() - begin == 15
        await desk.call("write", file_path="a", content="last")
    assert (await desk.call("read", file_path="a"))["lines"][0]["text"] == "last"


def test_a_write_that_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    code = (
        "import os, signal, trio, greenroom\n"
        "async def main():\n"
        "    async with greenroom.open_runtime() as runtime:\n"
        "        workspaces = greenroom.WorkspaceManager(runtime.tree)\n"
        f"        await workspaces.mount({str(tmp_path)!r})\n"
        "        await greenroom.write_tool(workspaces).execute({'file_path': 'a/b', 'content': 'kept'})\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "trio.run(main)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]
    assert (tmp_path / "a" / "b").read_text() == "kept"
