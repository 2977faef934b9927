"""From a question to the form that is asked in its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, final

from msgspec import UNSET, Struct, UnsetType, to_builtins

from greenroom.protocol.forms import (
    CheckboxField,
    ConfirmField,
    EditorField,
    FieldChoice,
    FieldRule,
    FormField,
    FormSchema,
    PasswordField,
    RuleName,
    SelectField,
    TextField,
    Value,
    format_message,
)
from greenroom.protocol.questions.shapes import Question, QuestionOptions, QuestionRules
from greenroom.protocol.text import trim

__all__ = ["FIELD", "RULES_META", "question_schema"]

FIELD: Final = "value"
"""The name of the one field."""

RULES_META: Final = "validate"
"""Under which member of the field's `meta` a question's own rules travel, for those who show it as a question."""

_REQUIRED: Final = FieldRule(required=True)
"""Every question is answered with something, if only with an empty text."""


def question_schema(question: Question) -> FormSchema:
    """The form of one field, `value`, that a question is. Nothing is checked: `Form` says what is wrong with it."""
    return FormSchema(fields=(_field(question),))


def _field(question: Question) -> FormField:
    options = question.options
    match question.kind:
        case "input":
            return TextField(name=FIELD, label=options.message, default=_text(options), **_ruled(options))
        case "editor":
            return EditorField(name=FIELD, label=options.message, default=_text(options), **_ruled(options))
        case "password":
            return PasswordField(name=FIELD, label=options.message, mask=options.mask, **_ruled(options))
        case "confirm":
            default = options.default in (True, "true") if options.default is not UNSET else UNSET
            return ConfirmField(name=FIELD, label=options.message, default=default, rule=_REQUIRED)
        case "select":
            chosen = any(choice.value == options.default for choice in options.choices or ())
            return SelectField(
                name=FIELD,
                label=options.message,
                choices=_choices(options),
                default=_text(options) if chosen else UNSET,
                rule=_REQUIRED,
            )
        case "checkbox":
            rule = FieldRule(required=True, minimum=options.min, maximum=options.max)
            return CheckboxField(name=FIELD, label=options.message, choices=_choices(options), rule=rule)


def _text(options: QuestionOptions) -> str | UnsetType:
    return options.default if isinstance(options.default, str) else UNSET


def _choices(options: QuestionOptions) -> tuple[FieldChoice, ...]:
    return tuple(FieldChoice(choice.value, choice.name, choice.description) for choice in options.choices or ())


def _ruled(options: QuestionOptions) -> dict[Literal["rule", "meta"], Any]:
    rules = options.validate
    if rules is UNSET:
        return {"rule": _REQUIRED}
    rule = FieldRule(
        required=True,
        # These mean the same in a form, where every client can check them before it sends.
        pattern=rules.pattern,
        email=rules.email or UNSET,
        alphanumeric=rules.alphanumeric or UNSET,
        custom=_Check(rules),
    )
    return {"rule": rule, "meta": {RULES_META: to_builtins(rules)}}


@final
class _Check(Struct, frozen=True):
    """The rules that mean something else in a form, as one rule of the host: it tells the first that fails."""

    rules: QuestionRules

    def __call__(self, value: Value | None, values: Mapping[str, Value], /) -> str | None:
        if isinstance(value, str):
            for rule, fails in _OWN_RULES:
                operand = getattr(self.rules, rule)
                if operand is not UNSET and operand is not False and fails(value, operand):
                    return "Enter a number." if rule == "numeric" else format_message("text", rule, operand)
        return None


_URL: Final = re.compile("https?://[^\n\r\u2028\u2029]")
_NUMERIC: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_INTEGER: Final = re.compile("-?[0-9]+")

_OWN_RULES: Final[tuple[tuple[RuleName | Literal["numeric"], Callable[[str, Any], bool]], ...]] = (
    ("required", lambda text, _: not trim(text)),
    ("minimum", lambda text, least: len(text) < least),
    ("maximum", lambda text, most: len(text) > most),
    ("url", lambda text, _: not _URL.match(text)),
    ("numeric", lambda text, _: not _NUMERIC.fullmatch(text)),
    ("integer", lambda text, _: not _INTEGER.fullmatch(text)),
)
"""In the order in which they are told."""
