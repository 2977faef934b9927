"""What a form says at a terminal. Everything that leaves here can be printed: it cannot steer the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import UNSET

from greenroom.protocol.forms import (
    CheckboxField,
    ColorField,
    ConfirmField,
    DateField,
    DatetimeField,
    EditorField,
    FieldChoice,
    FieldError,
    FileField,
    FormField,
    FormGroup,
    FormSchema,
    NumberField,
    PasswordField,
    SelectField,
    TextField,
    TimeField,
    Value,
    display_line,
    display_lines,
)
from greenroom.protocol.text import number_text

__all__ = [
    "choice_text",
    "default_text",
    "failure_text",
    "form_title",
    "group_title",
    "help_text",
    "offer_text",
    "offered",
    "placeholder_text",
    "prompt_text",
    "seen",
    "shortened",
    "title",
    "unheld_text",
    "value_text",
]

_LONGEST: Final = 120
"""Characters that are shown of what may have 65,536, where it has to leave room for other things."""

_CUES: Final[dict[type[FormField], str]] = {
    NumberField: "(number)",
    DateField: "(YYYY-MM-DD)",
    TimeField: "(HH:MM)",
    DatetimeField: "(YYYY-MM-DDTHH:MM)",
    ColorField: "(#rrggbb)",
    FileField: "(path)",
}

_UNHELD: Final[dict[type[FormField], str]] = {
    NumberField: "Enter a number, such as 12 or 0.5.",
    DateField: "Enter a date like 2026-03-31.",
    TimeField: "Enter a time like 09:30 or 09:30:00.",
    DatetimeField: "Enter a date and a time like 2026-03-31T09:30.",
    ColorField: "Enter a color like #00ff80.",
    ConfirmField: "Answer yes or no.",
    CheckboxField: "Choose any of what is on offer, each at most once.",
    SelectField: "Enter one that is on offer.",
}


def seen(*texts: object) -> str:
    """The first of the texts that leaves anything to see, in one line."""
    return next((shown for text in texts if isinstance(text, str) and (shown := _lines(text))), "").replace("\n", "\\n")


def shortened(text: str) -> str:
    """As much of a text as can stand beside others on the screen."""
    shown = display_line(text)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def form_title(schema: FormSchema) -> str:
    """What the form is called."""
    return seen(schema.label, schema.name, "Untitled form")


def group_title(group: FormGroup) -> str:
    """What a group of fields is called."""
    return seen(group.label, group.name)


def title(field: FormField) -> str:
    """What the field is called; a label that holds nothing to see does not leave it nameless."""
    return seen(field.label, field.name, "Unnamed field")


def prompt_text(field: FormField) -> str:
    """What the field is called, and the shape in which it is to be answered."""
    words = [title(field), _CUES.get(type(field), "")]
    if isinstance(field, FileField) and field.accept is not UNSET:
        words.append(", ".join(display_line(accepted) for accepted in field.accept))
    return " ".join(word for word in words if word)


def help_text(record: FormSchema | FormGroup | FormField | FieldChoice) -> str:
    """What explains it, if anything does. What explains a choice, beside which it stands, is one line."""
    if isinstance(record, FieldChoice):
        return seen(record.help)
    return _lines(record.help) if isinstance(record.help, str) else ""


def placeholder_text(field: FormField) -> str:
    """What stands where nothing is typed yet."""
    return seen(field.placeholder) if isinstance(field, TextField | EditorField | NumberField) else ""


def offered(field: SelectField | CheckboxField) -> list[FieldChoice]:
    """The choices that can be chosen."""
    return [choice for choice in field.choices if choice.disabled is not True]


def choice_text(choice: FieldChoice) -> str:
    """What a choice is called."""
    return seen(choice.label, choice.value, "(empty)")


def offer_text(choice: FieldChoice) -> str:
    """What can be typed for a choice, where any text can be typed."""
    value, label = seen(choice.value, "(empty)"), choice_text(choice)
    return value if value == label else f"{value} ({label})"


def default_text(field: FormField) -> str:
    """What no answer stands for, if the field declares it and it leaves anything to see."""
    if isinstance(field, PasswordField | FileField) or field.default is UNSET:
        return ""
    default = list(field.default) if isinstance(field.default, tuple) else field.default
    if isinstance(field, CheckboxField) or (isinstance(field, SelectField) and field.open is not True):
        values = default if isinstance(default, list) else [default]
        return shortened(", ".join(choice_text(choice) for choice in offered(field) if choice.value in values))
    return value_text(default)


def value_text(value: Value | None) -> str:
    """An answer as a person reads it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str():
            return shortened(value)
        case list():
            return shortened(", ".join(value))
        case _:
            return number_text(value)


def failure_text(fields: Iterable[FormField], error: FieldError) -> str:
    """What is wrong with a field."""
    named = next((title(field) for field in fields if field.name == error.field), seen(error.field))
    return f"{named}: {display_line(error.message)}"


def unheld_text(field: FormField) -> str:
    """What to do about an answer that the field's control cannot hold."""
    return _UNHELD.get(type(field), "This text cannot be taken: it is too long, or is not UTF-8.")


def _lines(text: str) -> str:
    return "\n".join(display_lines(text)).strip()
