"""What of a form an elicitation can hold, and how it is shown there."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types._v2025_11_25 import ElicitRequestFormParams  # the schema of that version, generated from the protocol's

from greenroom.actors.mcp.elicitation import elicitation_schema, inexpressible, read_answer
from greenroom.protocol.forms import FormSchema, parse_form

NEW, OLD = "2025-11-25", "2025-06-18"
CHOICES = [{"value": "a", "label": "Alpha"}, {"value": "b", "label": "Beta"}]
OFF = {"value": "c", "label": "Gamma", "disabled": True}


def schema_of(*fields: dict[str, Any], **more: Any) -> FormSchema:
    schema = parse_form({**more, "fields": list(fields)})
    assert schema is not None
    return schema


def property_of(field: dict[str, Any], version: str = NEW) -> dict[str, Any]:
    """How one field is shown."""
    asked = elicitation_schema(schema_of(field | {"name": "x"}), version)
    ElicitRequestFormParams.model_validate({"message": "", "requestedSchema": asked, "mode": "form"})
    shown: dict[str, Any] = asked["properties"]["x"]
    return shown


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ({"control": "text", "rule": {"minimum": 2, "maximum": 9}}, {"type": "string", "minLength": 2, "maxLength": 9}),
        ({"control": "text", "rule": {"email": True}}, {"type": "string", "format": "email"}),
        ({"control": "text", "rule": {"url": True}}, {"type": "string", "format": "uri"}),
        ({"control": "text", "rule": {"pattern": "^x"}}, {"type": "string", "description": "Matches ^x"}),
        ({"control": "editor", "default": "so"}, {"type": "string", "default": "so"}),
        ({"control": "number", "rule": {"minimum": 2}}, {"type": "number", "minimum": 2}),
        ({"control": "number", "rule": {"integer": True}}, {"type": "integer"}),
        ({"control": "confirm", "default": False}, {"type": "boolean", "default": False}),
        ({"control": "date"}, {"type": "string", "format": "date"}),
        ({"control": "time"}, {"type": "string", "description": "A time, as in 09:30."}),
        (
            {"control": "select", "choices": [*CHOICES, OFF], "default": "b"},
            {
                "type": "string",
                "oneOf": [{"const": "a", "title": "Alpha"}, {"const": "b", "title": "Beta"}],
                "default": "b",
            },
        ),
        (
            {"control": "select", "choices": CHOICES, "open": True},
            {"type": "string", "description": "Usual answers: a, b. Others are taken too."},
        ),
        (
            {"control": "checkbox", "choices": CHOICES, "rule": {"minimum": 1}},
            {
                "type": "array",
                "items": {"anyOf": [{"const": "a", "title": "Alpha"}, {"const": "b", "title": "Beta"}]},
                "minItems": 1,
            },
        ),
    ],
)
def test_a_field_is_a_property(field: dict[str, Any], shown: dict[str, Any]) -> None:
    assert property_of(field) == {"title": "x"} | shown


def test_an_older_client_is_shown_choices_as_it_knows_them() -> None:
    asked = elicitation_schema(schema_of({"control": "select", "name": "x", "choices": CHOICES}), OLD)
    assert asked["properties"]["x"] == {
        "title": "x",
        "type": "string",
        "enum": ["a", "b"],
        "enumNames": ["Alpha", "Beta"],
    }


def test_headings_stand_before_the_labels_of_their_fields() -> None:
    schema = schema_of(
        {"control": "text", "name": "x", "label": "Name", "help": "In full", "group": "g"},
        groups=[{"name": "g", "label": "You"}],
    )
    shown = elicitation_schema(schema, NEW)["properties"]["x"]
    assert shown == {"title": "You: Name", "description": "In full", "type": "string"}


@pytest.mark.parametrize(
    ("field", "version", "why"),
    [
        ({"control": "password"}, NEW, "'x' is a password, which must not pass through the client"),
        ({"control": "file"}, NEW, "'x' takes files"),
        ({"control": "checkbox", "choices": CHOICES}, OLD, "'x' takes several choices, which MCP 2025-06-18 cannot"),
        ({"control": "text", "hidden": True}, NEW, "it has no field to fill in"),
        ({"control": "checkbox", "choices": CHOICES}, NEW, None),
    ],
)
def test_what_cannot_be_shown_is_named(field: dict[str, Any], version: str, why: str | None) -> None:
    assert inexpressible(schema_of(field | {"name": "x"}), version) == why


def test_what_is_required_must_be_shown() -> None:
    schema = schema_of(
        {"control": "text", "name": "x"},
        {"control": "text", "name": "y", "hidden": True, "rule": {"required": True}},
    )
    assert inexpressible(schema, NEW) == "'y' is required, and not shown"


def test_the_form_has_the_last_word() -> None:
    schema = schema_of({"control": "text", "name": "x", "rule": {"pattern": "^[0-9]+$"}})
    assert read_answer(schema, {"x": "12"}) == {"x": "12"}
    assert read_answer(schema, {"x": None}) == {}
    for refused in ({"x": "ab"}, {"x": 3}, {"y": "1"}):
        assert isinstance(read_answer(schema, refused), str)
