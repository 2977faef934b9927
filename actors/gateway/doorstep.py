"""Connections of which nobody knows yet whose they are: so many of them, and then the oldest makes room."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

__all__ = ["Doorstep"]


@final
class Doorstep:
    """Where a connection waits from its beginning, and after each response, until it has said who it is.

    Whoever means it says so at once, so that with more than `most` waiting the one that came first is sent away.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[object, Callable[[], object]] = {}

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def arrive(self, who: object, leave: Callable[[], object]) -> None:
        """`who` begins to wait, or begins anew. `leave` is called if it has to make room, which it then has made."""
        self.depart(who)
        self._waiting[who] = leave
        while len(self._waiting) > self._most:
            self._waiting.pop(next(iter(self._waiting)))()

    def depart(self, who: object) -> None:
        """It is known, or gone; idempotent."""
        self._waiting.pop(who, None)
