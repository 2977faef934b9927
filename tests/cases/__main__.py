"""`python -m tests.cases [DIGEST ...]`: which lines of the specifications are held?

Prints for each digest `terminals: 24/39, 15 later` (held, all, neither held nor due), with the missing and the failing
numbers. Ends with 1 only if a line that is due is missing or failing, with 2 if there is no such digest.
"""

from __future__ import annotations

import argparse
import sys

from tests.cases.collect import run_marked
from tests.cases.ledger import load_ledger, standing


def main(arguments: list[str]) -> int:
    """Run the command with these arguments and return its exit code."""
    ledger = load_ledger()
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description="Which lines are held by a test?")
    parser.add_argument("digests", metavar="DIGEST", nargs="*", help=f"default: all of {', '.join(ledger)}")
    names: list[str] = parser.parse_args(arguments).digests or list(ledger)
    unknown = [name for name in names if name not in ledger]
    if unknown:
        parser.error(f"there is no digest {', '.join(unknown)}; there are: {', '.join(ledger)}")
    collected = run_marked(names)
    for trouble in collected.troubles:
        print(trouble, file=sys.stderr)
    standings = [standing(name, ledger[name], collected.results) for name in names]
    for told in standings:
        print(told, flush=True)
    return 1 if any(told.overdue for told in standings) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
