"""The abbreviations that the input of a recorded case may hold, and what each stands for."""

from __future__ import annotations

from typing import Any

from tests.conformance.values import is_list, is_object

__all__ = ["a_function", "expand"]


def a_function(*_: object) -> None:
    """What `{"$function": true}` becomes: a value that is callable and no JSON."""


def expand(value: Any) -> Any:
    """A copy of `value` in which every abbreviation is written out, inner ones first.

    `{"$repeat": [unit, count]}` is a string, `{"$list": [template, count]}` a list of copies in which `%i` is the
    copy's index, `{"$number": "NaN"}` a number that JSON cannot hold, `{"$function": true}` a function. An object with
    a second member is no abbreviation.
    """
    if is_list(value):
        return [expand(entry) for entry in value]
    if not is_object(value):
        return value
    if len(value) == 1:
        ((name, operand),) = value.items()
        if name == "$repeat":
            unit, count = operand
            return unit * count
        if name == "$list":
            template, count = operand
            written_out = expand(template)
            return [_with_index(written_out, str(index)) for index in range(count)]
        if name == "$number":
            return float(operand)
        if name == "$function":
            return a_function
    return {name: expand(member) for name, member in value.items()}


def _with_index(template: Any, index: str) -> Any:
    """A copy of `template` with `%i` replaced in every string, names of members included."""
    if isinstance(template, str):
        return template.replace("%i", index)
    if is_list(template):
        return [_with_index(entry, index) for entry in template]
    if is_object(template):
        return {name.replace("%i", index): _with_index(member, index) for name, member in template.items()}
    return template
