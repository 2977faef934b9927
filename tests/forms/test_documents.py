"""Schemas as documents: what is refused, what is written, and what forms of equal documents share."""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any

import msgspec
import pytest

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import (
    FieldError,
    FieldRule,
    Form,
    FormSchema,
    TextField,
    is_field_error,
    is_field_value,
    is_form_schema,
    is_form_values,
    parse_form,
    serialize_form,
)
from tests.conformance.values import is_list, is_object
from tests.forms.making import field, fields_of, parsed, text

OWN: dict[str, dict[str, Any]] = {
    "text": {"default": "d", "placeholder": "p"},
    "editor": {"default": "d", "placeholder": "p"},
    "password": {"mask": "*"},
    "number": {"default": 1.5, "placeholder": "p"},
    "date": {"default": "2026-01-01"},
    "time": {"default": "12:00"},
    "datetime": {"default": "2026-01-01T12:00"},
    "color": {"default": "#000000"},
    "confirm": {"default": False},
    "select": {
        "choices": [{"value": "v", "label": "V", "help": "h", "disabled": False}],
        "default": "v",
        "open": True,
    },
    "checkbox": {"choices": [{"value": "v", "label": "V"}], "default": []},
    "file": {"accept": [".txt"], "multiple": True},
}
EVERY_MEMBER: dict[str, Any] = {
    "name": "n",
    "label": "l",
    "help": "h",
    "groups": [{"name": "g", "label": "G", "help": "h"}],
    "fields": [
        {
            "control": control,
            "name": control,
            "label": "l",
            "help": "h",
            "group": "g",
            "hidden": False,
            "disabled": True,
            "locked": False,
            "meta": {"k": [None, 1]},
            **own,
            "rule": {"required": True},
        }
        for control, own in OWN.items()
    ],
}
EVERY_RULE = {
    "required": False,
    "minimum": 1,
    "maximum": 2,
    "pattern": "",
    "email": False,
    "url": False,
    "integer": False,
    "alphanumeric": False,
}


def plain(control: str = "text", **members: Any) -> dict[str, Any]:
    return {"control": control, "name": "a", **members}


def backwards(value: Any) -> Any:
    """The value with the members of every object in reverse."""
    if is_object(value):
        return {key: backwards(value[key]) for key in reversed([*value])}
    return [backwards(item) for item in value] if is_list(value) else value


@pytest.mark.case("forms", 20)
@pytest.mark.parametrize(
    "refused",
    [
        plain(label=None),
        plain(extra=1),
        plain("radio"),
        plain("password", default="x"),
        plain("file", default=[]),
        plain(choices=[]),
        plain("select", choices=[{"value": "x", "label": "X", "checked": True}]),
        plain("select"),
        plain("checkbox", choices={}),
        plain(rule={"minimum": True}),
        plain(rule={"required": 1}),
        plain(rule=None),
        plain(rule={"step": "1"}),
        plain("number", default=json.loads("1e999")),
        plain("number", default="1"),
        plain("number", placeholder=1),
        plain("file", accept=".txt"),
        plain(meta=None),
        plain(meta=[]),
        {"name": "a"},
        {"control": "text"},
        "text",
        None,
    ],
)
def test_a_document_has_known_members_of_exact_types_and_nothing_else(refused: Any) -> None:
    assert parsed(refused) is None


@pytest.mark.case("forms", 20)
def test_two_fields_cannot_have_one_name() -> None:
    assert parsed(plain(), plain("number")) is None


@pytest.mark.parametrize("refused", [None, "x", [], {}, {"fields": None}, {"fields": {}}, {"fields": [], "extra": 1}])
def test_the_schema_itself_is_read_as_exactly(refused: Any) -> None:
    assert parse_form(refused) is None
    assert not is_form_schema(refused)


@pytest.mark.case("forms", 21)
@pytest.mark.parametrize("rule", [{"custom": "x"}, {"custom": None}, {}])
def test_a_rule_without_named_members_is_dropped(rule: Any) -> None:
    schema = parsed(plain(rule=rule))
    assert schema is not None
    assert serialize_form(schema) == {"fields": [plain()]}


@pytest.mark.case("forms", 21)
def test_members_come_back_in_canonical_order_and_false_and_empty_ones_stay() -> None:
    document = {**EVERY_MEMBER, "fields": [*EVERY_MEMBER["fields"], plain(rule=EVERY_RULE)]}
    schema = parse_form(backwards(document))
    assert schema is not None
    assert json.dumps(serialize_form(schema)) == json.dumps(document)
    empty = parse_form({"groups": [], "fields": [plain(meta={})]})
    assert empty is not None
    assert (
        json.dumps(serialize_form(empty)) == '{"groups": [], "fields": [{"control": "text", "name": "a", "meta": {}}]}'
    )


def test_numbers_are_written_as_they_print_and_limits_rounded_to_doubles() -> None:
    rule = {"minimum": 1.0, "maximum": 9007199254740993}
    schema = parsed(plain("number", default=2.0, rule=rule))
    assert schema is not None
    (written,) = serialize_form(schema)["fields"]
    assert (repr(written["default"]), repr(written["rule"]["minimum"])) == ("2", "1")
    assert written["rule"]["maximum"] == 2**53


