"""What a provider has to give back with a tool call, and that is no part of a conversation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, Generic, TypeVar, final

__all__ = ["Recollection"]

T = TypeVar("T")

_LAST: Final = 4096
"""How many calls are remembered. What is older is sent without it, which a backend may refuse."""


@final
class Recollection(Generic[T]):
    """Things by the ids of the calls that they led to."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, T] = OrderedDict()

    def keep(self, ids: Iterable[str], what: T) -> None:
        """Remember it for these calls."""
        for id in ids:
            self._kept[id] = what
            self._kept.move_to_end(id)
        while len(self._kept) > _LAST:
            self._kept.popitem(last=False)

    def of(self, ids: Iterable[str]) -> T | None:
        """What is remembered for the first of these calls that anything is remembered for."""
        return next((self._kept[id] for id in ids if id in self._kept), None)
