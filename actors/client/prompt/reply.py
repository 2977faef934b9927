"""What a bridge replies to a posted answer."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Never, cast

from greenroom.protocol.bridge import read_json
from greenroom.protocol.errors import BridgeError
from greenroom.protocol.forms import FieldError, is_field_error, is_form_values

__all__ = ["read_reply"]


def read_reply(body: bytes, fields: Container[str]) -> list[FieldError] | None:
    """What is wrong with the answer, field by field; None if there is nothing more to do about this form: the answer
    was accepted, or the form is no longer pending.

    Raises BridgeError ANSWER for a reply that no bridge gives, an error of a field that is not among `fields`, and a
    terminal that is gone.
    """
    try:
        reply = _members(read_json(body))
    except ValueError:
        _refuse("it is no JSON")
    if reply.get("success") is True:
        return None if is_form_values(reply.get("value")) else _refuse("it accepts, and does not say what")
    refusal = _members(reply.get("error") if reply.get("success") is False else None)
    match refusal.get("reason"):
        case "unknown":
            return None
        case "rejected":
            return _errors(refusal.get("errors"), fields)
        case "target" | "terminal":
            _refuse("there is no such terminal any more")
        case _:
            _refuse("it does not say why it refuses")


def _members(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _errors(value: object, fields: Container[str]) -> list[FieldError]:
    if not isinstance(value, list) or not all(map(is_field_error, cast("list[object]", value))):
        _refuse("what it says of the fields cannot be read")
    found = [FieldError(error["field"], error["message"]) for error in cast("list[dict[str, str]]", value)]
    if unknown := [error.field for error in found if error.field not in fields]:
        _refuse(f"the form has no field {unknown[0]!r}")
    return found


def _refuse(why: str) -> Never:
    raise BridgeError(
        "ANSWER", f"The bridge's reply to an answer cannot be used: {why}. The form may still be pending."
    )
