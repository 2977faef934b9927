"""When a failed actor begins anew, how often, and after how long."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, final

import msgspec
import trio

if TYPE_CHECKING:
    from greenroom.runtime.actor import Actor

__all__ = ["Restart", "Supervision"]


class Restart(msgspec.Struct, frozen=True):
    """The restart rule of a child, in OTP's words.

    `never`: its end is its end. `on_failure`: a failed one begins anew. `always`: one that ended by itself does too.
    A stopped one never does.
    """

    when: Literal["never", "on_failure", "always"] = "never"
    intensity: int = 3
    """How many restarts are allowed `within` so many seconds; one more, and the parent fails (ActorError RESTARTS)."""
    within: float = 5.0
    backoff: float = 0.05
    """Seconds before the first restart of a row; each further one doubles it, up to `backoff_limit`."""
    backoff_limit: float = 5.0

    def __post_init__(self) -> None:
        if self.intensity < 0 or self.within <= 0 or self.backoff < 0 or self.backoff_limit < self.backoff:
            raise ValueError(
                "A restart rule needs intensity >= 0, within > 0 and 0 <= backoff <= backoff_limit (all but the first in seconds)"
            )


@final
class Supervision:
    """How one restartable child is made anew, and its restarts of late."""

    __slots__ = ("_times", "factory", "pause", "restarts", "rule")

    def __init__(self, rule: Restart, factory: Callable[[], Actor]) -> None:
        self.rule = rule
        self.factory = factory
        self.restarts = 0
        self.pause: trio.CancelScope | None = None
        """Around the backoff that is under way: a stop ends it."""
        self._times: deque[float] = deque()

    def allows(self, failed: bool) -> bool:
        """Does the rule want a restart after such an end (whatever the intensity says)?"""
        return self.rule.when == "always" or (self.rule.when == "on_failure" and failed)

    def take_one(self, now: float) -> float | None:
        """The seconds to wait before a restart that is due at trio time `now`; None: the intensity is exceeded."""
        while self._times and now - self._times[0] >= self.rule.within:
            self._times.popleft()
        if len(self._times) >= self.rule.intensity:
            return None
        delay = min(self.rule.backoff * 2 ** len(self._times), self.rule.backoff_limit)
        self._times.append(now)
        self.restarts += 1
        return float(delay)
