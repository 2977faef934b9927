"""Trying changes on a form without making them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import FieldError, Form, TextField, Value
from tests.forms.making import field, fields_of, heard, names, text


def test_a_trial_tells_what_a_fill_and_submit_would_and_does_neither() -> None:
    form = Form(fields_of(text("a", required=True), text("b", maximum=1), field("number", "n")), values={"b": "x"})
    events = heard(form)
    trial = form.trial({"n": 5.0, "b": "long"})
    assert trial.values == {"b": "long", "n": 5}
    assert [(error.field, error.rule) for error in trial.errors] == [("a", "required"), ("b", "maximum")]
    assert (form.values, names(form.errors), events) == ({"b": "x"}, ["required"], [])
    assert not form.touched


def test_a_trial_may_start_from_other_answers_than_those_held() -> None:
    form = Form(fields_of(text("a"), text("b")))
    opened = form.values
    form.fill("a", "kept from a rejected answer")
    assert form.trial({"b": "1"}, start=opened).values == {"b": "1"}
    assert form.trial({"b": "1"}).values == {"a": "kept from a rejected answer", "b": "1"}


def test_a_trial_takes_answers_away_too() -> None:
    form = Form(fields_of(text("a", required=True)), values={"a": "x"})
    assert form.trial({"a": None}).values == {}
    assert names(form.trial({"a": None}).errors) == ["required"]


def test_a_trial_drops_the_outside_failures_of_the_fields_it_names_and_keeps_the_others() -> None:
    form = Form(fields_of(text("a"), text("b"), text("c")))
    for name in "abc":
        form.invalidate(name, "taken")
    form.disable("c")
    assert form.trial({"a": "x"}).errors == [FieldError("b", "taken")]
    assert form.trial({}).errors == [FieldError("a", "taken"), FieldError("b", "taken")]


def test_a_trial_respects_what_was_disabled_since_and_runs_custom_rules_on_all_values() -> None:
    def same(value: Value | None, values: Mapping[str, Value]) -> str | None:
        return None if value == values.get("b") else "differs"

    form = Form(fields_of(text("a", custom=same), TextField(name="b"), text("c", required=True)))
    form.disable(["b", "c"])
    assert names(form.trial({"a": "x", "b": "y"}).errors) == ["custom"]
    assert form.trial({"a": "x", "b": "x"}).errors == []


@pytest.mark.parametrize(
    ("changes", "code", "context"),
    [
        ({"zz": "1"}, "FIELD", {"field": "zz"}),
        ({"a": 1}, "CONTROL", {"field": "a", "control": "text"}),
    ],
)
def test_a_trial_raises_what_a_fill_would(changes: dict[str, Value], code: str, context: dict[str, str]) -> None:
    form = Form(fields_of(text("a")))
    for attempt in (lambda: form.trial(changes), lambda: form.fill(changes), lambda: form.trial({}, start=changes)):
        with pytest.raises(FormError) as refused:
            attempt()
        assert (refused.value.code, refused.value.context) == (code, context)


def test_what_a_trial_found_belongs_to_the_caller() -> None:
    form = Form(fields_of(field("file", "f", multiple=True)), values={"f": ["a"]})
    found = form.trial({}).values["f"]
    assert isinstance(found, list)
    found.append("b")
    assert form.values == {"f": ["a"]}
