"""What a line means where there are choices on offer."""

from __future__ import annotations

import re
from typing import Final

from greenroom.actors.console import wording
from greenroom.protocol.forms import CheckboxField, FieldChoice, SelectField
from greenroom.protocol.forms.values import declared_default
from greenroom.protocol.text import trim

__all__ = ["chosen", "picked", "picks", "ticked"]

_ORDINAL: Final = re.compile("[0-9]{1,9}")
_NOTHING: Final = "none"


def chosen(field: SelectField, line: str) -> str | None:
    """The choice that a line names: by its number, its value or its label, in this order.

    An empty line is the default, and `none` is no choice, unless one is called so. A line that names no choice is given
    back as it is: no field holds it, so it is refused.
    """
    if not trim(line):
        default = declared_default(field)
        return default if isinstance(default, str) else None
    found = _named(wording.offered(field), trim(line))
    if found is None and trim(line) == _NOTHING:
        return None
    return line if found is None else found


def ticked(field: CheckboxField, line: str) -> list[str]:
    """The choices that a line names, with commas between; each as `chosen` has it."""
    if not trim(line):
        default = declared_default(field)
        return default if isinstance(default, list) else []
    offered = wording.offered(field)
    names = [trim(part) for part in line.split(",")]
    found = [_named(offered, name) for name in names]
    if found == [None] and names == [_NOTHING]:
        return []
    return [name if value is None else value for name, value in zip(names, found, strict=True)]


def picked(field: SelectField, line: str) -> str | None:
    """The choice whose number the line begins with; for any other line none, and not the default either."""
    return _pick(wording.offered(field), line)


def picks(field: CheckboxField, line: str) -> list[str]:
    """The choices whose numbers the parts between commas begin with; other parts are dropped."""
    offered = wording.offered(field)
    found = (_pick(offered, part) for part in line.split(","))
    return [value for value in found if value is not None]


def _named(choices: list[FieldChoice], name: str) -> str | None:
    if _ORDINAL.fullmatch(name) and 0 < int(name) <= len(choices):
        return choices[int(name) - 1].value
    if any(choice.value == name for choice in choices):
        return name
    labelled = [choice.value for choice in choices if wording.choice_text(choice) == name]
    return labelled[0] if len(labelled) == 1 else None


def _pick(choices: list[FieldChoice], line: str) -> str | None:
    ordinal = _ORDINAL.match(trim(line))
    number = int(ordinal[0]) if ordinal else 0
    return choices[number - 1].value if 0 < number <= len(choices) else None
