"""The statuses of tasks, and how those of phases and workflows follow from them.

Only a task's status is a fact. A phase and a workflow are what their parts make them, unless somebody has pinned them
by skipping or stopping them as a whole (`Override`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

__all__ = [
    "TERMINAL",
    "TRANSITIONS",
    "Move",
    "Override",
    "Status",
    "derive_phase_status",
    "derive_workflow_status",
    "is_terminal",
]

Status: TypeAlias = Literal["pending", "running", "completed", "failed", "skipped", "stopped"]
Override: TypeAlias = Literal["completed", "skipped", "stopped"]
Move: TypeAlias = Literal["start", "complete", "fail", "skip", "stop"]

TERMINAL: Final[frozenset[Status]] = frozenset({"completed", "failed", "skipped", "stopped"})
"""The statuses that nothing leads out of."""

TRANSITIONS: Final[Mapping[Status, Mapping[Move, Status]]] = {
    "pending": {"start": "running", "skip": "skipped", "stop": "stopped"},
    "running": {
        "start": "running",
        "complete": "completed",
        "fail": "failed",
        "skip": "skipped",
        "stop": "stopped",
    },
    "completed": {},
    "failed": {},
    "skipped": {},
    "stopped": {},
}
"""Where each move leads a task from each status; a move that is not there is refused. Starting again is a retry."""


def is_terminal(status: Status) -> bool:
    """Whether a node with this status is done for good."""
    return status in TERMINAL


def derive_phase_status(tasks: Iterable[Status]) -> Status:
    """The status that the tasks of a phase give it. A failure shows once every task is done, whatever `bail` says."""
    present = set(tasks)
    if present <= {"pending"}:
        return "pending"
    if not present <= TERMINAL:
        return "running"
    if "failed" in present:
        return "failed"
    if "stopped" in present:
        return "stopped"
    return "completed" if "completed" in present else "skipped"


def derive_workflow_status(phases: Iterable[tuple[Status, bool]]) -> Status:
    """The status that phases give their workflow, each as its status and whether it bails.

    A failed phase counts as completed unless it bails. Phases without tasks are to be left out (unless they are
    pinned): they never run, so that a workflow would wait for them for ever.
    """
    present = set(phases)
    if ("failed", True) in present:
        return "failed"
    statuses = {status for status, _ in present}
    if statuses <= {"pending"}:
        return "pending"
    if not statuses <= TERMINAL:
        return "running"
    if "stopped" in statuses:
        return "stopped"
    return "completed" if statuses & {"completed", "failed"} else "skipped"
