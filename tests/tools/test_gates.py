"""The gate for untrusted values: JSON passes as a copy of its own, and nothing else passes."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given

from greenroom.protocol.schemas.gates import MAX_LEVELS, MAX_NODES, NotJson, clone_json, parse_json_value
from tests.tools.values import json_values


class Color(StrEnum):
    RED = "red"


class Armed(dict[str, Any]):
    """A dict whose methods must never run."""

    def items(self) -> Any:
        raise AssertionError("a method of a subclass ran")

    __iter__ = __getitem__ = __len__ = items  # type: ignore[assignment]  # all of them


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.case("schemas", 65)
def test_what_is_no_json_is_refused_with_its_place() -> None:
    cycle: dict[str, Any] = {}
    cycle["own"] = [cycle]
    refused: dict[str, object] = {
        "a number that is not finite": math.nan,
        "of a type that JSON lacks": (1,),
        "an object with a key that is no plain text": {1: 2},
    }
    assert {reason: clone_json(value) for reason, value in refused.items()} == {
        reason: NotJson((), reason) for reason in refused
    }
    assert clone_json(cycle) == NotJson(("own", "0"), "a container that holds itself")
    assert isinstance(clone_json(nested(MAX_LEVELS + 1)), NotJson)
    assert clone_json(nested(MAX_LEVELS)) == nested(MAX_LEVELS)


@pytest.mark.case("schemas", 65)
def test_a_shared_part_becomes_two_equal_copies() -> None:
    part = {"a": 1}
    copy: Any = clone_json([part, part])
    assert copy == [part, part]
    assert copy[0] is not copy[1]
    assert copy[0] is not part


@pytest.mark.case("schemas", 65)
def test_no_key_is_special() -> None:
    assert clone_json({"__proto__": {}, "constructor": None}) == {"__proto__": {}, "constructor": None}


@pytest.mark.parametrize(
    "value",
    [
        Armed(a=1),
        OrderedDict[str, int](a=1),
        Color.RED,
        {"a", "b"},
        b"bytes",
        Decimal(1),
        date(2024, 1, 1),
        math.inf,
        print,
        "\ud800",
        {"\udfff": 1},
        {"a": {Color.RED: 1}},
    ],
)
def test_only_the_exact_types_of_json_pass(value: object) -> None:
    for place in (value, [value], {"deep": [value]}):
        assert isinstance(clone_json(place), NotJson)
        assert isinstance(parse_json_value(place), NotJson)


def test_a_value_that_unfolds_without_end_is_cut_short() -> None:
    value: list[Any] = []
    for _ in range(100):
        value = [value, value]
    assert isinstance(clone_json(value), NotJson)


def test_the_number_of_values_is_bounded() -> None:
    assert clone_json([0] * (MAX_NODES - 1)) == [0] * (MAX_NODES - 1)
    flaw = clone_json([0] * MAX_NODES)
    assert str(flaw) == "[262143] is beyond the 262,144 values that are taken"


def test_a_record_has_to_be_an_object() -> None:
    assert clone_json({"a": 1}, record=True) == {"a": 1}
    assert isinstance(clone_json([1], record=True), NotJson)


@given(json_values())
def test_json_passes_as_an_equal_copy_or_as_it_is(value: Any) -> None:
    assert json.dumps(clone_json(value)) == json.dumps(value)
    assert parse_json_value(value) is value
