"""JSON as it is written: numbers as ECMAScript prints them, text as it is."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.protocol.text import number_text
from greenroom.protocol.wire import encode


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5.0, "5"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (1e16, "10000000000000000"),
        (1e21, "1e+21"),
        (1e-7, "1e-7"),
        (1.5e300, "1.5e+300"),
        (float("nan"), "null"),
        (float("inf"), "null"),
        (5, "5"),
        (2**53 + 1, "9007199254740993"),
        (10**40, "1" + "0" * 40),
        (True, "true"),
        (None, "null"),
        ([1.0, -2.0, 3.25], "[1,-2,3.25]"),
        ({"a": 1.0, "b": [{"c": 2.0}]}, '{"a":1,"b":[{"c":2}]}'),
        ({"1.0": "2.0"}, '{"1.0":"2.0"}'),
        (["a,1.0", 'q":[1.0,', "\\", 1.0], '["a,1.0","q\\":[1.0,","\\\\",1]'),
        ("\u2028é/\x7f\b\x1f", '"\u2028é/\x7f\\b\\u001f"'),
    ],
)
def test_values_are_written_as_json_stringify_writes_them(value: object, text: str) -> None:
    assert encode(value) == text.encode()


class Point(msgspec.Struct, rename="camel"):
    at_x: float
    note: str = "1.0"


def test_structs_are_written_by_their_names_on_the_wire() -> None:
    assert encode(Point(2.0)) == b'{"atX":2,"note":"1.0"}'


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
)


@given(json_values)
def test_what_is_written_reads_back_as_the_same_value_where_numbers_are_doubles(value: Any) -> None:
    assert json.loads(encode(value), parse_int=float) == value


@given(st.integers())
def test_an_integer_keeps_its_digits(value: int) -> None:
    assert json.loads(encode({"a": [value]})) == {"a": [value]}


@given(st.floats(allow_nan=False, allow_infinity=False), st.text(alphabet=':,[]{}"\\.0123456789eE- '))
def test_a_number_prints_the_same_wherever_it_stands(number: float, noise: str) -> None:
    text = number_text(number)
    assert encode({noise: [noise, number]}).decode() == f"{{{json.dumps(noise)}:[{json.dumps(noise)},{text}]}}"


def test_a_lone_surrogate_is_refused_or_replaced_and_a_pair_is_a_character() -> None:
    with pytest.raises(UnicodeEncodeError):
        encode(["\ud800"])
    assert encode({"\udc00": ["a\ud800b", ("\ud83d\ude00", 1.0)]}, surrogates="replace") == (
        '{"\ufffd":["a\ufffdb",["\U0001f600",1]]}'.encode()
    )


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError):
        encode({"a": object()})
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(RecursionError):
        encode(nested)
