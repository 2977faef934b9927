"""`python -m tests.conformance AREA [FILE]`: does greenroom answer as recorded?

Prints the failing ids, one a line with the reason, and last `AREA: N passed, M failed, K departures`. Ends with 1 if a
case failed, with 2 if there is no such area or file.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.conformance.departures import load_rules
from tests.conformance.recorded import CASES
from tests.conformance.runner import known_areas, load_area, run_file


def main(arguments: list[str]) -> int:
    """Run the command with these arguments and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description="Run recorded cases of an area.")
    parser.add_argument("area", metavar="AREA", help=f"one of: {', '.join(known_areas()) or 'none yet'}")
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, help="default: the copy kept in the repository")
    options = parser.parse_args(arguments)
    path = options.file or CASES / f"{options.area}.jsonl"
    try:
        ops = load_area(options.area)
    except LookupError as unknown:
        parser.error(str(unknown.args[0]))
    if not path.is_file():
        parser.error(f"there is no file {path}")
    report = run_file(ops, path, load_rules())
    for verdict in report.failed:
        print(f"{verdict.id}: {verdict.failure}")
    print(
        f"{options.area}: {report.passed} passed, {len(report.failed)} failed, {len(report.departed)} departures",
        flush=True,
    )
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
