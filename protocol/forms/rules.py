"""The named rules: to which controls each applies, and a field's checks, compiled once for many answers.

Order of evaluation: required, minimum, maximum, step, pattern, email, url, alphanumeric, integer, custom; all failures
are reported. A rule that does not apply to its control, or whose operand has the wrong type for it, does nothing here:
the audit has refused it before a form opens.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import UNSET

from greenroom.protocol.errors import PatternError
from greenroom.protocol.forms import limits
from greenroom.protocol.forms.schema import CONTROLS, Control, FormField, RuleName, control_of
from greenroom.protocol.patterns import compile_pattern
from greenroom.protocol.text import WHITE_SPACE, utf16_length

__all__ = ["LISTS", "STRINGS", "TEMPORAL", "TEXTS", "Check", "Fails", "applies_rule", "compile_checks"]

Fails: TypeAlias = Callable[[Any], bool]
"""Whether an answer, which is of the control's own kind, fails a rule."""

_Limit: TypeAlias = int | float | str | None


class Check(NamedTuple):
    """One rule of one field; `limit` is the operand that its message may name."""

    rule: RuleName
    fails: Fails
    limit: _Limit


TEXTS: Final[frozenset[str]] = frozenset({"text", "editor", "password"})
TEMPORAL: Final[frozenset[str]] = frozenset({"date", "time", "datetime"})
LISTS: Final[frozenset[str]] = frozenset({"checkbox", "file"})
STRINGS: Final[frozenset[str]] = TEXTS | TEMPORAL | {"color", "select"}
"""Controls whose answers are texts."""

_BOUNDED: Final[frozenset[str]] = TEXTS | TEMPORAL | LISTS | {"number"}
_APPLIES: Final[dict[str, frozenset[str]]] = {
    "required": frozenset(CONTROLS),
    "minimum": _BOUNDED,
    "maximum": _BOUNDED,
    "step": frozenset({"number"}),
    "pattern": STRINGS,
    "email": STRINGS,
    "url": STRINGS,
    "integer": STRINGS | {"number"},
    "alphanumeric": STRINGS,
}

_SPACE: Final = re.compile(f"[{re.escape(WHITE_SPACE)}]")
_URL: Final = re.compile(f"https?://[^{re.escape(WHITE_SPACE)}]+")
_INTEGER: Final = re.compile("[+-]?[0-9]+")
_ALPHANUMERIC: Final = re.compile("[0-9A-Za-z]+")

_TOLERANCE: Final = 1e-9
"""How far from a whole number of steps a value may be, since 0.3 / 0.1 is none exactly."""


def applies_rule(control: str, rule: str) -> bool:
    """Whether the rule of this name has a meaning on the control."""
    return control in _APPLIES.get(rule, ())


def compile_checks(field: FormField) -> list[Check]:
    """What a given answer of `field` is checked for, in the order of evaluation."""
    rule = field.rule
    if rule is UNSET:
        return []
    control = control_of(field)
    minimum, maximum, step = (None if limit is UNSET else limit for limit in (rule.minimum, rule.maximum, rule.step))
    whole = _is_no_integral if control == "number" else _is_no_integer
    tests: tuple[tuple[RuleName, Fails | None, _Limit], ...] = (
        ("minimum", _beyond(control, minimum, least=True), minimum),
        ("maximum", _beyond(control, maximum, least=False), maximum),
        ("step", _between(step, minimum), step),
        ("pattern", None if rule.pattern is UNSET else _differs(rule.pattern), None),
        ("email", _is_no_email if rule.email is True else None, None),
        ("url", _is_no_url if rule.url is True else None, None),
        ("alphanumeric", _is_no_alphanumeric if rule.alphanumeric is True else None, None),
        ("integer", whole if rule.integer is True else None, None),
    )
    return [
        Check(name, fails, limit) for name, fails, limit in tests if fails is not None and applies_rule(control, name)
    ]


def _beyond(control: Control, limit: Any, *, least: bool) -> Fails | None:
    """Fails where the answer, or what it is measured by, is less than the limit, or more than it."""
    if limit is None or isinstance(limit, str) is not (control in TEMPORAL):
        return None
    # Written out, since a bound is the most common rule and a comparison handed over would cost a call more.
    if control in TEMPORAL or control == "number":
        return (lambda value: value < limit) if least else (lambda value: value > limit)
    if control in LISTS:
        return (lambda value: len(value) < limit) if least else (lambda value: len(value) > limit)
    if least:
        return lambda value: (len(value) if value.isascii() else utf16_length(value)) < limit
    return lambda value: (len(value) if value.isascii() else utf16_length(value)) > limit


def _between(step: _Limit, minimum: _Limit) -> Fails | None:
    """Fails between two steps, which are counted from the minimum if that is a number."""
    if step is None or isinstance(step, str):
        return None
    base = 0.0 if minimum is None or isinstance(minimum, str) else float(minimum)
    width = float(step)

    def fails(value: int | float) -> bool:
        if not width:
            return True
        try:
            steps = (value - base) / width
        except OverflowError:  # an integer that no double holds
            return True
        return not isfinite(steps) or abs(steps - round(steps)) > _TOLERANCE

    return fails


def _differs(source: str) -> Fails:
    try:
        matches = compile_pattern(source, limit=limits.PATTERN).matches
    except PatternError:
        return lambda value: True

    def fails(value: str) -> bool:
        try:
            return not matches(value)
        except PatternError:  # the text is too long for this pattern: it is not known to match
            return True

    return fails


def _is_no_email(value: str) -> bool:
    # One expression would try every dot of a long domain for itself; the parts are found in time linear in the text.
    local, _, domain = value.partition("@")
    return not local or "@" in domain or "." not in domain[1:-1] or _SPACE.search(value) is not None


def _is_no_url(value: str) -> bool:
    return _URL.fullmatch(value) is None


def _is_no_alphanumeric(value: str) -> bool:
    return _ALPHANUMERIC.fullmatch(value) is None


def _is_no_integer(value: str) -> bool:
    return _INTEGER.fullmatch(value) is None


def _is_no_integral(value: int | float) -> bool:
    return isinstance(value, float) and not value.is_integer()
