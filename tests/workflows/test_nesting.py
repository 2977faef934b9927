"""Runs in the tree: their tasks and what those start are beneath them, wait there, and end with them."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from greenroom import (
    Actor,
    ActorDeadlock,
    MemoryWorkflowStore,
    Request,
    Runtime,
    TaskController,
    ToolError,
    handles,
)
from greenroom.actors.workflow import RunOptions
from greenroom.protocol.tree import ActorSnapshot
from tests.workflows.stage import behaving, opened, statuses

QUESTION = {"fields": [{"control": "confirm", "name": "ok"}]}


def paths(runtime: Runtime) -> list[str]:
    """Every place at or beneath that of all runs, sorted: tasks that start together come in no promised order."""

    def beneath(place: ActorSnapshot) -> list[str]:
        return [place.path, *(path for child in place.children for path in beneath(child))]

    return sorted(path for path in beneath(runtime.snapshot().root) if path.startswith("/workflows"))


async def parks(_controller: TaskController) -> None:
    await trio.sleep_forever()


class Nested:
    """Behaviours that run workflows within each other, three deep, and count how many of them are at work."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.at_work = 0

    async def outer(self, _controller: TaskController) -> str:
        result = await self.runtime.workflows.run(
            behaving({"b": "middle"}) | {"id": "middle"}, functions={"middle": self.middle}
        )
        return result.status

    async def middle(self, _controller: TaskController) -> str:
        result = await self.runtime.workflows.run(
            behaving({"c": "inner other"}) | {"id": "inner"}, functions={"inner": self.inner, "other": self.inner}
        )
        return result.status

    async def inner(self, _controller: TaskController) -> None:
        self.at_work += 1
        try:
            await trio.sleep_forever()
        finally:
            self.at_work -= 1


async def test_tasks_and_nested_runs_are_places_of_the_tree(autojump_clock: MockClock) -> None:
    async with opened() as runtime:
        nested = Nested(runtime)
        await runtime.workflows.start(behaving({"a": "outer"}), functions={"outer": nested.outer})
        await wait_all_tasks_blocked()
        assert paths(runtime) == [
            "/workflows",
            "/workflows/w",
            "/workflows/w/outer",
            "/workflows/w/outer/middle",
            "/workflows/w/outer/middle/middle",
            "/workflows/w/outer/middle/middle/inner",
            "/workflows/w/outer/middle/middle/inner/inner",
            "/workflows/w/outer/middle/middle/inner/other",
        ]


@pytest.mark.parametrize("way", ["cancel", "stop", "task", "timeout"])
async def test_ending_a_run_ends_everything_beneath_it_first(autojump_clock: MockClock, way: str) -> None:
    store = MemoryWorkflowStore()
    async with opened(workflow_store=store) as runtime:
        nested = Nested(runtime)
        run = await runtime.workflows.start(
            behaving({"a": "outer"}), functions={"outer": nested.outer}, timeout=60 if way == "timeout" else None
        )
        await wait_all_tasks_blocked()
        assert nested.at_work == 2
        assert run.ref is not None
        match way:
            case "cancel":
                await run.cancel()
            case "stop":
                await run.ref.stop()
            case "task":
                run.workflow.phases[0].tasks[0].stop()
                await run.wait()
            case _:
                await run.wait()
        assert nested.at_work == 0
        assert paths(runtime) == ["/workflows"]
        assert run.status == "stopped"
        assert {each.id: each.status for each in await runtime.workflows.list()} == dict.fromkeys(
            ("w", "middle", "inner"), "stopped"
        )


