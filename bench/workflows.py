"""Running workflows whose tasks do nothing: what a run, a phase and a task cost."""

from __future__ import annotations

import functools
import tempfile
import time
from pathlib import Path
from typing import Any

import trio

from bench.harness import milliseconds, times
from bench.journal import DISK, one_row_one_commit
from greenroom import TaskController, open_runtime

RUNS = 20


async def _nothing(_controller: TaskController) -> None:
    """A behaviour that is done at once."""


def _definition(phases: int, tasks: int) -> dict[str, Any]:
    """So many phases of so many tasks each, a hundred of which run at a time."""
    return {
        "id": "workflow",
        "name": "workflow",
        "phases": [
            {
                "id": f"phase-{phase}",
                "name": "phase",
                "concurrency": 100,
                "tasks": [{"id": f"task-{task}", "name": "task", "behavior": "nothing"} for task in range(tasks)],
            }
            for phase in range(phases)
        ],
    }


async def _seconds(phases: int, tasks: int, runs: int) -> float:
    """The seconds of a run, from its definition as JSON to its result."""
    definition, functions = _definition(phases, tasks), {"nothing": _nothing}
    async with open_runtime(tune_gc=True) as runtime:
        execute = runtime.workflows.runner.execute
        await execute(definition, functions=functions)
        start = time.perf_counter()
        for _ in range(runs):
            result = await execute(definition, functions=functions)
            assert (result.status, len(result.results)) == ("completed", phases * tasks)
        taken = (time.perf_counter() - start) / runs
        await trio.lowlevel.checkpoint()
    return taken


@milliseconds("workflows/one-task")
async def one_task() -> float:
    """One phase of one task."""
    return await _seconds(1, 1, 100)


@milliseconds("workflows/10x10")
async def ten_by_ten() -> float:
    """Ten phases of ten tasks."""
    return await _seconds(10, 10, 10)


@milliseconds("workflows/1000-at-100")
async def thousand_at_hundred() -> float:
    """One phase of a thousand tasks, a hundred at a time."""
    return await _seconds(1, 1000, 2)


async def _seconds_on_disk(tasks: int) -> float:
    """The seconds of a run of one phase of so many tasks, a hundred at a time, each of its steps on a disk."""
    definition, functions = _definition(1, tasks), {"nothing": _nothing}
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        async with open_runtime(data=Path(folder, "journal.db"), tune_gc=True) as runtime:
            start = time.perf_counter()
            result = await runtime.workflows.run(definition, functions=functions)
            taken = time.perf_counter() - start
            assert (result.status, result.durable, len(result.results)) == ("completed", True, tasks)
        return taken


@milliseconds("workflows/1000-at-100-journal")
async def thousand_at_hundred_journal() -> float:
    """One phase of a thousand tasks, a hundred at a time, with all that happens in the journal."""
    return await _seconds_on_disk(1_000)


@times("workflows/10000-at-100-journal", against=functools.partial(_seconds_on_disk, 1_000))
async def ten_thousand_at_hundred_journal() -> float:
    """How much longer ten times as many tasks take."""
    return await _seconds_on_disk(10_000)


@times("workflows/sequential-journal", against=one_row_one_commit)
async def sequential_journal() -> float:
    """Tasks per second of a run that does one after the other, against rows that are each committed by themselves; a
    task records its attempt and what came of it."""
    tasks = 60
    return tasks / await _seconds_one_by_one(tasks)


async def _seconds_one_by_one(tasks: int) -> float:
    definition, functions = _definition(1, tasks), {"nothing": _nothing}
    definition["phases"][0]["concurrency"] = 1
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        async with open_runtime(data=Path(folder, "journal.db")) as runtime:
            start = time.perf_counter()
            result = await runtime.workflows.run(definition, functions=functions)
            assert result.durable
            return time.perf_counter() - start


async def _leave_recorded(path: Path) -> None:
    """A file with a run of ten thousand tasks that are recorded, and one more, in which its process ended."""
    definition, begun = _definition(1, 10_000), trio.Event()
    last = {"id": "last", "name": "last", "tasks": [{"id": "last", "name": "last", "behavior": "last"}]}

    async def hang(_controller: TaskController) -> None:
        begun.set()
        await trio.sleep_forever()

    definition["phases"].append(last)
    async with open_runtime(data=path, tune_gc=True) as runtime:
        await runtime.workflows.start(definition, functions={"nothing": _nothing, "last": hang})
        await begun.wait()


@functools.cache
def _recorded() -> bytes:
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        trio.run(_leave_recorded, path := Path(folder, "journal.db"))
        return path.read_bytes()


@times("workflows/resume-10k-recorded")
def resume_10k_recorded() -> float:
    """From the opening of the file to the end of its run, of which one task out of ten thousand is still to be done."""
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        path = Path(folder, "journal.db")
        path.write_bytes(_recorded())
        return trio.run(_resume, path)


async def _resume(path: Path) -> float:
    start = time.perf_counter()
    async with open_runtime(data=path, functions={"nothing": _nothing, "last": _nothing}) as runtime:
        run = await runtime.workflows.recover("workflow")
        result = await run.wait()
        taken = time.perf_counter() - start
        assert (result.status, result.durable, len(result.results)) == ("completed", True, 10_001)
    return taken
