"""Conditions as SQL.

A stored cell is absent (NULL) or of its column's type, so how an operand's kind stands to the column's is settled here,
and SQL compares nothing but values of one type. Every operand is a parameter.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

from greenroom.actors.database.sqlite.names import quoted
from greenroom.protocol.database import Comparison, Connector, Rank

__all__ = ["BOUND", "Sql", "where"]

BOUND: Final = 500
"""Values of a list up to which each is a parameter of its own; SQLite counts parameters, so more of them are one."""

_PARAMETERS: Final = 16_000
"""How many parameters a statement may come to; half of what SQLite takes as it is usually built."""

_NESTED: Final = 20
"""How many levels of parentheses an expression may have; SQLite's parser has room for a hundred symbols."""

Sql: TypeAlias = tuple[str, list[Any]]
Part: TypeAlias = tuple[Connector, str, list[Any]]
"""A condition, and what joins it to those before it."""

_TRUE: Final[Sql] = ("1", [])
_FALSE: Final[Sql] = ("0", [])


def where(conditions: Sequence[Comparison]) -> Sql:
    """All conditions as one expression, joined from left to right; one that is true if there are none."""
    parts: list[Part] = []
    room = _PARAMETERS
    for condition in conditions:
        text, parameters = _condition(condition, room)
        room -= len(parameters)
        parts.append((condition.joined_by, f"({text})", parameters))
    if not parts:
        return _TRUE
    turns = sum(before == "or" and part[0] == "and" for (before, _, _), part in pairwise(parts[1:]))
    return _nested(parts) if turns <= _NESTED else _listed(parts)


def _nested(parts: Sequence[Part]) -> Sql:
    """Parentheses only where `and` follows `or`: AND binds tighter, and SQLite's parser takes few levels of them."""
    (_, text, parameters), *rest = parts
    last = "and"
    for joined_by, part, more in rest:
        if joined_by == "and" and last == "or":
            text = f"({text})"
        text, parameters = f"{text} {joined_by.upper()} {part}", [*parameters, *more]
        last = joined_by
    return f"({text})", parameters


def _listed(parts: Sequence[Part]) -> Sql:
    """The same without levels: from the last condition on, the first that settles the whole does so."""
    (_, first, parameters), *rest = parts
    arms = [
        f"WHEN {part} THEN 1" if joined_by == "or" else f"WHEN {part} IS NOT TRUE THEN 0"
        for joined_by, part, _ in reversed(rest)
    ]
    bound = [value for _, _, more in reversed(rest) for value in more]
    return f"CASE {' '.join(arms)} ELSE {first} END", bound + parameters


def _condition(condition: Comparison, room: int) -> Sql:
    column = "NULL" if condition.rank is Rank.ABSENT else quoted(condition.column)
    values, ranks, rank = condition.values, condition.ranks, condition.rank
    match condition.operator:
        case "equals":
            return _equals(column, rank, values[0], ranks[0])
        case "not":
            return _negated(_equals(column, rank, values[0], ranks[0]))
        case "above":
            return _above(column, rank, values[0], ranks[0])
        case "from":
            return _from(column, rank, values[0], ranks[0])
        case "below":
            return _below(column, rank, values[0], ranks[0])
        case "to":
            return _to(column, rank, values[0], ranks[0])
        case "between":
            low, above = _from(column, rank, values[0], ranks[0])
            high, below = _to(column, rank, values[1], ranks[1])
            return f"({low}) AND ({high})", above + below
        case "any":
            return _any(column, rank, condition, room)
        case "none":
            return _negated(_any(column, rank, condition, room))
        case "absent":
            return f"{column} IS NULL", []
        case "present":
            return f"{column} IS NOT NULL", []
        case "like" | "glob" | "starts" | "ends":
            if rank is not Rank.STRING or ranks[0] is not Rank.STRING:
                return _FALSE
            return f"{column} IS NOT NULL AND greenroom_{condition.operator}(?, {column})", [values[0]]


def _negated(sql: Sql) -> Sql:
    text, parameters = sql
    return f"NOT ({text})", parameters


def _equals(column: str, rank: Rank, value: Any, kind: Rank) -> Sql:
    if kind is Rank.ABSENT:
        return f"{column} IS NULL", []
    return (f"{column} IS NOT NULL AND {column} = ?", [value]) if kind is rank else _FALSE


def _above(column: str, rank: Rank, value: Any, kind: Rank) -> Sql:
    if kind is Rank.ABSENT or kind < rank:
        return f"{column} IS NOT NULL", []
    return (f"{column} > ?", [value]) if kind is rank else _FALSE


def _from(column: str, rank: Rank, value: Any, kind: Rank) -> Sql:
    if kind is Rank.ABSENT:
        return _TRUE
    if kind < rank:
        return f"{column} IS NOT NULL", []
    return (f"{column} >= ?", [value]) if kind is rank else _FALSE


def _below(column: str, rank: Rank, value: Any, kind: Rank) -> Sql:
    if kind is Rank.ABSENT:
        return _FALSE
    if kind < rank:
        return f"{column} IS NULL", []
    return (f"{column} IS NULL OR {column} < ?", [value]) if kind is rank else _TRUE


def _to(column: str, rank: Rank, value: Any, kind: Rank) -> Sql:
    if kind < rank or kind is Rank.ABSENT:
        return f"{column} IS NULL", []
    return (f"{column} IS NULL OR {column} <= ?", [value]) if kind is rank else _TRUE


def _any(column: str, rank: Rank, condition: Comparison, room: int) -> Sql:
    values = [value for value, kind in zip(condition.values, condition.ranks, strict=True) if kind is rank]
    if not values or rank is Rank.ABSENT:
        return _FALSE
    if len(values) <= min(BOUND, room):
        return f"{column} IS NOT NULL AND {column} IN ({', '.join('?' * len(values))})", values
    if any(map(_needs_care, values)):
        # SQLite ends JSON text at NUL, and reads digits into a double in its own way.
        values = [json.dumps(value) for value in values]
        return f"{column} IS NOT NULL AND {column} IN (SELECT greenroom_value(value) FROM json_each(?))", [
            json.dumps(values)
        ]
    return f"{column} IS NOT NULL AND {column} IN (SELECT value FROM json_each(?))", [json.dumps(values)]


def _needs_care(value: Any) -> bool:
    return "\0" in value if isinstance(value, str) else isinstance(value, float)
