"""The document of a form: a schema, its groups, and fields of twelve controls.

The structs are the wire shape itself. Members are declared in the order in which a document is written, an absent one
is `UNSET` (never `None`: JSON `null` is legal inside `meta` alone), and every struct is frozen, so that the forms of a
schema can share it. A struct does not check what it is made of; `Form` and `parse_form` do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args, runtime_checkable

from msgspec import UNSET, Struct, UnsetType

__all__ = [
    "CONTROLS",
    "FIELD_TYPES",
    "RULES",
    "CheckboxField",
    "ColorField",
    "ConfirmField",
    "Control",
    "CustomRule",
    "DateField",
    "DatetimeField",
    "EditorField",
    "FieldChoice",
    "FieldError",
    "FieldRule",
    "FileField",
    "FormField",
    "FormGroup",
    "FormSchema",
    "NumberField",
    "PasswordField",
    "RuleName",
    "SelectField",
    "TextField",
    "TimeField",
    "Value",
    "control_of",
    "extract_groups",
]

Value: TypeAlias = str | int | float | bool | list[str]
"""What a field can hold; which of them depends on its control. An unanswered field holds nothing (`None`)."""

Control: TypeAlias = Literal[
    "text", "editor", "password", "number", "date", "time", "datetime", "color", "confirm", "select", "checkbox", "file"
]
RuleName: TypeAlias = Literal[
    "required", "minimum", "maximum", "step", "pattern", "email", "url", "integer", "alphanumeric"
]

CONTROLS: tuple[Control, ...] = get_args(Control)
RULES: tuple[RuleName, ...] = get_args(RuleName)
"""The named rules in the order in which a document lists them (they are evaluated in another: see `rules`)."""


@runtime_checkable
class CustomRule(Protocol):
    """A rule of the host: takes the field's value (or `None`) and the values of all fields, disabled ones included.

    A returned `str` is the failure's message; anything else, even `False` or `None`, passes. What it raises escapes
    from the call that evaluated the form. It lives in this process only and is never written into a document.
    """

    def __call__(self, value: Value | None, values: Mapping[str, Value], /) -> object: ...


class FieldRule(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What an answer must satisfy; limits count UTF-16 units of text or items of a list, or bound the value itself."""

    required: bool | UnsetType = UNSET
    minimum: int | float | str | UnsetType = UNSET
    maximum: int | float | str | UnsetType = UNSET
    step: int | float | UnsetType = UNSET
    pattern: str | UnsetType = UNSET
    """ECMAScript source without flags, searched for anywhere in the answer."""
    email: bool | UnsetType = UNSET
    url: bool | UnsetType = UNSET
    integer: bool | UnsetType = UNSET
    alphanumeric: bool | UnsetType = UNSET
    custom: CustomRule | UnsetType = UNSET


