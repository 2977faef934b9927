"""Reading the arguments of a call into structs."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.protocol.schemas import Arguments, Refusal, advertising_faults
from tests.tools.values import hostile_values, json_values


class Part(Struct):
    name: Annotated[str, Meta(min_length=1)]
    size: Annotated[int | UnsetType, Meta(description="how large")] = UNSET


class Everything(Struct):
    text: Annotated[str, Meta(min_length=2, max_length=4)]
    whole: Annotated[int, Meta(ge=1, le=5)]
    number: float
    exact: int | float
    flag: bool
    level: Literal["low", "high"]
    part: Part
    parts: list[Part]
    sizes: dict[str, int]
    key: str | int
    value: Any
    note: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    nothing: str | None = None


class Get(Struct, tag_field="operation", tag="get"):
    key: str


class Put(Struct, tag_field="operation", tag="put"):
    key: str
    value: Any


class Spelled(Struct):
    name: Annotated[str, Meta(pattern="^[a-z]+$")]


EVERYTHING: Arguments[Everything] = Arguments(Everything)
STORE: Arguments[Get | Put] = Arguments(Get | Put)
SOUND: dict[str, Any] = {
    "text": "ab",
    "whole": 1,
    "number": 1.5,
    "exact": 2,
    "flag": True,
    "level": "low",
    "part": {"name": "p"},
    "parts": [{"name": "q", "size": 3}],
    "sizes": {"a": 1},
    "key": "k",
    "value": {"a": [None]},
}


def refusal(arguments: Arguments[Any], args: object) -> str:
    parsed = arguments.parse(args)
    assert isinstance(parsed, Refusal)
    return str(parsed)


def test_arguments_become_the_struct_that_declares_them() -> None:
    assert EVERYTHING.parse(SOUND) == Everything(
        "ab", 1, 1.5, 2, True, "low", Part("p"), [Part("q", 3)], {"a": 1}, "k", {"a": [None]}
    )


def test_what_spells_a_value_is_read_as_it() -> None:
    spelled = {
        "text": 42.0,
        "whole": " 5 ",
        "number": "0x10",
        "exact": "2.5",
        "flag": "0",
        "level": " high ",
        "part": {"name": 7, "size": "8", "odd": 1},
        "sizes": {"a": "1"},
        "key": 7.0,
        "odd": object(),
    }
    assert EVERYTHING.parse(SOUND | spelled) == Everything(
        "42", 5, 16, 2.5, False, "high", Part("7", 8), [Part("q", 3)], {"a": 1}, 7, {"a": [None]}
    )


def test_large_integers_keep_every_digit() -> None:
    parsed = EVERYTHING.parse(SOUND | {"exact": 2512292042121000001, "key": 2512292042121000001})
    assert isinstance(parsed, Everything)
    assert (parsed.exact, parsed.key) == (2512292042121000001, 2512292042121000001)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"text": 7}, 'text is "7", expected at least 2 characters'),
        ({"text": "abcde"}, 'text is "abcde", expected at most 4 characters'),
        ({"text": True}, "text is true, expected string"),
        ({"text": None}, "text is null, expected string"),
        ({"text": ["ab"]}, "text is array, expected string"),
        ({"text": {}}, "text is object, expected string"),
        ({"text": math.nan}, "text is NaN, expected string"),
        ({"whole": 0}, "whole is 0, expected at least 1"),
        ({"whole": "6"}, "whole is 6, expected at most 5"),
        ({"whole": 1.5}, "whole is 1.5, expected a whole number"),
        ({"whole": "9007199254740993"}, 'whole is "9007199254740993", expected integer'),
        ({"number": "nan"}, 'number is "nan", expected number'),
        ({"flag": "yes"}, 'flag is "yes", expected boolean'),
        ({"level": "Low"}, 'level is "Low", expected one of "low", "high"'),
        ({"part": {}}, "part.name is missing, expected string"),
        ({"parts": [{"name": "a"}, {"name": ""}]}, 'parts[1].name is "", expected at least 1 characters'),
        ({"sizes": {"a": "x"}}, 'sizes.a is "x", expected integer'),
        ({"note": None}, "note is null, expected string"),
        ({"value": {"a": [math.nan]}}, "value.a[0] is a number that is not finite, expected json"),
    ],
)
def test_a_refusal_names_the_field_what_came_and_what_was_expected(change: dict[str, Any], told: str) -> None:
    assert refusal(EVERYTHING, SOUND | change) == told


def test_a_refusal_tells_several_faults_and_counts_the_rest() -> None:
    told = refusal(EVERYTHING, {})
    assert told.startswith("text is missing, expected string; whole is missing, expected integer; ")
    assert told.endswith("; and 6 more")
    assert 'level is missing, expected one of "low", "high"' in refusal(
        EVERYTHING, {name: value for name, value in SOUND.items() if name != "level"}
    )


def test_null_is_taken_only_where_it_is_declared() -> None:
    parsed = EVERYTHING.parse(SOUND | {"nothing": None})
    assert isinstance(parsed, Everything)
    assert parsed.nothing is None
    assert parsed.note is UNSET


def test_an_operation_decides_alone_which_fields_are_needed() -> None:
    assert STORE.parse({"operation": " get ", "key": 1, "value": object()}) == Get("1")
    assert refusal(STORE, {"operation": "put", "key": "k"}) == "value is missing, expected json"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({}, 'operation is missing, expected one of "get", "put"'),
        ({"operation": "GET"}, 'operation is "GET", expected one of "get", "put"'),
        ({"operation": ["get"]}, 'operation is array, expected one of "get", "put"'),
        (["get"], "the arguments are array, expected an object whose keys are text"),
        (None, "the arguments are null, expected an object whose keys are text"),
        ({1: 2}, "the arguments are object, expected an object whose keys are text"),
    ],
)
def test_a_call_without_a_known_operation_is_told_the_known_ones(args: object, told: str) -> None:
    assert refusal(STORE, args) == told


def test_a_value_of_any_type_is_a_copy_of_its_own() -> None:
    value = {"a": [1]}
    parsed = STORE.parse({"operation": "put", "key": "k", "value": value})
    assert isinstance(parsed, Put)
    value["a"].append(2)
    assert parsed.value == {"a": [1]}


def test_what_only_the_declaration_knows_is_checked_too() -> None:
    assert Arguments[Spelled](Spelled).parse({"name": "abc"}) == Spelled("abc")
    assert "$.name" in refusal(Arguments(Spelled), {"name": "ABC"})


def everything() -> st.SearchStrategy[Everything]:
    parts = st.builds(Part, st.text(min_size=1), st.just(UNSET) | st.integers())
    return st.builds(
        Everything,
        text=st.text(min_size=2, max_size=4),
        whole=st.integers(1, 5),
        number=st.floats(allow_nan=False, allow_infinity=False),
        exact=st.integers() | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: number % 1 != 0),
        flag=st.booleans(),
        level=st.sampled_from(["low", "high"]),
        part=parts,
        parts=st.lists(parts, max_size=3),
        sizes=st.dictionaries(st.text(), st.integers(), max_size=3),
        key=st.text() | st.integers(),
        value=json_values(),
        note=st.just(UNSET) | st.text(min_size=1),
        nothing=st.none() | st.text(),
    )


@given(everything())
def test_what_a_struct_encodes_to_is_read_as_an_equal_struct(struct: Everything) -> None:
    assert EVERYTHING.parse(msgspec.to_builtins(struct)) == struct


@given(st.sampled_from([EVERYTHING, STORE]), hostile_values())
def test_hostile_arguments_are_read_or_refused_and_never_raise(arguments: Arguments[Any], value: Any) -> None:
    for args in (value, SOUND | {"value": value}, SOUND | {"text": value}, {"operation": value, "key": value}):
        parsed = arguments.parse(args)
        assert isinstance(parsed, Everything | Get | Put) or str(parsed)


TYPES: list[Any] = [int, str, float, bool, Any, list[int], dict[str, Part], Part, Part | None, list[Part], int | str]
FIELDS = st.dictionaries(st.sampled_from(["a", "title", "ref", "enum"]), st.sampled_from([*TYPES, Literal["b", "a"]]))


@given(st.lists(FIELDS, min_size=1, max_size=4))
def test_whatever_structs_declare_can_be_shown(operations: list[dict[str, Any]]) -> None:
    structs: list[Any] = [
        msgspec.defstruct(
            f"S{n}", list(fields.items()), tag_field="operation", tag=f"op{n}", rename={"ref": "$ref", "a": "$defs"}
        )
        for n, fields in enumerate(operations)
    ]
    declared = structs[0]
    for struct in structs[1:]:
        declared |= struct
    assert advertising_faults(Arguments[Any](declared).advertised) == []
