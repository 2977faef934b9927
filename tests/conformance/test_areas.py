"""Every area with the recorded cases that are kept for it."""

from __future__ import annotations

import pytest

from tests.conformance.departures import load_rules
from tests.conformance.recorded import CASES
from tests.conformance.runner import known_areas, load_area, run_file


@pytest.mark.parametrize("area", known_areas())
def test_an_area_answers_as_recorded(area: str) -> None:
    report = run_file(load_area(area), CASES / f"{area}.jsonl", load_rules())
    assert report.verdicts, "a file without cases shows nothing"
    failed = [f"{verdict.id}: {verdict.failure}" for verdict in report.failed]
    assert failed == []
