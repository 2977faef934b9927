"""`read`: numbered lines for a model, the same as structs for a program, and a word on why there are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from greenroom.protocol.errors import ToolError, WorkspaceError
from greenroom.protocol.workspace import BinaryContent
from tests.filetools.conftest import Desk


async def test_a_file_is_read_by_its_lines(desk: Desk) -> None:
    desk.seed({"a.py": "one\ntwo\n"})
    assert await desk.call("read", file_path="a.py") == {
        "path": "a.py",
        "offset": 1,
        "lines": [{"number": 1, "text": "one"}, {"number": 2, "text": "two"}, {"number": 3, "text": ""}],
        "totalLines": 3,
    }
    assert await desk.shown("read", file_path="a.py") == "1\tone\n2\ttwo\n3\t"


async def test_a_part_is_read_and_the_model_told_how_to_read_on(desk: Desk) -> None:
    desk.seed({"a": "\n".join(map(str, range(1, 11)))})
    part = await desk.call("read", file_path="a", offset=4, limit=2)
    assert [line["number"] for line in part["lines"]] == [4, 5]
    assert (part["offset"], part["totalLines"]) == (4, 10)
    told = await desk.shown("read", file_path="a", offset=4, limit=2)
    assert told == "4\t4\n5\t5\n[Lines 4 to 5 of 10: read on with offset 6.]"


async def test_two_thousand_lines_are_read_at_most(desk: Desk) -> None:
    desk.seed({"a": "x\n" * 2500})
    assert len((await desk.call("read", file_path="a"))["lines"]) == 2000
    assert (await desk.shown("read", file_path="a")).endswith("[Lines 1 to 2000 of 2501: read on with offset 2001.]")
    with pytest.raises(ToolError, match="limit"):
        await desk.call("read", file_path="a", limit=2001)
    with pytest.raises(ToolError, match="offset"):
        await desk.call("read", file_path="a", offset=0)


async def test_a_large_file_is_read_without_holding_up_others(desk: Desk) -> None:
    desk.observe()
    desk.seed({"a": "\n" * 3_000_000 + "end"})
    last = await desk.call("read", file_path="a", offset=3_000_001)
    assert (last["lines"], last["totalLines"]) == ([{"number": 3_000_001, "text": "end"}], 3_000_001)
    assert (await desk.call("edit", file_path="a", old_string="end", new_string=""))["after"] == "\n" * 3_000_000


@pytest.mark.parametrize(
    ("text", "offset", "told"),
    [("", 1, "[The file is empty.]"), ("a\nb", 3, "[The file has 2 lines, so there is none from 3 on.]")],
)
async def test_where_there_is_no_line_the_model_is_told_so(desk: Desk, text: str, offset: int, told: str) -> None:
    desk.seed({"a": text})
    assert (await desk.call("read", file_path="a", offset=offset))["lines"] == []
    assert await desk.shown("read", file_path="a", offset=offset) == told


async def test_a_long_line_is_cut_for_the_model_alone(desk: Desk) -> None:
    desk.seed({"a": "x" * 5000})
    assert (await desk.call("read", file_path="a"))["lines"][0]["text"] == "x" * 5000
    assert await desk.shown("read", file_path="a") == f"1\t{'x' * 2000} [... line cut: it has 5,000 characters]"


async def test_the_model_is_told_of_crlf(desk: Desk) -> None:
    desk.seed({"a": "one\r\ntwo\r\n"})
    assert (await desk.call("read", file_path="a"))["lines"][0]["text"] == "one\r"
    told = await desk.shown("read", file_path="a")
    assert told.startswith("1\tone\n2\ttwo\n3\t\n[Lines of this file end with CRLF")
    assert await desk.refused("edit", file_path="a", old_string="one\ntwo", new_string="x") == "FS_EDIT_NOT_FOUND"
    edited = await desk.call("edit", file_path="a", old_string="one\r\ntwo", new_string="x")
    assert edited["after"] == "x\r\n"


async def test_what_is_no_text_file_is_refused_by_a_code_of_its_own(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "text")
    (tmp_path / "text").write_text("x")
    (tmp_path / "bytes").write_bytes(b"\xe9\x00")
    (tmp_path / "large").write_text("x" * 2000)
    os.mkfifo(tmp_path / "pipe")
    await desk.mount(tmp_path, file_bytes=1000)
    codes = {
        "missing": "FS_NOT_FOUND",
        "text/beneath": "FS_NOT_FOUND",
        "folder": "FS_NOT_REGULAR_FILE",
        "link": "FS_NOT_REGULAR_FILE",
        "link/beneath": "FS_NOT_REGULAR_FILE",
        "pipe": "FS_NOT_REGULAR_FILE",
        "bytes": "FS_NOT_TEXT",
        "large": "FS_TOO_LARGE",
        "/etc/passwd": "FS_PATH",
        "../secret": "FS_PATH",
        ".git/config": "FS_PATH",
        "a\0b": "FS_PATH",
        "\ud800": "FS_PATH",
    }
    assert {path: await desk.refused("read", file_path=path) for path in codes} == codes


async def test_where_no_workspace_is_active_there_is_no_file(desk: Desk) -> None:
    assert await desk.refused("read", file_path="a") == "FS_NOT_FOUND"
    assert await desk.refused("edit", file_path="a", old_string="x", new_string="y") == "FS_NOT_FOUND"
    assert await desk.call("glob", pattern="**") == {"root": ".", "paths": []}
    assert await desk.call("grep", pattern="x") == {"matches": []}
    assert desk.workspaces.count == 0
    await desk.call("write", file_path="a", content="x")
    assert desk.workspaces.count == 1


async def test_what_json_cannot_hold_is_refused_by_path_and_place(desk: Desk) -> None:
    desk.seed({"a": "fine\nx\ud83d", "b": BinaryContent("AAAA", "image/png")})
    with pytest.raises(WorkspaceError) as caught:
        await desk.call("read", file_path="a")
    assert (caught.value.code, caught.value.context) == ("SURROGATE", {"path": "a", "line": 2, "column": 2})
    with pytest.raises(WorkspaceError, match="half of a character"):
        await desk.call("grep", pattern="x")
    assert await desk.call("grep", pattern="fine") == {"matches": [{"path": "a", "lineNumber": 1, "line": "fine"}]}
    assert await desk.refused("read", file_path="b") == "FS_NOT_TEXT"


async def test_looking_may_overlap_and_changing_may_not(desk: Desk) -> None:
    overlapping = {tool.name for tool in desk.tools.tools() if tool.handling.may_overlap({})}
    assert overlapping == {"read", "glob", "grep"}
