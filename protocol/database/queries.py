"""Queries as data: conditions, order and a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.protocol.database.rows import Layout
from greenroom.protocol.database.values import ABSENT, Rank, invalid, operand, rank_of
from greenroom.protocol.text import utf16_length

__all__ = [
    "MAX_CONDITIONS",
    "MAX_PATTERN",
    "MAX_VALUES",
    "Aggregate",
    "Comparison",
    "Condition",
    "Connector",
    "Direction",
    "Operator",
    "Order",
    "Query",
    "among",
    "clamp_query",
    "compile_conditions",
    "normalize_query",
    "resolve_limit",
    "unknown_columns",
]

MAX_CONDITIONS: Final = 200
MAX_VALUES: Final = 10_000
"""How many values the list of one condition may have."""
MAX_PATTERN: Final = 1024
"""How many UTF-16 units a pattern may have."""

Operator: TypeAlias = Literal[
    "equals",
    "not",
    "above",
    "below",
    "from",
    "to",
    "between",
    "any",
    "none",
    "like",
    "glob",
    "starts",
    "ends",
    "absent",
    "present",
]
Connector: TypeAlias = Literal["and", "or"]
Direction: TypeAlias = Literal["ascending", "descending"]
Aggregate: TypeAlias = Literal["count", "sum", "average", "minimum", "maximum"]


class Condition(Struct, frozen=True):
    """What a column's cell has to be."""

    column: Annotated[str, Meta(description="The column; a cell that is not there counts as absent.")]
    operator: Operator
    values: Annotated[
        list[Any],
        Meta(
            description="The operands, always as a list: one for most operators, two for between, any number for any"
            " and none, an empty list for absent and present."
        ),
    ]
    connector: Annotated[
        Connector,
        Meta(description="Joins it to the result of all conditions before it, from left to right; and if left out."),
    ] = "and"


class Order(Struct, frozen=True):
    """A column to sort by; absent cells come first when ascending."""

    column: str
    direction: Direction


class Query(Struct, frozen=True):
    """Which rows, in which order, and how many of them."""

    conditions: Annotated[list[Condition], Meta(description="What the rows have to meet; all rows if left out.")] = []
    order: Annotated[list[Order], Meta(description="Columns to sort by; what is left, and no order, goes by key.")] = []
    limit: Annotated[int, Meta(ge=0, description="How many rows at most.")] | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=0, description="How many rows to pass over first.")] = 0


class Comparison(Struct, frozen=True):
    """A condition on a column that the table has, its operands fit to be compared with the column's cells.

    `ranks` tells the kind of each operand; the one that a missing operand stands for is absent.
    """

    column: str
    rank: Rank
    operator: Operator
    values: tuple[Any, ...]
    ranks: tuple[Rank, ...]
    joined_by: Connector


def normalize_query(query: Query | Mapping[str, Any] | None) -> Query:
    """The query that a record spells; none is the one for all rows. Raises `DatabaseError` VALIDATION."""
    if query is None:
        return Query()
    try:
        return msgspec.convert(msgspec.to_builtins(query) if isinstance(query, Query) else query, Query)
    except (msgspec.ValidationError, TypeError) as error:
        raise invalid(f"this is no query: {error}") from None


def resolve_limit(limit: int | UnsetType, cap: int) -> int:
    """How many rows a call gets that asks for `limit` of them where `cap` is the most."""
    return max(0, cap if limit is UNSET else min(limit, cap))


def clamp_query(query: Query, cap: int) -> tuple[Query, int]:
    """The query that gets one row more than the call is to be given, and how many it is to be given."""
    limit = resolve_limit(query.limit, cap)
    return msgspec.structs.replace(query, limit=limit + 1), limit


def unknown_columns(query: Query, layout: Layout) -> list[str]:
    """The columns that the query names and the table has not, in order of mention."""
    named = [*(condition.column for condition in query.conditions), *(term.column for term in query.order)]
    return list(dict.fromkeys(name for name in named if name not in layout.position))


def compile_conditions(conditions: list[Condition], layout: Layout) -> list[Comparison]:
    """The conditions, checked and ready for comparing. A column that the table has not has the rank of what is absent.

    Raises `DatabaseError` VALIDATION: too many conditions or values, a pattern that is too long, a number or a text
    that no cell could be compared with.
    """
    if len(conditions) > MAX_CONDITIONS:
        raise invalid(f"a query has at most {MAX_CONDITIONS} conditions, not {len(conditions)}")
    return [_compile(condition, layout) for condition in conditions]


def among(column: str, values: Iterable[Any], layout: Layout) -> Comparison:
    """The condition that a cell is one of the values, any number of them. Those that no cell of the column can be are
    left out, so that there may be none left."""
    rank = layout.rank(column)
    kept = tuple({value: None for value in values if rank is not None and rank_of(value) is rank})
    return Comparison(column, rank or Rank.ABSENT, "any", kept, (rank or Rank.ABSENT,) * len(kept), "and")


def _compile(condition: Condition, layout: Layout) -> Comparison:
    column, operator = condition.column, condition.operator
    where = f"table {layout.name!r}: the operand of {operator} on {column!r}"
    wanted = _OPERANDS.get(operator, 1)
    given = condition.values if wanted is None else condition.values[:wanted]
    if len(given) > MAX_VALUES:
        raise invalid(f"{where} has {len(given)} values, and may have {MAX_VALUES}", column=column)
    rank = layout.rank(column)
    exact = layout.is_exact(column)
    values: list[Any] = [operand(value, exact=exact, where=where) for value in given]
    values += [ABSENT] * ((wanted or 0) - len(values))
    if operator in ("like", "glob") and rank is Rank.STRING and isinstance(values[0], str):
        length = utf16_length(values[0])
        if length > MAX_PATTERN:
            raise invalid(f"{where} has {length} characters, and may have {MAX_PATTERN}", column=column)
    ranks = tuple(map(rank_of, values))
    return Comparison(
        column, Rank.ABSENT if rank is None else rank, operator, tuple(values), ranks, condition.connector
    )


_OPERANDS: Final[Mapping[str, int | None]] = {"absent": 0, "present": 0, "between": 2, "any": None, "none": None}
"""How many operands an operator reads; all of them for `None`, and one where nothing is said."""
