"""Queries over rows that are at hand: for storage that cannot find rows by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any, Final

from greenroom.protocol.database.queries import Comparison, Operator, Order
from greenroom.protocol.database.values import ABSENT, Rank, Row, rank_of
from greenroom.protocol.database.wildcards import compile_glob, compile_like

__all__ = ["arranged", "compare", "compile_filter"]

Check = Callable[[Any, Rank], bool]
"""Whether a cell of a rank meets one condition."""


def compile_filter(conditions: Sequence[Comparison]) -> Callable[[Mapping[str, Any]], bool]:
    """What tells whether a row meets the conditions."""
    checks = [(condition.joined_by, condition.column, _check(condition)) for condition in conditions]

    def meets(row: Mapping[str, Any]) -> bool:
        met = True
        for index, (joined_by, column, check) in enumerate(checks):
            if index and met is (joined_by == "or"):
                continue  # it cannot change the result any more
            cell = row.get(column, ABSENT)
            met = check(cell, rank_of(cell))
        return met

    return meets


def arranged(rows: Iterable[Row], order: Sequence[Order], primary: str) -> list[Row]:
    """The rows in an order, and where that says nothing by key."""

    def difference(one: Row, other: Row) -> int:
        for term in order:
            told = compare(one.get(term.column, ABSENT), other.get(term.column, ABSENT))
            if told:
                return told if term.direction == "ascending" else -told
        return compare(one[primary], other[primary])

    return sorted(rows, key=cmp_to_key(difference))


def compare(one: Any, other: Any) -> int:
    """Below 0 if one value stands before another, above 0 if after it. Text goes by UTF-16 units."""
    rank, against = rank_of(one), rank_of(other)
    if rank != against:
        return rank - against
    if rank <= Rank.NULL or one == other:
        return 0
    if rank is Rank.STRING:
        one, other = one.encode("utf-16-be"), other.encode("utf-16-be")
    return 1 if one > other else -1


def _check(condition: Comparison) -> Check:
    values, ranks = condition.values, condition.ranks
    match condition.operator:
        case "absent":
            return lambda cell, rank: rank is Rank.ABSENT
        case "present":
            return lambda cell, rank: rank is not Rank.ABSENT
        case "any" | "none":
            listed = set(zip(ranks, map(_hashable, values), strict=True))
            wanted = condition.operator == "any"
            return lambda cell, rank: ((rank, cell) in listed) is wanted
        case "between":
            low, high = values
            return lambda cell, rank: compare(cell, low) >= 0 and compare(cell, high) <= 0
        case "like" | "glob" | "starts" | "ends":
            return _text_check(condition.operator, values[0], ranks[0])
        case _:
            value, holds = values[0], _ORDERED[condition.operator]
            return lambda cell, rank: holds(compare(cell, value))


_ORDERED: Final[Mapping[Operator, Callable[[int], bool]]] = {
    "equals": lambda told: told == 0,
    "not": lambda told: told != 0,
    "above": lambda told: told > 0,
    "from": lambda told: told >= 0,
    "below": lambda told: told < 0,
    "to": lambda told: told <= 0,
}


def _text_check(operator: str, value: Any, kind: Rank) -> Check:
    if kind is not Rank.STRING:
        return lambda cell, rank: False
    matches: Callable[[str], bool]
    if operator == "like":
        matches = compile_like(value)
    elif operator == "glob":
        matches = compile_glob(value)
    elif operator == "starts":
        matches = lambda text: text.startswith(value)  # noqa: E731  # one of four
    else:
        matches = lambda text: text.endswith(value)  # noqa: E731
    return lambda cell, rank: rank is Rank.STRING and matches(cell)


def _hashable(value: Any) -> Any:
    """The value itself, or what no cell equals."""
    return value if rank_of(value) < Rank.OTHER else ABSENT
