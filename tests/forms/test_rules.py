"""What each rule says of an answer, and in which order."""

from __future__ import annotations

from typing import Any, cast

import pytest

from greenroom.protocol.forms import (
    FieldRule,
    TextField,
    Value,
    applies_rule,
    evaluate_field,
    evaluate_form,
    format_message,
)
from tests.forms.making import failed, field, fields_of, names, text

EMOJI = "\N{GRINNING FACE}"


@pytest.mark.case("forms", 1)
def test_required_asks_for_presence_and_an_empty_text_is_present() -> None:
    assert failed(text("f", required=True), None) == ["required"]
    assert failed(text("f", required=True), "") == []
    assert failed(text("f", minimum=1, required=True), "") == ["minimum"]


@pytest.mark.parametrize(("control", "value"), [("confirm", False), ("number", 0), ("file", [])])
def test_values_that_are_false_are_present(control: str, value: Value) -> None:
    assert failed(field(control, rule={"required": True}), value) == []


@pytest.mark.case("forms", 2)
def test_all_failures_of_a_text_are_reported_in_order() -> None:
    rules = text(
        "f", minimum=99, maximum=1, pattern="^z$", email=True, url=True, alphanumeric=True, integer=True, required=True
    )
    assert failed(rules, "ab c") == ["minimum", "maximum", "pattern", "email", "url", "alphanumeric", "integer"]


@pytest.mark.case("forms", 3)
def test_all_failures_of_a_number_are_reported_in_order() -> None:
    rule = {"minimum": 9, "maximum": 1, "step": 2, "integer": True}
    assert failed(field("number", rule=rule), 2.5) == ["minimum", "maximum", "step", "integer"]


@pytest.mark.case("forms", 4)
def test_length_counts_utf16_units() -> None:
    assert failed(text("f", maximum=1), EMOJI) == ["maximum"]
    assert failed(text("f", minimum=2), EMOJI) == []


@pytest.mark.case("forms", 5)
@pytest.mark.parametrize(
    ("rule", "value", "found"),
    [
        ({"step": 0.1}, 0.3, []),
        ({"step": 0.1}, 0.25, ["step"]),
        ({"step": 2, "minimum": 1}, 3, []),
        ({"step": 2, "minimum": 1}, 2, ["step"]),
        ({"step": 2, "minimum": "1"}, 2, []),
        ({"step": 0}, 0, ["step"]),
        ({"step": 5e-324}, 1e300, ["step"]),
        ({"step": 3}, -6, []),
    ],
)
def test_steps_are_counted_from_a_numeric_minimum_and_forgive_the_last_bits(
    rule: dict[str, Any], value: float, found: list[str]
) -> None:
    assert failed(field("number", rule=rule), value) == found


@pytest.mark.case("forms", 6)
def test_times_are_compared_as_texts() -> None:
    assert failed(field("time", rule={"minimum": "09:30:00"}), "09:30") == ["minimum"]
    assert failed(field("time", rule={"maximum": "09:30"}), "09:30:00") == ["maximum"]
    assert failed(field("date", rule={"minimum": "2026-01-01", "maximum": "2026-12-31"}), "2026-06-01") == []


@pytest.mark.case("forms", 7)
def test_a_rule_that_does_not_apply_is_inert() -> None:
    choices = [{"value": "a b", "label": "A"}]
    rule = {"minimum": 3, "alphanumeric": True}
    assert failed(field("select", choices=choices, rule=rule), "a b") == ["alphanumeric"]
    assert failed(field("confirm", rule={"pattern": "^$", "email": True, "step": 7}), True) == []


@pytest.mark.parametrize(
    ("control", "rule", "value"),
    [
        ("text", {"minimum": "9"}, "a"),
        ("number", {"maximum": "1"}, 5),
        ("date", {"minimum": 9999}, "2026-01-01"),
    ],
)
def test_an_operand_of_the_wrong_type_is_inert(control: str, rule: dict[str, Any], value: Value) -> None:
    assert failed(field(control, rule=rule), value) == []


def test_lists_are_measured_by_their_entries() -> None:
    choices = [{"value": value, "label": value} for value in "abc"]
    checkbox = field("checkbox", choices=choices, rule={"minimum": 2, "maximum": 2})
    assert failed(checkbox, ["a"]) == ["minimum"]
    assert failed(checkbox, ["a", "b"]) == []
    assert failed(checkbox, ["a", "b", "c"]) == ["maximum"]


