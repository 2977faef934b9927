"""Custom rules of recorded cases: `{field, kind, other}` as a rule of this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from greenroom.protocol.forms import FieldRule, Form, FormSchema

__all__ = ["with_customs"]

_FAILS = "refused"


def with_customs(schema: Any, customs: list[Any]) -> FormSchema:
    """The schema with a custom rule on each named field. Raises FormError SCHEMA if it does not open."""
    sound = Form(schema).schema
    by_name = {custom["field"]: _rule(custom) for custom in customs}
    fields = tuple(
        msgspec.structs.replace(
            field,
            rule=msgspec.structs.replace(
                FieldRule() if field.rule is msgspec.UNSET else field.rule, custom=by_name[field.name]
            ),
        )
        if field.name in by_name
        else field
        for field in sound.fields
    )
    return msgspec.structs.replace(sound, fields=fields)


def _rule(custom: Any) -> Callable[[Any, Any], Any]:
    other = custom.get("other")
    kinds: dict[str, Callable[[Any, Any], bool]] = {
        "same": lambda value, values: value == values.get(other),
        "needed": lambda value, values: not (values.get(other) is True and value is None),
        "never": lambda value, values: False,
        "always": lambda value, values: True,
    }
    holds = kinds[custom["kind"]]
    return lambda value, values: None if holds(value, values) else _FAILS
