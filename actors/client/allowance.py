"""So many a second, and some more at once."""

from __future__ import annotations

from math import inf
from typing import final

__all__ = ["Allowance"]


@final
class Allowance:
    """What may be spent fills up as time goes by, to an upper bound (a token bucket)."""

    __slots__ = ("_at", "_left")

    def __init__(self) -> None:
        self._left = 0.0
        self._at = -inf

    def spend(self, now: float, rate: float, burst: float) -> bool:
        """Whether one more is within `rate` a second, of which `burst` may come at once. `now` is in seconds."""
        self._left = min(burst, self._left + (now - self._at) * rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
