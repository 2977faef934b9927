"""Batches: several calls of one answer, which overlap where they may and are told of in their order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import final

import trio

from greenroom.runtime.pipeline.execution import Execution
from greenroom.runtime.pipeline.outcomes import Outcome

__all__ = ["run_batch"]

Settling = Callable[[int, Outcome], None]
"""Hears of each call that is over: its position and what it came to. It is plain and raises nothing."""


async def run_batch(executions: Sequence[Execution], settled: Settling, limit: Callable[[], int]) -> None:
    """Carry out calls in the order given; each is told to `settled` once it is over, in that order too.

    Calls that may overlap run beside their neighbours, at most `limit()` at a time, which is asked anew for each group
    of neighbours. One that may not waits until all
    before it are over, and all behind it wait for it. Verdicts are taken one after another, and so are results: only
    the tools themselves overlap.

    A recorder, or an invariant, that raises ends the batch: what runs ends by itself and is told, nothing else begins,
    and the error is raised. Cancelled: what has begun is told at once.
    """
    batch = _Batch(executions, settled, limit)
    try:
        await batch.run()
    finally:
        _abandon(executions)
    if batch.fault is not None:
        raise batch.fault


def _abandon(executions: Sequence[Execution]) -> None:
    """What is left of each is told, whatever a recorder or an observer raises for one; the first such is raised."""
    fault: BaseException | None = None
    for execution in executions:
        try:
            execution.abandon()
        except BaseException as raised:  # there is no checkpoint: it is no cancellation
            fault = raised if fault is None else fault
    if fault is not None:
        raise fault


@final
class _Batch:
    def __init__(self, executions: Sequence[Execution], settled: Settling, limit: Callable[[], int]) -> None:
        self._executions = executions
        self._settled = settled
        self._limit = limit
        self._room = trio.Semaphore(0)
        self._performed = [trio.Event() for _ in executions]
        self._over = [trio.Event() for _ in executions]
        self.fault: Exception | None = None

    async def run(self) -> None:
        admitted, admitting = trio.open_memory_channel[int](math.inf)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._conclude_all, admitting)
            alone = True  # the one before: so that this one begins a group
            with admitted:
                for position, execution in enumerate(self._executions):
                    overlaps = execution.overlapping
                    if not overlaps and position:
                        await self._over[position - 1].wait()
                    if alone or not overlaps:  # nothing runs, so that no place is taken
                        self._room = trio.Semaphore(self._limit())
                    alone = not overlaps
                    await self._room.acquire()
                    if self.fault is not None:  # it may have come while this one stood in line
                        return
                    try:
                        await execution.admit()
                    except Exception as fault:
                        self.fault = fault
                        return
                    nursery.start_soon(self._perform, position, name=f"tool {execution.call.name}")
                    admitted.send_nowait(position)
                    if not overlaps:
                        await self._over[position].wait()

    async def _perform(self, position: int) -> None:
        await self._executions[position].perform()
        self._room.release()
        self._performed[position].set()

    async def _conclude_all(self, admitting: trio.MemoryReceiveChannel[int]) -> None:
        async for position in admitting:
            await self._performed[position].wait()
            try:
                self._settled(position, await self._executions[position].conclude())
            except Exception as fault:
                self.fault = self.fault or fault
            self._over[position].set()
