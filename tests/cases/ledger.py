"""The lines that tests must hold, and what has become of each given the results of the tests that are marked for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

__all__ = ["Digest", "Line", "Result", "Standing", "load_ledger", "standing"]

_FILE = Path(__file__).parent.parent / "cases.toml"

Line = tuple[str, int]
"""A digest and a number in it, from 1."""


class Later(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers that are not due before a capability is there: `"7"` or `"22-28"`."""

    capability: str
    numbers: list[str]

    def __iter__(self) -> Iterator[int]:
        for span in self.numbers:
            first, _, last = span.partition("-")
            yield from range(int(first), int(last or first) + 1)


class Digest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many lines a digest has and which of them are not due yet."""

    lines: int
    later: list[Later] = []

    def __post_init__(self) -> None:
        numbers = [number for later in self.later for number in later]
        if len(set(numbers)) < len(numbers) or not set(numbers) <= set(range(1, self.lines + 1)):
            raise ValueError(f"the numbers under `later` must be lines from 1 to {self.lines}, each once")

    @property
    def due(self) -> frozenset[int]:
        """The numbers that must be held now."""
        return frozenset(range(1, self.lines + 1)).difference(*self.later)


class Result(NamedTuple):
    """One test, or one parameter set of one: `failure` is None if it passed, else why it does not hold its lines."""

    test: str
    failure: str | None


class Standing(NamedTuple):
    """What the lines of one digest come to. A line is failing if any of its tests is, whether it is due or not."""

    digest: str
    lines: int
    held: list[int]
    missing: list[int]
    failing: dict[int, list[Result]]
    later: list[int]
    overdue: bool

    def __str__(self) -> str:
        told = [f"{self.digest}: {len(self.held)}/{self.lines}, {len(self.later)} later"]
        if self.missing:
            told.append(f"  missing: {', '.join(map(str, self.missing))}")
        for number, results in self.failing.items():
            told.extend(f"  failing: {number} by {result.test}: {result.failure}" for result in results)
        return "\n".join(told)


def load_ledger(file: Path = _FILE) -> dict[str, Digest]:
    """The digests by name. A malformed file raises `msgspec.ValidationError` and names the place."""
    return msgspec.toml.decode(file.read_bytes(), type=dict[str, Digest])


def standing(name: str, digest: Digest, results: Mapping[Line, Sequence[Result]]) -> Standing:
    """What the lines of a digest come to.

    A line is held if it has tests and all of them passed. One without tests is missing if it is due, else later; one
    with a test that did not pass is failing. It is overdue if a due line is missing or failing.
    """
    failing: dict[int, list[Result]] = {}
    held: list[int] = []
    untested: list[int] = []
    for number in range(1, digest.lines + 1):
        tests = results.get((name, number), ())
        failed = [result for result in tests if result.failure is not None]
        if failed:
            failing[number] = failed
        else:
            (held if tests else untested).append(number)
    missing = [number for number in untested if number in digest.due]
    later = [number for number in untested if number not in digest.due]
    overdue = bool(missing) or not digest.due.isdisjoint(failing)
    return Standing(name, digest.lines, held, missing, failing, later, overdue)
