"""`docs/rpc.md` is what the code says, and says something of everything."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from greenroom.actors.docs import Member, members_of, type_text
from greenroom.actors.gateway.reference import rpc_reference
from greenroom.docs import main
from greenroom.protocol.rpc import METHODS, NOTIFICATIONS, NUMBERS


def test_the_committed_documents_are_those_of_this_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().out


def test_a_stale_or_missing_document_is_named_and_written_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check"], tmp_path) == 1
    assert "docs/rpc.md is not what the code says" in capsys.readouterr().out
    assert main([], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0
    (tmp_path / "rpc.md").write_text("changed", encoding="utf-8")
    assert main(["--check"], tmp_path) == 1
    assert (tmp_path / "rpc.md").read_text(encoding="utf-8") == "changed"


def test_a_wrong_word_or_a_missing_folder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--write"]) == 2
    assert "usage" in capsys.readouterr().err
    assert main([], tmp_path / "none") == 2
    assert "part of a checkout" in capsys.readouterr().err


def test_every_method_notification_number_and_record_is_described() -> None:
    text = rpc_reference()
    for name in (*METHODS, *NOTIFICATIONS):
        assert f"### `{name}`" in text
    for number in NUMBERS:
        assert f"| {number} |" in text
    methods = [method.params for method in METHODS.values()]
    for params in (*methods, *(notification.params for notification in NOTIFICATIONS.values())):
        assert str(inspect.getdoc(params)) in text
    for target in (part.split(")")[0] for part in text.split("](#")[1:]):
        assert any(line.lower() == f"### {target}" for line in text.splitlines()), target


def test_writing_it_twice_gives_the_same_bytes() -> None:
    assert rpc_reference() == rpc_reference()


class Inner(msgspec.Struct):
    """Something within."""


class Outer(msgspec.Struct, rename="camel", tag_field="kind", tag="outer"):
    """Something with members."""

    first_name: str
    """What it is called,
    in one line."""
    size: Annotated[int, msgspec.Meta(ge=0)] | None = None
    inner: Inner | msgspec.UnsetType = msgspec.UNSET
    many: list[Inner | str] = []
    function: type[object] | msgspec.UnsetType = msgspec.UNSET


def test_members_are_told_as_a_reader_of_json_sees_them() -> None:
    assert members_of(Outer, lambda struct: struct.__name__) == [
        Member("kind", '"outer"', None, ""),
        Member("firstName", "string", None, "What it is called, in one line."),
        Member("size", "integer from 0 or null", "`null`", ""),
        Member("inner", "Inner", "", ""),
        Member("many", "array of (Inner or string)", "`[]`", ""),
    ]


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (str, "string"),
        (float, "number"),
        (bool, "boolean"),
        (Any, "any"),
        (Literal["a", "b", True], '"a" or "b" or true'),
        (tuple[str, ...], "array of string"),
        (dict[str, Any], "object"),
        (dict[str, int | None], "object of (integer or null)"),
        (Annotated[str, msgspec.Meta(max_length=5)], "string of at most 5 characters"),
        (bytes, ""),
    ],
)
def test_types_are_told_in_the_words_of_json(hint: Any, text: str) -> None:
    assert type_text(hint, lambda struct: struct.__name__) == text
