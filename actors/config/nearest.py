"""The word that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["nearest"]

_NEAR: Final = 3
"""How many letters a word may differ from the one that was meant."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that differs in the fewest letters, if in no more than three."""
    near = [(distance, each) for each in known if (distance := _distance(word, each)) <= _NEAR]
    return min(near)[1] if near else None


def _distance(one: str, other: str) -> int:
    """How many letters to insert, delete or replace (Levenshtein); more than is near, for words of other lengths."""
    if abs(len(one) - len(other)) > _NEAR:
        return _NEAR + 1
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        before, row[0] = row[0], number
        for place, against in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (letter != against))
    return row[-1]
