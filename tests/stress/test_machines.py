"""Every stress run that exists, with the number of examples that the suite has time for."""

from __future__ import annotations

import pytest

from tests.stress.outcome import available, load

SEED = 0


@pytest.mark.parametrize("name", available())
def test_a_stress_run_finds_no_failure(name: str) -> None:
    stress = load(name)
    outcome = stress.run(stress.SUITE, SEED)
    assert outcome.examples > 0, "a run that plays nothing shows nothing"
    for failure in outcome.failures:
        pytest.fail(f"seed {failure.seed}:\n{failure.steps}", pytrace=False)
