"""The names by which tasks own what outlasts their process: durable asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol
from urllib.parse import quote, unquote

from greenroom.protocol.workflows import Task, Workflow

__all__ = ["LetGo", "is_over", "owner_of_run", "owner_of_task", "run_of"]

_KIND: Final = "workflow:"


class LetGo(Protocol):
    """Forgets what an owner, and those beneath it, have left; it must neither wait nor raise."""

    def __call__(self, owner: str, *, over: Callable[[str], bool] | None = None) -> object:
        """`over(owner)` says which ones are meant, where not all are."""
        ...


def owner_of_run(workflow_id: str) -> str:
    """`workflow:<id>`, percent-encoded, so that no run seems to be beneath another one."""
    return _KIND + quote(workflow_id, safe="")


def owner_of_task(task: Task) -> str:
    """`workflow:<id>/<phase>/<task>`, the same in every attempt and after every recovery."""
    phase = task.phase
    return "/".join((owner_of_run(phase.workflow.id), quote(phase.id, safe=""), quote(task.id, safe="")))


def is_over(owner: str, workflow: Workflow) -> bool:
    """Whether this owner is a task of the workflow that is over, or none that it has."""
    _, *ids = map(unquote, owner.split("/"))
    phase = workflow.phase(ids[0]) if len(ids) == 2 else None
    task = None if phase is None else phase.task(ids[1])
    return task is None or task.terminal


def run_of(owner: str) -> str | None:
    """The id of the run that this owner is, or is beneath; `None` for any other."""
    return unquote(owner.removeprefix(_KIND).partition("/")[0]) if owner.startswith(_KIND) else None
