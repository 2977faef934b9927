"""Searching within lines, and replacing over whole texts."""

from __future__ import annotations

import re

import pytest

from greenroom.protocol.errors import WorkspaceError
from greenroom.protocol.workspace import Query, create_file, search_files
from tests.workspace.conftest import PNG, Desk, texts

MIXED = "a.b a-b\r\nab\n"


# -------------------------------------------------------------------- searching


@pytest.mark.case("workspace", 10)
async def test_an_empty_query_matches_before_every_unit_and_at_the_end(desk: Desk) -> None:
    desk.seed(texts(a="hello"))
    assert await desk.places("") == [(1, column, 0) for column in range(1, 7)]


@pytest.mark.case("workspace", 11)
@pytest.mark.case("workspace", 20)
async def test_empty_matches_count(desk: Desk) -> None:
    desk.seed(texts(a="baa"))
    assert await desk.places("a*", regex=True) == [(1, 1, 0), (1, 2, 2), (1, 4, 0)]
    desk.seed(texts(a="ab"))
    assert await desk.places(".*", regex=True) == [(1, 1, 2), (1, 3, 0)]


@pytest.mark.case("workspace", 12)
async def test_plain_text_is_no_pattern_and_the_line_is_told_with_its_carriage_return(desk: Desk) -> None:
    desk.seed([create_file("t", MIXED)])
    assert await desk.call("search", query="a.b") == [
        {"path": "t", "line": 1, "column": 1, "length": 3, "content": "a.b a-b\r"}
    ]


@pytest.mark.case("workspace", 13)
async def test_a_carriage_return_is_a_character_of_its_line(desk: Desk) -> None:
    desk.seed([create_file("t", MIXED)])
    assert await desk.places("b$", regex=True) == [(2, 2, 1)]
    assert await desk.places("$", regex=True) == [(1, 9, 0), (2, 3, 0), (3, 1, 0)]


@pytest.mark.parametrize("query", ["x\ny", "\n"])
async def test_nothing_is_found_across_lines(desk: Desk, query: str) -> None:
    desk.seed(texts(a="x\ny"))
    assert await desk.places(query) == []
    assert await desk.places(query, sensitive=False) == []
    assert await desk.places(query, regex=True) == []


@pytest.mark.case("workspace", 21)
async def test_patterns_are_ecmascript_and_lenient(desk: Desk) -> None:
    desk.seed(texts(a="] x{2 a{,3} {"))
    for query in ("(?i)a", "a++", "[z-a]", "(?#c)a", "(", "?", "(?<n>a)(?<n>b)"):
        assert await desk.refused("search", query=query, regex=True) == ("PATTERN", {"query": query})
    for query, column in (("]", 1), ("x{2", 3), ("a{,3}", 7), ("{$", 13)):
        (place,) = await desk.places(query, regex=True)
        assert place[1] == column


@pytest.mark.parametrize(
    ("query", "construct"), [("(?=b)", "(?="), ("(?<!a)", "(?<!"), (r"(a)\1", r"\1"), (r"(?<n>a)\k<n>", r"\k<n>")]
)
async def test_what_no_linear_matcher_holds_is_refused_by_name(desk: Desk, query: str, construct: str) -> None:
    desk.seed(texts(a="aab"))
    for operation, args in (("search", {}), ("replace", {"replacement": "x"})):
        with pytest.raises(WorkspaceError, match=re.escape(f"`{construct}`")) as caught:
            await desk.call(operation, query=query, regex=True, **args)
        assert (caught.value.code, caught.value.context) == ("PATTERN", {"query": query})
    assert await desk.call("read", path="a") == "aab"


@pytest.mark.case("workspace", 22)
async def test_case_is_folded_unit_by_unit(desk: Desk) -> None:
    desk.seed(texts(a="ßẞ SS"))
    assert await desk.places("ß", sensitive=False) == [(1, 1, 1)]
    desk.seed(texts(a="İstanbul ı I i"))
    assert await desk.places("i", sensitive=False) == [(1, 12, 1), (1, 14, 1)]


@pytest.mark.case("workspace", 23)
async def test_columns_count_utf_16_units(desk: Desk) -> None:
    desk.seed(texts(a="a😀b"))
    assert await desk.places("b") == [(1, 4, 1)]
    assert await desk.places("😀") == [(1, 2, 2)]
    assert await desk.places(".", regex=True) == [(1, column, 1) for column in range(1, 5)]