@pytest.mark.case("forms", 8)
@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ("a@b.c", True),
        ("a@b.c.d", True),
        ("a@b..c", True),
        ("a@b", False),
        ("a@.c", False),
        ("a@b.", False),
        ("@b.c", False),
        ("a@b@c.d", False),
        ("a@b.c\n", False),
        ("a b@c.d", False),
        ("a\ufeff@b.c", False),
        ("a\x1f@b.c", True),
        ("", False),
    ],
)
def test_an_email_address_is_two_runs_with_a_dot_in_the_second(value: str, holds: bool) -> None:
    assert failed(text("f", email=True), value) == ([] if holds else ["email"])


@pytest.mark.case("forms", 8)
@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ("http://x", True),
        ("https://x", True),
        ("HTTP://x", False),
        ("https://", False),
        ("http://x y", False),
        ("http://x\n", False),
        ("ftp://x", False),
    ],
)
def test_a_url_is_lower_case_http_and_no_space(value: str, holds: bool) -> None:
    assert failed(text("f", url=True), value) == ([] if holds else ["url"])


@pytest.mark.case("forms", 9)
@pytest.mark.parametrize(
    ("value", "holds"), [("+5", True), ("-5", True), ("5", True), ("5.0", False), ("", False), ("\u0665", False)]
)
def test_an_integer_in_a_text_is_a_sign_and_ascii_digits(value: str, holds: bool) -> None:
    assert failed(text("f", integer=True), value) == ([] if holds else ["integer"])


@pytest.mark.case("forms", 9)
@pytest.mark.parametrize(("value", "holds"), [(1e300, True), (5.0, True), (-3, True), (0.5, False)])
def test_an_integer_in_a_number_is_integral(value: float, holds: bool) -> None:
    assert failed(field("number", rule={"integer": True}), value) == ([] if holds else ["integer"])


@pytest.mark.case("forms", 10)
@pytest.mark.case("forms", 11)
@pytest.mark.parametrize(
    ("pattern", "value", "found"),
    [
        (r"\d", "a1b", True),
        (r"\d", "\u0663", False),
        ("^a$", "a\n", False),
        (r"^\w+$", "\u00e9", False),
        ("", "anything", True),
        (r"^\s$", "\ufeff", True),
        (r"^\s$", "\x1f", False),
        ("^.$", EMOJI, False),
        ("^..$", EMOJI, True),
    ],
)
def test_a_pattern_is_ecmascript_and_searched_for(pattern: str, value: str, found: bool) -> None:
    assert failed(text("f", pattern=pattern), value) == ([] if found else ["pattern"])


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "a" * 257])
def test_a_pattern_that_cannot_be_used_is_failed_by_every_value_but_an_absent_one(pattern: str) -> None:
    assert failed(text("f", pattern=pattern), "aa") == ["pattern"]
    assert failed(text("f", pattern=pattern), None) == []


def test_a_pattern_too_dear_for_a_long_text_fails_instead_of_stalling() -> None:
    assert failed(text("f", pattern="^(a{0,999}){0,9}$"), "a" * 65_000) == ["pattern"]


@pytest.mark.parametrize("source", ["(a+)+$", "(a|a)*b", "(x(a+)+y)"])
def test_no_pattern_makes_checking_explode(source: str) -> None:
    assert failed(text("f", pattern=f"{source}"), "a" * 60_000 + "!") == ["pattern"]


def test_an_email_rule_takes_time_linear_in_the_text() -> None:
    assert failed(text("f", email=True), "a@" + "." * 65_000 + " ") == ["email"]


@pytest.mark.case("forms", 12)
@pytest.mark.parametrize(
    ("limit", "printed"),
    [(1e21, "1e+21"), (1e-7, "1e-7"), (1e20, "100000000000000000000"), (5.0, "5"), (-0.0, "0"), ("08:00", "08:00")],
)
def test_a_limit_prints_as_every_client_prints_it(limit: float | str, printed: str) -> None:
    assert format_message("number", "minimum", limit, {"minimum": "{limit}"}) == printed


