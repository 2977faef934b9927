"""Runs as somebody outside sees them: which there are, how far each is, and whom it waits for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from msgspec import UNSET, structs

from greenroom.actors.workflow.manager import WorkflowManager
from greenroom.actors.workflow.run import Run
from greenroom.actors.workflow.slots import TaskErrand
from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.runs import RunInfo, RunPicture, RunWait
from greenroom.protocol.tree import TreeSnapshot
from greenroom.protocol.workflows import Status

__all__ = ["all_runs", "counted", "find_run", "picture_of", "run_info"]


_NAMED: Final = 20
"""How many known runs a message spells out; its context has them all."""


def run_info(run: Run) -> RunInfo:
    """The run at a glance."""
    tasks = [task for phase in run.workflow.phases for task in phase.tasks]
    return RunInfo(
        id=run.id,
        name=run.workflow.name,
        status=run.status,
        live=not run.over,
        updated=run.workflow.shared.updated,
        tasks=len(tasks),
        over=sum(task.terminal for task in tasks),
    )


async def all_runs(workflows: WorkflowManager, *, status: Collection[Status] | None = None) -> list[RunInfo]:
    """Those under way or remembered in order of their start, then the stored ones; all, or those of these statuses."""
    stored = await workflows.list(status=status)
    here = {run.id: run_info(run) for run in workflows.runs()}
    return [
        *(run for run in here.values() if status is None or run.status in status),
        *(
            RunInfo(id=run.id, name=run.name, status=run.status, updated=run.updated)
            for run in stored
            if run.id not in here
        ),
    ]


async def counted(workflows: WorkflowManager, run: RunInfo) -> RunInfo:
    """The same with its tasks counted, for which a stored run is read whole; as it is if that cannot be read."""
    if run.tasks is not UNSET:
        return run
    try:
        found = run_info(await workflows.look(run.id))
    except WorkflowError:
        return run
    return structs.replace(run, tasks=found.tasks, over=found.over)


async def find_run(workflows: WorkflowManager, id: str, *, may_see: Callable[[str], bool] = lambda _id: True) -> Run:
    """The run of that id, or the record of a stored one; one that must not be seen is as if it were not there.

    Raises `WorkflowError` UNKNOWN that names those that may be, and RESTORE for a row that is no snapshot.
    """
    if may_see(id):
        try:
            return await workflows.look(id)
        except WorkflowError as error:
            if error.code != "UNKNOWN":
                raise
    known = [run.id for run in await all_runs(workflows) if may_see(run.id)]
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    there = f"There {'is' if len(known) == 1 else 'are'} {', '.join(known[:_NAMED])}{more}." if known else ""
    raise WorkflowError("UNKNOWN", f"There is no run {id}. {there or 'There is none yet.'}", {"id": id, "known": known})


def picture_of(run: Run, tree: TreeSnapshot) -> RunPicture:
    """The run as it stands, with those of the tree's waits that are its tasks', or of what they have started."""
    children = {} if run.ref is None else run.ref.children or {}
    keys = {place.path: place.actor.task.key for place in children.values() if isinstance(place.actor, TaskErrand)}
    waits: list[RunWait] = []
    for wait in tree.waits:
        key = next((key for party in wait.from_ for place, key in keys.items() if _beneath(party, place)), None)
        if key is not None:
            waits.append(RunWait(task=key, to=wait.to, message=wait.message))
    return RunPicture(run=run.snapshot(), live=not run.over, last=run.last, waits=tuple(waits))


def _beneath(party: str, place: str) -> bool:
    return party == place or party.startswith(f"{place}/")
