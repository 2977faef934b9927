"""What `tests.workflows.lives` has said of the runs in one file, and whether the file bears it out."""

from __future__ import annotations

from pathlib import Path

import trio
from msgspec import UNSET

from greenroom import Runtime, open_runtime
from greenroom.actors.terminal import Notice
from greenroom.actors.workflow.owners import run_of
from greenroom.protocol.workflows import TERMINAL, TaskSnapshot, WorkflowSnapshot
from tests.clock import settle
from tests.workflows.lives import ASKED, OPS, described, functions

__all__ = ["RunsRecord"]

PATIENCE = 20.0
"""Seconds in which all runs that are left come to their end."""


class RunsRecord:
    """What was said of one file, over all lives."""

    def __init__(self) -> None:
        self.starting: set[str] = set()
        self.started: set[str] = set()
        self.events: dict[tuple[str, int], tuple[str, str, str]] = {}
        """Every event that was shown."""
        self.tokens: dict[tuple[str, str], set[str]] = {}
        """What each task may have come to."""
        self.recorded: dict[tuple[str, str], str] = {}
        """What each task was shown to have come to."""
        self.answered: dict[str, str] = {}
        self.signalled: dict[str, set[str]] = {}

    def hear(self, line: str) -> None:
        """Take note of one line."""
        match line.split():
            case ["starting", run]:
                self.starting.add(run)
            case ["started", run]:
                self.started.add(run)
            case ["event", run, number, name, task, value]:
                told = self.events.setdefault((run, int(number)), (name, task, value))
                assert told == (name, task, value), f"event {number} of {run} was {told}, and is {name} {task} {value}"
                if name == "complete" and task != "-":
                    self.recorded[run, task] = value
            case ["entering", run, task, token]:
                assert (run, task) not in self.recorded, f"{task} of {run} runs again, and was recorded"
                self.tokens.setdefault((run, task), set()).add(token)
            case ["answering", run, token]:
                self.tokens.setdefault((run, ASKED), set()).add(token)
            case ["answered", run, token]:
                assert self.answered.setdefault(run, token) == token, f"{run} was answered twice"
            case ["signalling", run, token]:
                self.tokens.setdefault((run, "c1"), set()).add(token)
            case ["signalled", run, token]:
                self.signalled.setdefault(run, set()).add(token)
            case ["dying", _]:
                pass
            case _:
                raise AssertionError(f"it said {line!r}")

    async def check(self, path: Path, last: bool) -> None:
        """Open the file as the next process does, and compare. Raises AssertionError."""
        async with open_runtime(data=path, timeout=None) as runtime:
            runtime.terminals.add(OPS)
            await settle()
            runs = await self._stored(runtime)
            self._check_asks(runtime, runs)
            if last:
                await self._finish(runtime, list(runs))

    async def _stored(self, runtime: Runtime) -> dict[str, WorkflowSnapshot]:
        store = runtime.workflows.store
        assert store is not None
        runs = {stored.id: await store.get(stored.id) for stored in await store.list()}
        found = {id: snapshot for id, snapshot in runs.items() if snapshot is not None}
        assert found.keys() == runs.keys()
        assert self.started <= found.keys() <= self.starting, "a run is missing, or nobody started it"
        for snapshot in found.values():
            await self._check_run(runtime, snapshot)
        return found

    async def _check_run(self, runtime: Runtime, snapshot: WorkflowSnapshot) -> None:
        run = snapshot.id
        events = [event async for event in (await runtime.workflows.look(run)).events()]
        assert [event.number for event in events] == list(range(1, len(events) + 1)), f"{run} has gaps"
        told = {number: what for (id, number), what in self.events.items() if id == run}
        kept = {event.number: described(event) for event in events}
        assert told.items() <= kept.items(), f"an event of {run} that was shown is missing"
        for task in _tasks(snapshot):
            value = None if task.result is UNSET else task.result.result.value
            assert value is None or value in self.tokens[run, task.id], f"nobody gave {task.id} of {run} {value}"
            if (recorded := self.recorded.get((run, task.id))) is not None:
                assert value == recorded, f"{task.id} of {run} was {recorded}, and is {value}"
        if run in self.signalled:
            assert snapshot.signals is not UNSET
            assert snapshot.signals["go"] in self.tokens[run, "c1"], f"a signal to {run} is lost"

    def _check_asks(self, runtime: Runtime, runs: dict[str, WorkflowSnapshot]) -> None:
        durable = runtime.terminals.durable
        assert durable is not None
        asks = {str(run_of(owner)): ask for owner in durable.owners() for ask in durable.owned_by(owner)}
        for run, token in self.answered.items():
            (task,) = (task for task in _tasks(runs[run]) if task.id == ASKED)
            if task.status not in TERMINAL:
                assert asks[run].status == "answered", f"the answer to {run} is lost"
                assert asks[run].outcome == {"token": token}, f"{run} was answered {token}, not {asks[run].outcome}"
            else:
                assert task.result is not UNSET
                assert task.result.result.value == token, f"the answer to {run} was not used"
        shown = {str(record.schema.label) for record in runtime.terminals.pending()}
        assert shown == {run for run, ask in asks.items() if ask.status == "pending"}
        for run in shown:
            (task,) = (task for task in _tasks(runs[run]) if task.id == ASKED)
            assert task.status not in TERMINAL, f"a form of {run} is shown that nobody waits for"

    async def _finish(self, runtime: Runtime, runs: list[str]) -> None:
        """Every run comes to its end once it is answered and signalled, and leaves nothing."""

        def entered(run: str, task: str) -> str:
            self.hear(f"entering {run} {task} last.{task}")
            return f"last.{task}"

        def hear(notice: Notice) -> None:
            if notice.kind == "pending":
                nursery.start_soon(runtime.terminals.answer, OPS, notice.id, {"token": "last"})

        runtime.workflows.functions.update(functions(runtime, entered))
        with trio.move_on_after(PATIENCE) as deadline:
            async with trio.open_nursery() as nursery:
                runtime.terminals.subscribe(OPS, hear)
                for record in runtime.terminals.pending():
                    nursery.start_soon(runtime.terminals.answer, OPS, record.id, {"token": "last"})
                recovered = await runtime.workflows.recover_all()
                assert not recovered.refused, f"{recovered.refused}"
                for run in recovered.runs:
                    if not run.workflow.terminal:
                        await run.signal("go", "last")
                    assert (await run.wait()).durable
        assert not deadline.cancelled_caught, "a run is left hanging"
        for id in runs:
            snapshot = (await runtime.workflows.look(id)).snapshot()
            assert snapshot.status == "completed", f"{id} is {snapshot.status}"
            assert all(task.status == "completed" for task in _tasks(snapshot)), f"a task of {id} has failed"
        durable = runtime.terminals.durable
        assert durable is not None
        await durable.settle()
        assert not durable.owners(), "an ask is left of a run that is over"
        assert not runtime.terminals.pending(), "a form is left of which everybody has let go"


def _tasks(snapshot: WorkflowSnapshot) -> list[TaskSnapshot]:
    return [task for phase in snapshot.phases for task in phase.tasks]