@pytest.mark.parametrize("orderly", [True, False])
async def test_a_run_that_the_runtime_ends_can_be_taken_up_again(autojump_clock: MockClock, orderly: bool) -> None:
    store = MemoryWorkflowStore()

    async def once(runtime: Runtime) -> None:
        nested = Nested(runtime)
        await runtime.workflows.start(behaving({"a": "outer"}), functions={"outer": nested.outer})
        await wait_all_tasks_blocked()
        assert nested.at_work == 2

    with trio.CancelScope() as scope:
        async with opened(workflow_store=store) as runtime:
            await once(runtime)
            if not orderly:
                scope.cancel()
                await trio.lowlevel.checkpoint()
    kept = {each.id: each.status for each in await store.list()}
    assert kept == dict.fromkeys(("w", "middle", "inner"), "pending")
    async with opened(workflow_store=store) as runtime:

        async def finishes(_controller: TaskController) -> str:
            return "done"

        nested = Nested(runtime)
        nested.inner = finishes  # type: ignore[method-assign, assignment] # this time it does not hang
        run = await runtime.workflows.recover("w", functions={"outer": nested.outer})
        result = await run.wait()
        assert [each.result.value for each in result.results] == ["completed"]
        assert {each.id: each.status for each in await store.list()} == dict.fromkeys(
            ("w", "middle", "inner"), "completed"
        )


async def test_a_stopped_place_of_a_task_stops_the_task(autojump_clock: MockClock) -> None:
    async with opened() as runtime:
        run = await runtime.workflows.start(behaving({"a": "x y"}), functions={"x": parks, "y": lambda _: None})
        await wait_all_tasks_blocked()
        await runtime.tree.find("/workflows/w/x").stop()
        result = await run.wait()
    assert statuses(result.workflow) == {"w": "stopped", "a": "stopped", "x": "stopped", "y": "completed"}


async def test_an_actor_that_a_task_spawns_ends_with_the_task(autojump_clock: MockClock) -> None:
    class Helper(Actor):
        pass

    async def helped(controller: TaskController) -> None:
        runtime.spawn(Helper(), "helper", parent=runtime.tree.find(f"/workflows/w/{controller.task.id}"))
        if controller.task.id == "y":
            await trio.sleep_forever()

    async with opened() as runtime:
        run = await runtime.workflows.start(behaving({"a": "x y"}), functions={"x": helped, "y": helped})
        await wait_all_tasks_blocked()
        assert paths(runtime) == ["/workflows", "/workflows/w", "/workflows/w/y", "/workflows/w/y/helper"]
        await run.cancel()
        assert paths(runtime) == ["/workflows"]


async def test_a_wait_of_a_task_is_seen_at_the_task(autojump_clock: MockClock) -> None:
    async def asks(_controller: TaskController) -> Any:
        return await runtime.ask("ops", QUESTION)

    async with opened() as runtime:
        runtime.terminals.add("ops")
        run = await runtime.workflows.start(behaving({"a": "x"}), functions={"x": asks})
        await wait_all_tasks_blocked()
        waits = {(wait.from_, wait.to) for wait in runtime.snapshot().waits}
        assert waits == {(("/workflows/w",), "/workflows/w/x"), (("/workflows/w/x",), "ops")}
        terminal = runtime.terminals.terminal("ops")
        assert terminal is not None
        (form,) = terminal.pending()
        await runtime.terminals.answer("ops", form.id, {"ok": True})
        result = await run.wait()
        assert runtime.snapshot().waits == ()
    assert result.results[0].result.value == {"ok": True}


async def test_a_cancelled_run_withdraws_what_its_tasks_have_asked(autojump_clock: MockClock) -> None:
    async def asks(_controller: TaskController) -> Any:
        return await runtime.ask("ops", QUESTION)

    async with opened() as runtime:
        terminal = runtime.terminals.add("ops")
        run = await runtime.workflows.start(behaving({"a": "x"}), functions={"x": asks})
        await wait_all_tasks_blocked()
        assert len(terminal.pending()) == 1
        await run.cancel()
        assert terminal.pending() == []


class Wait(Request[str], frozen=True):
    """Answered when the run is over."""


