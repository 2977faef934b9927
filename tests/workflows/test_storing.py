"""What is stored of a run, when, and what becomes of a run that cannot be stored."""

from __future__ import annotations

from math import inf, nan
from typing import Any, cast

import pytest
import trio
from msgspec import UNSET
from trio.testing import MockClock, wait_all_tasks_blocked

from greenroom import MemoryWorkflowStore, TaskController, WorkflowError, WorkflowSnapshot, open_runtime
from greenroom.protocol.workflows import PersistenceFault, WorkflowResult
from tests.workflows.stage import Faulty, Handlers, behaving, built, opened, seen, statuses


async def run(definition: dict[str, Any], store: Faulty, handlers: Handlers | None = None) -> WorkflowResult:
    async with opened() as runtime:
        functions = Handlers(definition) if handlers is None else handlers
        return await runtime.workflows.runner.execute(definition, functions=functions, store=store)


def fault(result: WorkflowResult) -> PersistenceFault:
    assert isinstance(result.fault, PersistenceFault)
    return result.fault


@pytest.mark.case("workflows", 34)
async def test_each_step_is_stored_before_the_next_one_write_at_a_time(autojump_clock: MockClock) -> None:
    store = Faulty()
    result = await run(behaving({"a": "x"}), store)
    kept = [snapshot.status for snapshot in store.writes]
    assert list(dict.fromkeys(kept)) == ["pending", "running", "completed"]
    assert store.most == 1
    assert (result.durable, result.fault) == (True, UNSET)


async def test_a_run_without_a_store_says_nothing_of_storing(autojump_clock: MockClock) -> None:
    async with opened() as runtime:
        result = await runtime.workflows.run(behaving({"a": "x"}), functions={"x": lambda _: None})
    assert (result.durable, result.fault) == (UNSET, UNSET)


