"""What a field can hold, and when two answers are the same.

Nothing here coerces: `parse` reads what clients send. Shapes of dates, times and colours are ASCII and cover the whole
text; a date's day is in range but the calendar is not consulted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeGuard, cast

from msgspec import UNSET, UnsetType

from greenroom.protocol.forms import limits
from greenroom.protocol.forms.schema import (
    CheckboxField,
    ColorField,
    ConfirmField,
    DateField,
    DatetimeField,
    FileField,
    FormField,
    FormSchema,
    NumberField,
    SelectField,
    TimeField,
    Value,
)
from greenroom.protocol.forms.structure import is_number, plain_number
from greenroom.protocol.text import exact_number, trim, utf16_length

__all__ = [
    "SHAPES",
    "SURROGATE",
    "Holds",
    "compute_defaults",
    "declared_default",
    "enabled_choices",
    "extract_changes",
    "holder",
    "is_encodable",
    "is_list",
    "is_text",
    "matches_answer",
    "matches_field",
    "matches_value",
    "matches_values",
    "own_value",
]

Holds: TypeAlias = Callable[[object], bool]
"""Whether a control can hold exactly this value."""

_DATE: Final = "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIME: Final = "(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?"

SHAPES: Final[dict[type[FormField], re.Pattern[str]]] = {
    DateField: re.compile(_DATE),
    TimeField: re.compile(_TIME),
    DatetimeField: re.compile(f"{_DATE}T{_TIME}"),
    ColorField: re.compile("#[0-9A-Fa-f]{6}"),
}
"""The text of a field whose control prescribes it, to be matched in full."""


_SHORT: Final = limits.STRING // 2
"""Characters up to which a text is within the limit, whatever they are."""

SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair; a text has one only if it stands alone."""


def holder(field: FormField) -> Holds:
    """The test of what `field` can hold, made once for many values."""
    shape = SHAPES.get(type(field))
    if shape is not None:
        fullmatch = shape.fullmatch
        return lambda value: type(value) is str and fullmatch(value) is not None
    match field:
        case NumberField():
            return _is_exact
        case ConfirmField():
            return lambda value: type(value) is bool
        case SelectField(open=True):
            barred = frozenset(choice.value for choice in field.choices if choice.disabled is True)
            return lambda value: is_text(value) and value not in barred
        case SelectField():
            offered = enabled_choices(field)
            return lambda value: is_text(value) and value in offered
        case CheckboxField():
            enabled = enabled_choices(field)
            return lambda value: is_list(value) and enabled.issuperset(value) and len(set(value)) == len(value)
        case FileField():
            most = limits.ENTRIES if field.multiple is True else 1
            return lambda value: is_list(value) and len(value) <= most
        case _:
            return is_text


def enabled_choices(field: SelectField | CheckboxField) -> frozenset[str]:
    """The values that can be chosen."""
    return frozenset(choice.value for choice in field.choices if choice.disabled is not True)


def is_text(value: object) -> TypeGuard[str]:
    """Whether `value` is a text that an answer may be."""
    return type(value) is str and (len(value) <= _SHORT or utf16_length(value) <= limits.STRING)


def is_list(value: object) -> TypeGuard[list[str]]:
    """Whether `value` is a list of texts that an answer may be."""
    if type(value) is not list:
        return False
    entries = cast("list[object]", value)
    return len(entries) <= limits.ENTRIES and all(map(is_text, entries))


def is_encodable(value: Value) -> bool:
    """Whether the texts of an answer have a UTF-8 form: one with half of a surrogate pair has none."""
    if isinstance(value, str):
        return value.isascii() or SURROGATE.search(value) is None
    return not isinstance(value, list) or all(map(is_encodable, value))


def own_value(field: FormField, value: Value) -> Value:
    """A value that the field holds, as a form keeps it: a list of its own, a number as it prints."""
    if isinstance(value, list):
        return value.copy()
    if isinstance(field, NumberField):
        return plain_number(cast(float, value))
    return value


def _is_exact(value: object) -> bool:
    return is_number(value) and (type(value) is float or exact_number(cast(int, value)) is not None)


def declared_default(field: FormField) -> Value | None:
    """The answer that the field starts with, if it declares one."""
    default: str | int | float | bool | tuple[str, ...] | UnsetType = getattr(field, "default", UNSET)
    if default is UNSET:
        return None
    return list(default) if isinstance(default, tuple) else default


def compute_defaults(schema: FormSchema) -> dict[str, Value]:
    """The answers that a form of `schema` starts with, in schema order."""
    declared = ((field.name, declared_default(field)) for field in schema.fields)
    return {name: default for name, default in declared if default is not None}


def matches_field(field: FormField, value: object) -> bool:
    """Whether `field` can hold exactly `value`; nothing is read leniently, and the field's rules are not asked."""
    return holder(field)(value)


def matches_answer(value: object) -> bool:
    """Whether a raw value counts as an answer: not `None`, and no text of white space only. `[]`, `False`, `0` do."""
    return value is not None and not (type(value) is str and trim(value) == "")


def matches_value(left: Value | None, right: Value | None) -> bool:
    """Whether two answers are the same: of one kind and equal, lists in one order. `1` is `1.0` and is not `True`."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return left == right


def matches_values(left: Mapping[str, Value], right: Mapping[str, Value]) -> bool:
    """Whether two records answer the same fields with the same values."""
    return left.keys() == right.keys() and all(matches_value(value, right[name]) for name, value in left.items())


def extract_changes(current: Mapping[str, Value], opened: Mapping[str, Value]) -> list[str]:
    """The names whose answers differ between two records, those of `current` first."""
    names = dict.fromkeys((*current, *opened))
    return [name for name in names if not matches_value(current.get(name), opened.get(name))]
