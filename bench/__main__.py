"""`python -m bench NAME [--json]`: measure the figures of a subject and hold them against their goals.

`--json` prints one object a line: `figure`, `value`, `unit`, `ratio`, `goal`, `met`. A goal in `c` bounds the ratio,
every other one the value in its unit. Ends with 1 if a goal was not met or a figure could not be measured, with 2 if
there is no such subject.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.goals import SUBJECTS, Goal, load_goals
from bench.harness import Measured, declared, measure
from bench.limits import raise_descriptor_limit

_MISSING = Measured(None, None, "no function declares it")


def main(arguments: list[str]) -> int:
    """Run the command with these arguments and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure figures against their goals.")
    parser.add_argument("name", metavar="NAME", help=f"one of: {', '.join(SUBJECTS)}")
    parser.add_argument("--json", action="store_true", help="one object a line")
    options = parser.parse_args(arguments)
    name: str = options.name
    if name not in SUBJECTS:
        parser.error(f"there is no subject {name!r}; there are: {', '.join(SUBJECTS)}")
    module = f"bench.{name}"
    if importlib.util.find_spec(module) is None:
        built = [other for other in SUBJECTS if importlib.util.find_spec(f"bench.{other}") is not None]
        parser.error(f"{name!r} is not measured yet; there are: {', '.join(built) or 'none yet'}")
    raise_descriptor_limit()
    goals, figures = load_goals(name), declared(module)
    aimless = [figure for figure in figures if figure not in goals]
    if aimless:
        parser.error(f"bench/goals.toml has no goal for {', '.join(aimless)}")
    measured = dict.fromkeys(goals, _MISSING) | measure(figures)
    print_ = _print_json if options.json else _print_table
    print_(measured, goals)
    return 0 if all(_met(measured[figure], goal) for figure, goal in goals.items()) else 1


def _met(measured: Measured, goal: Goal) -> bool:
    return measured.value is not None and goal.met(measured.value, measured.ratio)


def _print_json(measured: dict[str, Measured], goals: dict[str, Goal]) -> None:
    for figure, (value, ratio, failure) in measured.items():
        goal = goals[figure]
        row = {"figure": figure, "value": _rounded(value), "unit": goal.unit, "ratio": _rounded(ratio)}
        print(json.dumps(row | {"goal": goal.bound, "met": _met(measured[figure], goal)}), flush=True)
        if failure is not None:
            print(f"{figure}: {failure}", file=sys.stderr)


def _print_table(measured: dict[str, Measured], goals: dict[str, Goal]) -> None:
    table = Table("figure", "value", "ratio", "goal", "met")
    for column in table.columns[1:3]:
        column.justify = "right"
    for figure, (value, ratio, failure) in measured.items():
        met = Text("yes") if _met(measured[figure], goals[figure]) else Text("no", style="red")
        if failure is not None:
            met.append(f": {failure}")
        table.add_row(figure, _shown(value), _shown(ratio), str(goals[figure]), met)
    Console().print(table)


def _rounded(number: float | None) -> float | None:
    """Six digits are more than a median of five rounds knows."""
    return None if number is None else float(f"{number:.6g}")


def _shown(number: float | None) -> str:
    return "" if number is None else f"{number:,.4g}" if abs(number) < 1000 else f"{number:,.0f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
