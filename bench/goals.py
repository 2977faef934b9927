"""What each figure must reach, as `goals.toml` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

__all__ = ["SUBJECTS", "Goal", "load_goals"]

SUBJECTS = {
    "mailbox": ("mailbox", "actor"),
    "waits": ("waits",),
    "forms": ("forms",),
    "terminals": ("terminals",),
    "memory": ("memory",),
    "gateway": ("gateway",),
    "workflows": ("workflows",),
    "journal": ("journal",),
    "agents": ("agents",),
    "mcp": ("mcp",),
    "data": ("database", "relation", "workspace", "infer", "endpoint"),
    "pipeline": ("pipeline", "jobs", "log"),
}
"""The names that the command takes, each with the first parts of the figures that it prints."""

_FILE = Path(__file__).parent / "goals.toml"


class Goal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Exactly one bound. A goal in `c` bounds the ratio to the baseline, every other one the value in its unit."""

    unit: Literal["c", "checkpoints", "times", "KB", "ms", "s", "rows/s", "microseconds", "statements"]
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("a goal takes one of `at_least` and `at_most`")

    @property
    def bound(self) -> float:
        """The number of the goal."""
        bound = self.at_most if self.at_least is None else self.at_least
        assert bound is not None, "checked when the goal was read"
        return bound

    def met(self, value: float, ratio: float | None) -> bool:
        """Is a measured figure within the bound? One that has not what is bounded is not."""
        measured = ratio if self.unit == "c" else value
        if measured is None:
            return False
        return measured <= self.bound if self.at_least is None else measured >= self.bound

    def __str__(self) -> str:
        return f"{'<=' if self.at_least is None else '>='} {self.bound:g} {self.unit}"


def load_goals(subject: str, file: Path = _FILE) -> dict[str, Goal]:
    """The goals of the figures that a subject prints, in the order of the file."""
    entries: dict[str, Any] = msgspec.toml.decode(file.read_bytes())
    goals = msgspec.convert(entries, dict[str, Goal])
    return {figure: goal for figure, goal in goals.items() if figure.split("/")[0] in SUBJECTS[subject]}
