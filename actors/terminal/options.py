"""What a terminal can be given: a name, an operator, how long its forms stay unanswered and how many there may be."""

from __future__ import annotations

from math import inf
from typing import Final

from greenroom.protocol.errors import TerminalError
from greenroom.protocol.schemas.gates import encodable
from greenroom.runtime.ref import Ref

__all__ = ["LONGEST", "MILLISECONDS", "check_cap", "check_name", "check_operator", "check_timeout"]

MILLISECONDS: Final = 2**53 - 1
"""The longest timeout: one that is a whole number to every client."""

LONGEST: Final = MILLISECONDS / 1000
"""The same in seconds."""


def check_name(name: object, whose: str = "A terminal's") -> None:
    """Raise TerminalError INVALID for what is no text, or none that crosses a wire."""
    if not isinstance(name, str) or not (name.isascii() or encodable(name)):
        raise TerminalError(
            "INVALID",
            f"{whose} name is text without lone surrogates, and not {_shown(name)}.",
            {"name": _shown(name)},
        )


def check_operator(operator: object, whose: str) -> None:
    """Raise TerminalError INVALID for what is no actor's address. `None` is nobody."""
    if operator is not None and not isinstance(operator, Ref):
        raise TerminalError(
            "INVALID",
            f"The operator of {whose} is the Ref of an actor, and not {_shown(operator)}.",
            {"operator": _shown(operator)},
        )


def check_timeout(timeout: object, whose: str) -> None:
    """Raise TerminalError INVALID for a timeout that cannot be. `None` and infinity can: no limit."""
    if timeout is None or timeout == inf:
        return
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 <= timeout <= LONGEST:
        raise TerminalError(
            "INVALID",
            f"The timeout of {whose} is {_shown(timeout)}; it is a number of seconds from 0 to {LONGEST:.0f}, "
            "or None for no limit.",
            {"timeout": _shown(timeout)},
        )


def check_cap(cap: object, whose: str) -> None:
    """Raise TerminalError INVALID for a number of forms that cannot be. `None` can: no limit."""
    if cap is not None and (not isinstance(cap, int) or isinstance(cap, bool) or cap < 0):
        raise TerminalError(
            "INVALID",
            f"The cap of {whose} is {_shown(cap)}; it is a whole number of forms from 0 on, or None for no limit.",
            {"cap": _shown(cap)},
        )


def _shown(value: object) -> str:
    """A few words for it: a number may have any number of digits, and Python refuses to print more than 4,300."""
    if isinstance(value, int | float) and abs(value) > LONGEST:
        return "a number beyond all bounds"
    return repr(value)[:100]
