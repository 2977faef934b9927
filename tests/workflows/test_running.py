"""While a run is under way: slots, pauses, what ends it early, edits, and the order of what is announced."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from greenroom import Budget, Cancel, Runtime, TaskController, Workflow, WorkflowError, WorkflowResult
from tests.workflows.stage import Faulty, Handlers, behaving, built, opened, statuses
from tests.workflows.trees import made, overhear, phase, refused, task


async def parks(_controller: TaskController) -> None:
    await trio.sleep_forever()


class Driven:
    """A run that goes on beside the test."""

    def __init__(self, runtime: Runtime, nursery: trio.Nursery, workflow: Workflow, **options: Any) -> None:
        self.workflow = workflow
        self.scope = trio.CancelScope()
        self.result: WorkflowResult | None = None
        self.over = trio.Event()
        self._runner = runtime.workflows.runner
        self._options = options
        nursery.start_soon(self._run)

    async def _run(self) -> None:
        with self.scope:
            self.result = await self._runner.execute(self.workflow, **self._options)
        self.over.set()

    async def ended(self) -> dict[str, str]:
        await self.over.wait()
        return statuses(self.workflow)


@pytest.mark.case("workflows", 16)
async def test_no_more_tasks_run_than_the_phase_has_places_for(autojump_clock: MockClock) -> None:
    running = most = 0

    async def counted(_controller: TaskController) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await trio.sleep(1)
        running -= 1

    definition = behaving({"a": "p q r s"}, each={"a": {"concurrency": 2}})
    async with opened() as runtime:
        await runtime.workflows.run(definition, functions=dict.fromkeys("pqrs", counted))
    assert most == 2
    assert trio.current_time() == pytest.approx(2)


@pytest.mark.case("workflows", 17)
async def test_a_paused_task_keeps_its_slot(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x y"}, each={"a": {"concurrency": 1}})
    handlers = Handlers(definition)
    async with opened() as runtime, trio.open_nursery() as nursery:
        workflow = built(definition, handlers)
        task(workflow, "x").pause()
        run = Driven(runtime, nursery, workflow)
        await wait_all_tasks_blocked()
        assert handlers.calls == []
        assert task(workflow, "y").status == "pending"
        task(workflow, "x").resume()
        assert (await run.ended())["w"] == "completed"


@pytest.mark.case("workflows", 17)
async def test_a_paused_task_can_run_out_of_time_undispatched(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x"}, tasks={"x": {"timeout": 20, "retries": 1}})
    handlers = Handlers(definition)
    async with opened() as runtime:
        workflow = built(definition, handlers)
        task(workflow, "x").pause()
        await runtime.workflows.run(workflow)
    assert (task(workflow, "x").status, task(workflow, "x").attempts) == ("failed", 2)
    assert handlers.calls == []


async def test_a_paused_workflow_starts_no_further_phase(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x", "b": "y"})
    handlers = Handlers(definition, x=lambda controller: controller.task.workflow.pause())
    async with opened() as runtime, trio.open_nursery() as nursery:
        run = Driven(runtime, nursery, built(definition, handlers))
        await wait_all_tasks_blocked()
        assert statuses(run.workflow) == {"w": "running", "a": "completed", "x": "completed", "b": "pending"} | {
            "y": "pending"
        }
        run.workflow.resume()
        assert (await run.ended())["w"] == "completed"


async def test_a_handler_can_wait_while_it_is_paused(autojump_clock: MockClock) -> None:
    steps: list[str] = []

    async def in_steps(controller: TaskController) -> None:
        await trio.sleep(1)
        assert controller.paused
        await controller.wait()
        steps.append("went on")

    async with opened() as runtime, trio.open_nursery() as nursery:
        run = Driven(runtime, nursery, built(behaving({"a": "x"}), {"x": in_steps}))
        await wait_all_tasks_blocked()
        phase(run.workflow, "a").pause()
        await trio.sleep(5)
        assert steps == []
        phase(run.workflow, "a").resume()
        await run.over.wait()
    assert steps == ["went on"]


async def test_a_stop_frees_a_handler_that_waits_while_it_is_paused(autojump_clock: MockClock) -> None:
    async def waits(controller: TaskController) -> str:
        controller.task.pause()
        await controller.wait()
        return "freed"

    async with opened() as runtime, trio.open_nursery() as nursery:
        run = Driven(runtime, nursery, built(behaving({"a": "x"}), {"x": waits}))
        await wait_all_tasks_blocked()
        run.workflow.stop()
        assert await run.ended() == {"w": "stopped", "a": "completed", "x": "completed"}


# -------------------------------------------------------------------- ending early


@pytest.mark.case("workflows", 21)
async def test_a_cancelled_run_keeps_what_was_recorded(autojump_clock: MockClock) -> None:
    cancel = Cancel()
    async with opened() as runtime, trio.open_nursery() as nursery:
        run = Driven(runtime, nursery, built(behaving({"a": "x y", "b": "z"}), {"x": parks} | OTHERS), cancel=cancel)
        await wait_all_tasks_blocked()
        cancel.set()
        assert await run.ended() == {
            "w": "stopped",
            "a": "completed",
            "x": "skipped",
            "y": "completed",
            "b": "skipped",
            "z": "skipped",
        }
        assert run.result is not None
        assert [each.task for each in run.result.results] == ["y"]


@pytest.mark.case("workflows", 22)
@pytest.mark.parametrize("phases", [{"a": "x"}, {"a": ""}])
@pytest.mark.parametrize("bound", ["cancel", "budget"])
async def test_a_run_that_is_cancelled_before_it_starts_calls_nobody(
    autojump_clock: MockClock, phases: dict[str, str], bound: str
) -> None:
    cancel = Cancel()
    cancel.set()
    definition = behaving(phases)
    handlers = Handlers(definition)
    async with opened() as runtime:
        run = partial(runtime.workflows.run, definition, functions=handlers)
        result = await (run(cancel=cancel) if bound == "cancel" else run(budget=Budget(total=0)))
    assert result.status == "stopped"
    assert handlers.calls == []


@pytest.mark.case("workflows", 23)
async def test_what_a_handler_returns_after_it_has_cancelled_the_run_is_dropped(autojump_clock: MockClock) -> None:
    cancel = Cancel()

    async def cancels(_controller: TaskController) -> str:
        cancel.set()
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        return "too late"

    async with opened() as runtime:
        result = await runtime.workflows.run(behaving({"a": "x"}), functions={"x": cancels}, cancel=cancel)
    assert statuses(result.workflow) == {"w": "stopped", "a": "skipped", "x": "skipped"}
    assert result.results == ()


@pytest.mark.case("workflows", 24)
async def test_a_stopped_workflow_lets_what_runs_finish(autojump_clock: MockClock) -> None:
    async def slow(_controller: TaskController) -> None:
        await trio.sleep(1)

    definition = behaving({"a": "x y"}, each={"a": {"concurrency": 1}})
    async with opened() as runtime, trio.open_nursery() as nursery:
        run = Driven(runtime, nursery, built(definition, {"x": slow, "y": slow}))
        await wait_all_tasks_blocked()
        run.workflow.stop()
        assert await run.ended() == {"w": "stopped", "a": "completed", "x": "completed", "y": "skipped"}


@pytest.mark.case("workflows", 25)
async def test_a_stopped_phase_does_not_keep_later_ones(autojump_clock: MockClock) -> None:
    async def slow(_controller: TaskController) -> None:
        await trio.sleep(1)

    definition = behaving({"a": "x", "b": "y"})
    async with opened() as runtime, trio.open_nursery() as nursery:
        run = Driven(runtime, nursery, built(definition, {"x": slow, "y": slow}))
        await wait_all_tasks_blocked()
        phase(run.workflow, "a").stop()
        assert await run.ended() == {
            "w": "stopped",
            "a": "stopped",
            "x": "completed",
            "b": "completed",
            "y": "completed",
        }


@pytest.mark.case("workflows", 25)
async def test_a_phase_that_was_skipped_beforehand_is_passed_over(autojump_clock: MockClock) -> None:
    async with opened() as runtime:
        workflow = built(behaving({"b": "x", "c": "y"}))
        phase(workflow, "b").skip()
        await runtime.workflows.run(workflow)
    assert statuses(workflow) == {
        "w": "completed",
        "b": "skipped",
        "x": "skipped",
        "c": "completed",
        "y": "completed",
    }


@pytest.mark.case("workflows", 26)
async def test_a_stopped_task_is_no_failure(autojump_clock: MockClock) -> None:
    async def slow(_controller: TaskController) -> None:
        await trio.sleep(1)

    async with opened() as runtime, trio.open_nursery() as nursery:
        run = Driven(runtime, nursery, built(behaving({"a": "x y"}, bail=True), {"x": parks, "y": slow}))
        await wait_all_tasks_blocked()
        task(run.workflow, "x").stop()
        assert await run.ended() == {"w": "stopped", "a": "stopped", "x": "stopped", "y": "completed"}


async def test_a_task_that_is_stopped_before_its_handler_is_called_is_left_alone(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x y"})
    handlers = Handlers(definition)
    async with opened() as runtime:
        workflow = built(definition, handlers)
        task(workflow, "y").emitter.on("start", lambda _: task(workflow, "x").stop())
        await runtime.workflows.run(workflow)
    assert handlers.calls == [("y", 1)]
    assert statuses(workflow)["x"] == "stopped"


async def test_a_task_that_rests_is_stopped_with_its_place(autojump_clock: MockClock) -> None:
    def fails(_controller: TaskController) -> None:
        raise RuntimeError("not yet")

    definition = behaving({"a": "x"}, tasks={"x": {"retries": 1, "backoff": {"initial": 60_000}}})
    async with opened() as runtime, trio.open_nursery() as nursery:
        run = Driven(runtime, nursery, built(definition, {"x": fails}))
        await wait_all_tasks_blocked()
        await runtime.tree.find("/workflows/w/x").stop()
        assert await run.ended() == {"w": "stopped", "a": "stopped", "x": "stopped"}


@pytest.mark.case("workflows", 27)
async def test_a_destroyed_workflow_is_stopped_with_everything_in_it(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x y"}, each={"a": {"concurrency": 1}})
    async with opened() as runtime, trio.open_nursery() as nursery:
        run = Driven(runtime, nursery, built(definition, {"x": parks, "y": parks}))
        await wait_all_tasks_blocked()
        run.workflow.destroy()
        assert await run.ended() == {"w": "stopped", "a": "stopped", "x": "stopped", "y": "stopped"}


@pytest.mark.case("workflows", 28)
async def test_what_cannot_be_run_is_refused_before_anything_has_happened(autojump_clock: MockClock) -> None:
    store = Faulty()
    async with opened() as runtime:
        workflow = built(behaving({"a": "x"}), {"unknown": parks})
        heard = overhear(workflow)
        with pytest.raises(WorkflowError) as refusal:
            await runtime.workflows.runner.execute(workflow, store=store)
        assert runtime.snapshot().root.children[-1].children == ()
    assert refusal.value.code == "TRANSITION"
    assert refusal.value.context == {"id": "w", "status": "pending", "destroyed": False}
    assert (heard, store.writes) == ([], [])


@pytest.mark.case("workflows", 28)
async def test_one_object_is_run_once(autojump_clock: MockClock) -> None:
    async with opened() as runtime, opened() as other, trio.open_nursery() as nursery:
        workflow = built(behaving({"a": "x"}), {"x": parks})
        Driven(runtime, nursery, workflow)
        await wait_all_tasks_blocked()
        for somebody in (runtime, other):
            with pytest.raises(WorkflowError, match="run before"):
                await somebody.workflows.runner.execute(workflow)
        nursery.cancel_scope.cancel()


async def test_a_caller_that_is_cancelled_leaves_nothing_behind(autojump_clock: MockClock) -> None:
    store, unwound = Faulty(), trio.Event()

    async def careful(_controller: TaskController) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
            unwound.set()

    async with opened() as runtime, trio.open_nursery() as nursery:
        run = Driven(runtime, nursery, built(behaving({"a": "x"}), {"x": careful}), store=store)
        await trio.sleep(1)
        run.scope.cancel()
        assert await run.ended() == {"w": "stopped", "a": "skipped", "x": "skipped"}
        assert unwound.is_set()
        assert run.scope.cancelled_caught
        assert store.writes[-1].status == "stopped"
        assert runtime.snapshot().root.children[-1].children == ()


async def test_a_store_that_hangs_keeps_nobody_who_is_cancelled(autojump_clock: MockClock) -> None:
    class Hanging(Faulty):
        async def set(self, snapshot: object) -> None:
            await trio.sleep_forever()

    async with opened() as runtime:
        with trio.move_on_after(1) as scope:
            await runtime.workflows.runner.execute(behaving({"a": "x"}), functions={"x": parks}, store=Hanging())
    assert scope.cancelled_caught
    assert trio.current_time() < 15


# -------------------------------------------------------------------- edits and events


@pytest.mark.case("workflows", 29)
@pytest.mark.parametrize(("bail", "status"), [(False, "completed"), (True, "failed")])
async def test_a_task_that_is_added_without_a_handler_fails(autojump_clock: MockClock, bail: bool, status: str) -> None:
    def adds(controller: TaskController) -> None:
        made(controller.task.phase.add({"id": "y", "name": "y", "behavior": "unknown", "retries": 3}))

    async with opened() as runtime:
        result = await runtime.workflows.run(behaving({"a": "x"}, bail=bail), functions={"x": adds})
    assert statuses(result.workflow) == {"w": status, "a": "failed", "x": "completed", "y": "failed"}
    error = result.results[-1].result.error
    assert error
    assert error.origin == "handler"
    assert task(result.workflow, "y").attempts == 1


@pytest.mark.case("workflows", 30)
async def test_a_task_that_is_added_runs_in_the_same_run(autojump_clock: MockClock) -> None:
    def adds(controller: TaskController) -> None:
        phase = controller.task.phase
        refused(phase.add({"id": "z", "name": "z"}, 0))
        made(phase.add({"id": "y", "name": "y", "behavior": "y"}))

    async with opened() as runtime:
        result = await runtime.workflows.run(behaving({"a": "x"}), functions={"x": adds, "y": lambda _: "late"})
        assert [each.task for each in result.results] == ["x", "y"]
        refused(phase(result.workflow, "a").add({"id": "z", "name": "z"}))


@pytest.mark.case("workflows", 31)
async def test_causes_are_announced_before_their_effects(autojump_clock: MockClock) -> None:
    async def at(controller: TaskController) -> None:
        await trio.sleep({"t": 1, "u": 2, "v": 1}[controller.task.id])

    async with opened() as runtime:
        workflow = built(behaving({"a": "t u", "b": "v"}), dict.fromkeys("tuv", at))
        heard = overhear(workflow)
        await runtime.workflows.run(workflow)
    assert " ".join(heard) == (
        "t.start a.start w.start u.start t.complete u.complete a.complete"
        " v.start b.start v.complete b.complete w.complete"
    )


@pytest.mark.case("workflows", 32)
async def test_a_cancelled_workflow_is_stopped_before_its_tasks_are_skipped(autojump_clock: MockClock) -> None:
    cancel = Cancel()
    async with opened() as runtime, trio.open_nursery() as nursery:
        workflow = built(behaving({"a": "t", "b": "v"}), {"t": parks, "v": parks})
        heard = overhear(workflow)
        run = Driven(runtime, nursery, workflow, cancel=cancel)
        await wait_all_tasks_blocked()
        cancel.set()
        await run.over.wait()
    assert heard[3:] == ["w.stop", "t.skip", "a.skip", "v.skip", "b.skip"]


@pytest.mark.case("workflows", 33)
async def test_results_are_in_the_order_of_the_tasks(autojump_clock: MockClock) -> None:
    async def at(controller: TaskController) -> None:
        await trio.sleep({"slow": 2, "fast": 1}[controller.task.id])

    async with opened() as runtime:
        result = await runtime.workflows.run(behaving({"a": "slow fast"}), functions={"slow": at, "fast": at})
    assert [each.task for each in result.results] == ["slow", "fast"]


async def test_what_a_superseded_attempt_comes_to_is_ignored(autojump_clock: MockClock) -> None:
    async def superseded(controller: TaskController) -> str:
        controller.task.start()
        assert controller.cancelled
        assert not controller.pulse()
        refused(controller.report({"note": "x"}), "is over", "TRANSITION")
        await trio.sleep(1)
        return "of the first attempt"

    definition = behaving({"a": "x"}, tasks={"x": {"retries": 1}})
    async with opened() as runtime:
        result = await runtime.workflows.run(definition, functions={"x": superseded})
    assert result.results == ()
    assert (task(result.workflow, "x").status, task(result.workflow, "x").attempts) == ("skipped", 2)


OTHERS = {name: lambda controller: controller.task.id for name in ("y", "z")}
