"""Forms as MCP elicitations: what of a form a client's own dialog can hold, and reading what was entered there.

An elicitation is one flat object of texts, numbers, flags and choices (MCP 2025-11-25, "Elicitation", requested
schema). What it cannot say of a rule is said in words, and every answer is judged by the form itself, so that a dialog
may be looser than the form, never the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from msgspec import UNSET, UnsetType

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import (
    CheckboxField,
    ColorField,
    ConfirmField,
    DateField,
    DatetimeField,
    FieldRule,
    FileField,
    Form,
    FormField,
    FormSchema,
    FormSuccess,
    NumberField,
    PasswordField,
    SelectField,
    TimeField,
    Value,
)

__all__ = ["elicitation_message", "elicitation_schema", "inexpressible", "read_answer"]

Property: TypeAlias = dict[str, Any]

LISTS_SINCE: Final = "2025-11-25"
"""The first version of the protocol whose dialogs can have several choices ticked, and name a choice otherwise than by
its value."""

_SPELLED: Final[dict[type[FormField], str]] = {
    TimeField: "A time, as in 09:30.",
    DatetimeField: "A day and a time, as in 2026-03-31T09:30.",
    ColorField: "A colour, as in #00ff80.",
}
"""What has no format of its own in an elicitation, and how it is written."""


def inexpressible(schema: FormSchema, version: str) -> str | None:
    """Why no elicitation of that version of the protocol can hold the form; None if one can."""
    asked = [field for field in schema.fields if _asked(field)]
    if not asked:
        return "it has no field to fill in"
    for field in asked:
        if isinstance(field, PasswordField):  # MCP: servers must not ask for secrets in form mode
            return f"{field.name!r} is a password, which must not pass through the client"
        if isinstance(field, FileField):
            return f"{field.name!r} takes files"
        if isinstance(field, CheckboxField) and version < LISTS_SINCE:
            return f"{field.name!r} takes several choices, which MCP {version} cannot"
    for field in schema.fields:
        if not _asked(field) and field.disabled is not True and _rule(field).required is True:
            return f"{field.name!r} is required, and not shown"
    return None


def elicitation_message(schema: FormSchema, problem: str | None = None) -> str:
    """What is said above the fields, after the `problem` of an answer that was refused."""
    said = [problem, schema.label or "Please fill in this form.", schema.help or None]
    return "\n\n".join(part for part in said if part)


def elicitation_schema(schema: FormSchema, version: str) -> dict[str, Any]:
    """The requested schema of an elicitation that holds the form. What is hidden, locked or disabled is left out."""
    headings = {group.name: group.label for group in schema.groups or ()}
    properties: dict[str, Property] = {}
    required: list[str] = []
    for field in schema.fields:
        if _asked(field):
            heading = headings.get(field.group) if isinstance(field.group, str) else None
            title = field.label or field.name
            about = {"title": f"{heading}: {title}" if heading else title}
            if words := _words(field):
                about["description"] = words
            properties[field.name] = about | _property(field, version)
            if _rule(field).required is True:
                required.append(field.name)
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def read_answer(schema: FormSchema, content: Mapping[str, Any]) -> dict[str, Value] | str:
    """The values of a form that was answered with this content, or why it refuses them, field by field."""
    form = Form(schema)
    try:
        form.fill({name: value for name, value in content.items() if value is not None})
        result = form.submit()
    except FormError as error:
        return error.message
    if isinstance(result, FormSuccess):
        return result.value
    return " ".join(f"{error.field}: {error.message}" for error in result.error)


def _asked(field: FormField) -> bool:
    return True not in (field.hidden, field.locked, field.disabled)


def _rule(field: FormField) -> FieldRule:
    return field.rule if field.rule is not UNSET else FieldRule()


def _words(field: FormField) -> str:
    """What stands beneath a field: its help, and what the schema of an elicitation has no keyword for."""
    rule = _rule(field)
    said = [field.help or None, _SPELLED.get(type(field))]
    if isinstance(field, SelectField) and field.open is True:
        known = ", ".join(choice.value for choice in field.choices if choice.disabled is not True)
        said.append(f"Usual answers: {known}. Others are taken too.")
    if rule.pattern is not UNSET:
        said.append(f"Matches {rule.pattern}")
    if rule.step is not UNSET:
        said.append(f"In steps of {rule.step}.")
    if rule.alphanumeric is True:
        said.append("Letters and digits only.")
    return " ".join(part for part in said if part)


def _property(field: FormField, version: str) -> Property:
    rule = _rule(field)
    default = {} if isinstance(field, PasswordField | FileField) else _given(default=field.default)
    if isinstance(field, ConfirmField):
        return {"type": "boolean"} | default
    if isinstance(field, NumberField):
        kind = "integer" if rule.integer is True else "number"
        return {"type": kind} | _given(minimum=rule.minimum, maximum=rule.maximum) | default
    if isinstance(field, CheckboxField):
        ticked = {"default": list(field.default)} if field.default is not UNSET else {}
        offered = {"items": {"anyOf": _named_choices(field)}}
        return {"type": "array"} | offered | _given(minItems=rule.minimum, maxItems=rule.maximum) | ticked
    if isinstance(field, SelectField) and field.open is not True:
        named = _named_choices(field)
        if version >= LISTS_SINCE:
            return {"type": "string", "oneOf": named} | default
        values, labels = ([choice[part] for choice in named] for part in ("const", "title"))
        return {"type": "string", "enum": values, "enumNames": labels} | default
    if isinstance(field, DateField):
        return {"type": "string", "format": "date"} | default
    if isinstance(field, TimeField | DatetimeField | ColorField):
        return {"type": "string"} | default
    form = "email" if rule.email is True else "uri" if rule.url is True else UNSET
    return {"type": "string"} | _given(minLength=rule.minimum, maxLength=rule.maximum, format=form) | default


def _named_choices(field: SelectField | CheckboxField) -> list[dict[str, str]]:
    return [{"const": choice.value, "title": choice.label} for choice in field.choices if choice.disabled is not True]


def _given(**members: object) -> Property:
    return {name: value for name, value in members.items() if not isinstance(value, UnsetType)}
