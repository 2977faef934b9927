"""Random verdicts, pauses, stops, cancellations and crashes of a run, against the tables of statuses in plain Python.

A model of its own says what every task has come to after each step; the live run and what is stored must agree.
"""

from __future__ import annotations

from typing import Any, Literal

import pytest
import trio
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from greenroom import MemoryWorkflowStore, Run, Runtime, TaskController, WorkflowError, open_runtime
from greenroom.protocol.workflows import Phase, Task, Workflow
from tests.stress.driver import Driver
from tests.stress.outcome import machine

__all__ = ["SUITE", "Workflows", "run"]

SUITE = 300

OVER = {"completed", "failed", "skipped", "stopped"}


class TaskModel:
    """What is known of one task. `called` is whether its handler waits for a verdict."""

    def __init__(self, name: str, retries: int) -> None:
        self.name = name
        self.limit = retries + 1
        self.recovered = False
        self.status = "pending"
        self.attempts = 0
        self.called = False
        self.paused = False

    def end(self, status: str) -> None:
        self.status, self.called, self.paused = status, False, False


class PhaseModel:
    def __init__(self, name: str, tasks: list[TaskModel], *, bail: bool, concurrency: int) -> None:
        self.name = name
        self.tasks = tasks
        self.bail = bail
        self.concurrency = concurrency
        self.override: str | None = None
        self.paused = False

    @property
    def status(self) -> str:
        present = {task.status for task in self.tasks}
        if self.override:
            return self.override
        if present == {"pending"}:
            return "pending"
        if present - OVER:
            return "running"
        return next(status for status in ("failed", "stopped", "completed", "skipped") if status in present)


class Model:
    """A run by the rules alone: `settle` does everything that happens without a further verdict."""

    def __init__(self, phases: list[PhaseModel]) -> None:
        self.phases = phases
        self.override: str | None = None
        self.paused = False
        self.at = 0
        """The phase that it is in."""
        self.entered = False

    @property
    def status(self) -> str:
        statuses = {(phase.status, phase.bail) for phase in self.phases}
        present = {status for status, _ in statuses}
        if self.override:
            return self.override
        if ("failed", True) in statuses:
            return "failed"
        if present == {"pending"}:
            return "pending"
        if present - OVER:
            return "running"
        if "stopped" in present:
            return "stopped"
        return "completed" if present & {"completed", "failed"} else "skipped"

    @property
    def over(self) -> bool:
        return self.at >= len(self.phases)

    def halted(self, phase: PhaseModel) -> bool:
        return self.status in OVER or phase.status in OVER

    def settle(self) -> None:
        while not self.over:
            phase = self.phases[self.at]
            if self.status in OVER and not self.entered:
                self.skip_from(self.at)
                return
            if self.paused and not self.entered:
                return
            if not self.entered:
                self.entered = True
                if phase.status in OVER:
                    self.leave(phase)
                    continue
            self.move(phase)
            if any(task.status == "running" for task in phase.tasks):
                return
            self.leave(phase)

    def move(self, phase: PhaseModel) -> None:
        """Start what has a place, call what is not paused, drop what is halted before it was called."""
        while True:
            before = [(task.status, task.called) for task in phase.tasks]
            for task in phase.tasks:
                running = sum(each.status == "running" for each in phase.tasks)
                if self.halted(phase):
                    if task.status == "running" and not task.called:
                        task.end("skipped")
                elif task.status == "pending" and running < phase.concurrency:
                    task.status = "running"
                    task.attempts += 1
                if task.status == "running" and not (self.paused or phase.paused or task.paused):
                    task.called = task.called or not self.halted(phase)
            if before == [(task.status, task.called) for task in phase.tasks]:
                return

    def leave(self, phase: PhaseModel) -> None:
        for task in phase.tasks:
            if task.status not in OVER:
                task.end("skipped")
        self.at += 1
        self.entered = False
        if self.status in OVER:
            self.skip_from(self.at)

    def skip_from(self, index: int) -> None:
        for phase in self.phases[index:]:
            for task in phase.tasks:
                if task.status not in OVER:
                    task.end("skipped")
        self.at = len(self.phases)

    def fail(self, phase: PhaseModel, task: TaskModel) -> None:
        task.called = False
        if task.attempts >= task.limit:
            self.failed(phase, task)
        elif self.halted(phase):
            task.end("skipped")
        else:
            task.attempts += 1

    def failed(self, phase: PhaseModel, task: TaskModel) -> None:
        task.end("failed")
        if phase.bail:
            for sibling in phase.tasks:
                if sibling.status not in OVER:
                    sibling.end("skipped")

    def cancel(self) -> None:
        self.pin("stopped")
        self.skip_from(0)

    def pin(self, override: str) -> None:
        if self.status not in OVER:
            self.override, self.paused = override, False

    def recover(self) -> None:
        """The process has died: nothing waits or is paused, and what was cut off has another attempt, or has failed.

        Of a run that was over by then, though halted tasks of it were not, there is the record as it is.
        """
        over = self.status in OVER
        self.at, self.entered, self.paused = 0, False, False
        bailed = False
        for phase in self.phases:
            phase.paused = False
            for task in phase.tasks:
                task.called = task.paused = False
                if task.status == "running" and not bailed and not over:
                    if task.attempts >= task.limit and task.recovered:
                        task.status = "failed"
                    else:
                        task.status = "pending"
                        if task.attempts >= task.limit:
                            task.recovered, task.limit = True, task.limit + 1
            bails = phase.bail and not phase.override and any(task.status == "failed" for task in phase.tasks)
            if not over and (bailed or bails):
                bailed = True
                for task in phase.tasks:
                    if task.status not in OVER:
                        task.end("skipped")
        if self.status in OVER:
            self.at = len(self.phases)


