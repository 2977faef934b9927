"""Runs a file of recorded cases through an area and judges every answer."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import signal
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, cast

import trio
import trio.testing

from tests.conformance import areas
from tests.conformance.comparison import difference
from tests.conformance.departures import Departure, Rules
from tests.conformance.expansion import expand
from tests.conformance.recorded import beside
from tests.conformance.translations import translate

__all__ = ["CASE_SECONDS", "Case", "Ops", "Report", "Verdict", "known_areas", "load_area", "run_case", "run_file"]

CASE_SECONDS = 10.0
"""What a case may take by the wall clock."""

Ops = Mapping[str, Callable[[Any], Any | Awaitable[Any]]]


class Case(NamedTuple):
    """One line of a file."""

    id: str
    op: str
    input: Any
    output: Any

    def given(self) -> Any:
        """A fresh input, written out and with greenroom's names."""
        return translate(self.op, "input", expand(self.input))

    def record(self) -> Any:
        """The output, with greenroom's names."""
        return translate(self.op, "output", expand(self.output))


class Verdict(NamedTuple):
    """What became of one case. `failure` is None unless it failed; `departure` is the entry that it used, if one."""

    id: str
    failure: str | None
    departure: Departure | None = None


class Report(NamedTuple):
    """One verdict a line of the file, in order."""

    verdicts: list[Verdict]

    @property
    def failed(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.failure is not None]

    @property
    def departed(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.departure is not None]

    @property
    def passed(self) -> int:
        return len(self.verdicts) - len(self.failed) - len(self.departed)


def known_areas() -> list[str]:
    """The areas that have a module, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(areas.__path__))


def load_area(area: str) -> Ops:
    """The ops of an area. Raises LookupError, naming the known ones, if it has no module."""
    if area not in known_areas():
        raise LookupError(f"there is no area {area!r}; there are: {', '.join(known_areas()) or 'none yet'}")
    ops: Ops = importlib.import_module(f"{areas.__name__}.{area}").OPS
    return ops


def run_file(ops: Ops, path: Path, rules: Rules) -> Report:
    """Run every line of the file at `path`.

    Lines end at LF only: a string may hold any other separator raw.
    """
    token = beside.set(path.resolve().parent)
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            return Report([_run_line(ops, number, line, rules) for number, line in enumerate(lines, start=1)])
    finally:
        beside.reset(token)


def _run_line(ops: Ops, number: int, line: str, rules: Rules) -> Verdict:
    try:
        case = json.loads(line)
        told = Case(str(case["id"]), str(case["op"]), case["input"], case["output"])
    except (ValueError, TypeError, LookupError) as refused:
        return Verdict(f"line {number}", f"is no case: {type(refused).__name__}: {refused}")
    return run_case(ops, told, rules)


def run_case(ops: Ops, case: Case, rules: Rules) -> Verdict:
    """Run one case. It passed, or it failed with a reason, or it departed as an entry says."""
    if case.op not in ops:
        return Verdict(case.id, f"unknown op {case.op!r}; the area knows: {', '.join(sorted(ops))}")
    alarm = _Alarm()
    try:
        with alarm.after(CASE_SECONDS):
            answer = _answer(ops[case.op], case.given(), alarm)
        if alarm.fired:
            raise _Overdue
        return _judged(case, answer, rules)
    except BaseException as crash:
        if isinstance(crash, KeyboardInterrupt):
            raise
        if alarm.fired:
            return Verdict(case.id, f"took more than {CASE_SECONDS:g} s")
        return Verdict(case.id, f"crashed: {_told(crash)}")


def _judged(case: Case, answer: Any, rules: Rules) -> Verdict:
    # The op may have changed the input that it was given; this is a fresh one.
    given, record = case.given(), case.record()
    members = rules.members(case.op)
    failure = difference(record, answer, members)
    if failure is None:
        return Verdict(case.id, None)
    for departure in rules.departures:
        if departure.applies(case.op, given) and not difference(departure.expected(given, record), answer, members):
            return Verdict(case.id, None, departure)
    return Verdict(case.id, failure)


def _answer(op: Callable[[Any], Any], given: Any, alarm: _Alarm) -> Any:
    if not inspect.iscoroutinefunction(op):
        return op(given)

    async def interruptible() -> Any:
        with trio.CancelScope() as scope:
            token = trio.lowlevel.current_trio_token()
            alarm.first = lambda: token.run_sync_soon(scope.cancel)
            return await op(given)

    return trio.run(interruptible, clock=trio.testing.MockClock())


class _Overdue(BaseException):
    """Raised into a case that has used up its seconds; no `except Exception` of the code under test may catch it."""


class _Alarm:
    """Interrupts whatever runs, on whatever clock, once its wall time is over.

    A trio run is cancelled first: an exception out of a signal handler may hit trio itself, and would leave its tasks
    behind. One that goes on is interrupted all the same, a second later.
    """

    def __init__(self) -> None:
        self.fired = False
        self.first: Callable[[], None] | None = None

    @contextmanager
    def after(self, seconds: float) -> Generator[None]:
        """Interrupt the block after this much time, and again each second until it is left."""
        before = signal.signal(signal.SIGALRM, self._overdue)
        signal.setitimer(signal.ITIMER_REAL, seconds, 1)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _overdue(self, signum: int, frame: FrameType | None) -> None:
        again, self.fired = self.fired, True
        if self.first is None or again:
            raise _Overdue
        self.first()


def _told(crash: BaseException) -> str:
    text = "; ".join(f"{type(leaf).__name__}: {leaf}" for leaf in _leaves(crash))
    return text.encode("ascii", "backslashreplace").decode().replace("\n", " ")


def _leaves(crash: BaseException) -> Iterator[BaseException]:
    if isinstance(crash, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", crash).exceptions:
            yield from _leaves(inner)
    else:
        yield crash
