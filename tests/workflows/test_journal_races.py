"""What comes in between while a run is kept in a journal: others who write it, a file that cannot be written, and runs
larger than what memory keeps of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from msgspec import UNSET

from greenroom import Runtime, TaskController, WorkflowError, open_runtime
from greenroom.actors.workflow.events import RunEvents
from greenroom.actors.workflow.journal import RUN_TABLES, JournalWorkflowStore
from greenroom.protocol.workflows import (
    Workflow,
    WorkflowEvent,
    create_restored_workflow,
    create_workflow,
    read_snapshot,
)
from tests.durable.stage import refusing
from tests.journal.stage import opened
from tests.workflows.stage import Handlers, behaving, seen

ONE = behaving({"a": "x"})


def store_of(runtime: Runtime) -> JournalWorkflowStore:
    store = runtime.workflows.store
    assert isinstance(store, JournalWorkflowStore)
    return store


class Gated:
    """A behaviour that says when it has begun, and waits until it is let go on."""

    def __init__(self) -> None:
        self.begun = trio.Event()
        self.gate = trio.Event()

    async def __call__(self, controller: TaskController) -> str:
        self.begun.set()
        await self.gate.wait()
        return controller.task.id


# -------------------------------------------------------------------- runs of one name


async def test_runs_of_one_name_that_were_made_at_the_same_moment_are_told_apart() -> None:
    async with open_runtime(data=":memory:", wall_clock=lambda: 1000.0) as runtime:
        for _ in range(2):
            result = await runtime.workflows.runner.execute(ONE, functions=Handlers(ONE), store=store_of(runtime))
            assert (result.status, result.durable, result.fault) == ("completed", True, UNSET)
            numbers = [event.number for event in await store_of(runtime).events("w", after=0, limit=100)]
            assert numbers == list(range(1, len(numbers) + 1))


async def test_a_further_run_of_a_name_counts_its_events_anew() -> None:
    async with open_runtime(data=":memory:") as runtime:
        for phases in ({"a": "x y"}, {"b": "z"}):
            definition = behaving(phases)
            workflow = create_workflow(definition, functions=Handlers(definition))
            await runtime.workflows.run(workflow)
        events = [event async for event in (await runtime.workflows.look("w")).events()]
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        assert {event.task for event in events} == {"z", UNSET}
        assert await store_of(runtime).events("w", after=0, limit=100) == events


async def test_pruning_deletes_the_events_of_runs_in_whose_place_others_have_come() -> None:
    async with open_runtime(data=":memory:") as runtime:
        for _ in range(2):
            await runtime.workflows.runner.execute(ONE, functions=Handlers(ONE), store=store_of(runtime))
        assert runtime.journal is not None
        assert len(await runtime.journal.streams("runs/")) == 2
        assert await runtime.workflows.prune(older_than=1000) == 0
        (left,) = await runtime.journal.streams("runs/")
        assert left.last == await store_of(runtime).last_event("w") - 1


async def test_pruning_spares_a_run_that_has_come_in_the_place_of_an_old_one() -> None:
    now = [1000.0]
    async with open_runtime(data=":memory:", wall_clock=lambda: now[0]) as runtime:
        store = store_of(runtime)
        await runtime.workflows.run(ONE, functions=Handlers(ONE))
        now[0] += 1000
        later = create_workflow(ONE, functions=Handlers(ONE), clock=lambda: now[0])
        later.skip()
        async with trio.open_nursery() as nursery:
            pruned: list[int] = []

            async def prune() -> None:
                pruned.append(await store.prune(older_than=500))

            nursery.start_soon(prune)
            await trio.lowlevel.checkpoint()
            nursery.start_soon(store.set, later.snapshot())
        snapshot = await store.get("w")
        assert snapshot is not None
        assert snapshot.created == 2_000_000


# -------------------------------------------------------------------- who else writes it


async def test_saving_a_run_that_is_under_way_takes_nothing_of_it_back() -> None:
    definition = behaving({"a": "x", "b": "y"})
    gated = Gated()
    async with open_runtime(data=":memory:") as runtime:
        run = await runtime.workflows.start(definition, functions=Handlers(definition, y=gated))
        await gated.begun.wait()
        earlier = create_workflow(definition, clock=lambda: run.workflow.created / 1000).snapshot()
        await store_of(runtime).set(earlier)
        stored = await store_of(runtime).get("w")
        assert stored is not None
        assert seen(stored)["x"] == "completed"
        assert await runtime.workflows.save("w")
        gated.gate.set()
        assert (await run.wait()).durable


async def test_a_run_that_is_under_way_is_not_replaced() -> None:
    gated = Gated()
    async with open_runtime(data=":memory:") as runtime:
        await runtime.workflows.start(ONE, functions=Handlers(ONE, x=gated))
        other = create_workflow(ONE, clock=lambda: 1.0).snapshot()
        with pytest.raises(WorkflowError, match="under way") as refused:
            await store_of(runtime).set(other)
        assert refused.value.code == "TRANSITION"


async def test_a_start_returns_once_the_run_is_stored() -> None:
    gated = Gated()
    async with open_runtime(data=":memory:") as runtime:
        await runtime.workflows.start(ONE, functions=Handlers(ONE, x=gated))
        assert await store_of(runtime).get("w") is not None


async def test_a_signal_before_the_first_write_is_stored_when_it_was_sent() -> None:
    workflow = create_workflow(ONE, functions=Handlers(ONE, x=Gated()))
    async with open_runtime(data=":memory:") as runtime:
        run = runtime.workflows.runner.launch(workflow, store=store_of(runtime), lasting=True)
        await run.signal("go", 1)
        stored = await store_of(runtime).get("w")
        assert stored is not None
        assert stored.signals == {"go": 1}


# -------------------------------------------------------------------- a file that cannot be written


async def test_on_a_file_that_cannot_be_written_a_run_stops_and_what_was_recorded_is_taken_up(tmp_path: Path) -> None:
    definition = behaving({"a": "x", "b": "y", "c": "z"})
    gated = Gated()
    first = Handlers(definition, y=gated)
    async with open_runtime(data=tmp_path / "journal") as runtime:
        run = await runtime.workflows.start(definition, functions=first)
        await gated.begun.wait()
        with refusing(runtime):
            gated.gate.set()
            result = await run.wait()
        assert (result.status, result.durable) == ("stopped", False)
        assert result.fault is not UNSET
        assert (result.fault.checkpoint, result.fault.task) == ("settlement", "y")
        assert "readonly" in result.fault.message
        # It was to be seen as it ended, and was never recorded so.
        assert "stop" in [event.event async for event in run.events()]
    second = Handlers(definition)
    async with open_runtime(data=tmp_path / "journal", functions=second) as runtime:
        (recovered,) = (await runtime.workflows.recover_all()).runs
        assert (await recovered.wait()).status == "completed"
        numbers = [event.number async for event in recovered.events()]
        assert numbers == list(range(1, len(numbers) + 1))
    assert first.calls == [("x", 1), ("y", 1)]
    assert [task for task, _ in second.calls] == ["y", "z"]


@pytest.mark.parametrize("begins", [True, False])
async def test_on_a_full_disk_nothing_begins_that_is_not_recorded(tmp_path: Path, begins: bool) -> None:
    definition = behaving({"a": "x", "b": "y"})
    gated = Gated()
    handlers = Handlers(definition, x=gated)
    async with open_runtime(data=tmp_path / "journal") as runtime:
        writer = runtime.journal._writer._file.writer  # type: ignore[union-attr]  # there is one
        if begins:
            await runtime.workflows.start(definition, functions=handlers)
            await gated.begun.wait()
        writer.execute("PRAGMA max_page_count = 1")  # which means: no page more than there are
        writer.execute("PRAGMA user_version = 1")
        big = definition | {"description": "long" * 20_000}
        result = await runtime.workflows.run(big | {"id": "big"}, functions=handlers)
        assert (result.status, result.durable) == ("stopped", False)
        assert result.fault is not UNSET
        assert result.fault.checkpoint == "initial"
        assert "full" in result.fault.message
        writer.execute("PRAGMA max_page_count = 1000000")
        gated.gate.set()
        assert (await runtime.workflows.run(definition, functions=handlers)).durable
        assert [each.id for each in await runtime.workflows.list()] == ["w"]
    assert handlers.calls == [("x", 1), ("y", 1)]


async def test_a_write_that_nobody_waits_for_is_made_good_by_the_next() -> None:
    gated = Gated()
    async with open_runtime(data=":memory:") as runtime:
        run = await runtime.workflows.start(ONE, functions=Handlers(ONE, x=gated))
        await gated.begun.wait()
        (task,) = run.workflow.phases[0].tasks
        with refusing(runtime):
            task.report({"note": "half"})
            await runtime.journal.select("SELECT 1")  # type: ignore[union-attr]  # there is one
            await trio.testing.wait_all_tasks_blocked()
        gated.gate.set()
        result = await run.wait()
        assert (result.durable, result.fault) == (True, UNSET)
        assert "report" in [event.event for event in await store_of(runtime).events("w", after=0, limit=100)]


# -------------------------------------------------------------------- what is shown of it


def happened(events: RunEvents, workflow: Workflow, count: int) -> list[WorkflowEvent]:
    told = [
        WorkflowEvent(number=events.last + number, time=1, event="signal", name="go") for number in range(1, count + 1)
    ]
    for event in told:
        events.append(event)
    return told


async def test_an_event_is_shown_once_it_is_stored() -> None:
    workflow = create_workflow(ONE)
    async with opened(":memory:", *RUN_TABLES) as journal:
        events = RunEvents("w")
        record = await JournalWorkflowStore(journal).record(workflow, events)
        await record.required("initial", None)
        (event,) = happened(events, workflow, 1)
        record.note(event, workflow)
        assert await events.page(0) == []
        await record.required(None, None)
        assert await events.page(0) == [event]
        await record.close()


async def test_more_events_at_once_than_memory_keeps_are_all_told() -> None:
    workflow = create_workflow(ONE)
    async with opened(":memory:", *RUN_TABLES) as journal:
        store = JournalWorkflowStore(journal)
        events = RunEvents("w", kept=3, older=lambda after, limit: store.events("w", after=after, limit=limit))
        record = await store.record(workflow, events)
        await record.required("initial", None)
        told = happened(events, workflow, 20)
        for event in told:
            record.note(event, workflow)
        assert await events.page(0) == []
        await record.required("final", None)
        events.close()
        assert [event async for event in events.follow()] == told
        await record.close()


def test_a_run_may_hold_more_than_a_definition_may() -> None:
    workflow = create_workflow(behaving({}))
    for name in "xy":
        given: Any = {"id": name, "name": name, "tasks": [{"id": name, "name": name, "input": {"n": [0] * 200_000}}]}
        workflow.add(given)
    snapshot = workflow.snapshot()
    assert read_snapshot(snapshot) == snapshot
    assert create_restored_workflow(snapshot).snapshot() == snapshot
