"""Random tables, rows and queries, made to meet each other now and then."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

__all__ = ["Example", "Step", "make_example"]

COLUMNS = ("name", "Name", "price", "n", "ok", "select", 'a"b', "\U0001f600", "_x")
# fmt: off
TEXTS = (
    "", "a", "A", "ab", "aB%", "b_b", "5", "15", " 7 ", "1e2", "0x10", "-3.5", "true", "0", "a\0b", "a\0c", "é", "É",
    "ß", "Σας", "\ue000", "\uffee", "\U0001f600", "a\U0001f600b", "x*y?", "[a]", "line\nend", "\u2028",
    "9007199254740993", "'; DROP TABLE t; --", '"', "%", "_", "*", "a%b", "%a%", "_a", "?o*", "%_%",
)
NUMBERS = (
    0, -0.0, 1, -1, 2, 5, 15, 7.0, 0.1, 0.25, -2.5, 1e-7, 1e20, 1e21, 1e300, -1e300, 2**53, 2**53 + 1, 2**62, -(2**63),
    2**63, 10**25,
)
OPERATORS = (
    "equals", "not", "above", "below", "from", "to", "between", "any", "none", "like", "glob", "starts", "ends",
    "absent", "present",
)
# fmt: on
FUNCTIONS = ("count", "sum", "average", "minimum", "maximum")
ALPHABET = "abAB%_*?[]5.\0é\ue000\U0001f600"


class Step(NamedTuple):
    """One call of a table: its name and its arguments."""

    call: str
    arguments: tuple[Any, ...]


class Example(NamedTuple):
    """A table, `{column: (type, optional)}` with its keys in `id`; the columns of its index; and what is done to it."""

    columns: Mapping[str, tuple[str, bool]]
    indexed: str
    steps: tuple[Step, ...]


def make_example(random: Random) -> Example:
    """Some rows first, then changes and queries."""
    columns = {"id": (random.choice(("string", "string", "integer", "number")), False)}
    for name in random.sample(COLUMNS, random.randint(1, len(COLUMNS))):
        columns[name] = (random.choice(("string", "integer", "number", "boolean")), random.random() < 0.7)
    maker = _Maker(random, columns)
    steps = [maker.write() for _ in range(random.randint(0, 12))]
    steps += [maker.step() for _ in range(random.randint(1, 20))]
    return Example(columns, random.choice([*columns]), tuple(steps))


class _Maker:
    def __init__(self, random: Random, columns: Mapping[str, tuple[str, bool]]) -> None:
        self.random = random
        self.columns = columns
        self.keys: list[Any] = []

    def step(self) -> Step:
        random = self.random
        kind = random.choice(("write", "update", "remove", "get", "keys", "records", "records", "count", "aggregate"))
        match kind:
            case "write":
                return self.write()
            case "update":
                changes = {random.choice([*self.columns, "ghost"]): self.value() for _ in range(random.randint(0, 3))}
                return Step("update", (self.key(), changes))
            case "remove" | "get":
                return Step(kind, (self.key(),))
            case "keys":
                return Step("keys", ())
            case "aggregate":
                return Step("aggregate", (random.choice(FUNCTIONS), self.column(), {"conditions": self.conditions()}))
            case _:
                return Step(kind, (self.query(),))

    def write(self) -> Step:
        key = self.fitting("id") if self.random.random() < 0.9 else self.value()
        if not isinstance(key, list):  # a list of keys is another call
            self.keys.append(key)
        row = {"id": key}
        for name, (_, optional) in self.columns.items():
            if name != "id" and not (optional and self.random.random() < 0.3):
                row[name] = self.fitting(name) if self.random.random() < 0.95 else self.value()
        return Step(self.random.choice(("add", "add", "set")), (row,))

    def query(self) -> dict[str, Any]:
        random = self.random
        query: dict[str, Any] = {"conditions": self.conditions()}
        if random.random() < 0.5:
            directions = ("ascending", "descending")
            query["order"] = [
                {"column": self.column(), "direction": random.choice(directions)} for _ in range(random.randint(0, 3))
            ]
        if random.random() < 0.3:
            query["limit"] = random.randint(0, 6)
        if random.random() < 0.3:
            query["offset"] = random.randint(0, 4)
        return query

    def conditions(self) -> list[dict[str, Any]]:
        many = self.random.random() < 0.03
        return [
            self.condition(many) for _ in range(self.random.randint(100, 200) if many else self.random.randint(0, 5))
        ]

    def condition(self, plain: bool) -> dict[str, Any]:
        random = self.random
        operator = random.choice(OPERATORS)
        column = self.column()
        size = random.randint(0, 3)
        if operator in ("any", "none") and not plain and random.random() < 0.1:
            size = random.randint(490, 900)
        values = [self.fitting(column) if random.random() < 0.6 else self.operand() for _ in range(size)]
        condition: dict[str, Any] = {"column": column, "operator": operator, "values": values}
        if random.random() < 0.7:
            condition["connector"] = random.choice(("and", "or"))
        return condition

    def column(self) -> str:
        return self.random.choice([*self.columns, "ghost"])

    def key(self) -> Any:
        if self.keys and self.random.random() < 0.8:
            return self.random.choice(self.keys)
        return self.random.choice((self.text(), self.number()))

    def fitting(self, column: str) -> Any:
        """A value that the column takes, if there is such a column."""
        match self.columns.get(column, ("string",))[0]:
            case "string":
                return self.text()
            case "integer":
                return self.random.choice((self.random.randint(-9, 9), 2**62, -(2**63)))
            case "number":
                return self.random.choice(
                    (self.random.randint(-9, 9), 2.5, -0.5, round(self.random.uniform(-9, 9), 3), 1e21)
                )
            case _:
                return self.random.choice((True, False))

    def value(self) -> Any:
        """Whatever might be written."""
        return self.random.choice((self.text(), self.number(), True, False, None, [1], {"a": 1}))

    def operand(self) -> Any:
        return self.value()

    def text(self) -> str:
        if self.random.random() < 0.7:
            return self.random.choice(TEXTS)
        return "".join(self.random.choices(ALPHABET, k=self.random.randint(0, 6)))

    def number(self) -> int | float:
        if self.random.random() < 0.5:
            return self.random.choice(NUMBERS)
        return self.random.choice((self.random.randint(-20, 20), round(self.random.uniform(-100, 100), 2)))
