"""Tools at the command line: which there are, calling them, and what is shown of their results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from greenroom.actors.cli.files import parse_json
from greenroom.actors.cli.offering import named_files, offer_tools
from greenroom.actors.cli.results import print_result
from greenroom.actors.client import connect
from greenroom.actors.system import open_runtime
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.tools import ToolSuccess
from tests.cli.conftest import Server, run, serving

NAMES = ["describe", "infer", "workspace", "database"]
AT = {"id": "shop", "table": "p"}
COLUMNS = {"id": "string", "name": "string", "price": {"type": "number", "optional": True}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "notes").mkdir()
    (folder / "notes" / "a.txt").write_text("one\ntwo\n")
    (folder / "more" / "notes").mkdir(parents=True)
    return folder


@pytest.fixture(scope="module")
def words(folder: Path) -> list[str]:
    """What the server is started with."""
    folders = (f"--workspace={folder / name}" for name in ("notes", "more/notes"))
    return [*folders, "--database", f"shop={folder / 'shop.db'}"]


@pytest.fixture(scope="module")
def data_server(words: list[str]) -> Iterator[Server]:
    with serving(*words) as server:
        yield server


def called(server: Server, tool: str, **arguments: Any) -> Any:
    """The result of a call, as a program gets it."""

    async def call() -> Any:
        async with connect(server.url) as client:
            result = await client.call_tool(tool, arguments)
        assert isinstance(result, ToolSuccess), result
        return result.value

    return trio.run(call)


def test_the_tools_are_listed_with_what_they_do(data_server: Server) -> None:
    listed = run("tools", url=data_server.url)
    assert listed.code == 0
    assert [line.split()[0] for line in listed.out.splitlines()] == [
        "tool",
        "describe",
        "infer",
        "workspace",
        "database",
    ]
    assert "edits files of a workspace" in listed.out
    told = json.loads(run("tools", "--json", url=data_server.url).out)
    assert [tool["name"] for tool in told] == NAMES
    assert all(tool["parameters"]["type"] == "object" for tool in told)


def test_one_tool_is_shown_with_its_arguments(data_server: Server) -> None:
    shown = run("tools", "workspace", url=data_server.url)
    assert shown.code == 0
    assert "fromLine" in shown.out
    assert "undo: Puts back what the last changing call did." in shown.out
    unknown = run("tools", "wizard", url=data_server.url)
    assert (unknown.code, unknown.out) == (1, "")
    assert "describe, infer, workspace, database" in unknown.err


async def test_a_server_without_data_has_no_tools_for_it() -> None:
    async with open_runtime() as runtime:
        await offer_tools(runtime, (), {})
        assert [tool.name for tool in runtime.tools.tools()] == ["describe", "infer"]


def test_rows_are_shown_as_a_table(data_server: Server, tmp_path: Path) -> None:
    called(data_server, "database", operation="create", id="shop", tables={"p": {"columns": COLUMNS}})
    rows = [{"id": "a", "name": "Widget"}, {"id": "b", "name": "[red]\x1b[31mx", "price": 5}]
    add = tmp_path / "add.json"
    add.write_text(json.dumps({**AT, "operation": "add", "row": rows}), "utf-8")
    assert json.loads(run("call", "database", str(add), url=data_server.url).out) == {"keys": ["a", "b"]}
    shown = run("call", "database", json.dumps({**AT, "operation": "records"}), url=data_server.url)
    assert [line.split() for line in shown.out.splitlines()] == [
        ["id", "name", "price"],
        ["a", "Widget"],
        ["b", "[red]x", "5"],
        ["count", "2;", "truncated", "false;", "limit", "1000"],
    ]
    as_json = run("call", "database", json.dumps({**AT, "operation": "records"}), "--json", url=data_server.url)
    assert json.loads(as_json.out)["rows"] == rows


def test_a_file_is_read_as_it_is_and_two_folders_of_one_name_are_two_workspaces(
    data_server: Server, folder: Path
) -> None:
    read = run("call", "workspace", '{"operation": "read", "path": "a.txt"}', url=data_server.url)
    assert read.out == "one\ntwo\n"
    called(data_server, "workspace", operation="append", path="a.txt", content="three")
    assert (folder / "notes" / "a.txt").read_text() == "one\ntwo\nthree"
    assert called(data_server, "workspace", operation="undo") == {"undone": True, "paths": ["a.txt"]}
    assert [each["id"] for each in called(data_server, "workspace", operation="workspaces")] == ["notes", "notes~2"]


def test_what_a_tool_refuses_is_told_on_standard_error(data_server: Server) -> None:
    for words, says in [
        (["workspace", '{"operation": "read", "path": "../a"}'], "'..'"),
        (["workspace", "{}"], "malformed workspace call"),
        (["workspace", "{"], "no JSON"),
        (["workspace", "README.md"], "no JSON"),
    ]:
        ended = run("call", *words, url=data_server.url)
        assert (ended.code, ended.out) == (1, ""), ended
        assert says in ended.err
        assert "Traceback" not in ended.err


def test_a_database_is_there_again_after_its_server_was_killed(tmp_path: Path) -> None:
    option = f"--database=shop={tmp_path / 'shop.db'}"
    with serving(option) as server:
        called(server, "database", operation="create", id="shop", tables={"p": {"columns": COLUMNS}})
        called(server, "database", **AT, operation="add", row={"id": "a", "name": "kept"})
    with serving(option) as server:  # the first one was ended by SIGKILL
        assert called(server, "database", **AT, operation="get", key="a") == {"row": {"id": "a", "name": "kept"}}


@pytest.mark.parametrize(
    ("folders", "databases", "says"),
    [
        (["no-such-folder"], [], "no-such-folder"),
        (["README.md"], [], "README.md"),
        ([], ["shop"], "shop=shop.db"),
        ([], ["=x.db"], "shop=shop.db"),
        ([], ["shop="], "shop=shop.db"),
        ([], ["shop=no-such-folder/x.db"], "no-such-folder"),
        ([], ["shop=README.md"], "README.md"),
        ([], ["shop=examples"], "examples"),
        ([], ["a=x.db", "a=y.db"], "two files"),
    ],
)
async def test_what_cannot_be_served_is_refused_by_name(folders: list[str], databases: list[str], says: str) -> None:
    async with open_runtime() as runtime:
        with pytest.raises(GreenroomError) as caught:
            await offer_tools(runtime, folders, named_files(databases))
    assert says in caught.value.message


def test_a_server_that_cannot_serve_ends_at_the_start() -> None:
    ended = run("serve", "--port", "0", "--database", "shop=README.md")
    assert (ended.code, ended.out) == (1, ""), ended
    assert ended.err.startswith("DRIVER")
    assert "Traceback" not in ended.err


def test_a_schema_is_inferred_without_a_gateway(tmp_path: Path) -> None:
    samples = tmp_path / "samples.json"
    samples.write_text('[{"day": "2026-01-01", "kind": "a"}, {"day": "2026-01-02", "kind": "a"}]', "utf-8")
    inferred = run("infer", str(samples), "--format", "--enum", url="ws://127.0.0.1:9/rpc")
    assert json.loads(inferred.out) == {
        "type": "object",
        "properties": {"day": {"type": "string", "format": "date"}, "kind": {"enum": ["a"]}},
        "required": ["day", "kind"],
        "additionalProperties": False,
    }
    refused = run("infer", "-", stdin="{}")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("SAMPLES")


@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", '{"a": 1e999}', "-1e400", "01", "", "[" * 100_000])
def test_what_no_gateway_could_be_sent_is_no_json(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        parse_json(text)


def test_numbers_are_read_to_the_digit() -> None:
    assert parse_json("[100000000000000000000000000000000001, 0.1, 1e300]") == [10**35 + 1, 0.1, 1e300]


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ([{"a": 1, "b": [1]}, {"c": "x"}], ["a b c", "1 [1]", "x"]),
        ({"rows": [{"a": 1}, None], "count": 2}, ["a", "1", "", "count 2"]),
        ({"rows": [], "count": 0}, ["count 0"]),
        ({"row": {"a": True}}, ["a", "true"]),
        ({"tables": [{"name": "t"}]}, ["name", "t"]),
        ({"a": [{"b": 1}], "c": {"d": 1}}, None),
        ([{}], None),
        ({"rows": [{}], "count": 1}, None),
        ({"row": {}}, None),
        ({"row": "x"}, None),
        ([], None),
        ({}, None),
        ([1, 2], None),
        ([None], None),
        (None, None),
        (True, None),
        (2512292042121000001, None),
        ("text\n", ["text"]),
        ("", [""]),
    ],
    ids=repr,
)
def test_what_is_no_table_is_shown_as_json(
    value: Any, lines: list[str] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    print_result(value)
    shown = capsys.readouterr().out
    if lines is None:
        assert json.loads(shown) == value
    else:
        assert [" ".join(line.split()) for line in shown.splitlines()] == lines


def test_nothing_of_a_wide_table_is_cut_off(capsys: pytest.CaptureFixture[str]) -> None:
    print_result([{f"column{number}": f"{number}" * 40 for number in range(8)}])
    shown = "".join(capsys.readouterr().out.split())
    assert all(shown.count(str(number)) >= 40 for number in range(8))
