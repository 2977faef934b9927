"""What is stored of a run, when, and what becomes of a run that cannot be stored."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from msgspec import UNSET
from trio.testing import MockClock

from greenroom import MemoryWorkflowStore, TaskController, WorkflowError, WorkflowSnapshot
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
