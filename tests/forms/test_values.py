"""What each control holds, what is read of an answer from a client, and when answers are the same."""

from __future__ import annotations

from typing import Any

import pytest

from greenroom.protocol.forms import (
    FormField,
    Value,
    compute_defaults,
    extract_changes,
    matches_answer,
    matches_field,
    matches_value,
    matches_values,
    parse_value,
    parse_values,
)
from tests.forms.making import field, fields_of, text

CHOICES = [
    {"value": "a", "label": "A"},
    {"value": "b", "label": "B", "disabled": True},
    {"value": "c", "label": "C", "disabled": False},
]
CHECKBOX = field("checkbox", choices=CHOICES)
NUMBER = field("number")
CONFIRM = field("confirm")
FILE = field("file")
FILES = field("file", multiple=True)
LOSSY = 9007199254740993
SURROGATE = "\ud800"


@pytest.mark.case("forms", 15)
@pytest.mark.parametrize(
    ("control", "value", "holds"),
    [
        ("date", "2026-02-31", True),
        ("date", "0000-12-01", True),
        ("date", "2026-2-1", False),
        ("date", "2026-13-01", False),
        ("date", "2026-00-01", False),
        ("date", "2026-01-32", False),
        ("date", "2026-01-31\n", False),
        ("date", "\u0662\u0660\u0662\u0666-01-31", False),
        ("time", "00:00", True),
        ("time", "23:59:59", True),
        ("time", "24:00", False),
        ("time", "9:30", False),
        ("time", "12:60", False),
        ("time", "12:30:60", False),
        ("time", "12:30\n", False),
        ("datetime", "2026-01-31T12:00", True),
        ("datetime", "2026-01-31T12:00:30", True),
        ("datetime", "2026-01-31 12:00", False),
        ("datetime", "2026-01-31t12:00", False),
        ("datetime", "2026-01-31T12:00Z", False),
        ("datetime", "2026-01-31T12:00:30.5", False),
        ("color", "#09afAF", True),
        ("color", "#fff", False),
        ("color", "#12345g", False),
        ("color", "09afAF", False),
    ],
)
def test_shapes_are_ascii_and_cover_the_whole_text(control: str, value: str, holds: bool) -> None:
    assert matches_field(field(control), value) is holds


@pytest.mark.parametrize("control", ["text", "editor", "password"])
def test_text_fields_hold_any_text_up_to_the_limit_in_utf16_units(control: str) -> None:
    assert matches_field(field(control), "")
    assert matches_field(field(control), "x" * 65_536)
    assert not matches_field(field(control), "x" * 65_537)
    assert matches_field(field(control), "\N{GRINNING FACE}" * 32_768)
    assert not matches_field(field(control), "\N{GRINNING FACE}" * 32_769)


@pytest.mark.parametrize("value", [1, True, None, ["a"], {"a": 1}, b"a"])
def test_text_fields_hold_texts_alone(value: Any) -> None:
    assert not matches_field(text("f"), value)


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        (0, True),
        (-1.5, True),
        (1e21, True),
        (2**53, True),
        (True, False),
        (float("nan"), False),
        (float("inf"), False),
        (10**400, False),
        ("1", False),
        (None, False),
    ],
)
def test_a_number_field_holds_finite_numbers_and_no_bool(value: Any, holds: bool) -> None:
    assert matches_field(NUMBER, value) is holds


def test_a_number_field_refuses_digits_that_a_double_would_change() -> None:
    assert not matches_field(NUMBER, LOSSY)
    assert parse_value(NUMBER, LOSSY) is None
    assert parse_value(NUMBER, str(LOSSY)) is None
    assert not matches_field(NUMBER, 2**63)
    assert matches_field(NUMBER, 10**20)


@pytest.mark.case("forms", 16)
@pytest.mark.parametrize(
    ("value", "read"),
    [
        (" 42 ", 42),
        ("\ufeff42\u00a0", 42),
        ("0x1F", 31),
        ("0b11", 3),
        ("0O17", 15),
        (".5", 0.5),
        ("5.", 5),
        ("1e3", 1000),
    ],
)
def test_a_number_is_read_from_its_text(value: str, read: float) -> None:
    assert parse_value(NUMBER, value) == read


@pytest.mark.case("forms", 16)
@pytest.mark.parametrize("value", ["", " ", "0x", "+0x10", "1_000", "1e400", "Infinity", "NaN", "1,5", True, None, [1]])
def test_what_spells_no_number_is_refused(value: Any) -> None:
    assert parse_value(NUMBER, value) is None


def test_a_number_is_kept_as_it_prints() -> None:
    for value, printed in ((5.0, "5"), (-0.0, "0"), (0.5, "0.5")):
        assert repr(parse_value(NUMBER, value)) == printed


def test_a_text_too_long_for_an_answer_is_no_number() -> None:
    assert parse_value(NUMBER, " " * 65_536 + "1") is None


