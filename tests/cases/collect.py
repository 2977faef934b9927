"""Finds the tests that are marked for some lines, runs them, and tells what each came to."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cases.ledger import Line, Result

__all__ = ["Collected", "marked_lines", "run_marked"]

_TESTS = Path(__file__).parent.parent


class Collected(NamedTuple):
    """The results by line, and what kept tests from being collected or run at all."""

    results: dict[Line, list[Result]]
    troubles: list[str]


def marked_lines(item: pytest.Item) -> Iterator[Line]:
    """The lines that a test says it holds. A mark of another shape raises TypeError."""
    for mark in item.iter_markers("case"):
        match mark.args:
            case (str() as digest, int() as number) if not mark.kwargs:
                yield digest, number
            case _:
                raise TypeError(f"{item.nodeid}: write pytest.mark.case(digest, number), not case{mark.args}")


def run_marked(digests: Collection[str], root: Path = _TESTS) -> Collected:
    """Run the tests beneath `root` that are marked for a line of these digests, in one run of pytest."""
    files = [str(path) for path in sorted(root.rglob("test_*.py")) if _names(path, digests)]
    if not files:
        return Collected({}, [])
    watcher = _Watcher(digests)
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        # In this process (-n 0): the watcher has to see what is collected.
        options = ["-q", "-n", "0", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
        code = pytest.main([*options, *files], [watcher])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        watcher.troubles.append(f"pytest ended with {code!r}:\n{output.getvalue()}")
    return watcher.collected()


def _names(path: Path, digests: Collection[str]) -> bool:
    """Could this file hold such a mark? A look at its text spares importing all the others."""
    text = path.read_text(encoding="utf-8")
    return "mark.case(" in text and any(f'"{digest}"' in text for digest in digests)


class _Watcher:
    """A pytest plugin that keeps the marked tests of some digests and notes how each ended."""

    def __init__(self, digests: Collection[str]) -> None:
        self._digests = digests
        self._lines: dict[str, list[Line]] = {}
        self._failures: dict[str, str | None] = {}
        self.troubles: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept: list[pytest.Item] = []
        for item in items:
            lines = [line for line in marked_lines(item) if line[0] in self._digests]
            if lines:
                kept.append(item)
                self._lines[item.nodeid] = lines
                self._failures[item.nodeid] = "did not run"
        items[:] = kept

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.troubles.append(f"could not be collected: {report.nodeid}: {_reason(report.longreprtext)}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            told = _reason(report.longreprtext) or f"was {report.outcome}"
            self._failures[report.nodeid] = f"{report.outcome} in {report.when}: {told}"
        elif report.when == "call":
            self._failures[report.nodeid] = None

    def collected(self) -> Collected:
        results: dict[Line, list[Result]] = {}
        for test, lines in self._lines.items():
            for line in lines:
                results.setdefault(line, []).append(Result(test, self._failures[test]))
        return Collected(results, self.troubles)


def _reason(text: str) -> str:
    """The first line of what pytest tells that says what was wrong (pytest marks it with an E), else the last."""
    lines = text.strip().splitlines() or [""]
    return next((line[1:].strip() for line in lines if line.startswith("E  ")), lines[-1])