def test_half_a_character_can_be_looked_for() -> None:
    def columns(query: str, **options: bool) -> list[int]:
        return [match.column for match in search_files([create_file("a", "😀\ud83d")], Query(query, **options))]

    assert columns("\ud83d") == columns("\ud83d", sensitive=False) == [1, 3]
    assert columns("\ude00") == [2]
    assert columns("\ud83d$", regex=True) == [3]


async def test_a_limit_counts_over_all_files_and_binary_ones_are_passed_over(desk: Desk) -> None:
    desk.seed([*texts(a="xx"), PNG, *texts(b="x\nx")])
    matches = await desk.call("search", query="x", limit=3)
    assert [(match["path"], match["line"]) for match in matches] == [("a", 1), ("a", 1), ("b", 1)]
    assert len(await desk.call("search", query="A", sensitive=False)) == 0


async def test_many_hits_in_several_lines_are_told_with_their_lines(desk: Desk) -> None:
    desk.seed(texts(a="é1 é2\n\n😀1\n1"))
    matches = await desk.call("search", query="1")
    assert [(match["line"], match["column"], match["content"]) for match in matches] == [
        (1, 2, "é1 é2"),
        (3, 3, "😀1"),
        (4, 1, "1"),
    ]
    assert await desk.call("search", query="1", regex=True) == matches
    assert await desk.call("search", query="1", sensitive=False) == matches


# -------------------------------------------------------------------- replacing


@pytest.mark.case("workspace", 14)
async def test_a_replacement_may_span_lines(desk: Desk) -> None:
    desk.seed(texts(a="x\ny\nx"))
    assert await desk.places(r"x\ny", regex=True) == []
    assert await desk.call("replace", query=r"x\ny", replacement="Z", regex=True) == {"occurrences": 1, "files": 1}
    assert await desk.call("read", path="a") == "Z\nx"


@pytest.mark.case("workspace", 15)
async def test_in_a_replacement_the_anchors_are_the_ends_of_the_text(desk: Desk) -> None:
    desk.seed(texts(a="ab\nab"))
    assert await desk.call("replace", query="^a", replacement="Q", regex=True) == {"occurrences": 1, "files": 1}
    assert await desk.call("read", path="a") == "Qb\nab"


@pytest.mark.case("workspace", 16)
@pytest.mark.parametrize("replacement", ["$2-$1", "\\1", "\\0", "$&", "\\g<0>"])
async def test_a_replacement_is_taken_as_it_stands(desk: Desk, replacement: str) -> None:
    desk.seed(texts(a="a.b"))
    await desk.call("replace", query="(a)(.)b", replacement=replacement, regex=True)
    assert await desk.call("read", path="a") == replacement


@pytest.mark.case("workspace", 17)
async def test_an_empty_query_is_replaced_before_units(desk: Desk) -> None:
    desk.seed(texts(a="hello"))
    await desk.call("replace", query="", replacement="-", limit=2)
    assert await desk.call("read", path="a") == "-h-ello"
    desk.seed(texts(a="😀"))
    await desk.call("replace", query="", replacement="-")
    assert await desk.active.read("a") == "-\ud83d-\ude00-"


@pytest.mark.case("workspace", 18)
async def test_matches_beyond_the_limit_stay(desk: Desk) -> None:
    desk.seed(texts(a="xx", b="xx", c="x"))
    assert await desk.call("replace", query="x", replacement="y", limit=3) == {"occurrences": 3, "files": 2}
    assert await desk.active.read(["a", "b", "c"]) == {"a": "yy", "b": "yx", "c": "x"}
    assert [file["state"] for file in await desk.contents()] == ["modified", "modified", "created"]


@pytest.mark.case("workspace", 19)
async def test_a_file_counts_as_modified_also_if_it_came_out_the_same(desk: Desk) -> None:
    desk.seed(texts(a="x"))
    assert await desk.call("replace", query="x", replacement="x") == {"occurrences": 1, "files": 1}
    assert (await desk.contents())[0]["state"] == "modified"


async def test_halves_that_come_together_are_a_character_again(desk: Desk) -> None:
    desk.seed([create_file("a", "\ud83d-\ude00")])
    await desk.call("replace", query="-", replacement="")
    assert await desk.call("read", path="a") == "😀"
    assert (await desk.call("list"))[0]["size"] == 4