class Workflows(RuleBasedStateMachine):
    """One run of up to three phases of up to three tasks; every attempt waits for a verdict of the machine's."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.model = Model([])
        self.verdicts: dict[str, trio.Event] = {}
        """Where attempts wait, by task."""
        self.said: dict[str, str] = {}
        self.finished: set[str] = set()
        self.broken: list[str] = []
        self.refused = False
        self.runtime: Runtime
        self.run_: Run
        self.store = MemoryWorkflowStore()
        self.definition: dict[str, Any] = {}

    def teardown(self) -> None:
        self.driver.close()

    @initialize(
        shape=st.lists(
            st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=3), st.booleans(), st.integers(1, 3)),
            min_size=1,
            max_size=3,
        )
    )
    def begin(self, shape: list[tuple[list[int], bool, int]]) -> None:
        phases = [
            PhaseModel(
                f"p{index}",
                [TaskModel(f"t{index}{place}", retries) for place, retries in enumerate(tasks)],
                bail=bail,
                concurrency=width,
            )
            for index, (tasks, bail, width) in enumerate(shape)
        ]
        self.model = Model(phases)
        self.definition = {
            "id": "w",
            "name": "w",
            "phases": [
                {
                    "id": phase.name,
                    "name": phase.name,
                    "bail": phase.bail,
                    "concurrency": phase.concurrency,
                    "tasks": [
                        {"id": task.name, "name": task.name, "behavior": "judged", "retries": task.limit - 1}
                        for task in phase.tasks
                    ],
                }
                for phase in phases
            ],
        }
        self._open()
        self.run_ = self.driver.call(self._start)
        self.model.settle()

    def _open(self) -> None:
        functions = {"judged": self._judged}
        self.runtime = self.driver.enter(
            open_runtime(workflow_store=self.store, functions=functions, wall_clock=trio.current_time)
        )

    async def _start(self) -> Run:
        return await self.runtime.workflows.start(self.definition)

    async def _judged(self, controller: TaskController) -> str:
        name = controller.task.id
        if name in self.finished:
            self.broken.append(f"{name} was recorded, and is run again")
        if name in self.verdicts:
            self.broken.append(f"{name} is run twice at once")
        verdict = self.verdicts[name] = trio.Event()
        try:
            await verdict.wait()
        finally:
            del self.verdicts[name]
        if self.said.pop(name) == "fail":
            raise RuntimeError("as it was told")
        return name

    # ---------------------------------------------------------------- what happens

    def _called(self) -> list[tuple[PhaseModel, TaskModel]]:
        return [(phase, task) for phase in self.model.phases for task in phase.tasks if task.called]

    @precondition(lambda self: not self.refused and self._called())
    @rule(index=st.integers(0, 8), verdict=st.sampled_from(["succeed", "fail", "fail"]))
    def judge(self, index: int, verdict: str) -> None:
        called = self._called()
        phase, task = called[index % len(called)]
        self.said[task.name] = verdict
        self.driver.call(self._set, self.verdicts[task.name])
        if verdict == "fail":
            self.model.fail(phase, task)
        else:
            task.end("completed")
            self.finished.add(task.name)
        self.model.settle()

    @staticmethod
    async def _set(event: trio.Event) -> None:
        event.set()

    @precondition(lambda self: not self.refused and not self.model.over)
    @rule(
        index=st.integers(0, 20),
        level=st.sampled_from(["workflow", "phase", "task", "task"]),
        move=st.sampled_from(["pause", "resume", "resume", "stop", "skip"]),
    )
    def act(self, index: int, level: str, move: Literal["pause", "resume", "stop", "skip"]) -> None:
        phase = self.model.phases[index % len(self.model.phases)]
        task = phase.tasks[index % len(phase.tasks)]
        live = self._live(phase, task if level == "task" else None) if level != "workflow" else self.run_.workflow
        modelled: Model | PhaseModel | TaskModel = (
            self.model if level == "workflow" else phase if level == "phase" else task
        )
        ended = modelled.status in OVER
        if ended and level == "task" and move in ("stop", "skip"):
            return
        self.driver.call(self._do, live, move)
        if ended:
            return
        if move in ("pause", "resume"):
            modelled.paused = move == "pause"
        elif isinstance(modelled, TaskModel):
            modelled.end("stopped" if move == "stop" else "skipped")
        elif isinstance(modelled, PhaseModel):
            modelled.override, modelled.paused = "stopped" if move == "stop" else "skipped", False
        else:
            modelled.pin("stopped" if move == "stop" else "skipped")
        self.model.settle()

    def _live(self, phase: PhaseModel, task: TaskModel | None) -> Phase | Task:
        found = self.run_.workflow.phase(phase.name)
        assert found is not None
        if task is None:
            return found
        inner = found.task(task.name)
        assert inner is not None
        return inner

    @staticmethod
    async def _do(node: Workflow | Phase | Task, move: str) -> None:
        getattr(node, move)()

    @precondition(lambda self: not self.refused and not self.model.over)
    @rule()
    def cancel(self) -> None:
        self.driver.call(self.run_.cancel)
        self.model.cancel()

    @rule()
    def start_again(self) -> None:
        """The same definition is the same run, whatever has become of it."""
        status = self.model.status
        assert self.driver.call(self._start).status == status

    @precondition(lambda self: self.definition and not self.refused)
    @rule()
    def crash(self) -> None:
        """All that the next process has is what was stored by then."""
        kept = self.driver.call(self.store.get, "w")
        assert kept is not None
        self.driver.close()
        self.driver, self.verdicts, self.store = Driver(), {}, MemoryWorkflowStore()
        self.driver.call(self.store.set, kept)
        self._open()
        if self.model.override:
            self.refused = True
            with pytest.raises(WorkflowError, match="on purpose"):
                self.driver.call(self._recover)
            return
        self.run_ = self.driver.call(self._recover)
        self.model.recover()
        self.model.settle()

    async def _recover(self) -> Run:
        return await self.runtime.workflows.recover("w")

    # ---------------------------------------------------------------- what must hold

    @invariant()
    def statuses_are_those_of_the_tables(self) -> None:
        if not self.definition or self.refused:
            return
        workflow = self.run_.workflow
        live = {workflow.id: workflow.status}
        for phase in workflow.phases:
            live[phase.id] = phase.status
            live |= {task.id: (task.status, task.attempts) for task in phase.tasks}  # type: ignore[misc]
        modelled: dict[str, Any] = {"w": self.model.status}
        for each in self.model.phases:
            modelled[each.name] = each.status
            modelled |= {task.name: (task.status, task.attempts) for task in each.tasks}
        assert live == modelled

    @invariant()
    def exactly_the_running_tasks_are_called(self) -> None:
        assert self.broken == []
        if self.definition and not self.refused:
            assert set(self.verdicts) == {task.name for _, task in self._called()}
            assert self.run_.over is self.model.over

    @invariant()
    def what_is_stored_is_what_is_there(self) -> None:
        if self.definition and not self.refused:
            kept = self.driver.call(self.store.get, "w")
            assert kept is not None
            assert kept.status == self.run_.status
            assert kept.phases == self.run_.snapshot().phases


run = machine(Workflows, steps=30)
