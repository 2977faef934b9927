"""A database table in plain Python: the rules of writing and querying as they are said, and nothing done fast."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from greenroom.protocol.text import exact_number, number_text, parse_number

__all__ = ["MISSING", "Model", "Refused", "matches"]

MISSING = object()
"""The cell that is not there, and the operand that was not given."""


class Refused(Exception):
    """What a table refuses, by the code that it refuses it with."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Model:
    """`columns` maps a name to (type, optional), in declared order."""

    def __init__(self, columns: Mapping[str, tuple[str, bool]], primary: str) -> None:
        self.columns = dict(columns)
        self.primary = primary
        self.rows: dict[Any, dict[str, Any]] = {}

    # ---------------------------------------------------------------- writing

    def read(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The row as it would be stored."""
        stored: dict[str, Any] = {}
        for name, (kind, optional) in self.columns.items():
            if name in row:
                stored[name] = read_cell(kind, row[name])
            elif not optional or name == self.primary:
                raise Refused("VALIDATION")
        return stored

    def add(self, row: Mapping[str, Any]) -> Any:
        stored = self.read(row)
        key = stored[self.primary]
        if key in self.rows:
            raise Refused("CONFLICT")
        self.rows[key] = stored
        return key

    def set(self, row: Mapping[str, Any]) -> Any:
        stored = self.read(row)
        self.rows[stored[self.primary]] = stored
        return stored[self.primary]

    def get(self, key: Any) -> dict[str, Any] | None:
        return self.rows.get(self.find(key))

    def find(self, key: Any) -> Any:
        """The stored key that a key finds, or MISSING: `"5"` is not 5, but 5.0 is."""
        if rank(key) not in (3, 4):
            raise Refused("VALIDATION")
        found = [stored for stored in self.rows if same(stored, key)]
        return found[0] if found else MISSING

    def update(self, key: Any, changes: Mapping[str, Any]) -> bool:
        found = self.find(key)
        if found is MISSING:
            return False
        if self.primary in changes and not same(changes[self.primary], found):
            raise Refused("VALIDATION")
        self.rows[found] = self.read({**self.rows[found], **changes})
        return True

    def remove(self, key: Any) -> bool:
        return self.rows.pop(self.find(key), None) is not None

    def keys(self) -> list[Any]:
        return sorted(self.rows, key=sort_key)

    # ---------------------------------------------------------------- querying

    def matching(self, conditions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The rows that meet the conditions, in key order."""
        return [self.rows[key] for key in self.keys() if self.meets(self.rows[key], conditions)]

    def meets(self, row: Mapping[str, Any], conditions: Sequence[Mapping[str, Any]]) -> bool:
        met = True
        for index, condition in enumerate(conditions):
            holds = matches(row.get(condition["column"], MISSING), condition["operator"], condition["values"])
            if index == 0:
                met = holds
            elif condition.get("connector", "and") == "and":
                met = met and holds
            else:
                met = met or holds
        return met

    def records(self, query: Mapping[str, Any]) -> list[dict[str, Any]]:
        rows = self.matching(query.get("conditions", []))

        def compare(one: dict[str, Any], other: dict[str, Any]) -> int:
            for term in query.get("order", []):
                told = compare_values(one.get(term["column"], MISSING), other.get(term["column"], MISSING))
                if told:
                    return told if term["direction"] == "ascending" else -told
            return compare_values(one[self.primary], other[self.primary])

        rows.sort(key=functools.cmp_to_key(compare))
        start = query.get("offset", 0)
        return rows[start : start + query["limit"] if "limit" in query else None]

    def aggregate(self, function: str, column: str, conditions: Sequence[Mapping[str, Any]]) -> Any:
        """The value, or MISSING."""
        rows = self.matching(conditions)
        if function == "count":
            return len(rows)
        found = [number for row in rows if (number := as_number(row.get(column, MISSING))) is not None]
        if not found:
            return MISSING
        if function == "minimum":
            return min(found)
        if function == "maximum":
            return max(found)
        total: Any = 0
        for number in found:
            total = total + number
        return total if function == "sum" else total / len(found)


# -------------------------------------------------------------------- cells


def read_cell(kind: str, value: Any) -> Any:
    """What a written value is stored as."""
    readers: dict[str, Callable[[Any], Any]] = {
        "string": read_string,
        "number": read_number,
        "integer": read_integer,
        "boolean": read_boolean,
    }
    return readers[kind](value)


def read_string(value: Any) -> str:
    if type(value) is str:
        return value
    if type(value) in (int, float) and (type(value) is float or exact_number(value) is not None):
        return number_text(value)
    raise Refused("VALIDATION")


def read_number(value: Any) -> Any:
    if type(value) is int and exact_number(value) is not None:
        return float(value)
    if type(value) is float:
        return value
    if type(value) is str and (number := parse_number(value)) is not None:
        return float(number)
    raise Refused("VALIDATION")


def read_integer(value: Any) -> int:
    if type(value) is str and re.fullmatch(r"[+-]?\d{1,19}", value.strip(), re.ASCII):
        value = int(value)
    if type(value) is not int:
        value = read_number(value)
        if value != value // 1:
            raise Refused("VALIDATION")
        value = int(value)
    if not -(2**63) <= value <= 2**63 - 1:
        raise Refused("VALIDATION")
    return int(value)


def read_boolean(value: Any) -> bool:
    for told, meant in (("true", True), ("1", True), (1, True), ("false", False), ("0", False), (0, False)):
        if value == told:
            return meant
    raise Refused("VALIDATION")


def as_number(cell: Any) -> Any:
    """The number that an aggregate reads in a cell, or None."""
    if type(cell) is str:
        return int(cell) if re.fullmatch(r"[+-]?\d+", cell, re.ASCII) else parse_number(cell)
    return cell if type(cell) in (int, float) else None


# -------------------------------------------------------------------- comparing


def rank(value: Any) -> int:
    """absent < null < booleans < numbers < strings < anything else"""
    kinds: list[type | tuple[type, ...]] = [type(None), bool, (int, float), str]
    if value is MISSING:
        return 0
    return next((index for index, kind in enumerate(kinds, start=1) if isinstance(value, kind)), 5)


def sort_key(value: Any) -> Any:
    """Within a rank: text goes by UTF-16 units, and what is beyond 64 bits is a double."""
    if isinstance(value, str):
        return rank(value), value.encode("utf-16-be")
    return rank(value), float(value) if isinstance(value, int) and abs(value) > 2**63 else value


def compare_values(one: Any, other: Any) -> int:
    if rank(one) != rank(other):
        return -1 if rank(one) < rank(other) else 1
    if rank(one) in (0, 1):
        return 0
    return int(sort_key(one) > sort_key(other)) - int(sort_key(one) < sort_key(other))


def same(one: Any, other: Any) -> bool:
    return rank(one) == rank(other) and (one is other or sort_key(one) == sort_key(other))


def matches(cell: Any, operator: str, values: Sequence[Any]) -> bool:
    """Whether a cell meets one condition."""
    first = values[0] if values else MISSING
    second = values[1] if len(values) > 1 else MISSING
    plain: dict[str, Callable[[], bool]] = {
        "equals": lambda: same(cell, first),
        "not": lambda: not same(cell, first),
        "above": lambda: compare_values(cell, first) > 0,
        "below": lambda: compare_values(cell, first) < 0,
        "from": lambda: compare_values(cell, first) >= 0,
        "to": lambda: compare_values(cell, first) <= 0,
        "between": lambda: compare_values(cell, first) >= 0 and compare_values(cell, second) <= 0,
        "any": lambda: any(same(cell, value) for value in values),
        "none": lambda: not any(same(cell, value) for value in values),
        "absent": lambda: cell is MISSING,
        "present": lambda: cell is not MISSING,
    }
    if operator in plain:
        return plain[operator]()
    if not (isinstance(cell, str) and isinstance(first, str)):
        return False
    if operator == "starts":
        return cell[: len(first)] == first
    if operator == "ends":
        return first == "" or cell[-len(first) :] == first
    if operator == "like":
        return wildcard(units(cell.lower()), units(first.lower()), "%", "_")
    return wildcard(units(cell), units(first), "*", "?")


def units(text: str) -> list[int]:
    encoded = text.encode("utf-16-le", "surrogatepass")
    return [encoded[at] | encoded[at + 1] << 8 for at in range(0, len(encoded), 2)]


def wildcard(text: Sequence[int], pattern: Iterable[int], run: str, one: str) -> bool:
    """By the set of places in the text that the pattern so far may have come to."""
    places = {0}
    for unit in pattern:
        if unit == ord(run):
            places = set(range(min(places), len(text) + 1)) if places else places
        else:
            places = {at + 1 for at in places if at < len(text) and (unit == ord(one) or text[at] == unit)}
    return len(text) in places
