"""Documents and values of any origin: nothing that reads them raises, and what is accepted comes back the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.protocol.forms import (
    FieldChoice,
    FieldRule,
    Form,
    FormSchema,
    NumberField,
    SelectField,
    TextField,
    audit_schema,
    compute_defaults,
    evaluate_form,
    is_field_error,
    is_field_value,
    is_form_schema,
    is_form_values,
    matches_answer,
    matches_field,
    parse_form,
    parse_value,
    parse_values,
    serialize_form,
)
from tests.conformance.values import is_list, is_object
from tests.forms.making import field
from tests.forms.strategies import CHOICES, MAKERS, answers, documents, junk, schemas

CONTROLS = [
    field(control, control, **({"choices": CHOICES} if control in ("select", "checkbox") else {}))
    for control in (
        *("text", "editor", "password", "number", "date", "time", "datetime"),
        *("color", "confirm", "select", "checkbox", "file"),
    )
]
UNCHECKED: list[Callable[[Any], Any]] = [
    lambda value: TextField(name=value),
    lambda value: TextField(name="a", meta=value),
    lambda value: TextField(name="a", rule=value),
    lambda value: NumberField(name="a", default=value, rule=FieldRule(minimum=value, step=value)),
    lambda value: SelectField(name="a", choices=value),
    lambda value: SelectField(name="a", choices=(FieldChoice(value, value), value)),
    lambda value: value,
]
EVERY_CONTROL = FormSchema(fields=tuple(CONTROLS))


def read_all(value: Any) -> None:
    """Put the value through everything that is total."""
    schema = parse_form(value)
    assert (schema is None) is bool(audit_schema(value)) or _has_custom(value)
    for guard in (is_form_schema, is_form_values, is_field_value, is_field_error, matches_answer):
        assert guard(value) in (True, False)
    assert parse_values(EVERY_CONTROL, value) is None or is_form_values(value)
    for made in CONTROLS:
        read = parse_value(made, value)
        if matches_field(made, value) and not _half_a_pair(value):
            assert read == value
        evaluate_form(EVERY_CONTROL, {made.name: cast(Any, value)})


@given(junk())
@settings(max_examples=300)
def test_nothing_raises_on_values_of_any_origin(value: Any) -> None:
    read_all(value)


def test_nothing_raises_on_the_worst_values_known() -> None:
    for make in MAKERS:
        read_all(make())
        read_all({"fields": [{"control": "text", "name": "a", "meta": make()}]})
        read_all({"fields": [{"control": "text", "name": "a", "meta": {"k": make()}}]})
        read_all({"fields": [{"control": "select", "name": "a", "choices": make()}], "groups": make()})


@given(documents(), st.data())
@settings(max_examples=300)
def test_nothing_raises_on_a_document_with_one_place_spoiled(document: Any, data: st.DataObject) -> None:
    document = json.loads(json.dumps(document))
    place: Any = document
    while True:
        keys: list[Any] = [*place] if is_object(place) else [*range(len(place))]
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        inner = place[key]
        if not (is_object(inner) or is_list(inner)) or data.draw(st.booleans()):
            place[key] = data.draw(junk())
            break
        place = inner
    read_all(document)


@given(st.data())
def test_structs_that_nobody_checked_are_read_like_documents(data: st.DataObject) -> None:
    made = data.draw(st.sampled_from(UNCHECKED))(data.draw(junk()))
    for schema in (FormSchema(fields=(made,)), FormSchema(fields=made)):
        assert is_form_schema(schema) in (True, False)
        if not audit_schema(schema):
            assert serialize_form(Form(schema).schema) == serialize_form(schema)


@given(schemas())
def test_a_schema_that_was_written_is_read_back_the_same(schema: FormSchema) -> None:
    written = serialize_form(schema)
    assert parse_form(written) == schema
    assert parse_form(json.loads(json.dumps(written))) == schema
    assert json.loads(Form(schema).document) == written
    assert audit_schema(schema) == []


@given(st.data())
def test_answers_that_a_form_takes_are_read_back_from_their_json(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    form = Form(schema)
    form.fill(data.draw(answers(schema)))
    assert parse_values(schema, json.loads(json.dumps(form.values))) == form.values
    assert form.baseline == compute_defaults(schema)


def _has_custom(value: Any) -> bool:
    # `parse_form` passes over what stands for a custom rule; to the audit anything but a function there is a fault.
    return "custom" in str(value)


def _half_a_pair(value: Any) -> bool:
    texts: list[Any] = [*value] if is_list(value) else [value]
    return any(isinstance(text, str) and any("\ud800" <= unit <= "\udfff" for unit in text) for text in texts)