async def test_a_task_that_waits_for_who_waits_for_its_run_is_refused(autojump_clock: MockClock) -> None:
    class Waiter(Actor):
        @handles(Wait)
        async def wait(self, message: Wait) -> str:
            return (await run.wait()).status

    async def asks(_controller: TaskController) -> str:
        await trio.sleep(1)
        try:
            return await waiter.ask(Wait())
        except ActorDeadlock as refusal:
            return " ".join(refusal.path)

    async with opened() as runtime, trio.open_nursery() as nursery:
        waiter = runtime.spawn(Waiter(), "waiter")
        run = await runtime.workflows.start(behaving({"a": "x"}), functions={"x": asks})
        nursery.start_soon(waiter.ask, Wait())
        result = await run.wait()
    assert result.results[0].result.value == "/workflows/w/x /waiter /workflows/w /workflows/w/x"


async def test_a_run_with_a_long_name_has_a_place_all_the_same(autojump_clock: MockClock) -> None:
    async with opened() as runtime:
        definition = behaving({"a": "x"}, tasks={"x": {"id": "x/y"}}) | {"id": "a/b%"}
        await runtime.workflows.start(definition, functions={"x": parks})
        await wait_all_tasks_blocked()
        assert paths(runtime) == ["/workflows", "/workflows/a%2Fb%25", "/workflows/a%2Fb%25/x%2Fy"]


async def test_a_run_beneath_itself_is_refused_before_anything_begins(autojump_clock: MockClock) -> None:
    async def again(_controller: TaskController) -> str:
        try:
            await runtime.workflows.runner.execute(behaving({"a": "x"}), functions={"x": parks})
        except ToolError as refusal:
            return f"{refusal.code} {refusal.context['lineage']}"
        return "ran"

    async with opened() as runtime:
        result = await runtime.workflows.run(behaving({"a": "x"}), functions={"x": again})
    assert result.results[0].result.value == "DEPTH ['workflow:w']"


async def test_runs_are_nested_eight_deep_and_no_deeper(autojump_clock: MockClock) -> None:
    async def deeper(controller: TaskController) -> Any:
        depth = controller.input["depth"] + 1
        definition = behaving({"a": "x"}, tasks={"x": {"input": {"depth": depth}}}) | {"id": f"run-{depth}"}
        try:
            result = await runtime.workflows.run(definition, functions={"x": deeper})
        except ToolError as refusal:
            return [refusal.context["depth"], refusal.context["max"]]
        return result.results[0].result.value

    async with opened() as runtime:
        definition = behaving({"a": "x"}, tasks={"x": {"input": {"depth": 0}}})
        result = await runtime.workflows.run(definition, functions={"x": deeper})
    assert result.results[0].result.value == [9, 8]


@pytest.mark.parametrize("patient", ["task", "run"])
async def test_a_patient_deadline_stands_still_while_a_person_is_asked(autojump_clock: MockClock, patient: str) -> None:
    async def asks(_controller: TaskController) -> Any:
        await trio.sleep(0.3)
        answer = await runtime.ask("ops", QUESTION)
        await trio.sleep(0.3)
        return answer

    async def works(_controller: TaskController) -> None:
        await trio.sleep(1.2)

    async def answers() -> None:
        await trio.sleep(200)
        terminal = runtime.terminals.terminal("ops")
        assert terminal is not None
        (form,) = terminal.pending()
        await runtime.terminals.answer("ops", form.id, {"ok": True})

    limit = {"timeout": 1000, "patience": True} if patient == "task" else {}
    options: RunOptions = {"timeout": 1.0, "patience": True} if patient == "run" else {}
    async with opened() as runtime, trio.open_nursery() as nursery:
        runtime.terminals.add("ops")
        nursery.start_soon(answers)
        asked = behaving({"a": "x"}, tasks={"x": limit}) | {"id": "asked"}
        options["functions"] = {"x": asks}
        result = await runtime.workflows.run(asked, **options)
        assert (result.status, result.results[0].result.value) == ("completed", {"ok": True})
        worked = behaving({"a": "x"}, tasks={"x": limit}) | {"id": "worked"}
        options["functions"] = {"x": works}
        result = await runtime.workflows.run(worked, **options)
        assert statuses(result.workflow)["x"] == ("failed" if patient == "task" else "skipped")
        assert result.status == ("completed" if patient == "task" else "stopped")