class FieldChoice(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One offer of a select or checkbox field; a disabled one is shown and cannot be chosen."""

    value: str
    label: str
    help: str | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET


class FormGroup(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A heading that fields refer to by name."""

    name: str
    label: str
    help: str | UnsetType = UNSET


class FieldError(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Why a field's answer does not stand. `rule` is absent for custom rules and for failures told from outside."""

    field: str
    message: str
    rule: RuleName | UnsetType = UNSET


class _Field(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="control"):
    """What the fields of all controls have, in front of what each has of its own."""

    name: str
    label: str | UnsetType = UNSET
    help: str | UnsetType = UNSET
    group: str | UnsetType = UNSET
    hidden: bool | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    locked: bool | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = UNSET


class TextField(_Field, frozen=True, kw_only=True, tag="text"):
    """One line of text."""

    default: str | UnsetType = UNSET
    placeholder: str | UnsetType = UNSET
    rule: FieldRule | UnsetType = UNSET


class EditorField(_Field, frozen=True, kw_only=True, tag="editor"):
    """Text of several lines."""

    default: str | UnsetType = UNSET
    placeholder: str | UnsetType = UNSET
    rule: FieldRule | UnsetType = UNSET


class PasswordField(_Field, frozen=True, kw_only=True, tag="password"):
    """A secret line of text, shown as its `mask`; it is never given a default."""

    mask: str | UnsetType = UNSET
    rule: FieldRule | UnsetType = UNSET


class NumberField(_Field, frozen=True, kw_only=True, tag="number"):
    """A finite number."""

    default: int | float | UnsetType = UNSET
    placeholder: str | UnsetType = UNSET
    rule: FieldRule | UnsetType = UNSET


class DateField(_Field, frozen=True, kw_only=True, tag="date"):
    """A day, `YYYY-MM-DD`; month and day are in range, the calendar is not consulted."""

    default: str | UnsetType = UNSET
    rule: FieldRule | UnsetType = UNSET


class TimeField(_Field, frozen=True, kw_only=True, tag="time"):
    """A time of day, `HH:MM` or `HH:MM:SS` of 24 hours."""

    default: str | UnsetType = UNSET
    rule: FieldRule | UnsetType = UNSET


class DatetimeField(_Field, frozen=True, kw_only=True, tag="datetime"):
    """A day and a time joined by `T`, without zone or fraction."""

    default: str | UnsetType = UNSET
    rule: FieldRule | UnsetType = UNSET


class ColorField(_Field, frozen=True, kw_only=True, tag="color"):
    """A colour, `#` and six hex digits."""

    default: str | UnsetType = UNSET
    rule: FieldRule | UnsetType = UNSET


class ConfirmField(_Field, frozen=True, kw_only=True, tag="confirm"):
    """Yes or no; a no is an answer."""

    default: bool | UnsetType = UNSET
    rule: FieldRule | UnsetType = UNSET


class SelectField(_Field, frozen=True, kw_only=True, tag="select"):
    """One of the enabled choices; with `open`, any text but a disabled choice's value."""

    choices: tuple[FieldChoice, ...]
    default: str | UnsetType = UNSET
    open: bool | UnsetType = UNSET
    rule: FieldRule | UnsetType = UNSET


class CheckboxField(_Field, frozen=True, kw_only=True, tag="checkbox"):
    """Any number of the enabled choices, each at most once."""

    choices: tuple[FieldChoice, ...]
    default: tuple[str, ...] | UnsetType = UNSET
    rule: FieldRule | UnsetType = UNSET


class FileField(_Field, frozen=True, kw_only=True, tag="file"):
    """Names of files, at most one unless `multiple`; it is never given a default."""

    accept: tuple[str, ...] | UnsetType = UNSET
    multiple: bool | UnsetType = UNSET
    rule: FieldRule | UnsetType = UNSET


FormField: TypeAlias = (
    TextField
    | EditorField
    | PasswordField
    | NumberField
    | DateField
    | TimeField
    | DatetimeField
    | ColorField
    | ConfirmField
    | SelectField
    | CheckboxField
    | FileField
)

FIELD_TYPES: dict[str, type[FormField]] = dict(zip(CONTROLS, get_args(FormField), strict=True))
"""Each control's struct."""


def control_of(field: FormField) -> Control:
    """The field's control, which the document spells as a member and the struct as its type."""
    return cast(Control, field.__struct_config__.tag)


class FormSchema(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A form as a document: the fields in the order in which they are asked."""

    name: str | UnsetType = UNSET
    label: str | UnsetType = UNSET
    help: str | UnsetType = UNSET
    groups: tuple[FormGroup, ...] | UnsetType = UNSET
    fields: tuple[FormField, ...]


def extract_groups(schema: FormSchema) -> list[FormGroup]:
    """The declared groups that fields refer to, in the order in which fields first do."""
    declared = {group.name: group for group in schema.groups or ()}
    names = dict.fromkeys(field.group for field in schema.fields if field.group is not UNSET)
    return [declared[name] for name in names if name in declared]
