"""How a figure is measured. The decorators declare one; `measure` does the rounds of all that a module declares."""

from __future__ import annotations

import gc
import importlib
import inspect
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import trio

__all__ = [
    "ROUNDS",
    "SECONDS",
    "Measure",
    "Measured",
    "cost",
    "declared",
    "measure",
    "memory",
    "milliseconds",
    "rate",
    "times",
    "workload",
]

ROUNDS = 5
SECONDS = 57.0
"""What all rounds of one command may take; the rest of its minute is for starting and printing."""

_HERE = Path(__file__).parent
_CHECKPOINTS = 15_000

Number = Callable[[], float] | Callable[[], Awaitable[float]]


class Measure(Protocol):
    """What a function calls when what is to be measured is there; the process ends then, unless it was not the last."""

    def __call__(self, *, last: bool = True) -> None: ...


Build = Callable[[int, Measure], Awaitable[None]]
F = TypeVar("F", bound=Callable[..., Any])


class Sample(NamedTuple):
    """One round of one figure. `ratio` is None where nothing was measured beside it."""

    value: float
    ratio: float | None


class Measured(NamedTuple):
    """The medians of a figure's rounds; and why there are none, or fewer of them than there should be."""

    value: float | None
    ratio: float | None
    failure: str | None = None


class Figure(NamedTuple):
    """A declared figure: how one round is done within so many seconds, and how often."""

    round: Callable[[float], Sample]
    rounds: int = ROUNDS


_declared: dict[str, dict[str, Figure]] = {}


def declared(module: str) -> Mapping[str, Figure]:
    """The figures that a module of this package declares, by name."""
    importlib.import_module(module)
    return _declared.get(module, {})


def rate(name: str) -> Callable[[F], F]:
    """Declare a figure by a function that returns operations per second. Its ratio is that to checkpoints."""

    def of(function: F) -> F:
        def one(seconds: float) -> Sample:
            before = _checkpoints_per_second()
            value = _number(function, seconds)
            return Sample(value, value / statistics.fmean((before, _checkpoints_per_second())))

        return _declare(name, function, Figure(one))

    return of


def cost(name: str) -> Callable[[F], F]:
    """Declare a figure by a function that returns the seconds of one operation. Its value is in checkpoints."""

    def of(function: F) -> F:
        def one(seconds: float) -> Sample:
            before = _checkpoints_per_second()
            taken = _number(function, seconds)
            value = taken * statistics.fmean((before, _checkpoints_per_second()))
            return Sample(value, value)

        return _declare(name, function, Figure(one))

    return of


def milliseconds(name: str) -> Callable[[F], F]:
    """Declare a figure by a function that returns the seconds of one operation. Its value is in milliseconds, its ratio
    in checkpoints."""

    def of(function: F) -> F:
        def one(seconds: float) -> Sample:
            before = _checkpoints_per_second()
            taken = _number(function, seconds)
            return Sample(taken * 1000, taken * statistics.fmean((before, _checkpoints_per_second())))

        return _declare(name, function, Figure(one))

    return of


def times(name: str, *, against: Number | None = None) -> Callable[[F], F]:
    """Declare a figure by how many times the number of `against` a function's number is, or by that number alone."""

    def of(function: F) -> F:
        def one(seconds: float) -> Sample:
            value = _number(function, seconds)
            if against is not None:
                value /= _number(against, seconds)
            return Sample(value, None if against is None else value)

        return _declare(name, function, Figure(one))

    return of


def memory(name: str, *, count: int) -> Callable[[F], F]:
    """Declare a figure by a function that builds so many things and then says that they are to be measured."""

    def of(function: F) -> F:
        def one(seconds: float) -> Sample:
            command = [sys.executable, "-m", "bench.fresh", function.__module__, function.__name__, str(count)]
            done = subprocess.run(command, cwd=_HERE.parent, capture_output=True, text=True, timeout=seconds)
            if done.returncode:
                raise RuntimeError(f"the measured process ended with {done.returncode}: {done.stderr.strip()[-500:]}")
            return Sample(int(done.stdout) / 1024 / count, None)

        return _declare(name, function, Figure(one, rounds=1))

    return of


def workload(name: str) -> dict[str, Any]:
    """The fixed input `workloads/<name>.json`: a `schema`, a `valid` and an `invalid` answer."""
    inputs: dict[str, Any] = json.loads((_HERE / "workloads" / f"{name}.json").read_text(encoding="utf-8"))
    return inputs


def measure(figures: Mapping[str, Figure], seconds: float = SECONDS) -> dict[str, Measured]:
    """Do the rounds of all figures in turn, so that what disturbs the machine disturbs all of them alike.

    A figure whose function raises has no medians but a failure. Where the seconds do not suffice for all rounds, as on
    a busy machine, the medians are those of fewer, and the failure says of how many.
    """
    end = time.monotonic() + seconds
    samples: dict[str, list[Sample]] = {name: [] for name in figures}
    failures: dict[str, str] = {}
    for number in range(ROUNDS):
        for name, figure in figures.items():
            if name in failures or number >= figure.rounds:
                continue
            try:
                left = end - time.monotonic()
                if left <= 0:
                    raise trio.TooSlowError
                samples[name].append(figure.round(left))
            except (trio.TooSlowError, subprocess.TimeoutExpired):
                failures[name] = f"{len(samples[name])} of its rounds ended within {seconds:g} s"
            except Exception as raised:
                failures[name] = f"{type(raised).__name__}: {raised}"
                samples[name].clear()
    return {name: _medians(samples[name], failures.get(name)) for name in figures}


def _medians(samples: list[Sample], failure: str | None) -> Measured:
    if not samples:
        return Measured(None, None, failure)
    value = statistics.median(sample.value for sample in samples)
    if not math.isfinite(value):
        return Measured(None, None, f"its value is {value}")
    ratios = [sample.ratio for sample in samples if sample.ratio is not None]
    return Measured(value, statistics.median(ratios) if ratios else None, failure)


def _declare(name: str, function: F, figure: Figure) -> F:
    figures = _declared.setdefault(function.__module__, {})
    if name in figures:
        raise ValueError(f"the figure {name!r} is declared twice")
    figures[name] = figure
    return function


def _checkpoints_per_second() -> float:
    async def checkpoints() -> float:
        start = time.perf_counter()
        for _ in range(_CHECKPOINTS):
            await trio.lowlevel.checkpoint()
        return _CHECKPOINTS / (time.perf_counter() - start)

    gc.collect()
    return trio.run(checkpoints)


def _number(function: Callable[[], Any], seconds: float) -> float:
    """What one call returns, from a clean heap; the collector's thresholds are put back as they were."""
    thresholds = gc.get_threshold()
    gc.collect()
    try:
        if not inspect.iscoroutinefunction(function):
            return float(function())

        async def limited() -> float:
            with trio.fail_after(seconds):
                return float(await function())

        return trio.run(limited)
    finally:
        gc.set_threshold(*thresholds)
