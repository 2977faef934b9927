"""Evaluating answers without a form: all failures of a record, or of one field's value."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import UNSET

from greenroom.protocol.forms.compiled import CompiledField, judge
from greenroom.protocol.forms.schema import FieldError, FormField, FormSchema, Value
from greenroom.protocol.forms.shared import open_schema

__all__ = ["evaluate_field", "evaluate_form"]


def evaluate_form(
    schema: FormSchema,
    values: Mapping[str, Value],
    *,
    disabled: Collection[str] | None = None,
    messages: Mapping[str, str] | None = None,
) -> list[FieldError]:
    """Every failure of a record, fields in schema order, disabled ones left out.

    `disabled` names the disabled fields in place of the schema's own flags. Whether fields can hold their values is not
    asked; rules have nothing to say of a value of another kind than the control's. What a custom rule raises escapes.
    """
    opened = open_schema(schema, sound=False)
    compiled = opened.compiled.worded(messages)
    skipped = compiled.disabled if disabled is None else disabled
    return [error for _, errors in compiled.failures(values, skipped, opened.customs) for error in errors]


def evaluate_field(
    field: FormField,
    value: Value | None,
    values: Mapping[str, Value] | None = None,
    *,
    messages: Mapping[str, str] | None = None,
) -> list[FieldError]:
    """Every failure of one value, absent if `None`. `values` is what a custom rule sees of the other fields."""
    errors = CompiledField(field, messages).failures(value)
    if field.rule is not UNSET and field.rule.custom is not UNSET:
        errors += judge(field.name, field.rule.custom, value, values or {})
    return list(errors)
