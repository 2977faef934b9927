"""Authority: rules that say which tool calls of an agent may run. It asks no person."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

from msgspec import Struct

from greenroom.protocol.tools import ToolCall

__all__ = ["DEFAULT_ZONE", "Authority", "Rule", "Verdict"]

DEFAULT_ZONE: Final = "default"


@final
class Verdict(Struct, frozen=True, omit_defaults=True):
    """Whether a call may run, in which zone that was decided, and why."""

    zone: str = DEFAULT_ZONE
    allowed: bool = True
    reason: str | None = None


@final
class Rule(Struct, frozen=True):
    """Decides all calls that `match` says yes to."""

    zone: str
    match: Callable[[ToolCall], bool]
    allowed: bool = True
    reason: str | None = None


@final
class Authority:
    """The first rule that matches a call decides it, the fallback those that none matches."""

    __slots__ = ("fallback", "rules")

    def __init__(self, rules: Iterable[Rule] = (), fallback: Verdict | None = None) -> None:
        self.rules: Final = tuple(rules)
        self.fallback: Final = fallback or Verdict()

    def evaluate(self, call: ToolCall) -> Verdict:
        """What is decided of the call. What a rule raises comes through, and an agent denies the call then."""
        for rule in self.rules:
            if rule.match(call):
                return Verdict(rule.zone, rule.allowed, rule.reason)
        return self.fallback