@pytest.mark.case("forms", 17)
def test_a_confirmation_is_read_from_two_words_alone() -> None:
    assert parse_value(CONFIRM, "true") is True
    assert parse_value(CONFIRM, "false") is False
    assert parse_value(CONFIRM, False) is False
    for refused in ("TRUE", "1", 1, 0, " true", "", None):
        assert parse_value(CONFIRM, refused) is None


@pytest.mark.case("forms", 18)
def test_a_checkbox_holds_distinct_enabled_choices() -> None:
    assert matches_field(CHECKBOX, [])
    assert matches_field(CHECKBOX, ["c", "a"])
    for refused in (["a", "a"], ["b"], ["z"], ["a", 1], "a", ("a",), None):
        assert not matches_field(CHECKBOX, refused)


@pytest.mark.case("forms", 18)
def test_a_file_field_holds_one_name_unless_it_takes_several() -> None:
    assert matches_field(FILE, [])
    assert matches_field(FILE, ["a"])
    assert not matches_field(FILE, ["a", "b"])
    assert matches_field(FILES, ["a", "b", "a"])
    for refused in ("a", [1], None):
        assert not matches_field(FILE, refused)
        assert not matches_field(FILES, refused)


def test_a_list_has_at_most_1024_entries_of_at_most_65536_units() -> None:
    assert matches_field(FILES, ["f"] * 1024)
    assert not matches_field(FILES, ["f"] * 1025)
    assert not matches_field(FILES, ["x" * 65_537])


@pytest.mark.case("forms", 19)
def test_an_open_select_holds_any_text_but_a_disabled_choice() -> None:
    opened = field("select", choices=CHOICES, open=True)
    assert matches_field(opened, "")
    assert matches_field(opened, "something else")
    assert matches_field(opened, "a")
    assert not matches_field(opened, "b")
    assert not matches_field(opened, 1)


def test_a_closed_select_holds_enabled_choices_alone() -> None:
    closed = field("select", choices=CHOICES)
    assert matches_field(closed, "a")
    assert matches_field(closed, "c")
    for refused in ("b", "", "z", ["a"], None):
        assert not matches_field(closed, refused)


@pytest.mark.case("forms", 41)
@pytest.mark.parametrize("value", [None, "", " ", "\t\n", "\u00a0", "\ufeff", "\u2028"])
def test_white_space_is_no_answer(value: Any) -> None:
    assert not matches_answer(value)


@pytest.mark.case("forms", 41)
@pytest.mark.parametrize("value", [[], False, 0, "\x1f", "\u200b", "a", [""]])
def test_values_that_are_empty_or_false_are_answers(value: Any) -> None:
    assert matches_answer(value)


def test_answers_of_different_kinds_are_never_the_same() -> None:
    assert matches_value(1, 1.0)
    assert not matches_value(1, True)
    assert not matches_value(0, False)
    assert not matches_value("1", 1)
    assert not matches_value(None, "")
    assert matches_value(None, None)
    assert matches_value(["a", "b"], ["a", "b"])
    assert not matches_value(["a", "b"], ["b", "a"])


def test_records_are_the_same_if_they_answer_the_same_fields_alike() -> None:
    assert matches_values({"a": 1, "b": ["x"]}, {"b": ["x"], "a": 1.0})
    assert not matches_values({"a": 1}, {"a": True})
    assert not matches_values({"a": ""}, {})


def test_changes_name_every_field_whose_answer_differs() -> None:
    current: dict[str, Value] = {"a": 1, "b": "x", "c": ["y", "z"], "e": ""}
    opened: dict[str, Value] = {"a": True, "b": "x", "c": ["z", "y"], "d": "gone"}
    assert extract_changes(current, opened) == ["a", "c", "e", "d"]


def test_a_record_is_read_in_its_own_order_or_not_at_all() -> None:
    schema = fields_of(text("a"), field("number", "n"), field("checkbox", "c", choices=CHOICES))
    ticked = ["c", "a"]
    read = parse_values(schema, {"n": "0x10", "a": "x", "c": ticked})
    assert read is not None
    assert read == {"n": 16, "a": "x", "c": ["c", "a"]}
    assert list(read) == ["n", "a", "c"]
    assert read["c"] is not ticked
    assert parse_values(schema, {}) == {}
    refusals: tuple[Any, ...] = ({"zz": "x"}, {"a": "x", "n": "no"}, {"a": None}, [], "a", None, {1: "x"})
    for refused in refusals:
        assert parse_values(schema, refused) is None


@pytest.mark.parametrize("made", [text("f"), field("select", choices=[], open=True), FILE])
def test_a_client_cannot_send_half_a_surrogate_pair(made: FormField) -> None:
    value = [SURROGATE] if made is FILE else SURROGATE
    assert matches_field(made, value)
    assert parse_value(made, value) is None


def test_defaults_are_those_declared_in_schema_order() -> None:
    schema = fields_of(
        field("checkbox", "c", choices=CHOICES, default=["a"]),
        text("t"),
        field("confirm", "k", default=False),
        field("number", "n", default=0, disabled=True),
    )
    assert compute_defaults(schema) == {"c": ["a"], "k": False, "n": 0}
    assert list(compute_defaults(schema)) == ["c", "k", "n"]
