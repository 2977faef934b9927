"""When a failed actor begins anew, how often, and after how long."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Literal, final

import msgspec
import trio

from greenroom.protocol.errors import ActorError

if TYPE_CHECKING:
    from greenroom.runtime.actor import Actor

__all__ = ["Restart", "Supervision", "unused"]


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
        numbers = (self.intensity, self.within, self.backoff, self.backoff_limit)
        if (
            not all(type(number) in (int, float) and isfinite(number) for number in numbers)
            or type(self.intensity) is not int
            or self.intensity < 0
            or self.within <= 0
            or not 0 <= self.backoff <= self.backoff_limit
            or self.when not in ("never", "on_failure", "always")
        ):
            raise ValueError(
                "A restart rule needs `never`, `on_failure` or `always`, a whole intensity >= 0 and, in finite "
                "seconds, within > 0 and 0 <= backoff <= backoff_limit"
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

    def wants(self, failed: bool) -> bool:
        """Does the rule want a restart after such an end (whatever the intensity says)?"""
        return self.rule.when == "always" or (self.rule.when == "on_failure" and failed)

    def take_one(self, now: float) -> float | None:
        """Count a restart that is wanted at trio time `now`, and say how many seconds to wait before it.

        None: the intensity is exceeded.
        """
        while self._times and now - self._times[0] >= self.rule.within:
            self._times.popleft()
        if len(self._times) >= self.rule.intensity:
            return None
        delay = min(self.rule.backoff * 2.0 ** min(len(self._times), 64), self.rule.backoff_limit)
        self._times.append(now)
        self.restarts += 1
        return float(delay)

    def exceeded(self, path: str, failure: Exception | None) -> ActorError:
        """What the parent fails by when `take_one` allows no more."""
        rule = self.rule
        error = ActorError(
            "RESTARTS",
            f"{path} ended more than {rule.intensity} times within {rule.within:g} s"
            + (f", at last by {type(failure).__name__}: {failure}" if failure is not None else "")
            + ". Its parent fails with it.",
            {"path": path, "intensity": rule.intensity, "within": rule.within},
        )
        error.__cause__ = failure
        return error


def unused(actor: Actor) -> Actor:
    """The actor, if it has not lived anywhere before; else a ValueError: it would live in two places or two times.

    TypeError for what is no actor: it came from a factory, which may be anything.
    """
    if not hasattr(actor, "handlers"):
        raise TypeError(f"{type(actor).__name__} is no Actor; spawn one, or a function that makes one")
    if hasattr(actor, "ref"):
        raise ValueError(f"The {type(actor).__name__} at {actor.ref.path} was spawned before; make another one")
    return actor
