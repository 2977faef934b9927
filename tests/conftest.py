"""What holds for every test: marks name lines that exist, and Hypothesis draws the same examples in every run."""

from __future__ import annotations

import gc
import os

import hypothesis
import pytest

from tests.cases.collect import marked_lines
from tests.cases.ledger import load_ledger

# The suite must not fail on a change that did not cause it; `python -m tests.stress` is what looks further. A deadline
# would measure the machine.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None)
hypothesis.settings.load_profile("suite")

# Tests start some hundred processes. Where Python may not keep what it compiles, each would compile greenroom anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many a test waits for processes that it has started."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no core is idle at the end. Refuse a mark that names no line: it would
    hold nothing, and its test would seem to."""
    items.sort(key=lambda item: "test_a_stress_run_finds_no_failure" not in item.name)
    ledger = load_ledger()
    for item in items:
        for name, number in marked_lines(item):
            if name not in ledger:
                raise LookupError(f"{item.nodeid}: there is no {name!r}; there are: {', '.join(ledger)}")
            if not 1 <= number <= ledger[name].lines:
                raise LookupError(f"{item.nodeid}: {name} has lines 1 to {ledger[name].lines}, not {number}")


def pytest_collection_finish() -> None:
    """Take what collecting has made out of the collector's sight: it stays, and looking through it costs a third of a
    second whenever a test collects what it has left behind."""
    gc.collect()
    gc.freeze()
