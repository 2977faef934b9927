"""Lengths, white space and numbers as ECMAScript has them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.protocol.text import WHITE_SPACE, exact_number, number_text, parse_number, trim, utf16_length

texts = st.text(st.characters(codec=None))  # lone surrogates too


@pytest.mark.parametrize(
    ("text", "length"), [("", 0), ("abc", 3), ("é", 1), ("😀", 2), ("\ud83d", 1), ("a\udc00😀", 4)]
)
def test_a_length_counts_utf16_units(text: str, length: int) -> None:
    assert utf16_length(text) == length


@given(texts, texts)
def test_lengths_of_joined_texts_add_up(left: str, right: str) -> None:
    assert utf16_length(left + right) == utf16_length(left) + utf16_length(right)


def test_trim_takes_ecmascript_white_space_only() -> None:
    assert trim(WHITE_SPACE + "a b" + WHITE_SPACE) == "a b"
    for kept in "\x1c\x1d\x1e\x1f\x85\u180e\u200b":
        assert trim(f" {kept} ") == kept


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e21, "1e+21"),
        (1e-7, "1e-7"),
        (1e20, "100000000000000000000"),
        (5.0, "5"),
        (-0.0, "0"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5e-7"),
        (-123.456, "-123.456"),
        (0.1 + 0.2, "0.30000000000000004"),
        (12345678901234567890, "12345678901234567000"),
        (9007199254740993, "9007199254740992"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (5e-324, "5e-324"),
        (-1e16, "-10000000000000000"),
        (1.5e16, "15000000000000000"),
        (0.00001234, "0.00001234"),
    ],
)
def test_a_number_prints_as_ecmascript_prints_it(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 10**400])
def test_what_no_double_holds_has_no_text(value: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        number_text(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_number_text_reads_back_as_the_same_number(value: float) -> None:
    assert float(number_text(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" 42 ", 42),
        ("\ufeff7\u2028", 7),
        ("0x1F", 31),
        ("0XfF", 255),
        ("0b11", 3),
        ("0o17", 15),
        (".5", 0.5),
        ("5.", 5),
        ("1e3", 1000),
        ("+5", 5),
        ("-.5e1", -5),
        ("-0", 0),
        ("00012", 12),
        ("1e21", 1e21),
        ("0x20000000000001", 9007199254740992.0),
        ("9007199254740994", 9007199254740994.0),
        ("1" + "0" * 23, 1e23),
        ("0" * 5000 + "1", 1),
    ],
)
def test_a_numeric_text_is_read(text: str, value: float) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "0x",
            "+0x10",
            "-0b1",
            "0x1G",
            "0o8",
            "1_000",
            "1e400",
            "Infinity",
            "-Infinity",
            "NaN",
            "True",
            "1,5",
        ),
        *("1e", "e1", ".", "--1", "+", "1 2", "１２", "٣", "1n", "\x1f1", "1\x85", "0x_1", "9" * 400, "0x" + "f" * 400),
    ],
)
def test_a_text_that_is_no_finite_number_is_refused(text: str) -> None:
    assert parse_number(text) is None


def test_a_whole_number_is_read_as_an_int_where_a_double_holds_it_safely() -> None:
    assert isinstance(parse_number("1e3"), int)
    assert isinstance(parse_number("-9007199254740991"), int)
    assert isinstance(parse_number("9007199254740992"), float)
    assert isinstance(parse_number("0.5"), float)


@pytest.mark.parametrize("digits", ["9007199254740993", "-9007199254740993", "+12345678901234567890", "9" * 309])
def test_digits_that_a_double_cannot_give_back_are_refused(digits: str) -> None:
    assert parse_number(digits) is None
    assert exact_number(int(digits)) is None


def test_an_integer_is_held_where_it_prints_as_its_own_digits() -> None:
    assert exact_number(9007199254740991) == 9007199254740991
    assert exact_number(-9007199254740994) == -9007199254740994.0
    assert exact_number(10**22) == 1e22
    assert exact_number(10**400) is None


@given(st.integers())
def test_reading_digits_and_holding_their_integer_agree(value: int) -> None:
    assert parse_number(str(value)) == exact_number(value)


@given(texts)
def test_any_text_is_read_or_refused(text: str) -> None:
    value = parse_number(text)
    assert value is None or math.isfinite(value)
