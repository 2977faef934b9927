"""Keeping secrets out of logs, events and other viewers' sight."""

from __future__ import annotations

from typing import Final

from greenroom.protocol.forms.schema import FormSchema, PasswordField, Value

__all__ = ["MASK", "mask_values"]

MASK: Final = "********"
"""What stands for a password, whatever its length."""


def mask_values(schema: FormSchema, values: dict[str, Value]) -> dict[str, Value]:
    """The record with `MASK` for the value of every password field; the same dict if it holds none."""
    secret = {field.name for field in schema.fields if isinstance(field, PasswordField) and field.name in values}
    if not secret:
        return values
    return {name: MASK if name in secret else value for name, value in values.items()}
