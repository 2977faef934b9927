"""Forms by themselves: what checking a whole record costs."""

from __future__ import annotations

import time

from bench.harness import rate, workload
from greenroom.protocol.forms import evaluate_form, parse_form

TEN = workload("ten-field")
RECORDS = 20_000


@rate("forms/evaluate-10")
def evaluate() -> float:
    """Records per second, each a valid answer to ten fields with twenty rules, checked from scratch."""
    schema = parse_form(TEN["schema"])
    assert schema is not None, "the workload is a sound schema"
    assert evaluate_form(schema, TEN["valid"]) == []
    assert evaluate_form(schema, TEN["invalid"]) != []
    values = TEN["valid"]
    start = time.perf_counter()
    for _ in range(RECORDS):
        evaluate_form(schema, values)
    return RECORDS / (time.perf_counter() - start)
