"""`python -m tests.stress NAME [--examples N] [--seed S]`: look for a failure until N examples held.

A failure prints the seed and the shrunken steps. The last line is `NAME: N examples, M failures`. Ends with 1 if
something failed, with 2 if there is no such run.
"""

from __future__ import annotations

import argparse
import random
import sys

from tests.stress.outcome import NAMES, load


def main(arguments: list[str]) -> int:
    """Run the command with these arguments and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description="Look for a failure.")
    parser.add_argument("name", metavar="NAME", help=f"one of: {', '.join(NAMES)}")
    parser.add_argument("--examples", metavar="N", type=int, help="default: as many as the test suite plays")
    parser.add_argument("--seed", metavar="S", type=int, help="default: a fresh one")
    options = parser.parse_args(arguments)
    try:
        stress = load(options.name)
    except LookupError as unknown:
        parser.error(str(unknown.args[0]))
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    examples = stress.SUITE if options.examples is None else options.examples
    if examples < 1:
        parser.error("--examples takes a number from 1")
    outcome = stress.run(examples, seed)
    for failure in outcome.failures:
        print(f"failed, seed {failure.seed}:\n{failure.steps}\n")
    print(f"{options.name}: {outcome.examples} examples, {len(outcome.failures)} failures", flush=True)
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
