"""Workflows by id: adding, opening, saving and removing; starting them once; taking up and running again."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from greenroom import MemoryWorkflowStore, TaskController, WorkflowError, WorkflowSnapshot
from greenroom.protocol.workflows import WorkflowEvent
from tests.workflows.stage import Faulty, Handlers, behaving, built, opened, seen, statuses

ONE = behaving({"a": "x"})


async def parks(_controller: TaskController) -> None:
    await trio.sleep_forever()


async def test_a_workflow_that_is_added_again_is_another_one(autojump_clock: MockClock) -> None:
    async with opened(functions={"x": lambda _: None}) as runtime:
        first, second = runtime.workflows.add(ONE), runtime.workflows.add(ONE)
        assert runtime.workflows.get("w") is second is not first
        assert (runtime.workflows.count, runtime.workflows.workflows()) == (1, [second])
        assert runtime.workflows.remove(["w", "unknown"])
        assert not runtime.workflows.remove("w")
        assert runtime.workflows.get("w") is None


class Slow(Faulty):
    """Counts reads, which take a second each."""

    reads = 0

    def __init__(self) -> None:
        super().__init__()
        read = self.get

        async def get(id: str) -> WorkflowSnapshot | None:
            self.reads += 1
            await trio.sleep(1)
            return await read(id)

        self.get = get


async def test_those_who_open_a_workflow_at_the_same_time_share_one_read(autojump_clock: MockClock) -> None:
    store, found = Slow(), []
    await store.set(built(ONE).snapshot())

    async def opens() -> None:
        found.append(await runtime.workflows.open("w"))

    async with opened(workflow_store=store) as runtime:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(opens)
        assert found == [runtime.workflows.get("w")] * 3
        assert found[0] is not None
        assert store.reads == 1
        assert await runtime.workflows.open("unknown") is None


@pytest.mark.parametrize("meanwhile", ["add", "remove", "clear"])
async def test_what_happens_during_a_read_wins(autojump_clock: MockClock, meanwhile: str) -> None:
    store = Slow()
    await store.set(built(ONE).snapshot())
    opened_as: list[Any] = []

    async def opens() -> None:
        opened_as.append(await runtime.workflows.open("w"))

    async with opened(workflow_store=store) as runtime:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(opens)
            await wait_all_tasks_blocked()
            match meanwhile:
                case "add":
                    runtime.workflows.add(ONE)
                case "remove":
                    runtime.workflows.remove("w")
                case _:
                    runtime.workflows.clear()
        assert opened_as == [runtime.workflows.get("w")]
        assert (opened_as[0] is None) is (meanwhile != "add")


async def test_saves_are_written_in_the_order_of_the_calls(autojump_clock: MockClock) -> None:
    store = Faulty()
    async with opened(workflow_store=store, functions={"x": lambda _: None}) as runtime:
        workflow = runtime.workflows.add(ONE)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.workflows.save, "w")
            await wait_all_tasks_blocked()
            workflow.stop()
            nursery.start_soon(runtime.workflows.save, "w")
        assert [snapshot.status for snapshot in store.writes] == ["pending", "stopped"]
        assert not await runtime.workflows.save("unknown")
    async with opened() as runtime:
        runtime.workflows.add(ONE)
        assert not await runtime.workflows.save("w")


async def test_a_row_that_is_no_snapshot_is_told(autojump_clock: MockClock) -> None:
    store = Faulty()
    read = store.get

    async def other(id: str) -> WorkflowSnapshot | None:
        return await read("w" if id == "elsewhere" else id)

    await store.set(built(ONE).snapshot())
    store.get = other
    async with opened(workflow_store=store) as runtime:
        with pytest.raises(WorkflowError, match="stored under") as refusal:
            await runtime.workflows.open("elsewhere")
    assert refusal.value.code == "RESTORE"


# -------------------------------------------------------------------- starting once


@pytest.mark.parametrize("stored", [True, False])
async def test_the_same_definition_is_the_same_run(autojump_clock: MockClock, stored: bool) -> None:
    handlers = Handlers(ONE)
    async with opened(workflow_store=MemoryWorkflowStore() if stored else None, functions=handlers) as runtime:
        run = await runtime.workflows.start(ONE)
        assert await runtime.workflows.start(ONE) is run
        first = await runtime.workflows.run(ONE)
        again = await runtime.workflows.run(ONE)
        assert again.results == first.results
        assert handlers.calls == [("x", 1)]
        with pytest.raises(WorkflowError, match="another definition") as refusal:
            await runtime.workflows.start(behaving({"a": "x y"}))
        assert refusal.value.code == "TRANSITION"


async def test_a_finished_run_is_known_to_the_next_process(autojump_clock: MockClock) -> None:
    store, handlers = MemoryWorkflowStore(), Handlers(ONE)
    for _ in range(2):
        async with opened(workflow_store=store, functions=handlers) as runtime:
            result = await runtime.workflows.run(ONE)
            assert result.status == "completed"
            assert (await runtime.workflows.look("w")).status == "completed"
    assert handlers.calls == [("x", 1)]


async def test_starts_at_the_same_time_are_one_run(autojump_clock: MockClock) -> None:
    handlers = Handlers(ONE)
    async with opened(workflow_store=Slow(), functions=handlers) as runtime, trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(runtime.workflows.run, ONE)
    assert handlers.calls == [("x", 1)]


async def test_who_joined_a_run_does_not_end_it(autojump_clock: MockClock) -> None:
    async with opened(functions={"x": parks}) as runtime:
        run = await runtime.workflows.start(ONE)
        with trio.move_on_after(5) as scope:
            await runtime.workflows.run(ONE)
        assert scope.cancelled_caught
        assert (run.status, run.over) == ("running", False)


async def test_a_run_of_an_id_that_is_under_way_is_refused(autojump_clock: MockClock) -> None:
    async with opened(functions={"x": parks}) as runtime:
        await runtime.workflows.start(ONE)
        with pytest.raises(WorkflowError, match="under way"):
            await runtime.workflows.start(built(ONE))
        with pytest.raises(WorkflowError, match="there are: w") as refusal:
            runtime.workflows.find("unknown")
        assert refusal.value.code == "UNKNOWN"


# -------------------------------------------------------------------- suspending, recovering, running again


async def test_a_suspended_run_goes_on_where_it_was(autojump_clock: MockClock) -> None:
    store, definition = MemoryWorkflowStore(), behaving({"a": "x", "b": "y"})
    handlers = Handlers(definition, y=parks)
    async with opened(workflow_store=store, functions=handlers) as runtime:
        run = await runtime.workflows.start(definition)
        await wait_all_tasks_blocked()
        assert seen(await run.suspend()) == {"w": "running", "a": "completed", "x": "completed"} | dict.fromkeys(
            "by", "pending"
        )
        assert run.over
        again = await runtime.workflows.start(definition, functions={"y": lambda controller: controller.attempt})
        result = await again.wait()
    assert handlers.calls == [("x", 1), ("y", 1)]
    assert [each.result.value for each in result.results] == ["x", 1]


async def test_one_run_that_cannot_be_recovered_keeps_no_other_from_it(autojump_clock: MockClock) -> None:
    store = MemoryWorkflowStore()
    for name in ("good", "bad"):
        await store.set(built(behaving({"a": name}) | {"id": name}).snapshot())
    async with opened(workflow_store=store, functions={"good": lambda _: "fine"}) as runtime:
        recovered = await runtime.workflows.recover_all()
        assert [run.id for run in recovered.runs] == ["good"]
        assert list(recovered.refused) == ["bad"]
        assert "no function 'bad'" in str(recovered.refused["bad"])
        assert (await recovered.runs[0].wait()).status == "completed"
        with pytest.raises(WorkflowError, match="unknown"):
            await runtime.workflows.recover("unknown")


@pytest.mark.case("reports/workflows", 4)
async def test_a_rerun_begins_at_its_phase_and_the_old_run_stays(autojump_clock: MockClock) -> None:
    answers = {"x": 1}

    def uses(controller: TaskController) -> int:
        (of_x,) = [each.result.value for each in controller.results() if each.task == "x"]
        return int(of_x) * 10

    definition = behaving({"a": "w", "b": "x", "c": "y"})
    handlers = Handlers(definition, x=lambda _: answers["x"], y=uses)
    async with opened(workflow_store=MemoryWorkflowStore(), functions=handlers) as runtime:
        await runtime.workflows.run(definition)
        answers["x"] = 2
        run = await runtime.workflows.rerun("w", "again", phase="b")
        result = await run.wait()
        assert [each.result.value for each in result.results] == ["w", 2, 20]
        assert {each.workflow for each in result.results} == {"again"}
        old = await runtime.workflows.look("w")
        assert [each.result.value for each in old.workflow.results()] == ["w", 1, 10]
        with pytest.raises(WorkflowError, match="already"):
            await runtime.workflows.rerun("w", "again", phase="b")
    assert [task for task, _ in handlers.calls] == ["w", "x", "y", "x", "y"]


# -------------------------------------------------------------------- signals, sleeps, keys, events


async def test_a_signal_is_stored_and_comes_to_whoever_waits(autojump_clock: MockClock) -> None:
    store = Faulty()

    async def waits(controller: TaskController) -> Any:
        return await controller.signal("approved")

    async with opened(workflow_store=store, functions={"x": waits}) as runtime:
        run = await runtime.workflows.start(ONE)
        await trio.sleep(1)
        await run.signal("approved", {"by": "ann"})
        assert store.writes[-1].signals == {"approved": {"by": "ann"}}
        assert (await run.wait()).results[0].result.value == {"by": "ann"}
        with pytest.raises(WorkflowError, match="takes no signal"):
            await run.signal("approved")


async def test_a_signal_that_does_not_come_is_an_error(autojump_clock: MockClock) -> None:
    async def waits(controller: TaskController) -> str:
        try:
            return str(await controller.signal("approved", timeout=5))
        except WorkflowError as error:
            return error.code

    async with opened(functions={"x": waits}) as runtime:
        result = await runtime.workflows.run(ONE)
    assert result.results[0].result.value == "EXPIRE"
    assert trio.current_time() == pytest.approx(5)


async def test_who_waits_for_a_signal_of_a_stopped_run_is_told(autojump_clock: MockClock) -> None:
    async def waits(controller: TaskController) -> str:
        try:
            return str(await controller.signal("approved"))
        except WorkflowError as error:
            return error.code

    async with opened(functions={"x": waits}) as runtime:
        run = await runtime.workflows.start(ONE)
        await wait_all_tasks_blocked()
        run.workflow.stop()
        result = await run.wait()
    assert result.results[0].result.value == "TRANSITION"


async def test_only_the_rest_of_a_sleep_is_slept_after_a_restart(autojump_clock: MockClock) -> None:
    async def sleeps(controller: TaskController) -> float:
        await controller.sleep(100)
        return trio.current_time()

    store = MemoryWorkflowStore()
    async with opened(workflow_store=store, functions={"x": sleeps}) as runtime:
        await runtime.workflows.start(ONE)
        await trio.sleep(60)
    await trio.sleep(30)
    async with opened(workflow_store=store, functions={"x": sleeps}) as runtime:
        result = await (await runtime.workflows.recover("w")).wait()
    assert result.results[0].result.value == pytest.approx(100)


async def test_a_task_has_one_key_and_its_input(autojump_clock: MockClock) -> None:
    told: list[Any] = []

    def tells(controller: TaskController) -> None:
        told.append((controller.key, controller.input))
        if controller.attempt == 1:
            raise RuntimeError("once more")

    definition = behaving({"a": "x"}, tasks={"x": {"retries": 1, "input": {"to": "ann"}}})
    async with opened(functions={"x": tells}) as runtime:
        await runtime.workflows.run(definition)
    assert told == [("w/a/x", {"to": "ann"})] * 2


async def followed(events: Any) -> list[WorkflowEvent]:
    return [event async for event in events]


async def test_events_are_numbered_and_can_be_followed_from_anywhere(autojump_clock: MockClock) -> None:
    async def fails_once(controller: TaskController) -> str:
        await trio.sleep(1)
        if controller.attempt == 1:
            raise RuntimeError("not yet")
        return "done"

    definition = behaving({"a": "x"}, tasks={"x": {"retries": 1}})
    async with opened(functions={"x": fails_once}) as runtime:
        run = await runtime.workflows.start(definition)
        live = await followed(run.events())
        assert [(event.number, event.event, event.task or event.phase or "w") for event in live] == [
            (1, "start", "x"),
            (2, "start", "a"),
            (3, "start", "w"),
            (4, "retry", "x"),
            (5, "start", "x"),
            (6, "complete", "x"),
            (7, "complete", "a"),
            (8, "complete", "w"),
        ]
        assert live[3].value == "not yet"
        assert await followed(run.events(after=5)) == live[5:]
        assert await followed(run.events(after=8)) == []


async def test_events_that_are_kept_nowhere_are_a_gap(autojump_clock: MockClock) -> None:
    def chatty(controller: TaskController) -> None:
        for step in range(5_000):
            controller.report({"note": str(step)})

    async with opened(functions={"x": chatty}) as runtime:
        run = await runtime.workflows.start(ONE)
        await run.wait()
        with pytest.raises(WorkflowError, match="follow it from") as refusal:
            await followed(run.events())
        assert refusal.value.code == "GAP"
        kept = await followed(run.events(after=refusal.value.context["first"] - 1))
        assert len(kept) == 4096


async def test_runs_that_are_over_are_forgotten_in_time(autojump_clock: MockClock) -> None:
    async with opened(functions={"x": lambda _: None}) as runtime:
        for number in range(260):
            await runtime.workflows.run(ONE | {"id": f"run-{number}"})
        assert len(runtime.workflows.runs()) == 256
        assert runtime.workflows.get("run-0") is None
        assert statuses(runtime.workflows.find("run-259").workflow)["x"] == "completed"
