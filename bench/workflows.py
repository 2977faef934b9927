"""Running workflows whose tasks do nothing: what a run, a phase and a task cost."""

from __future__ import annotations

import time
from typing import Any

import trio

from bench.harness import milliseconds
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
    return await _seconds(1, 1, 200)


@milliseconds("workflows/10x10")
async def ten_by_ten() -> float:
    """Ten phases of ten tasks."""
    return await _seconds(10, 10, 10)


@milliseconds("workflows/1000-at-100")
async def thousand_at_hundred() -> float:
    """One phase of a thousand tasks, a hundred at a time."""
    return await _seconds(1, 1000, 2)
