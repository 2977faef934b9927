"""Random rows and random queries: a table of a database against one in plain Python.

Every fifth example is played over a driver of a program's own, for which queries are worked out row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

import trio

from greenroom.actors.database import Database, Driver, Storage, Table, memory_driver
from greenroom.protocol.errors import DatabaseError
from greenroom.protocol.text import exact_number
from greenroom.runtime.tree import Tree, run_tree
from tests.database.dictdriver import DictDriver
from tests.database.making import Example, Step, make_example
from tests.database.model import MISSING, Model, Refused
from tests.stress.outcome import Failure, Outcome

SUITE = 500

Make = Callable[[], Storage | Driver]


def run(examples: int, seed: int) -> Outcome:
    """Play examples until one fails, and then make that one short."""

    async def play_all() -> Outcome:
        async with run_tree() as tree:
            for number in range(examples):
                example = make_example(Random(f"{seed}/{number}"))
                make: Make = DictDriver if number % 5 == 4 else memory_driver
                if await _difference(tree, make, example) is not None:
                    short = await _shrunken(tree, make, example)
                    told = await _difference(tree, make, short)
                    steps = "\n".join(f"{step.call}{step.arguments!r}" for step in short.steps)
                    return Outcome(number + 1, [Failure(seed, f"{short.columns!r}\n{steps}\n{told}")])
        return Outcome(examples, [])

    return trio.run(play_all)


async def _difference(tree: Tree, make: Make, example: Example) -> str | None:
    """Where table and model part, if they do."""
    columns = {name: {"type": kind, "optional": optional} for name, (kind, optional) in example.columns.items()}
    database = Database(tree, make(), {"t": {"columns": columns}}, indexes={"t": [[example.indexed]]})
    table, model = database.table("t"), Model(example.columns, "id")
    try:
        for step in example.steps:
            meant = _of_model(model, step)
            told = await _of_table(table, step)
            if told == "VALIDATION" and (_is_boundless(meant) or _may_lose_digits(_compared(step))):
                continue
            if _exactly(told) != _exactly(meant):
                return f"it is {told!r}, and should be {meant!r}"
    finally:
        await database.close()
    return None


def _of_model(model: Model, step: Step) -> Any:
    calls: dict[str, Callable[..., Any]] = {
        "records": model.records,
        "count": lambda query: len(model.matching(query["conditions"])),
        "aggregate": lambda function, column, query: model.aggregate(function, column, query["conditions"]),
    }
    try:
        told = calls.get(step.call, getattr(model, step.call, None))(*step.arguments)  # type: ignore[misc]  # one of the two
    except Refused as refused:
        return refused.code
    return None if told is MISSING else told


async def _of_table(table: Table, step: Step) -> Any:
    try:
        return await getattr(table, step.call)(*step.arguments)
    except DatabaseError as error:
        return error.code


async def _shrunken(tree: Tree, make: Make, example: Example) -> Example:
    """An example that fails too, of which nothing more can be left out."""
    shorter = True
    while shorter:
        shorter = False
        for candidate in _shorter(example):
            if await _difference(tree, make, candidate) is not None:
                example, shorter = candidate, True
                break
    return example


def _shorter(example: Example) -> Iterator[Example]:
    for index, step in enumerate(example.steps):
        without = (*example.steps[:index], *example.steps[index + 1 :])
        yield example._replace(steps=without)
        for arguments in _shorter_arguments(step.arguments):
            steps = (*example.steps[:index], step._replace(arguments=arguments), *example.steps[index + 1 :])
            yield example._replace(steps=steps)
    for name in example.columns:
        if name not in ("id", example.indexed):
            yield example._replace(columns={other: kind for other, kind in example.columns.items() if other != name})


def _shorter_arguments(arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for index, argument in enumerate(arguments):
        for shorter in _shorter_value(argument):
            yield (*arguments[:index], shorter, *arguments[index + 1 :])


def _shorter_value(value: Any) -> Iterator[Any]:
    """The value with one thing less in it, at any depth."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield value[:index] + value[index + 1 :]
            for shorter in _shorter_value(item):
                yield [*value[:index], shorter, *value[index + 1 :]]
    elif isinstance(value, dict):
        for name, member in value.items():
            if name not in ("id", "conditions", "column", "operator", "values", "direction"):
                yield {other: kept for other, kept in value.items() if other != name}
            for shorter in _shorter_value(member):
                yield {**value, name: shorter}


def _compared(step: Step) -> Any:
    """What of a call is compared with cells, and not written."""
    return {"add": (), "set": (), "update": step.arguments[:1]}.get(step.call, step.arguments)


def _may_lose_digits(value: Any) -> bool:
    """Whether it holds a number that is refused before anything is compared with it."""
    if isinstance(value, Mapping):
        return any(map(_may_lose_digits, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_may_lose_digits, value))
    return isinstance(value, int) and exact_number(value) is None


def _is_boundless(meant: Any) -> bool:
    """Whether it is a number that is refused since none can be so large."""
    return isinstance(meant, float) and math.isinf(meant)


def _exactly(value: Any) -> Any:
    """Equal only to what is of the same kind: True is not 1, though 1 is 1.0."""
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, dict):
        return {name: _exactly(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_exactly(member) for member in value]
    return value
