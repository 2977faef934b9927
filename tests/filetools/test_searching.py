"""`glob` and `grep`: which files there are, and which lines in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.protocol.errors import ToolError
from greenroom.protocol.workspace import BinaryContent, create_file
from tests.filetools.conftest import Desk

TREE = {
    "README.md": "# Greenroom\nSee src.\n",
    "src/app.py": "import os\n\nprint('hello')\n",
    "src/lib/text.py": "def text():\n    return 'text'\n",
    "src/lib/data.json": "{}\n",
    "tests/test_app.py": "import app\n",
}


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("*.py", ".", ["src/app.py", "src/lib/text.py", "tests/test_app.py"]),
        ("src/*.py", ".", ["src/app.py"]),
        ("src/**/*.py", ".", ["src/app.py", "src/lib/text.py"]),
        ("**/lib/**", ".", ["src/lib/text.py", "src/lib/data.json"]),
        ("lib/*.{py,json}", "src", ["src/lib/text.py", "src/lib/data.json"]),
        ("./*.md", "./", ["README.md"]),
        ("[!R]*.p?", "src/", ["src/app.py", "src/lib/text.py"]),
        ("*.md", "README.md", ["README.md"]),
        ("nothing", ".", []),
    ],
)
async def test_files_are_found_by_their_paths(desk: Desk, pattern: str, path: str, found: list[str]) -> None:
    desk.seed({**TREE})
    assert await desk.call("glob", pattern=pattern, path=path) == {"root": path, "paths": found}


@pytest.mark.parametrize(
    "pattern",
    [
        "!*.py",
        "/etc/*",
        "../*",
        "[a",
        "{a,b",
        "a\\",
        "a//b",
        "src/",
        "[😀]",
        "{a,b}" * 8,
        f"{{{',' * 4000}}}",
        "a" * 5000,
    ],
    ids=lambda pattern: pattern[:8],
)
async def test_what_is_no_glob_is_refused_with_a_way_out(desk: Desk, pattern: str) -> None:
    desk.seed({**TREE})
    assert await desk.refused("glob", pattern=pattern) == "SEARCH_INVALID_PATTERN"
    assert await desk.refused("grep", pattern="x", include=pattern) == "SEARCH_INVALID_PATTERN"


async def test_a_hundred_paths_are_shown_and_all_are_found(desk: Desk) -> None:
    desk.seed({f"{number}.txt": "" for number in range(250)})
    assert len((await desk.call("glob", pattern="*.txt"))["paths"]) == 250
    *shown, notice = (await desk.shown("glob", pattern="*.txt")).split("\n")
    assert (len(shown), notice) == (100, "[100 of 250 are shown: be more exact.]")
    assert await desk.shown("glob", pattern="*.md") == "[No file fits.]"


async def test_lines_are_found_once_each(desk: Desk) -> None:
    desk.seed({**TREE, "pic.png": BinaryContent("AAAA", "image/png")})
    assert await desk.call("grep", pattern="t.xt") == {
        "matches": [
            {"path": "src/lib/text.py", "lineNumber": 1, "line": "def text():"},
            {"path": "src/lib/text.py", "lineNumber": 2, "line": "    return 'text'"},
        ]
    }
    assert await desk.shown("grep", pattern="^import") == "src/app.py:1:import os\ntests/test_app.py:1:import app"
    assert await desk.shown("grep", pattern="^import", path="src") == "src/app.py:1:import os"
    assert await desk.shown("grep", pattern="e", path="src", include="*.json") == "[No line matches.]"
    assert await desk.shown("grep", pattern="See", path="README.md") == "README.md:2:See src."
    assert await desk.shown("grep", pattern="text", include="lib/*", path="src") == (
        "src/lib/text.py:1:def text():\nsrc/lib/text.py:2:    return 'text'"
    )


@pytest.mark.parametrize("pattern", ["(", "(?=x)", "(a)\\1", "[b-a]"])
async def test_what_is_no_linear_pattern_is_refused(desk: Desk, pattern: str) -> None:
    desk.seed({})
    assert await desk.refused("grep", pattern=pattern) == "SEARCH_INVALID_PATTERN"


async def test_a_folder_that_is_not_there_is_not_an_empty_one(desk: Desk) -> None:
    desk.seed({**TREE})
    assert await desk.refused("glob", pattern="**", path="sr") == "FS_NOT_FOUND"
    assert await desk.refused("grep", pattern="x", path="../src") == "FS_NOT_FOUND"


async def test_250_lines_are_shown_and_too_many_are_refused(desk: Desk) -> None:
    desk.seed({"a": "x\n" * 300, "b": "y\n" * 10_001, "c": "z" * 3000})
    assert len((await desk.call("grep", pattern="x"))["matches"]) == 300
    *shown, notice = (await desk.shown("grep", pattern="x")).split("\n")
    assert (len(shown), notice) == (250, "[250 of 300 lines are shown: be more exact.]")
    assert await desk.refused("grep", pattern="y") == "SEARCH_RAW_OUTPUT_OVERFLOW"
    desk.workspaces.add("large", [create_file("a", f"{'x' * 900_000}\n" * 5)])
    desk.workspaces.switch("large")
    assert await desk.refused("grep", pattern="x") == "SEARCH_RAW_OUTPUT_OVERFLOW"
    desk.workspaces.switch("w")
    assert (await desk.shown("grep", pattern="z$")).endswith("[... line cut: it has 3,000 characters]")


async def test_a_pattern_that_others_choke_on_takes_no_time(desk: Desk) -> None:
    desk.seed({"a": "a" * 100_000 + "!"})
    assert await desk.call("grep", pattern="(a+)+$") == {"matches": []}
    assert len((await desk.call("grep", pattern="a"))["matches"]) == 1
    assert await desk.call("glob", pattern="*a" * 50 + "b") == {"root": ".", "paths": []}


async def test_only_what_is_looked_through_is_read(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "a.py").write_text("x\n")
    for number in range(5):
        (tmp_path / f"{number}.log").write_text("x" * 900)
    await desk.mount(tmp_path, file_bytes=1000, total_bytes=2000)
    assert await desk.refused("grep", pattern="x") == "SEARCH_FAILED"
    assert await desk.shown("grep", pattern="x", path="small") == "small/a.py:1:x"
    assert len((await desk.call("glob", pattern="*"))["paths"]) == 6


async def test_links_and_other_programs_folders_are_not_looked_into(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text("x")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    (tmp_path / "in" / ".git").mkdir()
    (tmp_path / "in" / ".git" / "config").write_text("x")
    await desk.mount(tmp_path / "in")
    assert await desk.call("glob", pattern="**") == {"root": ".", "paths": []}
    assert await desk.call("grep", pattern="x") == {"matches": []}


async def test_a_pattern_is_required(desk: Desk) -> None:
    for name in ("glob", "grep"):
        with pytest.raises(ToolError, match="pattern"):
            await desk.call(name, pattern="")
