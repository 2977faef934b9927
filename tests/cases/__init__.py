"""Which numbered lines of the specifications are held by a test; `python -m tests.cases [DIGEST ...]` tells.

A test says what it holds with `@pytest.mark.case("terminals", 17)`; for a row of the requirements the name is that of
its section, `@pytest.mark.case("reports/asking", 3)`. It may hold several lines, and a line may need several tests.

- `ledger`: the lines there are (`tests/cases.toml`), and what they come to given the results of tests
- `collect`: finds and runs the marked tests
"""
