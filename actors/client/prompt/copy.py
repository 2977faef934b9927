"""A form as this side shows and checks it: what came from elsewhere, made safe for a screen."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import UNSET, UnsetType, structs

from greenroom.protocol.forms import (
    CheckboxField,
    FieldChoice,
    FieldRule,
    FileField,
    FormField,
    FormGroup,
    FormSchema,
    SelectField,
    display_line,
    display_lines,
)

__all__ = ["local_copy"]

_SHOWN = ("label", "placeholder", "mask")

_S = TypeVar("_S", FormSchema, FormGroup, FormField, FieldChoice)


def local_copy(schema: FormSchema) -> FormSchema:
    """The schema with every text that is only shown made safe to print, without `meta` and without patterns.

    What an answer is made of stays as it is: names, the values of choices, defaults. A pattern is left to the server,
    which answers for its cost.
    """
    return structs.replace(
        _shown(schema),
        groups=UNSET if schema.groups is UNSET else tuple(map(_shown, schema.groups)),
        fields=tuple(map(_field, schema.fields)),
    )


def _field(field: FormField) -> FormField:
    changes: dict[str, Any] = {"meta": UNSET, "rule": _rule(field.rule)}
    if isinstance(field, SelectField | CheckboxField):
        changes["choices"] = tuple(map(_shown, field.choices))
    if isinstance(field, FileField) and field.accept is not UNSET:
        changes["accept"] = tuple(map(display_line, field.accept))
    return structs.replace(_shown(field), **changes)


def _rule(rule: FieldRule | UnsetType) -> FieldRule | UnsetType:
    if rule is UNSET:
        return UNSET
    without = structs.replace(rule, pattern=UNSET)
    return UNSET if without == FieldRule() else without


def _shown(part: _S) -> _S:
    """The part with its own texts made safe."""
    texts = {name: display_line(text) for name in _SHOWN if isinstance(text := getattr(part, name, UNSET), str)}
    if isinstance(part.help, str):
        texts["help"] = "\n".join(display_lines(part.help))
    return structs.replace(part, **texts)
