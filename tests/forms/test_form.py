"""The live form: what each call writes, announces and refuses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import (
    Abandoned,
    FieldError,
    Form,
    FormFailure,
    FormSuccess,
    Outcome,
    Settled,
    TextField,
    Value,
    mask_values,
)
from tests.forms.making import field, fields_of, heard, names, text, then

CHOICES = [{"value": value, "label": value.upper()} for value in "abcde"]
TAGS = field("checkbox", "tags", choices=CHOICES)


def refusal(call: Callable[[], object]) -> FormError:
    with pytest.raises(FormError) as refused:
        call()
    return refused.value


def trio_of_texts(**rules: Any) -> Form:
    return Form(fields_of(text("a", **rules), text("b"), text("c")))


@pytest.mark.case("forms", 27)
def test_a_fill_with_one_unknown_name_writes_nothing() -> None:
    form = trio_of_texts()
    events = heard(form)
    error = refusal(lambda: form.fill({"a": "1", "zz": "2"}))
    assert (error.code, error.context) == ("FIELD", {"field": "zz"})
    assert "its fields are: 'a', 'b', 'c'" in error.message
    assert (form.values, events) == ({}, [])


def test_a_fill_with_one_value_that_cannot_be_held_writes_nothing() -> None:
    form = Form(fields_of(text("a"), field("number", "n")))
    events = heard(form)
    error = refusal(lambda: form.fill({"a": "1", "n": "s3cret"}))
    assert (error.code, error.context) == ("CONTROL", {"field": "n", "control": "number"})
    assert "s3cret" not in error.message
    assert (form.values, events) == ({}, [])


@pytest.mark.case("forms", 28)
def test_an_equal_list_is_no_change_and_a_reordered_one_is() -> None:
    form = Form(fields_of(TAGS), values={"tags": ["a", "b"]})
    events = heard(form)
    form.fill("tags", ["a", "b"])
    assert events == []
    assert not form.dirty
    form.fill("tags", ["b", "a"])
    assert events == [("fill", "tags", ["b", "a"])]
    assert form.dirty


@pytest.mark.case("forms", 29)
def test_fills_are_announced_in_the_order_of_the_mapping() -> None:
    form = Form(fields_of(text("a", required=True), text("b"), text("c")), values={"a": "x"})
    events = heard(form)
    form.fill({"c": "3", "b": "2", "a": None})
    assert events == [("fill", "c", "3"), ("fill", "b", "2"), ("fill", "a", None), ("validate", [("a", "required")])]


@pytest.mark.case("forms", 30)
def test_a_refill_with_the_same_value_takes_the_failure_from_outside_away() -> None:
    form = Form(fields_of(text("a")), values={"a": "x"})
    form.invalidate("a", "taken")
    events = heard(form)
    form.fill("a", "x")
    assert events == [("validate", [])]


@pytest.mark.case("forms", 31)
def test_failures_from_outside_keep_the_place_of_their_first_telling() -> None:
    form = trio_of_texts()
    for name, message in (("a", "old"), ("b", "other"), ("a", "new")):
        form.invalidate(name, message)
    assert form.errors == [FieldError("a", "new"), FieldError("b", "other")]
    events = heard(form)
    form.invalidate("a", "new")
    assert events == []


def test_failures_of_rules_come_first_and_one_of_a_disabled_field_waits() -> None:
    form = Form(fields_of(text("a"), text("b", required=True)))
    form.invalidate("a", "taken")
    assert [error.field for error in form.errors] == ["b", "a"]
    form.disable("a")
    assert [error.field for error in form.errors] == ["b"]
    form.enable("a")
    assert [error.field for error in form.errors] == ["b", "a"]


@pytest.mark.case("forms", 32)
def test_a_fresh_form_that_fails_announces_nothing_and_touches_every_enabled_field() -> None:
    form = Form(fields_of(text("a", required=True), text("b"), TextField(name="c", disabled=True)))
    events = heard(form)
    result = form.submit()
    assert isinstance(result, FormFailure)
    assert names(result.error) == ["required"]
    assert (form.status, events) == ("editing", [])
    assert form.touched == {"a", "b"}


@pytest.mark.case("forms", 33)
def test_fields_are_disabled_and_enabled_in_schema_order() -> None:
    form = trio_of_texts()
    events = heard(form)
    form.disable()
    form.enable(["c", "a"])
    assert events == [("disable", "a"), ("disable", "b"), ("disable", "c"), ("enable", "a"), ("enable", "c")]
    assert form.disabled == {"b"}


@pytest.mark.case("forms", 33)
def test_an_unknown_name_among_several_moves_none() -> None:
    form = trio_of_texts()
    events = heard(form)
    assert refusal(lambda: form.disable(["a", "zz"])).context == {"field": "zz"}
    assert not form.disabled
    assert events == []


def test_a_disabled_field_loses_its_failure_and_gets_it_back() -> None:
    form = Form(fields_of(text("a", required=True), text("b")))
    events = heard(form)
    form.disable("a")
    form.enable()
    validated = ("validate", [("a", "required")])
    assert events == [("disable", "a"), ("validate", []), ("enable", "a"), validated]


def test_disabling_what_is_disabled_evaluates_nothing() -> None:
    evaluated: list[object] = []
    form = Form(fields_of(text("a", custom=lambda value, values: evaluated.append(value)), text("b")))
    form.disable("b")
    evaluated.clear()
    form.disable("b")
    form.enable("a")
    assert evaluated == []


WRITES: dict[str, Callable[[Form], object]] = {
    "fill": lambda form: form.fill("a", "x"),
    "fill nothing": lambda form: form.fill({}),
    "touch": lambda form: form.touch("a"),
    "invalidate": lambda form: form.invalidate("a", "no"),
    "disable": lambda form: form.disable("a"),
    "enable": lambda form: form.enable(),
    "submit": lambda form: form.submit(),
    "clear": lambda form: form.clear(),
    "trial": lambda form: form.trial({}),
}


@pytest.mark.case("forms", 34)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_settled_form_refuses_every_write_even_destroyed(write: Callable[[Form], object]) -> None:
    form = trio_of_texts()
    form.submit()
    events = heard(form)
    assert refusal(lambda: write(form)).code == "SETTLED"
    form.destroy()
    assert refusal(lambda: write(form)).code == "SETTLED"
    assert (form.status, events, form.outcome) == ("settled", [], Settled({}))


@pytest.mark.case("forms", 34)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_an_abandoned_form_refuses_every_write(write: Callable[[Form], object]) -> None:
    form = trio_of_texts()
    events = heard(form)
    form.destroy()
    form.destroy()
    assert refusal(lambda: write(form)).code == "ABANDONED"
    assert (form.status, events, form.outcome) == ("abandoned", [("abandon",)], Abandoned())


def test_a_form_opens_with_its_defaults_overlaid_and_announces_nothing() -> None:
    events: list[str] = []
    schema = fields_of(TextField(name="a", default="x"), TextField(name="b", default="y"), text("c", required=True))
    form = Form(schema, values={"a": "z", "b": None}, on={"validate": then(lambda: events.append("validate"))})
    assert form.values == form.baseline == {"a": "z"}
    assert (form.valid, form.dirty, events) == (False, False, [])
    form.fill("c", "1")
    assert events == ["validate"]


def test_a_form_does_not_open_with_values_that_it_cannot_hold() -> None:
    schema = fields_of(text("a"), field("number", "n"))
    assert refusal(lambda: Form(schema, values={"zz": 1})).code == "FIELD"
    assert refusal(lambda: Form(schema, values={"n": "1"})).code == "CONTROL"


def test_a_submit_takes_enabled_answers_in_schema_order() -> None:
    form = Form(fields_of(text("10"), text("b"), text("2"), field("number", "n")))
    form.fill({"n": 5.0, "2": "two", "b": "", "10": "ten"})
    form.disable("b")
    result = form.submit()
    assert isinstance(result, FormSuccess)
    assert list(result.value.items()) == [("10", "ten"), ("2", "two"), ("n", 5)]
    assert msgspec.json.encode(result) == b'{"success":true,"value":{"10":"ten","2":"two","n":5}}'
    assert form.values == {"10": "ten", "b": "", "2": "two", "n": 5}


def test_a_failed_submit_is_written_with_its_errors() -> None:
    result = Form(fields_of(text("a", required=True)), messages={"required": "Say it."}).submit()
    written = b'{"success":false,"error":[{"field":"a","message":"Say it.","rule":"required"}]}'
    assert msgspec.json.encode(result) == written


def test_a_hidden_or_locked_field_is_evaluated_and_submitted() -> None:
    form = Form(fields_of(TextField(name="a", hidden=True, default="x"), TextField(name="b", locked=True)))
    form.fill("b", "y")
    result = form.submit()
    assert isinstance(result, FormSuccess)
    assert result.value == {"a": "x", "b": "y"}


def test_clearing_goes_back_to_the_beginning_in_one_event() -> None:
    form = Form(fields_of(text("a", required=True), TextField(name="b", disabled=True), text("c")), values={"a": "x"})
    form.fill("a", None)
    form.invalidate("c", "no")
    form.touch("c")
    form.enable("b")
    form.disable("c")
    events = heard(form)
    form.clear()
    assert events == [("clear",), ("validate", [])]
    assert (form.values, form.errors, form.dirty) == ({"a": "x"}, [], False)
    assert form.disabled == {"b"}
    assert not form.touched


def test_an_empty_text_over_no_answer_is_dirty() -> None:
    form = trio_of_texts()
    form.fill("a", "")
    assert form.dirty
    form.fill("a", None)
    assert not form.dirty


def test_what_a_form_holds_cannot_be_changed_from_outside() -> None:
    given = ["a"]
    form = Form(fields_of(TAGS), values={"tags": given})
    seen: list[dict[str, Value]] = []
    form.emitter.on("submit", seen.append)
    outcomes: list[Outcome] = []
    form.on_end(outcomes.append)
    given.append("b")
    for record in (form.values, form.baseline):
        assert record == {"tags": ["a"]}
        record["tags"] = "spoiled"
    ticked = form.values["tags"]
    assert isinstance(ticked, list)
    ticked.append("spoiled")
    result = form.submit()
    assert isinstance(result, FormSuccess)
    (submitted,), (outcome,) = seen, outcomes
    assert isinstance(outcome, Settled)
    records = [result.value, submitted, outcome.values, form.values]
    assert records == [{"tags": ["a"]}] * 4
    assert len({id(record["tags"]) for record in records}) == 4


def test_forms_of_one_schema_do_not_hear_of_each_other() -> None:
    schema = fields_of(text("a", required=True), TextField(name="b", default="x"))
    first, second = Form(schema), Form(schema)
    first.fill({"a": "1", "b": None})
    first.invalidate("b", "no")
    first.touch("a")
    first.disable("a")
    for other in (second, Form(schema)):
        assert (other.values, names(other.errors)) == ({"b": "x"}, ["required"])
        assert other.touched == other.disabled == frozenset()
        assert not other.dirty
        other.invalidate("b", "no")
        assert names(other.errors) == ["required", "custom"]


def test_a_default_list_is_not_shared_between_forms() -> None:
    schema = fields_of(field("checkbox", "tags", choices=CHOICES, default=["a"]))
    ticked = Form(schema).values["tags"]
    assert isinstance(ticked, list)
    ticked.append("b")
    assert Form(schema).values == {"tags": ["a"]}


def test_a_field_can_be_looked_up() -> None:
    form = Form(fields_of(text("a"), TAGS))
    assert form.field("tags") == TAGS
    assert form.field("zz") is None


@pytest.mark.case("reports/forms", 2)
def test_a_limit_of_ticks_is_told_with_its_number_and_a_retry_succeeds() -> None:
    form = Form(fields_of(field("checkbox", "tags", choices=CHOICES, rule={"maximum": 2})))
    form.fill("tags", ["a", "b", "c"])
    result = form.submit()
    assert isinstance(result, FormFailure)
    assert [(error.field, error.rule) for error in result.error] == [("tags", "maximum")]
    assert "2" in result.error[0].message
    assert refusal(lambda: form.fill("tags", ["a", "a"])).code == "CONTROL"
    form.fill("tags", ["a", "b"])
    assert form.submit() == FormSuccess(True, {"tags": ["a", "b"]})


@pytest.mark.case("reports/forms", 2)
def test_a_default_beyond_its_own_limit_is_shown_and_must_be_corrected() -> None:
    rule = {"maximum": 2}
    form = Form(fields_of(field("checkbox", "tags", choices=CHOICES, default=["a", "b", "c"], rule=rule)))
    assert form.values == {"tags": ["a", "b", "c"]}
    assert not form.submit().success
    form.fill("tags", ["c"])
    assert form.submit() == FormSuccess(True, {"tags": ["c"]})


@pytest.mark.case("reports/forms", 2)
def test_a_default_that_is_no_choice_is_refused_before_anybody_sees_it() -> None:
    schema = fields_of(field("select", "pick", choices=CHOICES, default="z"))
    error = refusal(lambda: Form(schema))
    assert error.code == "SCHEMA"
    assert [(problem["code"], problem["field"]) for problem in error.context["problems"]] == [("DEFAULT", "pick")]
    assert "'pick'" in error.message


def test_a_no_is_an_answer_and_silence_is_not() -> None:
    schema = fields_of(field("confirm", "agree", rule={"required": True}))
    refused = Form(schema).submit()
    assert isinstance(refused, FormFailure)
    assert [(error.field, error.rule) for error in refused.error] == [("agree", "required")]
    form = Form(schema)
    form.fill("agree", False)
    assert form.submit() == FormSuccess(True, {"agree": False})


def test_a_custom_rule_that_raises_leaves_the_values_beside_the_errors_as_they_were() -> None:
    def custom(value: Value | None, values: Mapping[str, Value]) -> object:
        if values.get("b") == "boom":
            raise ZeroDivisionError
        return "no" if value == "bad" else None

    form = Form(fields_of(text("a", custom=custom), text("b")))
    form.fill("a", "bad")
    events = heard(form)
    with pytest.raises(ZeroDivisionError):
        form.fill({"a": "good", "b": "boom"})
    assert form.values == {"a": "good", "b": "boom"}
    assert names(form.errors) == ["custom"]
    assert [event for event, *_ in events] == ["fill", "fill"]
    with pytest.raises(ZeroDivisionError):
        form.submit()
    events.clear()
    form.fill("b", "calm")
    assert events == [("fill", "b", "calm"), ("validate", [])]


def test_a_clear_whose_custom_rule_raises_announces_nothing() -> None:
    angry = False

    def custom(value: Value | None, values: Mapping[str, Value]) -> None:
        if angry:
            raise ZeroDivisionError

    form = Form(fields_of(text("a", custom=custom)))
    form.fill("a", "x")
    events = heard(form)
    angry = True
    with pytest.raises(ZeroDivisionError):
        form.clear()
    assert (form.values, events) == ({}, [])


def test_a_custom_rule_about_another_field_is_evaluated_when_that_one_changes() -> None:
    def same(value: Value | None, values: Mapping[str, Value]) -> str | None:
        return None if value == values.get("b") else "differs"

    form = Form(fields_of(text("a", custom=same), text("b")))
    form.fill("a", "x")
    assert names(form.errors) == ["custom"]
    form.fill("b", "x")
    assert form.valid
    form.disable("b")
    assert form.valid


def test_passwords_are_masked_at_constant_length_and_records_without_them_shared() -> None:
    schema = fields_of(field("password", "key"), text("a"))
    assert mask_values(schema, {"key": "hunter2", "a": "ok"}) == {"key": "********", "a": "ok"}
    assert mask_values(schema, {"key": "", "a": "ok"})["key"] == "********"
    record: dict[str, Value] = {"a": "ok"}
    assert mask_values(schema, record) is record


def test_nothing_that_is_printed_of_a_form_or_its_results_tells_an_answer() -> None:
    form = Form(fields_of(field("password", "key")))
    trial = form.trial({"key": "hunter2"})
    form.fill("key", "hunter2")
    result = form.submit()
    for printed in (form, trial, result, form.outcome):
        assert "hunter2" not in repr(printed)
        assert "hunter2" not in str(printed)
    assert "key" in repr(result)


def test_a_form_that_nobody_uses_holds_next_to_nothing() -> None:
    schema = fields_of(TextField(name="a", default="x"), text("b", required=True))
    form = Form(schema)
    own = [getattr(form, slot) for slot in Form.__slots__ if slot != "__weakref__"]
    shared = Form(schema)
    others = [getattr(shared, slot) for slot in Form.__slots__ if slot != "__weakref__"]
    assert all(mine is theirs for mine, theirs in zip(own, others, strict=True))
    assert sys.getsizeof(form) <= 256
