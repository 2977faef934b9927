"""What a stress run comes to, and how a Hypothesis state machine is run as one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol, cast

import hypothesis
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

__all__ = ["NAMES", "Failure", "Outcome", "Run", "Stress", "available", "load", "machine"]

NAMES = (
    "terminals",
    "waits",
    "workflows",
    "trees",
    "kills",
    "gateway",
    "queries",
    "workspace",
    "pipeline",
    "soak",
)
"""Every name the command may be given; the ones that are built have a module here."""


class Failure(NamedTuple):
    """One thing that went wrong: the seed that finds it again, and the shrunken steps that lead to it."""

    seed: int
    steps: str


class Outcome(NamedTuple):
    """How many examples were played, and what failed in them."""

    examples: int
    failures: list[Failure]


Run = Callable[[int, int], Outcome]
"""(examples, seed) -> outcome"""


class Stress(Protocol):
    """What a module of this package exposes."""

    SUITE: int
    run: Run


def available() -> list[str]:
    """The names that have a module, in the order of `NAMES`."""
    here = Path(__file__).parent
    return [name for name in NAMES if (here / f"{name}.py").is_file()]


def load(name: str) -> Stress:
    """The module of this name. Raises LookupError, naming what there is, if it does not exist (yet)."""
    built = available()
    if name not in built:
        why = "is not built yet" if name in NAMES else "does not exist"
        raise LookupError(f"the stress run {name!r} {why}; there are: {', '.join(built) or 'none yet'}")
    return cast("Stress", importlib.import_module(f"{__package__}.{name}"))


def machine(kind: type[RuleBasedStateMachine], *, steps: int = 50) -> Run:
    """Run a state machine, at most `steps` rules an example, without a database: a seed decides everything."""

    def run(examples: int, seed: int) -> Outcome:
        played = 0

        class Counted(kind):  # type: ignore[misc, valid-type]  # a class is a valid base; mypy cannot know which
            def __init__(self) -> None:
                nonlocal played
                played += 1
                super().__init__()

        Counted.__name__ = Counted.__qualname__ = kind.__name__
        settings = hypothesis.settings(
            max_examples=examples,
            stateful_step_count=steps,
            database=None,
            derandomize=False,
            deadline=None,
            print_blob=False,
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
        )
        try:
            run_state_machine_as_test(hypothesis.seed(seed)(Counted), settings=settings)
        except Exception as failed:
            # Shrinking replays examples, so that the count is no longer one of examples.
            return Outcome(min(played, examples), [Failure(seed, _steps(leaf)) for leaf in _leaves(failed)])
        return Outcome(min(played, examples), [])

    return run


def _leaves(failed: Exception) -> Iterator[Exception]:
    """Hypothesis raises one bug as it is and several as a group; a group of one bug's own making has notes."""
    if isinstance(failed, ExceptionGroup) and not _notes(cast("ExceptionGroup[Exception]", failed)):
        for leaf in cast("ExceptionGroup[Exception]", failed).exceptions:
            yield from _leaves(leaf)
    else:
        yield failed


def _steps(failed: Exception) -> str:
    return "\n".join([*_notes(failed), f"{type(failed).__name__}: {failed}"])


def _notes(failed: Exception) -> list[str]:
    notes: list[str] = getattr(failed, "__notes__", [])
    return notes
