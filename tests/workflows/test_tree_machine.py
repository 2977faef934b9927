"""Any operations on any workflow, against the tables: statuses follow, each change is told once, snapshots hold.

The model knows the status of each task, what was pinned, and nothing else. What it expects of a phase, of the workflow
and of a move is worked out afresh, word by word from the rules, after every step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows import (
    Failure,
    Node,
    Phase,
    Status,
    Task,
    Workflow,
    check_coherence,
    create_recovered_workflow,
    create_restored_workflow,
    create_workflow,
)
from tests.workflows.trees import Ticking

OVER = ("completed", "failed", "skipped", "stopped")
OPEN_MOVES = {"pending": ("start", "skip", "stop"), "running": ("start", "complete", "fail", "skip", "stop")}
ENDS = {"complete": "completed", "fail": "failed", "skip": "skipped", "stop": "stopped"}

flags = st.sampled_from([None, True, False])
tasks: st.SearchStrategy[Any] = st.lists(st.fixed_dictionaries({"retries": st.integers(0, 2)}), max_size=3)
one_phase: st.SearchStrategy[Any] = st.fixed_dictionaries({"tasks": tasks, "bail": flags})
moves = st.sampled_from(["start", "complete", "fail", "skip", "stop"])
pick = st.integers(0, 7)
values: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, "text", [1, {"a": None}], {"deep": [[]]}, float("nan"), object()]
)


class TreeMachine(RuleBasedStateMachine):
    """One workflow, driven by everything that may be done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Ticking()
        self.serial = 0
        self.statuses: dict[Task, str] = {}
        self.starts: Counter[Task] = Counter()
        self.retries: dict[Task, int] = {}
        self.pinned: dict[Node, str] = {}
        self.suspended = False
        self.ended: Counter[Task] = Counter()
        self.cancelled: Counter[Task] = Counter()
        self.heard: list[tuple[Node, str, tuple[Any, ...]]] = []
        self.listener: Callable[[Node, str], None] | None = None

    # ---------------------------------------------------------------- building

    @initialize(phases=st.lists(one_phase, max_size=4), bail=flags, option=flags)
    def build(self, phases: list[Any], bail: bool | None, option: bool | None) -> None:
        definition: dict[str, Any] = {"id": "w", "name": "w", "phases": [self.phase_of(phase) for phase in phases]}
        if bail is not None:
            definition["bail"] = bail
        self.workflow = create_workflow(definition, bail=option, clock=self.clock)
        self.workflow.watch(self.hear)
        for phase in self.workflow.phases:
            self.expect(phase)

    def phase_of(self, drawn: Any) -> Any:
        phase: dict[str, Any] = {
            "id": self.fresh("p"),
            "name": "phase",
            "tasks": [self.task_of(task) for task in drawn["tasks"]],
        }
        if drawn["bail"] is not None:
            phase["bail"] = drawn["bail"]
        return phase

    def task_of(self, drawn: Any) -> Any:
        return {"id": self.fresh("t"), "name": "task", "retries": drawn["retries"]}

    def fresh(self, letter: str) -> str:
        self.serial += 1
        return f"{letter}{self.serial}"

    def expect(self, phase: Phase) -> None:
        for task in phase.tasks:
            self.expect_task(task)

    def expect_task(self, task: Task) -> None:
        self.statuses[task] = "pending"
        self.retries[task] = task.limit - 1
        task.on_cancel = lambda: self.cancelled.update([task])

    def hear(self, node: Node, event: str, args: tuple[Any, ...]) -> None:
        self.heard.append((node, event, args))
        if self.listener is not None:
            listener, self.listener = self.listener, None
            listener(node, event)

    # ---------------------------------------------------------------- moves

    @precondition(lambda self: self.tasks())
    @rule(at=pick, move=moves, value=values)
    def move(self, at: int, move: str, value: Any) -> None:
        self.make_move(self.task(at), move, value)

    @precondition(lambda self: self.tasks())
    @rule(at=pick, move=moves, other=pick, then=moves)
    def move_and_move_again_in_the_event(self, at: int, move: str, other: int, then: str) -> None:
        self.listener = lambda node, event: self.make_move(self.task(other), then, 1)
        self.make_move(self.task(at), move, 1)
        self.listener = None

    @precondition(lambda self: self.tasks())
    @rule(at=pick, move=moves, stop=st.booleans())
    def move_and_pin_in_the_event(self, at: int, move: str, stop: bool) -> None:
        self.listener = lambda node, event: self.pin(self.workflow, "stopped" if stop else "skipped")
        self.make_move(self.task(at), move, 1)
        self.listener = None

    def make_move(self, task: Task, move: str, value: Any) -> None:
        status = self.statuses[task]
        open_to_it = move in OPEN_MOVES.get(status, ()) and not self.suspended
        if move == "start":
            open_to_it = open_to_it and self.starts[task] <= self.retries[task] and self.may_start(task.phase)
        bad = move == "complete" and (value != value or type(value) is object)
        # The model follows first: a listener may act on what has changed already.
        if open_to_it and not bad:
            self.statuses[task] = ENDS.get(move, "running")
            self.starts[task] += move == "start"
            self.ended[task] += move in ("skip", "stop")
        refused = self.play(task, move, value)
        if not open_to_it:
            assert refused == "TRANSITION"
        else:
            assert refused == ("RESTORE" if bad else None)

    def play(self, task: Task, move: str, value: Any) -> str | None:
        """Make the move; the code of its refusal, if it is refused."""
        try:
            match move:
                case "start":
                    assert task.start() >= 1
                case "complete":
                    task.complete(value)
                case "fail":
                    task.fail("timeout", "")
                case "skip":
                    task.skip()
                case _:
                    task.stop()
        except WorkflowError as refusal:
            return refusal.code
        return None

    def may_start(self, phase: Phase) -> bool:
        if self.status_of(self.workflow) in OVER or self.status_of(phase) in OVER:
            return False
        ahead = self.workflow.phases[: self.workflow.phases.index(phase)]
        return all(self.status_of(each) in OVER for each in ahead if each.tasks)

    @rule(at=pick, on_workflow=st.booleans(), override=st.sampled_from(["skipped", "stopped"]))
    def pin_something(self, at: int, on_workflow: bool, override: str) -> None:
        phases = self.workflow.phases
        if on_workflow and at < 6:
            return  # a pinned workflow ends most of what is of interest
        self.pin(self.workflow if on_workflow or not phases else phases[at % len(phases)], override)

    def pin(self, node: Workflow | Phase, override: str) -> None:
        empty_and_late = (
            isinstance(node, Phase)
            and not node.tasks
            and self.status_of(self.workflow) in OVER
            and self.workflow not in self.pinned
        )
        if self.status_of(node) not in OVER and not empty_and_late and not self.suspended:
            self.pinned[node] = override
        if override == "skipped":
            node.skip()
        else:
            node.stop()

    @rule()
    def complete_the_workflow(self) -> None:
        over, taskless = self.status_of(self.workflow) in OVER, not self.tasks()
        if taskless and not over and not self.suspended:
            self.pinned[self.workflow] = "completed"
        if taskless or over:
            self.workflow.complete()
        else:
            with pytest.raises(WorkflowError):
                self.workflow.complete()

    @rule(sure=pick)
    def suspend(self, sure: int) -> None:
        if sure or self.status_of(self.workflow) in OVER:
            return
        self.suspended = True
        for task, status in self.statuses.items():
            if status == "running":
                self.statuses[task] = "pending"
                self.starts[task] -= 1
                self.ended[task] += 1
        self.workflow.suspend()

    # ---------------------------------------------------------------- telling and pausing

    @precondition(lambda self: self.tasks())
    @rule(at=pick, report=st.sampled_from([{"note": "n"}, {}, {"progress": {"current": 2, "total": 1}}, {"what": 1}]))
    def report(self, at: int, report: Any) -> None:
        task = self.task(at)
        before = task.activity
        outcome = task.report(report)
        good = self.statuses[task] == "running" and report in ({"note": "n"}, {})
        assert outcome.success is good
        if not good:
            assert task.activity == before
        assert task.pulse() is (self.statuses[task] == "running")

    @rule(at=pick, resume=st.booleans())
    def pause_or_resume(self, at: int, resume: bool) -> None:
        nodes: list[Node] = [self.workflow, *self.workflow.phases, *self.tasks()]
        node = nodes[at % len(nodes)]
        before = len(self.heard)
        paused = node.paused
        if resume:
            node.resume()
        else:
            node.pause()
        over = self.status_of(node) in OVER
        assert node.paused is (not over and not resume)
        assert [event for _, event, _ in self.heard[before:]] == (
            [] if over or paused is not resume else ["resume" if resume else "pause"]
        )

    # ---------------------------------------------------------------- edits

    @rule(phase=one_phase, index=st.none() | pick)
    def add_phase(self, phase: Any, index: int | None) -> None:
        self.check_edit(self.workflow, "add", self.workflow.add(self.phase_of(phase), index), self.expect)

    @precondition(lambda self: self.workflow.phases)
    @rule(at=pick, index=st.none() | pick)
    def add_task(self, at: int, index: int | None) -> None:
        phase = self.workflow.phases[at % len(self.workflow.phases)]
        self.check_edit(phase, "add", phase.add(self.task_of({"retries": 0}), index), self.expect_task)

    @precondition(lambda self: self.workflow.phases)
    @rule(at=pick, index=pick, edit=st.sampled_from(["remove", "move", "update"]))
    def edit_phase(self, at: int, index: int, edit: str) -> None:
        phase_id = self.workflow.phases[at % len(self.workflow.phases)].id
        match edit:
            case "remove":
                self.check_edit(self.workflow, edit, self.workflow.remove(phase_id), self.forget_phase)
            case "move":
                self.check_edit(self.workflow, edit, self.workflow.move(phase_id, index))
            case _:
                self.check_edit(self.workflow, edit, self.workflow.update(phase_id, {"bail": index % 2 == 0}))

    @precondition(lambda self: self.tasks())
    @rule(at=pick, index=pick, edit=st.sampled_from(["remove", "move", "update"]))
    def edit_task(self, at: int, index: int, edit: str) -> None:
        task = self.task(at)
        phase = task.phase
        match edit:
            case "remove":
                self.check_edit(phase, edit, phase.remove(task.id), self.statuses.pop)
            case "move":
                self.check_edit(phase, edit, phase.move(task.id, index))
            case _:
                self.check_edit(phase, edit, phase.update(task.id, {"name": "other"}))

    def forget_phase(self, phase: Phase) -> None:
        for task in phase.tasks:
            del self.statuses[task]

    def check_edit(self, node: Node, event: str, edit: Any, made: Callable[[Any], Any] = lambda child: None) -> None:
        told = [heard for heard in self.heard if heard[0] is node and heard[1] == event]
        if isinstance(edit, Failure):
            assert edit.error.code == "MUTATION"
        else:
            assert told[-1][2][0] is edit.value
            made(edit.value)

    # ---------------------------------------------------------------- what always holds

    @invariant()
    def statuses_follow(self) -> None:
        assert {task: task.status for task in self.tasks()} == self.statuses
        for node in (self.workflow, *self.workflow.phases):
            assert node.status == self.status_of(node)
        assert +self.cancelled == +self.ended

    @invariant()
    def each_change_is_told_once_and_in_order(self) -> None:
        told: dict[Node, list[str]] = {}
        for node, event, _ in self.heard:
            if event in ("start", *ENDS, "suspend"):
                told.setdefault(node, []).append(event)
        for node in (self.workflow, *self.workflow.phases):
            events = told.get(node, [])
            assert len(events) == len(set(events))
            names: dict[Status, tuple[str, ...]] = {
                "pending": ("", "suspend"),
                "running": ("start", "suspend"),
                "completed": ("complete",),
                "failed": ("fail",),
                "skipped": ("skip",),
                "stopped": ("stop",),
            }
            assert (events or [""])[-1] in names[node.status]
            assert all(event in ("start", "suspend") for event in events[:-1])
        for task in self.tasks():
            events = told.get(task, [])
            assert events.count("start") - events.count("suspend") == task.attempts
            assert all(event in ("start", "suspend") for event in events[:-1])

    @invariant()
    def causes_come_first(self) -> None:
        """A phase is told to be over once all its tasks are, if nobody pinned it; so is the workflow."""
        over: set[Node] = set()
        for node, event, _ in self.heard:
            if event in ENDS and isinstance(node, Phase) and node not in self.pinned:
                assert over >= set(node.tasks)
            if event == "complete" and isinstance(node, Workflow) and node not in self.pinned:
                assert over >= {phase for phase in node.phases if phase.tasks or phase in self.pinned}
            if event in ENDS:
                over.add(node)

    @invariant()
    def snapshots_hold(self) -> None:
        snapshot = self.workflow.snapshot()
        check_coherence(snapshot)
        document = msgspec.json.decode(msgspec.json.encode(snapshot))
        restored = create_restored_workflow(document, clock=self.clock)
        assert restored.snapshot() == snapshot
        assert restored.results() == self.workflow.results()
        if self.workflow not in self.pinned:
            recovered = create_recovered_workflow(snapshot, clock=self.clock)
            assert all(task.status != "running" for phase in recovered.phases for task in phase.tasks)
            assert recovered.snapshot().updated >= snapshot.updated
            if not recovered.terminal and recovered.phases:
                recovered.claim()

    # ---------------------------------------------------------------- the rules, word by word

    def status_of(self, node: Node) -> str:
        if isinstance(node, Task):
            return self.statuses[node]
        if node in self.pinned:
            return self.pinned[node]
        if isinstance(node, Phase):
            return self.status_of_phase([self.statuses[task] for task in node.tasks])
        assert isinstance(node, Workflow)
        counted = [phase for phase in node.phases if phase.tasks or phase in self.pinned]
        return self.status_of_workflow([(self.status_of(phase), phase.bail) for phase in counted])

    @staticmethod
    def status_of_phase(tasks: list[str]) -> str:
        if all(status == "pending" for status in tasks):
            return "pending"
        if any(status not in OVER for status in tasks):
            return "running"
        return next(each for each in ("failed", "stopped", "completed", "skipped") if each in tasks)

    @staticmethod
    def status_of_workflow(phases: list[tuple[str, bool]]) -> str:
        if any(status == "failed" and bail for status, bail in phases):
            return "failed"
        statuses = [status for status, _ in phases]
        if all(status == "pending" for status in statuses):
            return "pending"
        if any(status not in OVER for status in statuses):
            return "running"
        if "stopped" in statuses:
            return "stopped"
        return "completed" if "completed" in statuses or "failed" in statuses else "skipped"

    # ---------------------------------------------------------------- who is there

    def tasks(self) -> list[Task]:
        return [task for phase in self.workflow.phases for task in phase.tasks]

    def task(self, at: int) -> Task:
        tasks = self.tasks()
        return tasks[at % len(tasks)]


TestTree = TreeMachine.TestCase
TestTree.settings = settings(max_examples=300, stateful_step_count=30)
