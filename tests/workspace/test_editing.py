"""Edits of one text: splices, what comes before and after, moves, and the replacement of one certain text."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from greenroom.protocol.errors import WorkspaceError
from greenroom.protocol.workspace import MemoryWorkspace, Range, create_file, infer_language, range_of
from tests.workspace.conftest import PNG, Desk, texts


async def splice(desk: Desk, path: str, content: str, *numbers: int) -> Any:
    names = ("fromLine", "fromColumn", "toLine", "toColumn")
    return await desk.call("splice", path=path, content=content, **dict(zip(names, numbers, strict=True)))


async def refused_splice(desk: Desk, path: str, *numbers: int) -> tuple[str, dict[str, Any]]:
    names = ("fromLine", "fromColumn", "toLine", "toColumn")
    return await desk.refused("splice", path=path, content="x", **dict(zip(names, numbers, strict=True)))


# -------------------------------------------------------------------- splices


@pytest.mark.case("workspace", 24)
async def test_a_splice_replaces_what_lies_between_two_places(desk: Desk) -> None:
    desk.seed(texts(a="Qb\nab"))
    assert await splice(desk, "a", "_", 1, 3, 2, 1) == {"path": "a", "state": "modified"}
    assert await desk.call("read", path="a") == "Qb_ab"


@pytest.mark.case("workspace", 25)
@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((9, 9, 9, 9), "ab\ncd+"),
        ((1, 9, 1, 9), "ab+\ncd"),
        ((1, 1, 9, 9), "+"),
        ((2, 1, 2, 1), "ab\n+cd"),
        ((10**30, 1, 10**30, 10**30), "ab\n+"),
    ],
)
async def test_places_outside_the_text_are_moved_into_it(desk: Desk, numbers: tuple[int, ...], text: str) -> None:
    desk.seed(texts(a="ab\ncd"))
    await splice(desk, "a", "+", *numbers)
    assert await desk.call("read", path="a") == text


@pytest.mark.case("workspace", 26)
async def test_a_reversed_range_is_refused_and_so_is_a_number_below_one(desk: Desk) -> None:
    desk.seed(texts(a="ab\nab"))
    given = {"start": {"line": 1, "column": 3}, "end": {"line": 1, "column": 2}}
    assert await refused_splice(desk, "a", 1, 3, 1, 2) == ("RANGE", {"path": "a", "range": given})
    for place in range(4):
        numbers = [1, 1, 1, 1]
        numbers[place] = 0
        assert (await refused_splice(desk, "a", *numbers))[0] == "TOOL"
    with pytest.raises(WorkspaceError) as caught:
        await desk.active.write("a", "x", range_of(1, 0, 1, 1))
    assert caught.value.code == "RANGE"
    assert await desk.call("read", path="a") == "ab\nab"


@pytest.mark.case("workspace", 27)
async def test_a_missing_text_is_refused_before_a_wrong_range(desk: Desk) -> None:
    desk.seed([PNG])
    assert await refused_splice(desk, "a", 2, 1, 1, 1) == ("MODALITY", {"path": "a"})
    assert await refused_splice(desk, "pic.png", 2, 1, 1, 1) == ("MODALITY", {"path": "pic.png"})


@pytest.mark.case("workspace", 28)
async def test_a_splice_may_cut_a_character_in_two(desk: Desk) -> None:
    desk.seed(texts(a="é😀"))
    await splice(desk, "a", "q\nr", 1, 3, 2, 5)
    (file,) = await desk.active.files()
    assert (file.text, file.size, file.lines) == ("é\ud83dq\nr", 8, 2)


@pytest.mark.parametrize(
    ("range", "text", "located"),
    [
        (range_of(1, 2, 2, 1), "b\n", range_of(1, 2, 2, 1)),
        (range_of(0, 0, 9, 9), "ab\ncd", range_of(1, 1, 2, 3)),
        (range_of(2, 1, 1, 1), "", range_of(2, 1, 1, 1)),
        (range_of(1, 9, 1, 99), "", range_of(1, 3, 1, 3)),
    ],
)
async def test_a_range_is_read_from_where_the_text_is(desk: Desk, range: Range, text: str, located: Range) -> None:
    workspace = desk.seed([*texts(a="ab\ncd"), PNG])
    assert await workspace.read_range("a", range) == (text, located)
    assert await workspace.read_range("b", range) is None
    assert await workspace.read_range("pic.png", range) is None


# -------------------------------------------------------------------- whole files


@pytest.mark.case("workspace", 29)
async def test_a_moved_file_keeps_its_place(desk: Desk) -> None:
    desk.seed(texts(a="1", b="2", c="3"))
    await desk.call("move", from_="b", to="x")
    assert [file["path"] for file in await desk.contents()] == ["a", "x", "c"]
    desk.seed(texts(a="1", b="2"))
    await desk.call("move", from_="a", to="b")
    assert [(file["path"], file["content"]["text"]) for file in await desk.contents()] == [("b", "1")]


@pytest.mark.case("workspace", 30)
async def test_a_move_to_the_same_path_does_nothing(desk: Desk) -> None:
    desk.seed(texts(a="1"))
    assert await desk.call("move", from_="a", to="a") == {"from": "a", "to": "a", "moved": False}
    assert (await desk.contents())[0]["state"] == "created"


@pytest.mark.case("workspace", 31)
async def test_bytes_are_listed_refuse_text_edits_and_give_way_to_a_whole_text(desk: Desk) -> None:
    desk.seed([PNG])
    listed = {"path": "pic.png", "state": "created", "size": 3, "lines": 0, "kind": "binary"}
    assert await desk.call("list") == [listed]
    assert await desk.call("read", path="pic.png") is None
    for operation in ("append", "prepend"):
        assert await desk.refused(operation, path="pic.png", content="x") == ("MODALITY", {"path": "pic.png"})
    assert await desk.call("move", from_="pic.png", to="b.md") == {"from": "pic.png", "to": "b.md", "moved": True}
    assert await desk.call("write", path="b.md", content="x") == {"path": "b.md", "state": "modified"}
    (file,) = await desk.contents()
    assert file["content"] == {"text": "x", "language": "markdown"}


@pytest.mark.parametrize(("data", "size"), [("AAAA", 3), ("AAA=", 2), ("AA==", 1), ("AAA", 2), ("AA", 1), ("", 0)])
def test_the_size_of_bytes_is_that_of_what_base64_stands_for(data: str, size: int) -> None:
    file = create_file("pic.png", msgspec.structs.replace(PNG.content, data=data))
    assert file.size == size


@pytest.mark.case("workspace", 32)
async def test_sizes_are_bytes_and_empty_text_has_no_lines(desk: Desk) -> None:
    for content, size, lines in (("", 0, 0), ("a\n", 2, 2), ("café", 5, 1), ("\r", 1, 1)):
        await desk.call("write", path="e.txt", content=content)
        (listed,) = await desk.call("list")
        assert (listed["size"], listed["lines"]) == (size, lines)


@pytest.mark.case("workspace", 33)
@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a.ts", "typescript"),
        ("dir.py/file", "text"),
        ("X.JSON", "json"),
        ("a.tar.Rs", "rust"),
        ("a.svg", "xml"),
        ("py", "text"),
        ("a.", "text"),
        ("", "text"),
    ],
)
def test_the_language_is_told_by_what_follows_the_last_dot(path: str, language: str) -> None:
    assert infer_language(path) == language


async def test_a_language_is_decided_when_text_first_comes_and_then_kept(desk: Desk) -> None:
    await desk.call("append", path="a.md", content="x")
    await desk.call("move", from_="a.md", to="a.py")
    await desk.call("write", path="a.py", content="y")
    assert (await desk.contents())[0]["content"] == {"text": "y", "language": "markdown"}


async def test_text_is_put_before_and_after_what_is_there(desk: Desk) -> None:
    assert await desk.call("append", path="a", content="2") == {"path": "a", "state": "created"}
    assert await desk.call("append", path="a", content="3") == {"path": "a", "state": "modified"}
    assert await desk.call("prepend", path="a", content="1") == {"path": "a", "state": "modified"}
    assert await desk.call("read", path="a") == "123"


# -------------------------------------------------------------------- one certain text


@pytest.mark.case("reports/workspace", 2)
@pytest.mark.parametrize(
    ("text", "old", "count", "replaced", "occurrences"),
    [
        ("x = 1\ny = 2\nx = 1\n", "x = 1", 2, "!\ny = 2\n!\n", 2),
        ("aaa", "aa", 2, "!a", 1),
        ("aaaa", "aa", 3, "!!", 2),
    ],
)
async def test_an_edit_of_a_text_that_is_there_more_than_once_is_refused_with_the_count(
    desk: Desk, text: str, old: str, count: int, replaced: str, occurrences: int
) -> None:
    workspace = desk.seed(texts(a=text))
    with pytest.raises(WorkspaceError) as caught:
        await workspace.edit("a", old, "!")
    assert (caught.value.code, caught.value.context) == ("AMBIGUOUS", {"path": "a", "count": count})
    assert str(count) in caught.value.message
    assert (await workspace.files()) == tuple(texts(a=text))
    edited = await workspace.edit("a", old, "!", replace_all=True)
    assert (edited.file.text, edited.occurrences) == (replaced, occurrences)


async def test_an_edit_replaces_the_one_place_and_takes_everything_literally(desk: Desk) -> None:
    workspace = desk.seed(texts(a="é😀 a.b*"))
    edited = await workspace.edit("a", "a.b*", "$1\\0")
    assert (edited.file.text, edited.occurrences, edited.file.state) == ("é😀 $1\\0", 1, "modified")


@pytest.mark.parametrize(
    ("path", "old", "code"),
    [("a", "z", "UNMATCHED"), ("a", "", "AMBIGUOUS"), ("z", "a", "MODALITY"), ("pic.png", "A", "MODALITY")],
)
@pytest.mark.parametrize("replace_all", [False, True])
async def test_an_edit_that_has_no_place_is_refused(
    desk: Desk, path: str, old: str, code: str, replace_all: bool
) -> None:
    workspace = desk.seed([*texts(a="abc"), PNG])
    with pytest.raises(WorkspaceError) as caught:
        await workspace.edit(path, old, "x", replace_all=replace_all)
    assert (caught.value.code, caught.value.context["path"]) == (code, path)


# -------------------------------------------------------------------- line ends


@pytest.mark.case("reports/workspace", 1)
async def test_in_memory_line_ends_stay_as_they_are(desk: Desk) -> None:
    desk.seed(texts(a="a\r\nb\r\nc\r\n"))
    assert await desk.call("replace", query="b", replacement="B") == {"occurrences": 1, "files": 1}
    assert await desk.call("read", path="a") == "a\r\nB\r\nc\r\n"
    told = await desk.call("replace", query="a\nB", replacement="x")
    assert (told["occurrences"], told["files"]) == (0, 0)
    assert "CRLF" in told["note"]
    assert await desk.call("read", path="a") == "a\r\nB\r\nc\r\n"
    await splice(desk, "a", "second", 2, 1, 2, 2)
    assert await desk.call("read", path="a") == "a\r\nsecond\r\nc\r\n"
    assert await desk.call("replace", query="a\r\ns", replacement="S") == {"occurrences": 1, "files": 1}


async def test_a_query_that_finds_nothing_is_told_of_line_ends_only_where_they_matter(desk: Desk) -> None:
    desk.seed(texts(a="a\r\nb"))
    for query, regex in ((r"a\nb", True), ("a\nb", True), ("a\nb", False)):
        assert "note" in await desk.call("replace", query=query, replacement="", regex=regex)
    for query, regex in ((r"a\nb", False), ("z", False), (r"z\r\nb", True), ("a\r\nz", False)):
        assert await desk.call("replace", query=query, replacement="", regex=regex) == {"occurrences": 0, "files": 0}
    desk.seed(texts(a="a\nb"))
    assert "note" not in await desk.call("replace", query="z\nb", replacement="")


async def test_an_edit_that_mixes_line_ends_says_so(desk: Desk) -> None:
    desk.seed(texts(a="a\r\nb\r\n", b="a\nb\n"))
    assert "CRLF" in (await splice(desk, "a", "x\n", 1, 1, 1, 1))["note"]
    assert await splice(desk, "a", "x\r\n", 1, 1, 1, 1) == {"path": "a", "state": "modified"}
    assert "note" in await desk.call("append", path="a", content="x\r\ny\n")
    assert "note" not in await desk.call("append", path="b", content="x\n")


async def test_an_edit_that_finds_nothing_for_its_line_ends_says_so(desk: Desk) -> None:
    workspace = desk.seed(texts(a="a\r\nb"))
    with pytest.raises(WorkspaceError, match="CRLF") as caught:
        await workspace.edit("a", "a\nb", "x")
    assert caught.value.code == "UNMATCHED"


def test_a_long_text_is_edited_in_one_step() -> None:
    """A splice near the end of many lines must not cost more than going through them once."""
    workspace = MemoryWorkspace([create_file("a", "line\n" * 200_000)])
    file = workspace.write("a", "x", range_of(200_000, 1, 200_000, 5))
    assert file.text is not None
    assert file.text.endswith("line\nx\n")
