"""A live workflow: order of phases, results, pinning, pausing, destroying, claiming, and what is announced when."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

import pytest

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows import (
    NO_MESSAGE,
    Node,
    PhaseOptions,
    TaskOptions,
    TaskResult,
    create_workflow,
)
from tests.workflows.trees import Ticking, a_workflow, definition, made, overhear, phase, refused, task


def play(workflow: Any, task_id: str, value: Any = None) -> None:
    """Start a task and complete it."""
    playing = task(workflow, task_id)
    playing.start()
    playing.complete(value)


# ---------------------------------------------------------------- announcements


@pytest.mark.case("workflows", 31)
def test_a_cause_is_announced_before_what_it_causes() -> None:
    workflow = a_workflow({"a": "t u", "b": "v"})
    heard = overhear(workflow)
    task(workflow, "t").start()
    task(workflow, "u").start()
    task(workflow, "t").complete(1)
    task(workflow, "u").complete(2)
    play(workflow, "v")
    assert " ".join(heard) == (
        "t.start a.start w.start u.start t.complete u.complete a.complete v.start b.start v.complete b.complete"
        " w.complete"
    )


def test_what_a_listener_sets_off_is_announced_behind_what_set_it_off() -> None:
    workflow = a_workflow({"a": "t"})
    heard = overhear(workflow)
    second: list[str] = []
    emitter = task(workflow, "t").emitter
    emitter.on("start", lambda *_: task(workflow, "t").complete(None))
    emitter.on("start", lambda *_: second.append("start"))
    emitter.on("complete", lambda *_: second.append("complete"))
    task(workflow, "t").start()
    assert " ".join(heard) == "t.start a.start w.start t.complete a.complete w.complete"
    assert second == ["start", "complete"]


def test_a_listener_sees_the_whole_change_already_made() -> None:
    workflow = a_workflow({"a": "t"})
    seen: list[str] = []
    task(workflow, "t").emitter.on("start", lambda *_: seen.append(workflow.snapshot().status))
    task(workflow, "t").start()
    assert seen == ["running"]


def test_a_raising_listener_is_reported_and_alters_nothing() -> None:
    errors: list[tuple[str, str]] = []

    def told(error: Exception, event: str) -> None:
        errors.append((str(error), event))

    def raising(*_: Any) -> None:
        raise ValueError("listener")

    options = {"a": PhaseOptions(tasks={"t": TaskOptions(on={"start": raising}, error=told)})}
    workflow = a_workflow({"a": "t"}, on={"start": raising}, error=told, phases=options)
    workflow.watch(raising)
    heard = overhear(workflow)
    play(workflow, "t")
    assert errors[:2] == [("listener", "start"), ("listener", "change")]
    assert " ".join(heard) == "t.start a.start w.start t.complete a.complete w.complete"
    assert workflow.status == "completed"


def test_a_listener_gets_results_that_are_its_own() -> None:
    workflow = a_workflow({"a": "t"})

    def spoil(result: TaskResult) -> None:
        result.result.value.append("spoilt")

    task(workflow, "t").emitter.on("complete", spoil)
    play(workflow, "t", ["whole"])
    assert workflow.results()[0].result.value == ["whole"]
    workflow.results()[0].result.value.append("spoilt")
    assert workflow.results()[0].result.value == ["whole"]


def test_the_failure_of_a_group_carries_its_first_failing_result() -> None:
    workflow = a_workflow({"a": "x y"}, bail=True)
    failures: list[Any] = []
    phase(workflow, "a").emitter.on("fail", failures.append)
    workflow.emitter.on("fail", failures.append)
    for task_id in ("x", "y"):
        task(workflow, task_id).start()
    task(workflow, "y").fail("timeout", "late")
    assert (phase(workflow, "a").status, failures) == ("running", [])
    task(workflow, "x").fail("no such origin", "")
    assert failures == [task(workflow, "x").result] * 2
    assert failures[0].result.error.origin == "handler"
    assert failures[0].result.error.message == NO_MESSAGE


def test_a_message_that_no_json_can_hold_is_kept_legible() -> None:
    workflow = a_workflow({"a": "x"})
    task(workflow, "x").start()
    task(workflow, "x").fail("handler", "file \udce9.txt")
    (result,) = workflow.snapshot().phases[0].tasks
    assert result.result.result.error.message == "file \\udce9.txt"  # type: ignore[union-attr]  # it has failed


# ---------------------------------------------------------------- order, results, attempts


@pytest.mark.case("workflows", 33)
def test_results_are_listed_in_the_order_of_the_tasks() -> None:
    workflow = a_workflow({"a": "slow fast", "b": "last"})
    for task_id in ("slow", "fast"):
        task(workflow, task_id).start()
    task(workflow, "fast").complete(1)
    task(workflow, "slow").complete(2)
    play(workflow, "last")
    assert [(result.task, result.phase, result.result.value) for result in workflow.results()] == [
        ("slow", "a", 2),
        ("fast", "a", 1),
        ("last", "b", None),
    ]


def test_a_phase_begins_only_once_the_one_ahead_is_over() -> None:
    workflow = a_workflow({"a": "x", "empty": "", "b": "y"})
    with pytest.raises(WorkflowError, match="phase 'a' ahead of it is pending") as raised:
        task(workflow, "y").start()
    assert raised.value.code == "TRANSITION"
    play(workflow, "x")
    assert task(workflow, "y").start() == 1


def test_nothing_starts_once_the_phase_or_the_workflow_is_over() -> None:
    pinned = a_workflow({"a": "x", "b": "y"})
    phase(pinned, "a").skip()
    with pytest.raises(WorkflowError, match="phase 'a' is skipped"):
        task(pinned, "x").start()
    task(pinned, "y").start()
    failed = a_workflow({"a": "x", "b": "y"}, bail=True)
    task(failed, "x").start()
    task(failed, "x").fail("handler", "no")
    with pytest.raises(WorkflowError, match="workflow 'w' is failed"):
        task(failed, "y").start()


def test_each_attempt_begins_with_an_empty_frame_and_hands_the_last_one_on() -> None:
    workflow = create_workflow(
        {
            "id": "w",
            "name": "w",
            "phases": [{"id": "a", "name": "a", "tasks": [{"id": "x", "name": "x", "retries": 1}]}],
        },
        clock=Ticking(),
    )
    trying = task(workflow, "x")
    assert trying.start() == 1
    made(trying.report({"note": "half"}))
    assert trying.timer("nap", 5000) == 5000
    assert trying.start() == 2
    assert (trying.activity.note or None, trying.previous.note) == (None, "half")  # type: ignore[union-attr]  # it runs
    assert trying.timer("nap", 9000) == 9000
    with pytest.raises(WorkflowError, match="its 2 attempts are used up"):
        trying.start()
    trying.complete(None)
    assert not trying.previous
    assert not trying.snapshot().timers


def test_a_value_that_is_no_json_leaves_the_task_running() -> None:
    workflow = a_workflow({"a": "x"})
    running = task(workflow, "x")
    running.start()
    with pytest.raises(WorkflowError, match="is of a type that JSON lacks") as raised:
        running.complete({"when": {1, 2}})
    assert (raised.value.code, running.status) == ("RESTORE", "running")
    value = [1]
    running.complete(value)
    value.append(2)
    assert workflow.results()[0].result.value == [1]


def test_a_key_names_a_task_and_no_other() -> None:
    odd = {"id": "w/1", "name": "w", "phases": [{"id": "a%", "name": "a", "tasks": [{"id": "/x", "name": "x"}]}]}
    workflow = create_workflow(odd)
    assert task(workflow, "/x").key == "w%2F1/a%25/%2Fx"
    assert task(a_workflow({"a": "x"}), "x").key == "w/a/x"


def test_a_task_is_given_its_input_or_what_the_host_says_instead() -> None:
    said = definition({"a": "x y"})
    for each in said["phases"][0]["tasks"]:
        each["input"] = {"from": "definition"}
    workflow = create_workflow(said, phases={"a": PhaseOptions(tasks={"y": TaskOptions(metadata={"from": "host"})})})
    assert [each.metadata for each in phase(workflow, "a").tasks] == [{"from": "definition"}, {"from": "host"}]
    task(workflow, "x").metadata["spoilt"] = True
    assert task(workflow, "x").metadata == {"from": "definition"}
    assert task(a_workflow({"a": "x"}), "x").metadata == {}


def test_options_for_what_is_not_there_are_refused() -> None:
    with pytest.raises(WorkflowError, match="options for task 'z', which phase 'a' does not have; it has: x"):
        a_workflow({"a": "x"}, phases={"a": PhaseOptions(tasks={"z": TaskOptions()})})
    with pytest.raises(WorkflowError, match="phase 'b'"):
        a_workflow({"a": "x"}, phases={"b": PhaseOptions()})
    with pytest.raises(WorkflowError) as raised:
        a_workflow({"a": "x"}, phases={"a": PhaseOptions(tasks={"x": TaskOptions(metadata={"bad": {1}})})})
    assert raised.value.code == "RESTORE"


@pytest.mark.parametrize(("option", "phases"), [(None, [True, False, True]), (True, [True] * 3), (False, [False] * 3)])
def test_an_explicit_bail_beats_every_phase_and_the_definition_only_fills_gaps(
    option: bool | None, phases: list[bool]
) -> None:
    said = definition({"a": "x", "b": "y", "c": "z"}, bail=True)
    said["phases"][1]["bail"] = False
    assert [each.bail for each in create_workflow(said, bail=option).phases] == phases


def test_silence_is_inherited_and_a_task_may_be_free_of_it() -> None:
    options = {"a": PhaseOptions(tasks={"y": TaskOptions(silence=2), "z": TaskOptions(silence=0)})}
    workflow = a_workflow({"a": "x y z"}, silence=30, phases=options)
    assert [each.silence for each in phase(workflow, "a").tasks] == [30, 2, None]
    assert task(a_workflow({"a": "x"}, silence=float("inf")), "x").silence is None


def test_falling_silent_is_announced_of_a_running_task_alone() -> None:
    workflow = a_workflow({"a": "x"})
    heard = overhear(workflow)
    task(workflow, "x").fall_silent()
    task(workflow, "x").start()
    task(workflow, "x").fall_silent()
    task(workflow, "x").stop()
    task(workflow, "x").fall_silent()
    assert heard.count("x.silence") == 1


# ---------------------------------------------------------------- reports, timers, signals


def test_a_report_replaces_the_whole_frame_and_a_pulse_renews_it() -> None:
    workflow = a_workflow({"a": "x"})
    running = task(workflow, "x")
    running.start()
    item = {"id": "o", "name": "download", "started": 5}
    made(running.report({"note": "n", "progress": {"current": 1, "total": 2, "unit": "files"}}))
    made(running.report({"operations": [item], "constraints": [item]}))
    frame = running.activity
    assert frame
    assert (frame.note or None, [each.name for each in frame.operations]) == (None, ["download"])
    assert running.pulse()
    assert running.activity
    assert running.activity.updated > frame.updated
    assert running.activity.operations == frame.operations


@pytest.mark.parametrize(
    "report",
    [
        {"unknown": 1},
        {"note": None},
        {"progress": {"current": -1}},
        {"progress": {"current": 3, "total": 2}},
        {"progress": {"current": True}},
        {"progress": {"current": float("inf")}},
        {"operations": [{"id": "a", "name": "a", "started": 1}] * 2},
        {"constraints": [{"id": "a", "name": "", "started": 1}]},
        {"operations": None},
        None,
        "note",
    ],
)
def test_a_malformed_report_is_refused_and_the_old_frame_stays(report: Any) -> None:
    workflow = a_workflow({"a": "x"})
    running = task(workflow, "x")
    running.start()
    made(running.report({"note": "old"}))
    frame = running.activity
    refused(running.report(report), "This report was not taken")
    assert running.activity == frame


def test_only_a_running_task_reports_pulses_and_sleeps() -> None:
    workflow = a_workflow({"a": "x"})
    pending = task(workflow, "x")
    refused(pending.report({}), "only a running task", code="TRANSITION")
    assert not pending.pulse()
    with pytest.raises(WorkflowError) as asleep:
        pending.timer("nap", 1)
    assert asleep.value.code == "TRANSITION"


def test_a_sleep_keeps_the_time_that_it_was_given_first() -> None:
    workflow = a_workflow({"a": "x"})
    running = task(workflow, "x")
    running.start()
    heard = overhear(workflow)
    assert [running.timer("nap", 7000), running.timer("nap", 9000), running.timer("other", 1)] == [7000, 7000, 1]
    assert heard == ["x.timer", "x.timer"]
    for name, wake in (("", 1), ("nap", -1)):
        with pytest.raises(WorkflowError) as raised:
            running.timer(name, wake)
        assert raised.value.code == "SCHEDULE"


def test_a_signal_is_kept_for_all_and_the_last_of_its_name_counts() -> None:
    workflow = a_workflow({"a": "x"})
    heard: list[Any] = []
    workflow.emitter.on("signal", lambda *args: heard.append(args))
    value = {"by": ["ann"]}
    workflow.signal("approved", value)
    value["by"].append("bob")
    workflow.signal("approved", None)
    workflow.signal("go", 1)
    assert heard == [("approved", {"by": ["ann"]}), ("approved", None), ("go", 1)]
    assert workflow.signals == {"approved": None, "go": 1} == workflow.snapshot().signals
    with pytest.raises(WorkflowError) as unreadable:
        workflow.signal("bad", {1})
    workflow.stop()
    with pytest.raises(WorkflowError) as late:
        workflow.signal("go", 2)
    assert (unreadable.value.code, late.value.code) == ("RESTORE", "TRANSITION")


# ---------------------------------------------------------------- pinning and destroying


def test_a_stopped_workflow_lets_running_tasks_record() -> None:
    workflow = a_workflow({"a": "x y"})
    task(workflow, "x").start()
    workflow.stop()
    task(workflow, "x").complete("kept")
    task(workflow, "y").skip()
    assert (workflow.status, phase(workflow, "a").status, len(workflow.results())) == ("stopped", "completed", 1)


def test_a_stopped_phase_lets_later_phases_run_and_stops_the_workflow_in_the_end() -> None:
    workflow = a_workflow({"a": "x", "b": "y"})
    task(workflow, "x").start()
    phase(workflow, "a").stop()
    assert workflow.status == "running"
    play(workflow, "y")
    assert (phase(workflow, "a").status, workflow.status) == ("stopped", "stopped")


def test_a_stop_before_the_sweep_is_told_first_and_stands() -> None:
    workflow = a_workflow({"a": "t", "b": "v"})
    task(workflow, "t").start()
    heard = overhear(workflow)
    workflow.stop()
    task(workflow, "t").skip()
    task(workflow, "v").skip()
    assert " ".join(heard) == "w.stop t.skip a.skip v.skip b.skip"
    assert workflow.status == "stopped"


def test_pinning_what_is_over_does_nothing() -> None:
    workflow = a_workflow({"a": "x"})
    play(workflow, "x")
    snapshot, heard = workflow.snapshot(), overhear(workflow)
    for node in (workflow, phase(workflow, "a")):
        node.stop()
        node.skip()
    workflow.complete()
    assert (workflow.snapshot(), heard) == (snapshot, [])


def test_a_phase_without_tasks_holds_nobody_up() -> None:
    workflow = a_workflow({"first": "", "a": "x", "last": ""})
    play(workflow, "x")
    assert workflow.status == "completed"
    assert phase(workflow, "last").status == "pending"
    phase(workflow, "last").stop()
    assert workflow.status == "completed"
    workflow.snapshot()


@pytest.mark.parametrize("phases", [{}, {"a": "", "b": ""}])
def test_a_workflow_without_tasks_can_be_completed(phases: dict[str, str]) -> None:
    workflow = a_workflow(phases)
    workflow.claim()
    heard = overhear(workflow)
    workflow.complete()
    assert (workflow.status, workflow.results(), heard) == ("completed", (), ["w.complete"])
    assert all(each.status == "pending" for each in workflow.phases)
    assert workflow.snapshot().override == "completed"


def test_a_workflow_with_tasks_is_completed_by_them_alone() -> None:
    with pytest.raises(WorkflowError, match="has tasks") as raised:
        a_workflow({"a": "", "b": "x"}).complete()
    assert raised.value.code == "TRANSITION"


def test_skipping_stopping_and_destroying_end_the_attempt_in_progress() -> None:
    workflow = a_workflow({"a": "x y z"})
    ended: list[str] = []
    for each in phase(workflow, "a").tasks:
        each.on_cancel = partial(ended.append, each.id)
        each.start()
    workflow.on_cancel = lambda: ended.append("w")
    task(workflow, "x").skip()
    task(workflow, "y").stop()
    workflow.destroy()
    assert ended == ["x", "y", "z", "w"]


@pytest.mark.case("workflows", 27)
def test_destroying_stops_all_that_is_not_over_and_falls_silent() -> None:
    workflow = a_workflow({"a": "done", "b": "running pending", "c": "later"})
    play(workflow, "done")
    task(workflow, "running").start()
    heard = overhear(workflow)
    workflow.destroy()
    workflow.destroy()
    assert workflow.destroyed
    assert workflow.status == "stopped"
    assert [each.status for each in workflow.phases] == ["completed", "stopped", "stopped"]
    assert [each.status for part in workflow.phases for each in part.tasks] == ["completed", *["stopped"] * 3]
    assert " ".join(heard) == "w.stop b.stop c.stop running.stop pending.stop later.stop"
    assert workflow.snapshot().override == "stopped"
    nodes = [workflow, *workflow.phases, *(each for part in workflow.phases for each in part.tasks)]
    assert all(node.emitter.closed for node in nodes)


def test_destroying_what_is_over_changes_nothing_but_is_remembered() -> None:
    workflow = a_workflow({"a": "x", "empty": ""})
    play(workflow, "x")
    snapshot = workflow.snapshot()
    workflow.destroy()
    assert workflow.snapshot() == snapshot


# ---------------------------------------------------------------- pausing


def test_a_gate_is_closed_by_pausing_and_lets_those_pass_who_wait() -> None:
    workflow = a_workflow({"a": "x"})
    heard = overhear(workflow)
    passed: list[str] = []
    for node in (workflow, phase(workflow, "a"), task(workflow, "x")):
        node.gate.on_open(lambda: passed.append("at once"))
        node.pause()
        node.pause()
        node.gate.on_open(lambda: passed.append("later"))
        node.gate.on_open(lambda: passed.append("never"))()
        assert (node.paused, passed) == (True, ["at once"])
        node.resume()
        node.resume()
        assert passed == ["at once", "later"]
        passed.clear()
    assert " ".join(heard) == "w.pause w.resume a.pause a.resume x.pause x.resume"


def test_whoever_waits_at_a_gate_passes_when_the_node_is_over() -> None:
    workflow = a_workflow({"a": "x"})
    nodes: list[Node] = [workflow, phase(workflow, "a"), task(workflow, "x")]
    passed: list[str] = []
    for node in nodes:
        node.pause()
        node.gate.on_open(partial(passed.append, node.id))
    heard = overhear(workflow)
    task(workflow, "x").skip()
    assert passed == ["x", "a", "w"]
    for node in nodes:
        node.pause()
        node.resume()
    assert heard == ["x.skip", "a.skip", "w.skip"]


def test_pausing_is_not_stored() -> None:
    workflow = a_workflow({"a": "x"})
    snapshot = workflow.snapshot()
    workflow.pause()
    task(workflow, "x").pause()
    assert workflow.snapshot() == snapshot


# ---------------------------------------------------------------- claiming


def refused_claim(workflow: Any, reason: str) -> None:
    with pytest.raises(WorkflowError, match=reason) as raised:
        workflow.claim()
    assert raised.value.code == "TRANSITION"
    assert raised.value.context == {"id": "w", "status": workflow.status, "destroyed": workflow.destroyed}


def test_a_workflow_is_claimed_once() -> None:
    workflow = a_workflow({"a": "x"})
    workflow.claim()
    refused_claim(workflow, "run before")


def test_what_cannot_be_run_cannot_be_claimed() -> None:
    over, destroyed, begun, swept = (a_workflow({"a": "x"}) for _ in range(4))
    play(over, "x")
    refused_claim(over, "it is completed")
    destroyed.destroy()
    refused_claim(destroyed, "destroyed")
    task(begun, "x").start()
    refused_claim(begun, "task 'w/a/x' is running")
    phase(swept, "a").skip()
    refused_claim(swept, "it is skipped")


@pytest.mark.parametrize("name", ["missing", "__class__", "__proto__", "get", "constructor"])
def test_a_name_that_stands_for_nothing_is_found_before_anything_happens(name: str) -> None:
    said = definition({"a": "x"})
    said["phases"][0]["tasks"][0]["behavior"] = name
    minting: defaultdict[str, Any] = defaultdict(lambda: print, known=print)
    workflow = create_workflow(said, functions=minting)
    heard = overhear(workflow)
    refused_claim(workflow, f"no function '{name}' for task 'w/a/x'; there are: known")
    assert heard == []
    create_workflow(said, functions={name: print}).claim()
    refused_claim(create_workflow(said, functions={name: 1}), "no function")


def test_handlers_are_looked_up_when_the_workflow_is_built() -> None:
    said = definition({"a": "x"})
    said["phases"][0]["tasks"][0]["behavior"] = "b"
    functions: dict[str, Any] = {"b": print}
    workflow = create_workflow(said, functions=functions)
    functions.clear()
    assert task(workflow, "x").handler is print
    workflow.claim()
