"""Snapshots: which can be true, and what becomes of them: restored, recovered, suspended, run again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows import (
    Status,
    Workflow,
    create_recovered_workflow,
    create_restored_workflow,
    create_workflow,
    fork_snapshot,
    read_snapshot,
)
from tests.workflows.trees import Ticking, a_workflow, definition, made, overhear, phase, refused, task


def stored(workflow: Workflow) -> Any:
    """The snapshot as JSON text gives it back."""
    return msgspec.json.decode(msgspec.json.encode(workflow.snapshot()))


def finish(workflow: Workflow, task_id: str, value: Any = None) -> None:
    task(workflow, task_id).start()
    task(workflow, task_id).complete(value)


def statuses(workflow: Workflow) -> dict[str, Status]:
    return {each.id: each.status for part in workflow.phases for each in part.tasks}


def with_retries(retries: int, **members: Any) -> Workflow:
    said = definition({"a": "x y", "b": "z"})
    said["phases"][0]["tasks"][0].update(retries=retries, **members)
    return create_workflow(said, clock=Ticking())


def half_done() -> Any:
    """Phase a is over with a result, b runs one of its two tasks, c is pending."""
    workflow = a_workflow({"a": "x", "b": "y z", "c": "v"})
    finish(workflow, "x", {"a": [1]})
    task(workflow, "y").start()
    return stored(workflow)


# ---------------------------------------------------------------- what can be true


def test_a_snapshot_is_plain_json_without_what_is_not_set() -> None:
    document = half_done()
    assert set(document) == {"id", "name", "status", "bail", "phases", "created", "updated", "hash"}
    assert set(document["phases"][1]) == {"id", "name", "status", "bail", "tasks"}
    assert document["phases"][0]["tasks"][0]["result"] == {
        "task": "x",
        "phase": "a",
        "workflow": "w",
        "status": "completed",
        "result": {"success": True, "value": {"a": [1]}},
        "timestamp": document["phases"][0]["tasks"][0]["result"]["timestamp"],
    }
    assert document["phases"][1]["tasks"][1] == {
        "id": "z",
        "name": "z",
        "status": "pending",
        "metadata": {},
        "attempts": 0,
    }
    assert msgspec.json.decode(msgspec.json.encode(read_snapshot(document))) == document


def at(*path: Any) -> Callable[[Any], Any]:
    """The container that the path leads to."""

    def follow(document: Any) -> Any:
        for key in path:
            document = document[key]
        return document

    return follow


X = at("phases", 0, "tasks", 0)
Y = at("phases", 1, "tasks", 0)
Z = at("phases", 1, "tasks", 1)
V = at("phases", 2, "tasks", 0)
FRAME = {"updated": 1}


@pytest.mark.parametrize(
    ("where", "changes", "reason"),
    [
        (at(), {"colour": 1}, "unknown field `colour`"),
        (X, {"colour": 1}, "phases[0].tasks[0]"),
        (at("phases", 0), {"colour": 1}, "phases[0]"),
        (at(), {"updated": 1}, "updated before it was created"),
        (at(), {"created": -1}, ">= 0"),
        (at(), {"override": "failed"}, "override"),
        (at(), {"override": "completed"}, "without any tasks"),
        (at(), {"status": "completed"}, "its phases make it running"),
        (at("phases", 0), {"override": "completed"}, "pinned to skipped or stopped alone"),
        (at("phases", 0), {"status": "running"}, "its tasks make it completed"),
        (at("phases", 1), {"id": "a"}, "phase 'a' stands in it twice"),
        (Z, {"id": "y"}, "task 'y' stands in it twice"),
        (Y, {"attempts": 2}, "started 2 times, and has 1"),
        (Y, {"attempts": 0}, "never started"),
        (Y, {"activity": None}, "activity"),
        (X, {"result": None}, "result"),
        (X, {"status": "failed"}, "its result says otherwise"),
        (Z, {"attempts": 1}, "no attempt left"),
        (Z, {"activity": {"operations": [], "constraints": [], **FRAME}}, "pending, and has a frame"),
        (X, {"previous": FRAME}, "keeps what only a further attempt needs"),
        (X, {"timers": {"nap": 1}}, "keeps what only a further attempt needs"),
        (at("phases", 0, "tasks", 0, "result"), {"workflow": "v"}, "that of another task"),
        (at("phases", 0, "tasks", 0, "result", "result"), {"error": {"origin": "handler", "message": "m"}}, "value"),
        (V, {"attempts": 1, "retries": 1}, "has begun, and phase 'b' ahead of it is running"),
        (X, {"metadata": {"a": float("nan")}}, "not finite"),
    ],
)
def test_a_snapshot_that_cannot_be_true_is_refused_by_what_is_wrong(
    where: Callable[[Any], Any], changes: dict[str, Any], reason: str
) -> None:
    document = half_done()
    where(document).update(changes)
    with pytest.raises(WorkflowError) as raised:
        create_restored_workflow(document)
    assert raised.value.code == "RESTORE"
    assert reason in raised.value.message


@pytest.mark.parametrize("member", ["result", "activity"])
def test_a_result_and_a_frame_are_not_to_be_missing(member: str) -> None:
    document = half_done()
    del X(document)[member]
    with pytest.raises(WorkflowError, match="'w/a/x': it is completed, and has no"):
        read_snapshot(document)


def test_a_result_of_what_is_not_over_cannot_be_true() -> None:
    document = half_done()
    Y(document)["result"] = {**X(document)["result"], "task": "y", "phase": "b"}
    with pytest.raises(WorkflowError, match="it is running, and has a result"):
        read_snapshot(document)


def test_a_task_skipped_ahead_of_time_makes_its_phase_run_and_that_can_be_true() -> None:
    workflow = a_workflow({"a": "x", "b": "y z"})
    task(workflow, "y").skip()
    task(workflow, "x").start()
    assert [each.status for each in workflow.phases] == ["running", "running"]
    assert create_restored_workflow(stored(workflow)).snapshot() == workflow.snapshot()


@pytest.mark.parametrize("value", [None, [], "w", {}, {"phases": []}, object()])
def test_what_is_no_snapshot_at_all_is_refused(value: Any) -> None:
    with pytest.raises(WorkflowError, match="no snapshot") as raised:
        read_snapshot(value)
    assert raised.value.code == "RESTORE"


# ---------------------------------------------------------------- restored


@pytest.mark.case("workflows", 39)
def test_a_finished_run_is_restored_with_its_results_and_cannot_be_run() -> None:
    workflow = a_workflow({"a": "x y"})
    finish(workflow, "x", [1])
    finish(workflow, "y")
    restored = create_restored_workflow(stored(workflow))
    assert (restored.status, restored.results()) == ("completed", workflow.results())
    with pytest.raises(WorkflowError) as raised:
        restored.claim()
    assert raised.value.code == "TRANSITION"


def test_a_run_is_restored_exactly_and_run_on_if_nobody_was_at_work() -> None:
    document = half_done()
    restored = create_restored_workflow(document, clock=Ticking())
    assert stored(restored) == document
    with pytest.raises(WorkflowError, match="task 'w/b/y' is running; recover it"):
        restored.claim()
    between = a_workflow({"a": "x", "b": "y"})
    finish(between, "x")
    again = create_restored_workflow(stored(between))
    again.claim()
    finish(again, "y")
    assert again.status == "completed"


def test_another_bail_holds_for_phases_that_are_not_over() -> None:
    workflow = a_workflow({"a": "x", "b": "y"})
    task(workflow, "x").start()
    task(workflow, "x").fail("handler", "no")
    restored = create_restored_workflow(stored(workflow), bail=True)
    assert [each.bail for each in restored.phases] == [False, True]
    assert restored.status == "running"
    assert made(restored.add({"id": "c", "name": "c", "tasks": [], "bail": False})).bail


# ---------------------------------------------------------------- recovered


@pytest.mark.case("workflows", 40)
def test_a_running_task_with_attempts_left_goes_on_with_the_next() -> None:
    workflow = with_retries(2)
    task(workflow, "x").start()
    recovered = create_recovered_workflow(stored(workflow), recoveries=0)
    recovered.claim()
    again = task(recovered, "x")
    assert (again.status, again.attempts) == ("pending", 1)
    assert [again.start(), again.start()] == [2, 3]
    with pytest.raises(WorkflowError, match="its 3 attempts are used up"):
        again.start()


@pytest.mark.case("workflows", 41)
def test_a_running_task_without_attempts_fails_and_the_rest_runs() -> None:
    workflow = with_retries(0)
    task(workflow, "x").start()
    recovered = create_recovered_workflow(stored(workflow), recoveries=0)
    (result,) = recovered.results()
    assert (result.task, result.result.error and result.result.error.origin) == ("x", "recovery")
    recovered.claim()
    finish(recovered, "y")
    finish(recovered, "z")
    assert recovered.status == "completed"


@pytest.mark.case("workflows", 41)
def test_where_a_phase_bails_a_lost_task_leaves_all_others_skipped() -> None:
    workflow = a_workflow({"a": "x y z", "b": "v"}, bail=True)
    for task_id in ("x", "y"):
        task(workflow, task_id).start()
    recovered = create_recovered_workflow(stored(workflow), recoveries=0)
    assert statuses(recovered) == {"x": "failed", "y": "failed", "z": "skipped", "v": "skipped"}
    assert recovered.status == "failed"
    with pytest.raises(WorkflowError) as raised:
        recovered.claim()
    assert raised.value.code == "TRANSITION"


def test_where_a_phase_bails_a_task_that_failed_before_does_the_same() -> None:
    workflow = a_workflow({"a": "x y z", "b": "v"}, bail=True)
    for task_id in ("x", "y"):
        task(workflow, task_id).start()
    task(workflow, "x").fail("handler", "no")
    recovered = create_recovered_workflow(stored(workflow))
    assert statuses(recovered) == {"x": "failed", "y": "skipped", "z": "skipped", "v": "skipped"}


def test_an_interrupted_attempt_is_granted_again_so_often_and_no_more() -> None:
    workflow = with_retries(1)
    entered = 0
    for _ in range(10):
        trying = task(workflow, "x")
        if trying.terminal:
            break
        trying.start()
        entered += 1
        workflow = create_recovered_workflow(stored(workflow), clock=Ticking())
    assert entered == 3
    assert task(workflow, "x").snapshot().recovered == 1
    (result,) = workflow.results()
    assert result.result.error
    assert result.result.error.origin == "recovery"


@pytest.mark.parametrize(("recoveries", "entered"), [(0, 1), (3, 4)])
def test_a_task_may_say_how_often_it_is_recovered(recoveries: int, entered: int) -> None:
    workflow = with_retries(0, recoveries=recoveries)
    count = 0
    while not task(workflow, "x").terminal:
        task(workflow, "x").start()
        count += 1
        workflow = create_recovered_workflow(stored(workflow))
    assert count == entered


def test_a_cut_off_attempt_leaves_its_last_frame_and_its_sleeps() -> None:
    workflow = with_retries(0)
    task(workflow, "x").start()
    made(task(workflow, "x").report({"note": "half"}))
    task(workflow, "x").timer("nap", 5000)
    recovered = create_recovered_workflow(stored(workflow))
    again = task(recovered, "x")
    assert not again.activity
    again.start()
    assert again.previous
    assert again.previous.note == "half"
    assert again.timer("nap", 9000) == 5000


def test_time_never_runs_backwards() -> None:
    document = half_done()
    early = create_recovered_workflow(document, clock=lambda: 1.0)
    assert early.snapshot().updated == document["updated"]
    task(early, "z").skip()
    assert early.snapshot().updated == document["updated"]
    assert create_recovered_workflow(document, clock=lambda: 1e9).snapshot().updated == 10**12


@pytest.mark.case("workflows", 42)
def test_what_somebody_ended_or_nobody_can_run_is_not_recovered() -> None:
    for end in ("stop", "skip", "destroy"):
        workflow = a_workflow({"a": "x"})
        getattr(workflow, end)()
        with pytest.raises(WorkflowError, match="on purpose and cannot be recovered") as ended:
            create_recovered_workflow(stored(workflow))
        assert ended.value.code == "RESTORE"
    said = definition({"a": "x"})
    said["phases"][0]["tasks"][0]["behavior"] = "b"
    snapshot = create_workflow(said, functions={"b": print}).snapshot()
    with pytest.raises(WorkflowError, match="no function 'b' for task 'x' of phase 'a'; there are: c") as deaf:
        create_recovered_workflow(snapshot, functions={"c": print, "b": None})
    assert deaf.value.code == "RESTORE"


@pytest.mark.case("workflows", 42)
def test_a_snapshot_is_read_only_as_it_stands_and_under_its_own_id() -> None:
    document = half_done()
    assert read_snapshot(document, key="w").id == "w"
    with pytest.raises(WorkflowError, match="stored under 'v' is that of workflow 'w'") as foreign:
        read_snapshot(document, key="v")
    with pytest.raises(WorkflowError, match="unknown field") as unknown:
        read_snapshot({**document, "extra": 1}, key="w")
    assert (foreign.value.code, unknown.value.code) == ("RESTORE", "RESTORE")


def test_a_pinned_phase_stays_pinned_and_the_run_goes_on() -> None:
    workflow = a_workflow({"a": "x lost", "b": "y"}, bail=True)
    task(workflow, "x").start()
    task(workflow, "lost").start()
    phase(workflow, "a").stop()
    task(workflow, "lost").fail("handler", "no")
    recovered = create_recovered_workflow(stored(workflow))
    assert phase(recovered, "a").status == "stopped"
    assert statuses(recovered) == {"x": "pending", "lost": "failed", "y": "pending"}
    recovered.claim()
    task(recovered, "x").skip()
    finish(recovered, "y")
    assert recovered.status == "stopped"


# ---------------------------------------------------------------- suspended


def test_a_suspended_run_can_be_run_on_as_if_the_attempts_had_not_begun() -> None:
    workflow = with_retries(0)
    ended: list[str] = []
    task(workflow, "x").on_cancel = lambda: ended.append("x")
    task(workflow, "x").start()
    finish(workflow, "y", 1)
    made(task(workflow, "x").report({"note": "half"}))
    heard = overhear(workflow)
    workflow.suspend()
    workflow.suspend()
    assert (ended, heard) == (["x"], ["x.suspend", "w.suspend"])
    again = create_restored_workflow(stored(workflow))
    again.claim()
    assert task(again, "x").start() == 1
    assert task(again, "x").previous
    assert [result.task for result in again.results()] == ["y"]


def test_a_suspended_workflow_stays_as_it_is_whatever_is_done_to_it() -> None:
    workflow = a_workflow({"a": "x y"})
    task(workflow, "x").start()
    heard = overhear(workflow)
    workflow.suspend()
    assert heard == ["x.suspend", "a.suspend", "w.suspend"]
    assert [workflow.status, phase(workflow, "a").status, task(workflow, "x").status] == ["pending"] * 3
    snapshot = workflow.snapshot()
    for node in (workflow, phase(workflow, "a")):
        node.stop()
        node.skip()
    for move in (task(workflow, "x").start, task(workflow, "x").skip, task(workflow, "y").stop):
        with pytest.raises(WorkflowError, match="suspended"):
            move()
    with pytest.raises(WorkflowError, match="suspended"):
        workflow.claim()
    with pytest.raises(WorkflowError, match="suspended"):
        workflow.signal("go", 1)
    refused(phase(workflow, "a").add({"id": "z", "name": "z"}), "it is suspended")
    refused(workflow.add({"id": "b", "name": "b", "tasks": []}), "it is suspended")
    workflow.destroy()
    assert (workflow.snapshot(), workflow.emitter.closed) == (snapshot, True)


def test_suspending_what_is_over_does_nothing() -> None:
    workflow = a_workflow({"a": "x"})
    workflow.stop()
    workflow.suspend()
    assert not workflow.suspended


# ---------------------------------------------------------------- run again


def test_a_run_is_forked_with_the_results_ahead_and_none_from_there_on() -> None:
    workflow = a_workflow({"a": "w", "b": "x", "c": "y"})
    for value, task_id in enumerate(("w", "x", "y")):
        if task_id == "y":
            workflow.signal("go", 1)
        finish(workflow, task_id, value)
    document = stored(workflow)
    forked = create_restored_workflow(fork_snapshot(document, "again", phase="b", now=document["updated"] + 1))
    assert (forked.id, forked.status, statuses(forked)) == (
        "again",
        "running",
        {"w": "completed", "x": "pending", "y": "pending"},
    )
    assert [(result.workflow, result.task, result.result.value) for result in forked.results()] == [("again", "w", 0)]
    assert [task(forked, task_id).attempts for task_id in "wxy"] == [1, 0, 0]
    assert forked.signals == {}
    forked.claim()
    finish(forked, "x", 2)
    finish(forked, "y", 3)
    assert forked.status == "completed"
    assert stored(workflow) == document


def test_a_stopped_run_can_be_forked_since_it_cannot_be_recovered() -> None:
    workflow = a_workflow({"a": "x", "b": "y"})
    finish(workflow, "x")
    task(workflow, "y").start()
    workflow.stop()
    task(workflow, "y").skip()
    forked = create_restored_workflow(fork_snapshot(workflow.snapshot(), "v", phase="b", now=1))
    forked.claim()
    assert statuses(forked) == {"x": "completed", "y": "pending"}


def test_a_fork_needs_an_id_of_its_own_a_phase_and_all_ahead_of_it_over() -> None:
    document = half_done()
    for workflow_id, phase_id in (("w", "b"), ("", "b"), ("v", "d")):
        with pytest.raises(WorkflowError, match="one of these phases: a, b, c"):
            fork_snapshot(document, workflow_id, phase=phase_id, now=1)
    with pytest.raises(WorkflowError, match=r"phase 'b' ahead of it is running\. Begin with that one") as unfinished:
        fork_snapshot(document, "v", phase="c", now=1)
    assert unfinished.value.code == "RESTORE"
    failed = a_workflow({"a": "x", "b": "y"}, bail=True)
    task(failed, "x").start()
    task(failed, "x").fail("handler", "no")
    with pytest.raises(WorkflowError, match="phase 'a' ahead of it is failed"):
        fork_snapshot(failed.snapshot(), "v", phase="b", now=1)
