"""From a pending form back to the question that it is, for clients and tools that know questions only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from greenroom.protocol.forms import (
    CheckboxField,
    ConfirmField,
    EditorField,
    FieldChoice,
    FieldRule,
    FormField,
    PasswordField,
    SelectField,
    TextField,
    Value,
    is_field_value,
)
from greenroom.protocol.questions.form import FIELD, RULES_META
from greenroom.protocol.questions.shapes import Kind, QuestionChoice, QuestionOptions, QuestionRules
from greenroom.protocol.terminals import PendingForm, TicketStatus

__all__ = ["QuestionRecord", "answer_values", "read_question"]

_KINDS: Final[dict[type[FormField], Kind]] = {
    TextField: "input",
    PasswordField: "password",
    ConfirmField: "confirm",
    SelectField: "select",
    CheckboxField: "checkbox",
    EditorField: "editor",
}


@final
class QuestionRecord(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One question that is pending at a terminal, as its readers get it."""

    id: str
    form: Kind
    message: str
    options: QuestionOptions
    status: TicketStatus
    time: int
    """When it was parked: milliseconds since 1970, by the wall clock."""
    from_: str | UnsetType = msgspec.field(name="from", default=UNSET)
    to: str | UnsetType = UNSET


def read_question(record: PendingForm) -> QuestionRecord | None:
    """The pending form as a question, or None if it is none: it has other fields, or one that nobody can answer.

    What is shown comes from the schema that every other client sees. Only the rules that a form words differently come
    from the field's `meta`, and they change what a client checks, not what it shows.
    """
    fields = record.schema.fields
    if len(fields) != 1:
        return None
    field = fields[0]
    kind = _KINDS.get(type(field))
    if kind is None or field.name != FIELD or any((field.hidden, field.disabled, field.locked)):
        return None
    message = field.name if field.label is UNSET else field.label
    return QuestionRecord(
        id=record.id,
        form=kind,
        message=message,
        options=_options(field, message),
        status=record.status,
        time=record.time,
        from_=record.from_,
        to=record.to,
    )


def answer_values(value: object) -> dict[str, Value] | None:
    """What a bare value fills the form with, or None if no field could hold it. A choice that is ticked twice counts
    once."""
    if not is_field_value(value):
        return None
    return {FIELD: list(dict.fromkeys(value)) if isinstance(value, list) else value}


def _options(field: FormField, message: str) -> QuestionOptions:
    match field:
        case TextField() | EditorField():
            return QuestionOptions(message=message, default=field.default, validate=_rules(field))
        case PasswordField():
            return QuestionOptions(message=message, mask=field.mask, validate=_rules(field))
        case ConfirmField():
            return QuestionOptions(message=message, default=field.default)
        case SelectField():
            return QuestionOptions(message=message, default=field.default, choices=_choices(field.choices))
        case CheckboxField():
            rule = field.rule or FieldRule()
            return QuestionOptions(
                message=message, choices=_choices(field.choices), min=_count(rule.minimum), max=_count(rule.maximum)
            )
        case _:
            return QuestionOptions(message=message)


def _choices(choices: Iterable[FieldChoice]) -> tuple[QuestionChoice, ...]:
    return tuple(
        QuestionChoice(choice.label, choice.value, choice.help) for choice in choices if choice.disabled is not True
    )


def _rules(field: TextField | EditorField | PasswordField) -> QuestionRules | UnsetType:
    """The rules that a question was asked with; of a form that was asked as one, those that are the same in both."""
    if field.meta is not UNSET and RULES_META in field.meta:
        try:
            return msgspec.convert(field.meta[RULES_META], QuestionRules)
        except msgspec.ValidationError:
            pass  # a `meta` of somebody's own
    rule = field.rule or FieldRule()
    rules = QuestionRules(
        minimum=_count(rule.minimum),
        maximum=_count(rule.maximum),
        pattern=rule.pattern,
        email=rule.email or UNSET,
        alphanumeric=rule.alphanumeric or UNSET,
    )
    return UNSET if rules == QuestionRules() else rules


def _count(limit: object) -> int | UnsetType:
    """A limit that counts, as an integer; a fraction says nothing to a client that takes whole numbers alone."""
    return int(limit) if isinstance(limit, int | float) and limit == int(limit) else UNSET