@pytest.mark.case("workflows", 35)
async def test_a_run_that_cannot_be_stored_at_first_begins_nothing(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x"})
    handlers = Handlers(definition)
    result = await run(definition, Faulty(lambda _, number: number == 1), handlers)
    assert statuses(result.workflow) == {"w": "stopped", "a": "skipped", "x": "skipped"}
    assert handlers.calls == []
    assert result.durable is True
    assert fault(result) == PersistenceFault(checkpoint="initial", message="the disk is full")


@pytest.mark.case("workflows", 36)
async def test_an_attempt_that_cannot_be_stored_is_not_made(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x", "b": "y"})
    handlers = Handlers(definition)
    running = Faulty(lambda snapshot, _: snapshot.status == "running")
    result = await run(definition, running, handlers)
    assert statuses(result.workflow) == {"w": "stopped", "a": "skipped", "x": "skipped", "b": "skipped", "y": "skipped"}
    assert handlers.calls == []
    assert result.workflow.phases[0].tasks[0].attempts == 1
    told = fault(result)
    assert (told.checkpoint, told.task, told.attempt) == ("attempt", "x", 1)


def failing_to_settle(task: str) -> Faulty:
    """Fails the two writes that a settlement asks for: at its first event, and at those that follow from that."""
    failures: list[int] = []

    def fails(snapshot: WorkflowSnapshot, number: int) -> bool:
        if seen(snapshot)[task] != "completed" or len(failures) == 2:
            return False
        failures.append(number)
        return True

    return Faulty(fails)


@pytest.mark.case("workflows", 37)
async def test_a_settlement_that_cannot_be_stored_stops_the_run_and_stands(autojump_clock: MockClock) -> None:
    result = await run(behaving({"a": "x", "b": "y"}), failing_to_settle("x"))
    assert statuses(result.workflow) == {
        "w": "stopped",
        "a": "completed",
        "x": "completed",
        "b": "skipped",
        "y": "skipped",
    }
    assert fault(result).checkpoint == "settlement"


@pytest.mark.case("workflows", 37)
async def test_a_settlement_that_cannot_be_stored_at_the_end_changes_no_status(autojump_clock: MockClock) -> None:
    result = await run(behaving({"a": "x"}), failing_to_settle("x"))
    assert result.status == "completed"
    assert fault(result).checkpoint == "settlement"
    assert result.durable is True


@pytest.mark.case("workflows", 37)
async def test_an_end_that_cannot_be_stored_is_not_durable(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x"})
    store = Faulty()
    await run(definition, store)
    last = len(store.writes)
    result = await run(definition, Faulty(lambda _, number: number == last))
    assert (result.status, result.durable) == ("completed", False)
    assert fault(result).checkpoint == "final"


@pytest.mark.case("workflows", 38)
async def test_a_failed_write_that_nobody_waits_for_is_made_good(autojump_clock: MockClock) -> None:
    async def reports(controller: TaskController) -> None:
        for step in range(3):
            controller.report({"note": f"step {step}"})
            await trio.sleep(1)

    definition = behaving({"a": "x"})
    store = Faulty(lambda snapshot, _: "step 1" in str(snapshot))
    result = await run(definition, store, Handlers(definition, x=reports))
    assert "step 1" in str(store.writes)
    assert (result.durable, result.fault) == (True, UNSET)


async def test_changes_during_a_write_are_one_later_write(autojump_clock: MockClock) -> None:
    async def chatty(controller: TaskController) -> None:
        await trio.sleep(1)
        for step in range(100):
            controller.report({"note": f"step {step}"})
        await trio.sleep(1)

    definition = behaving({"a": "x"})
    quiet, store = Faulty(), Faulty()
    await run(definition, quiet)
    await run(definition, store, Handlers(definition, x=chatty))
    assert len(store.writes) <= len(quiet.writes) + 2


@pytest.mark.case("workflows", 39)
async def test_a_run_that_is_over_is_read_and_not_run(autojump_clock: MockClock) -> None:
    store = MemoryWorkflowStore()
    async with opened(workflow_store=store) as runtime:
        result = await runtime.workflows.run(behaving({"a": "x"}), functions={"x": lambda _: "kept"})
    async with opened(workflow_store=store) as runtime:
        restored = await runtime.workflows.open("w")
        assert restored is not None
        assert restored.status == "completed"
        assert restored.results() == result.results
        with pytest.raises(WorkflowError) as refusal:
            await runtime.workflows.run(restored)
    assert refusal.value.code == "TRANSITION"


async def cut_off(definition: dict[str, Any], handlers: dict[str, Any]) -> WorkflowSnapshot:
    """What a store holds of a run whose process dies while tasks hang."""
    store = Faulty()
    async with opened() as runtime, trio.open_nursery() as nursery:
        workflow = built(definition, handlers)
        nursery.start_soon(_execute, runtime, workflow, store)
        await trio.sleep(10)
        last = store.writes[-1]
        nursery.cancel_scope.cancel()
    return last


async def _execute(runtime: Any, workflow: Any, store: Faulty) -> None:
    await runtime.workflows.runner.execute(workflow, store=store)


async def hangs(_controller: TaskController) -> None:
    await trio.sleep_forever()


async def stored(snapshot: WorkflowSnapshot) -> MemoryWorkflowStore:
    store = MemoryWorkflowStore()
    await store.set(snapshot)
    return store


@pytest.mark.case("workflows", 40)
async def test_a_recovered_task_goes_on_counting_its_attempts(autojump_clock: MockClock) -> None:
    def fails(_controller: TaskController) -> None:
        raise RuntimeError("still broken")

    definition = behaving({"a": "x"}, tasks={"x": {"retries": 2}})
    store = await stored(await cut_off(definition, {"x": hangs}))
    handlers = Handlers(definition, x=fails)
    async with opened(workflow_store=store, functions=handlers) as runtime:
        run = await runtime.workflows.recover("w")
        await run.wait()
    assert handlers.calls == [("x", 2), ("x", 3)]


@pytest.mark.case("workflows", 41)
async def test_a_task_without_attempts_left_has_failed_and_others_go_on(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x y", "b": "z"}, tasks={"x": {"recoveries": 0}}, each={"a": {"concurrency": 1}})
    store = await stored(await cut_off(definition, dict.fromkeys("xyz", hangs)))
    handlers = Handlers(definition)
    async with opened(workflow_store=store, functions=handlers) as runtime:
        result = await (await runtime.workflows.recover("w")).wait()
    assert handlers.calls == [("y", 1), ("z", 1)]
    error = result.results[0].result.error
    assert error
    assert error.origin == "recovery"


@pytest.mark.case("workflows", 41)
async def test_a_recovery_that_bails_has_nothing_left_to_run(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x y", "b": "z"}, tasks={"x": {"recoveries": 0}}, bail=True)
    store = await stored(await cut_off(definition, dict.fromkeys("xyz", hangs)))
    handlers = Handlers(definition)
    async with opened(workflow_store=store, functions=handlers) as runtime:
        run = await runtime.workflows.recover("w")
        assert run.over
        assert statuses(run.workflow) == {"w": "failed", "a": "failed", "x": "failed"} | dict.fromkeys("yzb", "skipped")
        assert (await runtime.workflows.list(status=["pending", "running"])) == []
        with pytest.raises(WorkflowError, match="failed"):
            await runtime.workflows.runner.execute(run.workflow)
    assert handlers.calls == []


@pytest.mark.case("workflows", 42)
async def test_what_cannot_be_recovered_is_refused(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x"})
    snapshot = await cut_off(definition, {"x": hangs})
    async with opened(workflow_store=await stored(snapshot)) as runtime:
        with pytest.raises(WorkflowError, match="no function 'x'") as refusal:
            await runtime.workflows.recover("w")
        assert refusal.value.code == "RESTORE"
        stopped = built(definition)
        stopped.stop()
        await runtime.workflows.runner.execute(built(behaving({})), store=runtime.workflows.store)
        store = runtime.workflows.store
        assert store is not None
        await store.set(stopped.snapshot())
        with pytest.raises(WorkflowError, match="stopped on purpose") as refusal:
            await runtime.workflows.recover("w")
        assert refusal.value.code == "RESTORE"


async def test_a_memory_store_shares_nothing_with_those_who_use_it(autojump_clock: MockClock) -> None:
    store = MemoryWorkflowStore()
    workflow = built(behaving({"a": "x"}, tasks={"x": {"input": {"names": ["one"]}}}))
    snapshot = workflow.snapshot()
    await store.set(snapshot)
    snapshot.phases[0].tasks[0].metadata["names"].append("two")
    read = await store.get("w")
    assert read is not None
    read.phases[0].tasks[0].metadata["names"].append("three")
    again = await store.get("w")
    assert again is not None
    assert again.phases[0].tasks[0].metadata == {"names": ["one"]}


async def test_a_memory_store_lists_and_prunes_what_is_over(autojump_clock: MockClock) -> None:
    store = MemoryWorkflowStore(wall_clock=trio.current_time)
    async with opened(workflow_store=store) as runtime:
        for name in ("first", "second"):
            await runtime.workflows.run(behaving({"a": "x"}) | {"id": name}, functions={"x": lambda _: None})
            await trio.sleep(60)
        await store.set(built(behaving({"a": "x"})).snapshot())
        assert [each.id for each in await runtime.workflows.list()] == ["first", "second", "w"]
        assert [each.id for each in await runtime.workflows.list(status=["pending"])] == ["w"]
        assert await runtime.workflows.prune(older_than=90) == 1
        assert [each.id for each in await runtime.workflows.list()] == ["second", "w"]
        await store.delete("second")
        await store.delete("second")
        assert await store.get("second") is None


# -------------------------------------------------------------------- a start that could not be stored


async def test_a_start_that_could_not_be_stored_says_why_and_its_id_stays_free(autojump_clock: MockClock) -> None:
    full = [True]
    definition = behaving({"a": "x"})
    handlers = Handlers(definition)
    async with opened(workflow_store=Faulty(lambda *_: full[0]), functions=handlers) as runtime:
        with pytest.raises(OSError, match="the disk is full"):
            await runtime.workflows.start(definition)
        await trio.sleep(1)
        assert runtime.workflows.runs() == []
        assert handlers.calls == []
        full[0] = False
        run = await runtime.workflows.start(definition)
        assert (await run.wait()).status == "completed"


async def test_whoever_waits_for_a_run_that_could_not_be_stored_gets_the_fault_and_may_run_it_again(
    autojump_clock: MockClock,
) -> None:
    full = [True]
    definition = behaving({"a": "x"})
    async with opened(workflow_store=Faulty(lambda *_: full[0]), functions=Handlers(definition)) as runtime:
        result = await runtime.workflows.run(definition)
        assert (result.status, result.durable, fault(result).checkpoint) == ("stopped", False, "initial")
        full[0] = False
        assert (await runtime.workflows.run(definition)).status == "completed"


async def test_a_run_that_was_stored_as_stopped_at_least_stays_what_it_is(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x"})
    store = Faulty(lambda _, number: number == 1)
    async with opened(workflow_store=store, functions=Handlers(definition)) as runtime:
        assert (await runtime.workflows.run(definition)).durable is True
        assert (await runtime.workflows.start(definition)).status == "stopped"


async def test_a_signal_to_a_run_that_could_not_be_stored_says_why(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x"})
    async with opened(workflow_store=Faulty(lambda *_: True), functions=Handlers(definition)) as runtime:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.workflows.run, definition)
            await wait_all_tasks_blocked()
            with pytest.raises(OSError, match="the disk is full"):
                await runtime.workflows.find("w").signal("go")


# -------------------------------------------------------------------- looking for stored runs, and forgetting them


@pytest.mark.parametrize(
    "store", [{"data": ":memory:"}, {"workflow_store": MemoryWorkflowStore}], ids=["file", "memory"]
)
async def test_runs_are_listed_by_statuses_that_there_are(autojump_clock: MockClock, store: dict[str, Any]) -> None:
    definition = behaving({"a": "x"})
    given = {name: each if isinstance(each, str) else each() for name, each in store.items()}
    async with opened(functions=Handlers(definition), **given) as runtime:
        await runtime.workflows.run(definition)
        for status in ("completed", ["completed", "stopped"], None):
            assert [run.id for run in await runtime.workflows.list(status=cast("Any", status))] == ["w"]
        assert await runtime.workflows.list(status="stopped") == []
        for unknown in ("done", ["completed", "done"]):
            with pytest.raises(WorkflowError, match="no status 'done'; there are: completed, failed") as refusal:
                await runtime.workflows.list(status=cast("Any", unknown))
            assert refusal.value.code == "MUTATION"


@pytest.mark.parametrize(
    "store", [{"data": ":memory:"}, {"workflow_store": MemoryWorkflowStore}], ids=["file", "memory"]
)
async def test_pruning_takes_any_number_of_seconds(autojump_clock: MockClock, store: dict[str, Any]) -> None:
    definition = behaving({"a": "x"})
    given = {name: each if isinstance(each, str) else each() for name, each in store.items()}
    async with opened(functions=Handlers(definition), **given) as runtime:
        await runtime.workflows.run(definition)
        for age in (inf, 1e30, 10**400):
            assert await runtime.workflows.prune(older_than=age) == 0
        for no_age in (nan, "1", True, None):
            with pytest.raises(WorkflowError, match="a number of seconds") as refusal:
                await runtime.workflows.prune(older_than=cast("Any", no_age))
            assert refusal.value.code == "MUTATION"
        assert await runtime.workflows.prune(older_than=-inf) == 1


# -------------------------------------------------------------------- names and times that no row holds


async def test_a_run_again_takes_an_id_that_can_be_written(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x"})
    async with opened(data=":memory:", functions=Handlers(definition)) as runtime:
        await runtime.workflows.run(definition)
        for id in ("\ud800", 5, None, ""):
            with pytest.raises(WorkflowError) as refusal:
                await runtime.workflows.rerun("w", cast("Any", id), phase="a")
            assert refusal.value.code == "RESTORE"
        assert [run.id for run in await runtime.workflows.list()] == ["w"]


async def test_a_clock_that_is_set_to_before_1970_stops_no_run(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x"})
    async with open_runtime(wall_clock=lambda: -5.0, data=":memory:", functions=Handlers(definition)) as runtime:
        assert (await runtime.workflows.run(definition)).durable is True
        again = await runtime.workflows.rerun("w", "v", phase="a")
        assert (await again.wait()).status == "completed"
        assert [(run.created, run.updated) for run in await runtime.workflows.list()] == [(0, 0)] * 2