@pytest.mark.case("forms", 13)
def test_messages_of_the_host_replace_the_default_ones() -> None:
    assert format_message("text", "minimum", 5, {"minimum": "{limit} {limit}"}) == "5 5"
    assert format_message("text", "required", None, {"required": "no {limit}"}) == "no {limit}"
    assert format_message("text", "pattern", None, {"pattern": "no {limit}"}) == "no {limit}"
    assert format_message("text", "required", None, {"required": ""}) == ""
    (error,) = evaluate_field(text("f", minimum=5), "abc", messages={"minimum": "{limit} {limit}"})
    assert error.message == "5 5"


def test_a_default_message_says_what_to_do_and_names_the_limit() -> None:
    assert format_message("text", "minimum", 8) == "Write at least 8 characters."
    assert format_message("number", "minimum", 8) == "Enter 8 or more."
    assert format_message("date", "maximum", "2026-01-01") == "Enter 2026-01-01 or earlier."
    assert format_message("checkbox", "maximum", 2) == "Tick at most 2 of these."


@pytest.mark.case("forms", 14)
def test_a_custom_rule_fails_by_a_text_alone() -> None:
    assert failed(text("f", custom=lambda value, values: False), "a") == []
    assert failed(text("f", custom=lambda value, values: None), "a") == []
    assert failed(text("f", custom=lambda value, values: ""), "a") == ["custom"]


@pytest.mark.case("forms", 14)
def test_a_custom_rule_runs_last_and_on_an_absent_value_too() -> None:
    errors = evaluate_field(text("f", required=True, custom=lambda value, values: f"got {value}"), None)
    assert names(errors) == ["required", "custom"]
    assert errors[1].message == "got None"


def test_a_custom_rule_that_turns_out_to_be_async_raises() -> None:
    async def later(value: object) -> None:
        """Nobody would await it."""

    with pytest.raises(TypeError, match="rule of f is async"):
        evaluate_field(text("f", custom=cast("Any", lambda value, values: later(value))), "a")


def test_a_custom_rule_sees_all_values_and_what_it_raises_escapes() -> None:
    seen: list[dict[str, Value]] = []

    def custom(value: Value | None, values: Any) -> None:
        seen.append(dict(values))
        raise ZeroDivisionError

    schema = fields_of(TextField(name="a", disabled=True), text("b", custom=custom))
    with pytest.raises(ZeroDivisionError):
        evaluate_form(schema, {"a": "x", "b": "y"})
    assert seen == [{"a": "x", "b": "y"}]


def test_a_record_is_evaluated_in_schema_order_without_disabled_fields() -> None:
    schema = fields_of(text("a", required=True), TextField(name="b", disabled=True, rule=FieldRule(required=True)))
    assert [error.field for error in evaluate_form(schema, {})] == ["a"]
    assert [error.field for error in evaluate_form(schema, {}, disabled=())] == ["a", "b"]
    assert [error.field for error in evaluate_form(schema, {}, disabled=["a"])] == ["b"]


@pytest.mark.parametrize("value", [1, True, ["x"], float("nan"), {"a": 1}, b"x"])
def test_rules_have_nothing_to_say_of_a_value_of_another_kind(value: Any) -> None:
    rules = text("f", minimum=2, maximum=0, pattern="^$", email=True, url=True, alphanumeric=True, integer=True)
    assert evaluate_form(fields_of(rules), {"f": value}) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400])
def test_a_number_that_no_form_holds_is_still_evaluated_without_raising(value: float) -> None:
    schema = fields_of(field("number", rule={"minimum": 0, "step": 1, "integer": True}))
    assert set(names(evaluate_form(schema, {"f": value}))) <= {"minimum", "step", "integer"}


def test_which_rules_apply_to_which_control() -> None:
    rules = ("required", "minimum", "maximum", "step", "pattern", "email", "url", "integer", "alphanumeric")
    texts = {"pattern", "email", "url", "integer", "alphanumeric"}
    applying = {
        "text": {"required", "minimum", "maximum", *texts},
        "number": {"required", "minimum", "maximum", "step", "integer"},
        "time": {"required", "minimum", "maximum", *texts},
        "color": {"required", *texts},
        "select": {"required", *texts},
        "confirm": {"required"},
        "checkbox": {"required", "minimum", "maximum"},
        "file": {"required", "minimum", "maximum"},
    }
    for control, expected in applying.items():
        assert {rule for rule in rules if applies_rule(control, rule)} == expected
