"""The journal does what a plain model of it does."""

from __future__ import annotations

import pytest

from tests.journal.model import JournalMachine
from tests.stress.outcome import machine

EXAMPLES = 40


def test_the_journal_is_what_its_model_is() -> None:
    outcome = machine(JournalMachine, steps=30)(EXAMPLES, 0)
    assert outcome.examples == EXAMPLES
    for failure in outcome.failures:
        pytest.fail(f"seed {failure.seed}:\n{failure.steps}", pytrace=False)
