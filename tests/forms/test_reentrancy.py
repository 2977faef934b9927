"""Listeners that call the form again, how a form ends under them, and who is told of its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import (
    Abandoned,
    FieldError,
    Form,
    FormFailure,
    FormResult,
    FormSuccess,
    Outcome,
    Settled,
    Value,
)
from tests.forms.making import fields_of, heard, names, text, then


def two() -> Form:
    return Form(fields_of(text("x"), text("y")))


@pytest.mark.case("forms", 35)
def test_a_destroy_in_a_fill_listener_waits_until_the_fill_is_over() -> None:
    form = two()
    codes: list[str] = []

    def destroy(name: str, value: object) -> None:
        if name == "x":
            form.destroy()
            with pytest.raises(FormError) as refused:
                form.touch("x")
            codes.append(refused.value.code)
            assert form.status == "editing"

    form.emitter.on("fill", destroy)
    events = heard(form)
    form.fill({"x": "1", "y": "2"})
    assert events == [("fill", "x", "1"), ("fill", "y", "2"), ("abandon",)]
    assert (codes, form.status, form.emitter.closed) == (["ABANDONED"], "abandoned", True)


def test_a_destroy_in_a_nested_call_waits_for_the_outermost() -> None:
    form = two()

    def follow(name: str, value: object) -> None:
        if name == "x":
            form.invalidate("y", "no")

    form.emitter.on("fill", follow)
    form.emitter.on("validate", then(form.destroy))
    events = heard(form)
    form.fill({"x": "1", "y": "2"})
    # By the second fill the form is over for writers, so that its failure from outside stays.
    assert events == [("validate", [("y", "custom")]), ("fill", "x", "1"), ("fill", "y", "2"), ("abandon",)]


@pytest.mark.case("forms", 36)
def test_a_destroy_in_a_submit_that_passes_comes_too_late() -> None:
    broken = True
    form = Form(fields_of(text("x", custom=lambda value, values: "no" if broken else None)))
    broken = False
    form.emitter.on("validate", then(form.destroy))
    events = heard(form)
    assert form.submit() == FormSuccess(True, {})
    assert events == [("validate", []), ("submit", {})]
    assert (form.status, form.emitter.closed) == ("settled", True)


def test_a_destroy_in_a_submit_that_fails_abandons_the_form_afterwards() -> None:
    broken = False
    form = Form(fields_of(text("x", custom=lambda value, values: "no" if broken else None)))
    broken = True
    form.emitter.on("validate", then(form.destroy))
    events = heard(form)
    assert not form.submit().success
    assert events == [("validate", [("x", "custom")]), ("abandon",)]
    assert form.status == "abandoned"


@pytest.mark.case("forms", 37)
def test_a_nested_submit_settles_for_the_outer_one_too() -> None:
    broken = True
    form = Form(fields_of(text("x", custom=lambda value, values: "no" if broken else None)), values={"x": "1"})
    broken = False
    inner: list[FormResult] = []
    form.emitter.on("validate", then(lambda: inner.append(form.submit())))
    events = heard(form)
    outer = form.submit()
    assert [outer] == inner == [FormSuccess(True, {"x": "1"})]
    # The listener registered first settled the form before the others heard of the errors.
    assert events == [("submit", {"x": "1"}), ("validate", [])]


def test_a_submit_that_first_failed_fails_although_a_listener_repaired_it() -> None:
    broken = False
    form = Form(fields_of(text("x", custom=lambda value, values: "no" if broken and value is None else None)))
    broken = True

    def repair(errors: list[FieldError]) -> None:
        if errors:
            form.fill("x", "1")

    form.emitter.on("validate", repair)
    result = form.submit()
    assert isinstance(result, FormFailure)
    assert names(result.error) == ["custom"]
    assert form.valid
    assert form.submit().success


def test_a_submit_that_first_passed_fails_if_a_listener_broke_it() -> None:
    broken = True
    rule = text("x", custom=lambda value, values: "no" if broken else None)
    form = Form(fields_of(rule, text("y", maximum=1)))
    broken = False

    def spoil(errors: list[FieldError]) -> None:
        if not errors:
            form.fill("y", "too long")

    form.emitter.on("validate", spoil)
    result = form.submit()
    assert isinstance(result, FormFailure)
    assert names(result.error) == ["maximum"]
    assert form.status == "editing"


def test_a_submit_evaluates_once_more_if_a_listener_did_and_no_further() -> None:
    evaluated: list[Value | None] = []
    broken = True

    def custom(value: Value | None, values: Mapping[str, Value]) -> str | None:
        evaluated.append(value)
        return "no" if broken else None

    form = Form(fields_of(text("x", custom=custom), text("y")))
    broken = False
    evaluated.clear()
    assert form.submit().success
    assert len(evaluated) == 1

    broken = True
    form = Form(fields_of(text("x", custom=custom), text("y")))
    broken = False
    form.emitter.on("validate", then(lambda: form.fill("y", "1")))
    evaluated.clear()
    assert form.submit().success
    assert len(evaluated) == 3


def test_a_listeners_own_write_is_seen_by_later_listeners_and_announced_by_itself() -> None:
    form = two()

    def double(name: str, value: str) -> None:
        if value == "1":
            form.fill(name, "2")

    form.emitter.on("fill", double)
    events = heard(form)
    form.fill({"x": "1", "y": "1"})
    # The listener that hears of both comes second, so the write that was made meanwhile reaches it first.
    assert events == [("fill", "x", "2"), ("fill", "x", "1"), ("fill", "y", "2"), ("fill", "y", "1")]
    assert form.values == {"x": "2", "y": "2"}


def test_a_change_that_a_listener_evaluated_already_is_announced_once() -> None:
    form = Form(fields_of(text("x", maximum=1), text("y", maximum=1)))

    def follow(name: str, value: object) -> None:
        if name == "x":
            form.fill("y", "long")

    form.emitter.on("fill", follow)
    events = heard(form)
    form.fill("x", "long")
    assert [event for event in events if event[0] == "validate"] == [("validate", [("x", "maximum"), ("y", "maximum")])]


def test_a_raising_listener_is_reported_and_stops_nobody() -> None:
    reported: list[tuple[str, str]] = []
    form = Form(
        fields_of(text("x")), on={"fill": raising}, error=lambda error, event: reported.append((str(error), event))
    )
    events = heard(form)
    form.fill("x", "1")
    assert events == [("fill", "x", "1")]
    assert reported == [("raised", "fill")]


def test_closing_the_emitter_does_not_end_the_form() -> None:
    form = two()
    events = heard(form)
    form.emitter.close()
    form.fill("x", "1")
    assert form.submit().success
    assert events == []


def test_an_emitter_first_asked_for_after_the_end_is_closed() -> None:
    form = two()
    form.destroy()
    assert form.emitter.closed


@pytest.mark.parametrize(("end", "outcome"), [("submit", Settled({})), ("destroy", Abandoned())])
def test_the_end_is_told_once_after_its_event(end: str, outcome: Outcome) -> None:
    form = two()
    told: list[Any] = []
    form.emitter.on("submit", then(lambda: told.append("submit")))
    form.emitter.on("abandon", lambda: told.append("abandon"))
    form.on_end(told.append)
    withdrawn = form.on_end(told.append)
    withdrawn()
    getattr(form, end)()
    form.destroy()
    assert told == ["submit" if end == "submit" else "abandon", outcome]


def test_the_end_of_a_form_that_has_ended_is_told_at_once() -> None:
    form = two()
    form.destroy()
    told: list[Outcome] = []
    form.on_end(told.append)
    assert told == [Abandoned()]


def test_whoever_asks_in_the_last_event_is_told_after_it() -> None:
    form = two()
    told: list[Any] = []

    def ask(values: object) -> None:
        form.on_end(told.append)
        told.append("submit")

    form.emitter.on("submit", ask)
    form.submit()
    assert told == ["submit", Settled({})]


def test_an_exception_of_an_end_listener_is_reported_and_the_others_are_told() -> None:
    reported: list[tuple[str, str]] = []
    form = Form(fields_of(text("x")), error=lambda error, event: reported.append((str(error), event)))
    told: list[Outcome] = []
    form.on_end(raising)
    form.on_end(told.append)
    assert form.submit().success
    assert told == [Settled({})]
    assert reported == [("raised", "end")]


def test_cancellation_out_of_a_listener_propagates_and_loses_no_end() -> None:
    class Cancelled(BaseException):
        pass

    def cancel(*_: object) -> None:
        raise Cancelled

    form = two()
    form.emitter.on("submit", cancel)
    told: list[Outcome] = []
    form.on_end(told.append)
    with pytest.raises(Cancelled):
        form.submit()
    assert told == [Settled({})]

    abandoned = two()
    abandoned.emitter.on("fill", then(abandoned.destroy))
    abandoned.emitter.on("fill", cancel)
    with pytest.raises(Cancelled):
        abandoned.fill("x", "1")
    assert abandoned.status == "abandoned"


def test_a_form_can_be_destroyed_by_the_listener_of_its_own_end() -> None:
    form = two()
    form.emitter.on("abandon", form.destroy)
    form.emitter.on("submit", then(form.destroy))
    events = heard(form)
    form.submit()
    assert (events, form.status, form.emitter.closed) == ([("submit", {})], "settled", True)


def test_events_of_a_nested_end_still_come_to_the_outer_call() -> None:
    form = two()
    ends: list[Outcome] = []
    form.on_end(ends.append)
    form.emitter.on("fill", then(form.submit))
    events = heard(form)
    form.fill("x", "1")
    assert events == [("submit", {"x": "1"}), ("fill", "x", "1")]
    assert ends == [Settled({"x": "1"})]


def raising(*_: object) -> None:
    raise ValueError("raised")
