"""How a run is shown: as a drawing of how it stands, and as a line for each thing that happens."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from typing import Any, Final

from msgspec import UNSET
from rich.text import Text
from rich.tree import Tree

from greenroom.actors.cli.drawing import plain
from greenroom.protocol.runs import RunPicture, RunWait
from greenroom.protocol.workflows import PhaseSnapshot, TaskActivity, TaskSnapshot, WorkflowEvent, is_terminal

__all__ = ["STATUS_COLORS", "describe", "draw_run"]

STATUS_COLORS: Final = {
    "pending": "dim",
    "running": "cyan",
    "completed": "green",
    "failed": "red",
    "skipped": "yellow",
    "stopped": "yellow",
}

_DRAWN: Final = 24
"""How many tasks of a phase are drawn; of more, those that run or have failed come first."""
_LONGEST: Final = 200
"""Characters of a value that a line shows."""


def draw_run(picture: RunPicture) -> Tree:
    """Every phase with its tasks: how each does, in which attempt, what it tells of itself and whom it waits for."""
    run = picture.run
    tasks = [task for phase in run.phases for task in phase.tasks]
    over = sum(is_terminal(task.status) for task in tasks)
    label = Text.assemble((plain(run.name), "bold"), "  ", (plain(run.id), "dim"), "  ", _status(run.status))
    label.append(f"  {over} of {len(tasks)} tasks are over", "dim")
    if not picture.live and not is_terminal(run.status):
        label.append("  not under way here: resume it", "yellow")
    drawing = Tree(label, guide_style="dim")
    for phase in run.phases:
        _grow(drawing.add(_heading(phase)), f"{run.id}/{phase.id}", phase, picture.waits)
    return drawing


def _heading(phase: PhaseSnapshot) -> Text:
    return Text.assemble(plain(phase.name), "  ", _status(phase.status))


def _grow(branch: Tree, key: str, phase: PhaseSnapshot, waits: tuple[RunWait, ...]) -> None:
    tasks = list(phase.tasks)
    if len(tasks) > _DRAWN:
        telling = [task for task in tasks if task.status in ("running", "failed")][:_DRAWN]
        chosen = {task.id for task in [*telling, *tasks][:_DRAWN]}
        tasks = [task for task in tasks if task.id in chosen]
    for task in tasks:
        awaited = [wait.to for wait in waits if wait.task == f"{key}/{task.id}"]
        branch.add(_line(task, awaited))
    if len(tasks) < len(phase.tasks):
        branch.add(Text(f"and {len(phase.tasks) - len(tasks)} more", "dim"))


def _line(task: TaskSnapshot, awaited: list[str]) -> Text:
    line = Text.assemble(plain(task.name), "  ", _status(task.status))
    if task.attempts > 1:
        line.append(f"  attempt {task.attempts} of {task.limit}", "yellow")
    if task.status == "running":
        for fact in _facts(task.activity or None):
            line.append(f"  {plain(fact)}", "dim")
        for party in awaited:
            line.append(f"  waits for {plain(party)}", "bold")
    if task.result and task.result.result.error:
        line.append(f"  {plain(task.result.result.error.message)}", "red")
    return line


def _facts(frame: TaskActivity | None) -> Iterator[str]:
    """What a task tells of itself, piece by piece."""
    if frame is None:
        return
    if frame.note:
        yield frame.note
    if frame.progress:
        total = f" of {frame.progress.total:g}" if frame.progress.total else ""
        yield f"{frame.progress.current:g}{total} {frame.progress.unit or ''}".rstrip()
    for item in (*frame.operations, *frame.constraints):
        yield item.name


def _status(status: str) -> Text:
    return Text(status, STATUS_COLORS.get(status, "default"))


def describe(event: WorkflowEvent) -> Text:
    """One line: its number, when it was, of what it tells, and what happened."""
    at = datetime.datetime.fromtimestamp(event.time / 1000).strftime("%H:%M:%S")
    place = "/".join(part for part in (event.phase, event.task) if part) or "run"
    text = Text.assemble((f"{event.number:>4}  {at}  ", "dim"), (plain(place), "bold"), "  ")
    text.append(event.event, _EVENT_COLORS.get(event.event, "default"))
    for detail in _details(event):
        text.append(f"  {plain(detail)}")
    return text


_EVENT_COLORS: Final = {"complete": "green", "fail": "red", "retry": "yellow", "skip": "yellow", "stop": "yellow"}


def _details(event: WorkflowEvent) -> Iterator[str]:
    if event.attempt and event.attempt > 1:
        yield f"attempt {event.attempt}"
    if event.name:
        yield event.name
    if event.value is not UNSET:
        yield event.value if event.event == "retry" and isinstance(event.value, str) else _short(event.value)
    if event.result and event.result.result.error:
        yield event.result.result.error.message
    elif event.result and event.task:
        yield _short(event.result.result.value)
    yield from _facts(event.frame or None)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
