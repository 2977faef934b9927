"""What is told to whoever answers: the sentence of a failed rule, and what a control takes.

Messages travel to clients as text and are never parsed, so a host may replace each by the name of its rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from greenroom.protocol.forms.schema import Control, RuleName
from greenroom.protocol.text import number_text

__all__ = ["TAKES", "format_message"]

_LIMIT: Final = "{limit}"
_LIMITED: Final = frozenset({"minimum", "maximum", "step"})

_GENERAL: Final[dict[RuleName, str]] = {
    "required": "Answer this question.",
    "minimum": "Enter {limit} or more.",
    "maximum": "Enter {limit} or less.",
    "step": "Enter a number in steps of {limit}.",
    "pattern": "Enter this in the expected format.",
    "email": "Enter an email address, such as name@example.org.",
    "url": "Enter a web address that starts with http:// or https://.",
    "integer": "Enter a whole number.",
    "alphanumeric": "Use only the digits 0 to 9 and the letters A to Z.",
}

_SIZES: Final[dict[RuleName, str]] = {
    "minimum": "Write at least {limit} characters.",
    "maximum": "Write at most {limit} characters.",
}
_TIMES: Final[dict[RuleName, str]] = {
    "minimum": "Enter {limit} or later.",
    "maximum": "Enter {limit} or earlier.",
}
_TICKS: Final[dict[RuleName, str]] = {
    "required": "Tick what applies.",
    "minimum": "Tick at least {limit} of these.",
    "maximum": "Tick at most {limit} of these.",
}
_FILES: Final[dict[RuleName, str]] = {
    "required": "Add a file.",
    "minimum": "Add at least {limit} files.",
    "maximum": "Add at most {limit} files.",
}
_CHOICE: Final[dict[RuleName, str]] = {"required": "Choose one of these."}

_SPECIAL: Final[dict[Control, dict[RuleName, str]]] = {
    "text": _SIZES,
    "editor": _SIZES,
    "password": _SIZES,
    "date": _TIMES,
    "time": _TIMES,
    "datetime": _TIMES,
    "confirm": {"required": "Answer yes or no."},
    "select": _CHOICE,
    "checkbox": _TICKS,
    "file": _FILES,
}

TAKES: Final[dict[Control, str]] = {
    "text": "a text",
    "editor": "a text",
    "password": "a text",
    "number": "a finite number that every client can hold exactly",
    "date": "a date as YYYY-MM-DD",
    "time": "a time as HH:MM or HH:MM:SS",
    "datetime": "a date and time as YYYY-MM-DDTHH:MM or with seconds",
    "color": "a colour as # and six hex digits",
    "confirm": "true or false",
    "select": "the value of an enabled choice, or any other text if the field is open",
    "checkbox": "a list of values of enabled choices, each at most once",
    "file": "a list of file names, one at most unless the field takes several",
}
"""What the controls hold, for a person or a model that sent something else."""


def format_message(
    control: Control, rule: RuleName, limit: int | float | str | None = None, messages: Mapping[str, str] | None = None
) -> str:
    """What to tell the person whose answer in a field of `control` fails `rule`.

    `messages` replaces texts by the name of the rule, even by an empty one. `{limit}` stands for the rule's operand; it
    is filled in for minimum, maximum and step, and numbers print as ECMAScript prints them.
    """
    text = (messages or {}).get(rule)
    if text is None:
        text = _SPECIAL.get(control, _GENERAL).get(rule) or _GENERAL[rule]
    if limit is None or rule not in _LIMITED:
        return text
    return text.replace(_LIMIT, limit if isinstance(limit, str) else number_text(limit))