@pytest.mark.case("forms", 22)
def test_a_meta_nests_at_most_512_deep_and_keeps_any_key() -> None:
    def nested(depth: int) -> dict[str, Any]:
        return {} if depth == 1 else {"k": nested(depth - 1)}

    schema = parsed(plain(meta=nested(512)))
    assert schema is not None
    assert serialize_form(schema)["fields"][0]["meta"] == nested(512)
    assert not is_form_schema({"fields": [plain(meta=nested(513))]})
    listed: Any = []
    for _ in range(511):
        listed = [listed]
    assert parsed(plain(meta={"k": listed})) is None
    assert parsed(plain(meta={"k": listed[0]})) is not None
    prototype = parsed(plain(meta={"__proto__": {"x": 1}}))
    assert prototype is not None
    assert serialize_form(prototype)["fields"][0]["meta"] == {"__proto__": {"x": 1}}


def test_what_is_parsed_and_written_belongs_to_whoever_asked() -> None:
    document = {"fields": [plain(meta={"k": [1]})]}
    schema = parse_form(document)
    assert schema is not None
    document["fields"][0]["meta"]["k"].append(2)
    written = serialize_form(schema)
    written["fields"][0]["meta"]["k"].append(3)
    again = parse_form({"fields": [plain(meta={"k": [1]})]})
    assert serialize_form(schema) == {"fields": [plain(meta={"k": [1]})]}
    assert again == schema
    assert again is not schema


def test_a_custom_rule_is_kept_in_process_and_never_written() -> None:
    schema = fields_of(text("a", required=True, custom=lambda value, values: "no"), text("b", custom=print))
    form = Form(schema)
    assert form.schema == schema
    written = {"fields": [plain(rule={"required": True}), {"control": "text", "name": "b"}]}
    assert serialize_form(schema) == written
    assert json.loads(form.document) == written


def test_serializing_what_is_no_schema_is_refused() -> None:
    broken: Any = FormSchema(fields=(TextField(name="a", label=1),))  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(FormError) as refused:
        serialize_form(broken)
    assert refused.value.code == "SCHEMA"


def test_a_struct_may_be_written_with_lists() -> None:
    schema = FormSchema(fields=[field("checkbox", "c", choices=[{"value": "v", "label": "V"}])])  # type: ignore[arg-type]
    assert Form(schema).schema.fields == tuple(schema.fields)


def test_forms_of_equal_documents_share_what_was_made_of_the_schema() -> None:
    document = {"fields": [plain(rule={"required": True}, default="x")]}
    first, second = parse_form(document), parse_form(json.loads(json.dumps(document)))
    assert first is second
    made = FormSchema(fields=(TextField(name="a", default="x", rule=FieldRule(required=True)),))
    assert Form(made).schema is first
    assert Form(document).document is Form(made).document


def test_custom_rules_are_not_shared_between_equal_documents() -> None:
    strict = Form(fields_of(text("a", custom=lambda value, values: "no")))
    lenient = Form(fields_of(text("a", custom=lambda value, values: None)))
    plain_one = Form(fields_of(text("a")))
    assert (strict.valid, lenient.valid, plain_one.valid) == (False, True, True)
    assert Form(strict.schema).valid is False


def test_a_schema_changed_behind_its_lists_is_read_anew() -> None:
    fields = [text("a")]
    schema = FormSchema(fields=fields)  # type: ignore[arg-type]  # a list, as code without a type checker writes it
    assert list(Form(schema).values) == []
    fields.append(TextField(name="b", default="x"))
    assert Form(schema).values == {"b": "x"}


def test_a_schema_changed_in_its_meta_is_read_anew() -> None:
    meta: dict[str, Any] = {"k": 1}
    schema = FormSchema(fields=(TextField(name="a", meta=meta),))
    opened = Form(schema)
    meta["k"] = 2
    assert [form.schema.fields[0].meta for form in (opened, Form(schema))] == [{"k": 1}, {"k": 2}]


def test_a_custom_rule_is_let_go_with_its_schema() -> None:
    class Rule:
        def __call__(self, value: object, values: object) -> None: ...

    rule = Rule()
    kept = weakref.ref(rule)
    Form(fields_of(text("a", custom=rule))).submit()
    del rule
    gc.collect()
    assert kept() is None


def test_thousands_of_schemas_leave_the_caches_bounded() -> None:
    from greenroom.protocol.forms import shared

    for number in range(1_000):
        Form(fields_of(TextField(name=f"f{number}")))
    assert len(shared._by_identity) <= 256  # pyright: ignore[reportPrivateUsage]
    assert len(shared._by_document) <= 256  # pyright: ignore[reportPrivateUsage]


def test_guards_look_at_the_shape_alone() -> None:
    assert is_form_values({"a": "x" * 100_000, "b": 1, "c": True, "d": ["x"] * 5_000, "__proto__": 1})
    refusals: tuple[Any, ...] = ({"a": None}, {"a": [1]}, {"a": float("nan")}, {"a": {}}, {1: "x"}, [], None)
    for refused in refusals:
        assert not is_form_values(refused)
    assert is_field_value([])
    assert not is_field_value(10**400)
    assert is_field_error({"field": "a", "message": "m"})
    assert is_field_error(FieldError("a", "m", "step"))
    mistaken: tuple[Any, ...] = ({"field": "a"}, {"field": "a", "message": "m", "rule": "x"}, {"field": 1}, 1)
    for refused in mistaken:
        assert not is_field_error(refused)
    assert is_form_schema(fields_of(text("a", custom=print)))
    assert not is_form_schema({"fields": [plain(rule={"custom": "x"})]})


def test_a_field_error_is_written_without_the_rule_that_it_does_not_have() -> None:
    assert msgspec.json.encode(FieldError("a", "m")) == b'{"field":"a","message":"m"}'
    assert msgspec.json.encode(FieldError("a", "m", "step")) == b'{"field":"a","message":"m","rule":"step"}'
