"""Reading what a model sends as an answer, which is often text whatever the question wants."""

from __future__ import annotations

from typing import Final, cast

from greenroom.protocol.questions.shapes import Kind
from greenroom.protocol.text import number_text, trim

__all__ = ["coerce_answer"]

_SAID: Final = {"true": True, "false": False}


def coerce_answer(kind: Kind, value: object) -> str | bool | list[str]:
    """The answer of that kind that `value` comes to: a bool for `confirm`, a list for `checkbox`, else a text.

    Takes anything and never raises. A `confirm` reads `true` and `false` in any case; any other value counts by its
    truth as ECMAScript has it, so that `"no"` is a yes. A `checkbox` splits text at its commas. What has no text of its
    own (an object, a list) is an empty one.
    """
    if kind == "confirm":
        return _as_truth(value)
    if kind != "checkbox":
        return _as_text(value)
    if isinstance(value, list | tuple):
        return [_as_text(entry) for entry in cast("list[object]", value)]
    if isinstance(value, str) and "," in value:
        return [trim(piece) for piece in value.split(",")]
    return [_as_text(value)]


def _as_truth(value: object) -> bool:
    if isinstance(value, str):
        return _SAID.get(trim(value).lower(), value != "")
    if isinstance(value, bool | int | float):
        return value == value and value != 0  # not a number is no yes either
    return value is not None


def _as_text(value: object) -> str:
    """As `String(value)` has it (ECMA-262, 22.1.1.1)."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        try:
            return number_text(value)
        except ValueError:
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return ""
