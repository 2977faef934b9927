"""What the audit finds wrong with a document that has the shape of a schema."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import FieldRule, Form, FormGroup, FormSchema, TextField, audit_schema, parse_form
from tests.forms.making import codes, fields_of, parsed, text

EMOJI = "\N{GRINNING FACE}"


def plain(control: str = "text", name: str = "a", **members: Any) -> dict[str, Any]:
    return {"control": control, "name": name, **members}


def choice(value: str, **members: Any) -> dict[str, Any]:
    return {"value": value, "label": value, **members}


@pytest.mark.case("forms", 23)
def test_a_name_is_measured_in_utf16_units() -> None:
    assert codes(plain(name=EMOJI * 64)) == []
    assert codes(plain(name=EMOJI * 65)) == ["NAME"]
    assert codes(plain(), name="n" * 129) == ["NAME"]
    assert codes(plain(group="g" * 129), groups=[{"name": "g" * 129, "label": ""}]) == ["NAME"]


@pytest.mark.case("forms", 23)
def test_a_field_cannot_be_named_after_the_prototype() -> None:
    assert codes(plain(name="__proto__")) == ["RESERVED"]
    assert codes(plain(name="constructor")) == []


@pytest.mark.case("forms", 24)
def test_every_record_list_and_value_is_a_node() -> None:
    assert codes(plain(meta={"v": [0] * 16_377})) == []
    assert codes(plain(meta={"v": [0] * 16_378})) == ["NODES"]


@pytest.mark.case("forms", 25)
def test_several_faults_of_one_rule_are_all_told_in_order() -> None:
    assert codes(plain(rule={"step": -1})) == ["INAPPLICABLE", "STEP"]
    assert codes(plain("date", rule={"minimum": 5, "maximum": "zz"})) == ["OPERAND", "MALFORMED"]


@pytest.mark.case("forms", 26)
def test_a_required_choice_must_be_possible_even_in_a_disabled_field() -> None:
    barred = [choice("x", disabled=True)]
    assert codes(plain("select", choices=barred, rule={"required": True}, disabled=True)) == ["NO_CHOICE"]
    assert codes(plain("select", choices=barred, rule={"required": True}, open=True)) == []
    assert codes(plain("select", choices=barred)) == []


@pytest.mark.case("forms", 26)
def test_a_required_checkbox_without_choices_is_sound_and_none_submits() -> None:
    schema = parsed(plain("checkbox", choices=[], rule={"required": True}))
    assert schema is not None
    form = Form(schema)
    assert not form.submit().success
    form.fill("a", [])
    assert form.submit().success


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({"fields": [plain(name=str(number)) for number in range(513)]}, ["FIELDS"]),
        ({"fields": [], "groups": [{"name": str(number), "label": ""} for number in range(65)]}, ["GROUPS"]),
        ({"fields": [plain("select", choices=[choice(str(number)) for number in range(1025)])]}, ["CHOICES"]),
        ({"fields": [plain(help="h" * 65_537)]}, ["STRING"]),
        ({"fields": [plain(meta={"k" * 65_537: 1})]}, ["STRING"]),
        ({"fields": [plain(name=str(number), help="h" * 65_000) for number in range(17)]}, ["TEXT"]),
        ({"fields": [plain(label="\ud800")]}, ["SURROGATE"]),
    ],
)
def test_sizes_are_faults_of_the_whole(document: Any, found: list[str]) -> None:
    assert [fault.code for fault in audit_schema(document)] == found
    assert parse_form(document) is None


def test_only_keys_of_a_meta_count_as_text() -> None:
    # 15 helps of 65,536 units, `text` and a name of two digits each: 65,464 units are left for the `meta`.
    helps = [plain(name=f"{number:02}", help="h" * 65_536) for number in range(15)]
    assert codes(*helps, plain(name="99", meta={"k" * 60_000: "v" * 5_440})) == []
    assert codes(*helps, plain(name="99", meta={"k" * 60_000: "v" * 5_441})) == ["TEXT"]


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({"fields": [plain(name="")]}, ["UNNAMED"]),
        ({"fields": [plain(), plain("number")]}, ["REPEATED"]),
        ({"fields": [plain(group="g")]}, ["GROUP"]),
        ({"fields": [plain(group="")], "groups": [{"name": "", "label": ""}]}, []),
        ({"fields": [], "groups": [{"name": "g", "label": ""}] * 3}, ["GROUP_REPEATED", "GROUP_REPEATED"]),
        ({"fields": [plain("date", default="soon")]}, ["DEFAULT"]),
        ({"fields": [plain("number", default=9007199254740993)]}, ["DEFAULT"]),
        ({"fields": [plain("select", choices=[choice("x", disabled=True)], default="x")]}, ["DEFAULT"]),
        ({"fields": [plain("select", choices=[choice("x")], default="z")]}, ["DEFAULT"]),
        ({"fields": [plain("checkbox", choices=[choice("x")], default=["x", "x"])]}, ["DEFAULT"]),
        ({"fields": [plain("select", choices=[choice("x"), choice("x")])]}, ["CHOICE_REPEATED"]),
        ({"fields": [plain("select", choices=[choice("")])]}, []),
        ({"fields": [plain("checkbox", choices=[choice("x")], rule={"minimum": 2})]}, ["FEW_CHOICES"]),
        ({"fields": [plain("checkbox", choices=[], rule={"minimum": -1})]}, []),
        ({"fields": [plain("color", rule={"minimum": 1})]}, ["INAPPLICABLE"]),
        ({"fields": [plain("text", rule={"minimum": "1"})]}, ["OPERAND"]),
        ({"fields": [plain("time", rule={"maximum": 1})]}, ["OPERAND"]),
        ({"fields": [plain("file", rule={"maximum": -1})]}, ["NEGATIVE"]),
        ({"fields": [plain("number", rule={"maximum": -1, "minimum": -5})]}, []),
        ({"fields": [plain("number", rule={"step": 0})]}, ["STEP"]),
        ({"fields": [plain("number", rule={"pattern": "a", "email": True})]}, ["INAPPLICABLE", "INAPPLICABLE"]),
        ({"fields": [plain("number", rule={"email": False})]}, []),
        ({"fields": [plain("number", rule={"minimum": 2, "maximum": 1})]}, ["EMPTY_RANGE"]),
        ({"fields": [plain("date", rule={"minimum": "2026-01-02", "maximum": "2026-01-01"})]}, ["EMPTY_RANGE"]),
        ({"fields": [plain("datetime", rule={"minimum": "2026-01-01"})]}, ["MALFORMED"]),
    ],
)
def test_what_no_answer_could_make_good_is_a_fault(document: Any, found: list[str]) -> None:
    assert [fault.code for fault in audit_schema(document)] == found
    assert (parse_form(document) is None) is bool(found)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("(", "PATTERN_INVALID"),
        ("a{2,1}", "PATTERN_INVALID"),
        ("(?i)a", "PATTERN_INVALID"),
        ("(?=a)", "PATTERN_LOOKAROUND"),
        ("(?<!a)b", "PATTERN_LOOKAROUND"),
        (r"(a)\1", "PATTERN_BACKREFERENCE"),
        ("a" * 257, "PATTERN_LENGTH"),
        ("((a{1000}){1000}){1000}", "PATTERN_REPEAT"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_a_fault_that_says_why(pattern: str, found: str) -> None:
    assert codes(plain(rule={"pattern": pattern})) == [found]
    assert parsed(plain(rule={"pattern": pattern})) is None


def test_faults_come_in_schema_order_and_name_their_field() -> None:
    faults = audit_schema(fields_of(text("a", step=1), TextField(name="b", group="g"), text("a")))
    assert [(fault.code, fault.field) for fault in faults] == [("INAPPLICABLE", "a"), ("GROUP", "b"), ("REPEATED", "a")]


def test_a_document_of_another_shape_is_reported_by_its_structure() -> None:
    document: dict[str, Any] = {
        "fields": [plain(label=None, extra=1), {"control": "radio", "name": "b"}, plain("select", "c")],
        "groups": {},
    }
    assert [(fault.code, fault.field) for fault in audit_schema(document)] == [
        ("TYPE", "a"),
        ("MEMBER", "a"),
        ("CONTROL", "b"),
        ("MISSING", "c"),
        ("TYPE", None),
    ]


def test_a_form_is_refused_with_every_problem_in_the_context() -> None:
    with pytest.raises(FormError, match="field 'a': The rule step has no meaning on text fields") as refused:
        Form(fields_of(text("a", step=-1), text("b", pattern="(")))
    assert refused.value.code == "SCHEMA"
    problems = refused.value.context["problems"]
    assert [(problem["code"], problem["field"]) for problem in problems] == [
        ("INAPPLICABLE", "a"),
        ("STEP", "a"),
        ("PATTERN_INVALID", "b"),
    ]


def test_a_form_is_refused_for_its_structure_too_in_structs_and_in_documents() -> None:
    badly: Any = {"label": None, "default": 1}
    for schema in (FormSchema(fields=(TextField(name="a", **badly),)), {"fields": [plain(**badly)]}):
        with pytest.raises(FormError) as refused:
            Form(schema)
        assert [problem["code"] for problem in refused.value.context["problems"]] == ["TYPE", "TYPE"]


def test_a_refusal_can_be_written_as_json_whatever_the_names_were() -> None:
    name = "\ud800" + "x" * 100_000
    with pytest.raises(FormError) as refused:
        Form(FormSchema(fields=(TextField(name=name, group=name),), groups=(FormGroup("g", "G"),)))
    assert len(msgspec.json.encode(refused.value.encode())) < 2_000


def test_who_makes_thousands_of_faults_is_told_of_a_thousand() -> None:
    assert len(audit_schema(fields_of(*(text("", step=-1) for _ in range(2_000))))) == 1_000
    assert len(audit_schema({"fields": [1] * 2_000})) == 1_000


async def _later(value: object, values: object) -> None:
    """A custom rule that nobody would await."""


class _Later:
    async def __call__(self, value: object, values: object) -> None:
        """The same."""


@pytest.mark.parametrize("custom", [_later, _Later()])
def test_an_async_custom_rule_is_refused_by_name(custom: Any) -> None:
    for schema in (
        fields_of(TextField(name="a", rule=FieldRule(custom=custom))),
        {"fields": [{"control": "text", "name": "a", "rule": {"custom": custom}}]},
    ):
        [fault] = audit_schema(schema)
        assert (fault.field, "plain function: nobody would await _" in fault.detail) == ("a", True)
        with pytest.raises(FormError):
            Form(cast("Any", schema))


def test_a_rule_that_is_only_custom_is_sound() -> None:
    assert audit_schema(fields_of(TextField(name="a", rule=FieldRule(custom=lambda value, values: None)))) == []
