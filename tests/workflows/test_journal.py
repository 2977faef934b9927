"""Runs in a real file: what is there when their process ends at any moment, and who may drive them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from greenroom import Runtime, TaskController, WorkflowError, open_runtime
from greenroom.actors.workflow.events import RunEvents
from greenroom.actors.workflow.journal import RUN_TABLES, JournalWorkflowStore
from greenroom.protocol.errors import JournalError
from greenroom.protocol.workflows import Node, TaskDefinition, Workflow, WorkflowEvent, create_workflow
from greenroom.runtime.journal import Journal
from tests.journal.stage import opened, shell
from tests.workflows.stage import Handlers, behaving, seen

Tasks = dict[str, Callable[[TaskController], Any]]


class Hangs:
    """A behaviour that begins and does not end."""

    def __init__(self) -> None:
        self.begun = trio.Event()

    async def __call__(self, controller: TaskController) -> None:
        self.begun.set()
        await trio.sleep_forever()


async def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    definition = behaving({"a": "x y", "b": "z"})
    async with open_runtime(data=tmp_path / "journal") as runtime:
        result = await runtime.workflows.run(definition, functions=Handlers(definition))
        assert (result.status, result.durable, result.fault) == ("completed", True, UNSET)
        written = result.workflow.snapshot()
    async with open_runtime(data=tmp_path / "journal") as runtime:
        assert await store_of(runtime).get("w") == written
        (listed,) = await runtime.workflows.list(status=["completed"])
        assert (listed.id, listed.created, listed.updated) == ("w", written.created, written.updated)
        assert await store_of(runtime).get("other") is None


def store_of(runtime: Runtime) -> JournalWorkflowStore:
    store = runtime.workflows.store
    assert isinstance(store, JournalWorkflowStore)
    return store


@pytest.mark.parametrize("where", ["x", "y", "z"])
async def test_what_is_recorded_never_runs_again_and_what_was_cut_off_does(tmp_path: Path, where: str) -> None:
    """The end of the runtime suspends the run; `tests.stress kills` ends the process instead."""
    definition = behaving({"a": "x", "b": "y", "c": "z"})
    hangs = Hangs()
    first = Handlers(definition, **{where: hangs})
    async with open_runtime(data=tmp_path / "journal") as runtime:
        await runtime.workflows.start(definition, functions=first)
        await hangs.begun.wait()
    second = Handlers(definition)
    async with open_runtime(data=tmp_path / "journal", functions=second) as runtime:
        recovered = await runtime.workflows.recover_all()
        (run,) = recovered.runs
        assert (await run.wait()).status == "completed"
    done = "xyz"[: "xyz".index(where)]
    assert [task for task, _ in first.calls] == [*done, where]
    assert [task for task, _ in second.calls] == list("xyz"[len(done) :])


async def test_its_events_are_numbered_on_over_a_restart_and_replayed_from_a_cursor(tmp_path: Path) -> None:
    definition = behaving({"a": "x", "b": "y"})
    hangs = Hangs()
    async with open_runtime(data=tmp_path / "journal") as runtime:
        await runtime.workflows.start(definition, functions=Handlers(definition, y=hangs))
        await hangs.begun.wait()
    async with open_runtime(data=tmp_path / "journal", functions=Handlers(definition)) as runtime:
        run = await runtime.workflows.recover("w")
        await run.wait()
        events = [event async for event in run.events()]
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        assert [event.number async for event in run.events(after=5)] == list(range(6, len(events) + 1))
    async with open_runtime(data=tmp_path / "journal") as runtime:
        record = await runtime.workflows.look("w")
        assert [event async for event in record.events()] == events
        starts = [(event.task, event.attempt) for event in events if event.event == "start" and event.task]
        assert starts == [("x", 1), ("y", 1), ("y", 1)]


async def test_a_signal_and_the_end_of_a_sleep_outlast_the_process(tmp_path: Path) -> None:
    definition = behaving({"a": "x"}, tasks={"x": {"recoveries": 3}})
    now = [1000.0]
    sleeping = trio.Event()

    async def sleeps(controller: TaskController) -> Any:
        sleeping.set()
        await controller.sleep(3600)
        return await controller.signal("go")

    async with open_runtime(data=tmp_path / "journal", wall_clock=lambda: now[0]) as runtime:
        run = await runtime.workflows.start(definition, functions={"x": sleeps})
        await sleeping.wait()
        async for event in run.events():
            if event.event == "timer":
                break
        await run.signal("go", {"version": 4})
    now[0] += 4000
    async with open_runtime(data=tmp_path / "journal", wall_clock=lambda: now[0], functions={"x": sleeps}) as runtime:
        with trio.fail_after(5):
            (result,) = (await (await runtime.workflows.recover("w")).wait()).results
        assert result.result.value == {"version": 4}


async def test_the_same_start_is_the_same_run_over_a_restart_and_another_definition_is_refused(tmp_path: Path) -> None:
    definition = behaving({"a": "x"})
    handlers = Handlers(definition)
    for _ in range(2):
        async with open_runtime(data=tmp_path / "journal", functions=handlers) as runtime:
            run = await runtime.workflows.start(definition)
            assert (await run.wait()).status == "completed"
    assert handlers.calls == [("x", 1)]
    async with open_runtime(data=tmp_path / "journal", functions=handlers) as runtime:
        with pytest.raises(WorkflowError) as refused:
            await runtime.workflows.start(behaving({"a": "x", "b": ""}))
        assert refused.value.code == "TRANSITION"


async def test_a_run_is_driven_once_and_a_write_of_one_that_was_taken_over_fails(tmp_path: Path) -> None:
    definition = behaving({"a": "x"})
    async with open_runtime(data=tmp_path / "journal") as runtime:
        runner, store = runtime.workflows.runner, store_of(runtime)
        begun, gate = trio.Event(), trio.Event()

        async def waits(_: TaskController) -> None:
            begun.set()
            await gate.wait()

        run = await runtime.workflows.start(definition, functions={"x": waits})
        await begun.wait()
        with pytest.raises(WorkflowError) as refused:
            await runner.execute(definition, functions={"x": waits}, store=store)
        assert refused.value.code == "TRANSITION"
        await store.delete("w")
        gate.set()
        result = await run.wait()
        assert result.durable is False
        assert result.fault is not UNSET
        assert "taken over" in result.fault.message
        assert await store.get("w") is None


async def test_a_second_process_cannot_even_open_the_file(tmp_path: Path) -> None:
    async with open_runtime(data=tmp_path / "journal"):
        with pytest.raises(JournalError) as refused:
            async with open_runtime(data=tmp_path / "journal"):
                raise AssertionError("it is owned")
        assert refused.value.code == "OWNED"


async def test_a_new_run_of_a_name_leaves_nothing_of_the_old_one(tmp_path: Path) -> None:
    now = [1000.0]
    async with open_runtime(data=tmp_path / "journal", wall_clock=lambda: now[0]) as runtime:
        runner, store = runtime.workflows.runner, store_of(runtime)
        for phases in ({"a": "x y z"}, {"b": "u"}):
            now[0] += 1
            definition = behaving(phases)
            await runner.execute(definition, functions=Handlers(definition), store=store)
        snapshot = await store.get("w")
        assert snapshot is not None
        assert seen(snapshot) == {"w": "completed", "b": "completed", "u": "completed"}
        numbers = [event.number for event in await store.events("w", after=0, limit=100)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert await store.last_event("w") == len(numbers)


async def test_pruning_forgets_runs_that_are_over_with_their_events_and_no_others(tmp_path: Path) -> None:
    now = [1000.0]
    async with open_runtime(data=tmp_path / "journal", wall_clock=lambda: now[0]) as runtime:
        for name in ("old", "new", "under way"):
            definition = behaving({"a": "x"}) | {"id": name}
            given: Tasks = {"x": Hangs()} if name == "under way" else {}
            run = await runtime.workflows.start(definition, functions=Handlers(definition, **given))
            if not given:
                await run.wait()
            now[0] += 100
        assert await runtime.workflows.prune(older_than=250) == 1
        assert [run.id for run in await runtime.workflows.list()] == ["new", "under way"]
        assert await store_of(runtime).events("old", after=0, limit=10) == []
        assert runtime.journal is not None
        assert [stream.name.split("/")[1] for stream in await runtime.journal.streams("runs/")] == ["new", "under way"]


async def test_a_row_that_is_no_run_is_refused_and_keeps_no_other_from_being_recovered(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    for name in ("good", "bad"):
        definition = behaving({"a": "x"}) | {"id": name}
        hangs = Hangs()
        async with open_runtime(data=path) as runtime:
            await runtime.workflows.start(definition, functions={"x": hangs})
            await hangs.begun.wait()
    shell(path, "UPDATE runs SET base = x'7b' WHERE id = 'bad'")
    async with open_runtime(data=path, functions={"x": lambda _: 1}) as runtime:
        recovered = await runtime.workflows.recover_all()
        assert [run.id for run in recovered.runs] == ["good"]
        assert recovered.refused.keys() == {"bad"}
        with pytest.raises(WorkflowError) as refused:
            await runtime.workflows.recover("bad")
        assert refused.value.code == "RESTORE"


ODD = {"big": 2**80, "text": "ü\0😀", "deep": [[[{}]]], "float": 1e300}


async def test_whatever_is_json_comes_back_as_it_was(tmp_path: Path) -> None:
    definition = behaving({"a": "x"}, tasks={"x": {"input": ODD}})
    async with open_runtime(data=tmp_path / "journal") as runtime:
        result = await runtime.workflows.run(definition, functions={"x": lambda controller: controller.input})
        assert result.durable
    async with open_runtime(data=tmp_path / "journal") as runtime:
        snapshot = await store_of(runtime).get("w")
        assert snapshot is not None
        (task,) = snapshot.phases[0].tasks
        assert task.metadata == ODD
        assert task.result is not UNSET
        assert task.result.result.value == ODD
        assert [event.event for event in await store_of(runtime).events("w", after=0, limit=100)][-1] == "complete"


# -------------------------------------------------------------------- change by change, against the whole


Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "start",
                "complete",
                "fail",
                "skip",
                "report",
                "add",
                "insert",
                "remove",
                "phase",
                "stop",
                "signal",
                "write",
            ]
        ),
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_rows_always_make_up_the_snapshot_that_the_run_had(steps: list[Step]) -> None:
    async def main() -> None:
        async with opened(":memory:", *RUN_TABLES) as journal:
            await _replay(journal, steps)

    trio.run(main)


async def _replay(journal: Journal, steps: list[Step]) -> None:
    store = JournalWorkflowStore(journal)
    workflow = create_workflow(behaving({"a": "x y", "b": "z", "c": ""}), functions=dict.fromkeys("xyz", print))
    shown = RunEvents("w")
    record = await store.record(workflow, shown)
    number = 0

    def heard(node: Node, event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal number
        number += 1
        name = next((each.id for each in arguments if hasattr(each, "id")), UNSET)
        record.note(WorkflowEvent(number=number, time=1, event=event, name=name), node)

    workflow.watch(heard)
    await record.required("initial", None)
    for action, first, second in steps:
        _act(workflow, action, first, second)
        if action == "write":
            await record.required(None, None)
            assert await store.get("w") == workflow.snapshot()
    await record.required("final", None)
    await record.close()
    assert await store.get("w") == workflow.snapshot()
    events = await store.events("w", after=0, limit=1000)
    assert [event.number for event in events] == list(range(1, number + 1))


def _act(workflow: Workflow, action: str, first: int, second: int) -> None:
    phases = workflow.phases
    phase = phases[first % len(phases)]
    tasks = phase.tasks
    task = tasks[second % len(tasks)] if tasks else None
    new = TaskDefinition(id=f"n{len(tasks)}-{second}", name="n", behavior="x")
    try:
        match action:
            case "start" | "skip" if task is not None:
                getattr(task, action)()
            case "complete" if task is not None:
                task.complete({"n": second})
            case "fail" if task is not None:
                task.fail("handler", "no")
            case "report" if task is not None:
                task.report({"note": "n"})
            case "add":
                phase.add(new)
            case "insert":
                phase.add(new, 0)
            case "remove" if task is not None:
                phase.remove(task.id)
            case "phase":
                phase.skip()
            case "stop" if first == second == 2:
                workflow.stop()
            case "signal":
                workflow.signal("go", second)
            case _:
                pass
    except WorkflowError:
        pass
