"""What a task asks durably is its own: over attempts, a suspension and the death of its process, and until it is
over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec import UNSET

from greenroom import MemoryWorkflowStore, TaskController
from greenroom.actors.workflow.picture import all_runs
from greenroom.protocol.terminals import AnswerFailure
from tests.durable.stage import Life, life, refusing
from tests.workflows.killed import question
from tests.workflows.stage import Handlers, behaving

ONE = behaving({"a": "x"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def asks(now: Life, key: str | None = "k") -> Callable[[TaskController], Any]:
    """A behaviour that asks a person, for as long as it takes."""

    async def ask(controller: TaskController) -> Any:
        values = await now.runtime.ask("ops", question(controller.task.id), key=key, timeout=None)
        return values["x"]

    return ask


async def owners(now: Life) -> list[str]:
    """Whose asks are recorded, in the order of asking."""
    assert now.runtime.journal is not None
    return [owner for (owner,) in await now.runtime.journal.select("SELECT owner FROM asks ORDER BY rowid")]


async def until_owned(now: Life, *expected: str) -> None:
    """Wait until these are the owners: what is let go of is not waited for."""
    while await owners(now) != list(expected):
        pass


async def test_tasks_with_one_key_ask_each_for_itself(file: Path) -> None:
    definition = behaving({"a": "x y"}) | {"id": "w/1"}
    async with life(file) as now:
        run = await now.runtime.workflows.start(definition, functions={"x": asks(now), "y": asks(now)})
        await now.until_told(2)
        assert sorted(await owners(now)) == ["workflow:w%2F1/a/x", "workflow:w%2F1/a/y"]
        for form in now.ops.pending():
            await now.ops.answer(form.id, {"x": f"answer to {form.schema.label}"})
        assert [each.result.value for each in (await run.wait()).results] == ["answer to x", "answer to y"]
        await until_owned(now)


async def test_an_actor_beneath_a_task_asks_for_the_task(file: Path) -> None:
    async with life(file) as now:

        async def nested(controller: TaskController) -> Any:
            inner = behaving({"b": "y"}) | {"id": "inner"}
            result = await now.runtime.workflows.runner.execute(inner, functions={"y": asks(now)})
            return result.results[0].result.value

        run = await now.runtime.workflows.start(ONE, functions={"x": nested})
        await now.until_told(1)
        assert await owners(now) == ["workflow:w/a/x"], "the inner run is not stored, and does not go on by itself"
        (form,) = now.ops.pending()
        await now.ops.answer(form.id, {"x": "yes"})
        assert (await run.wait()).results[0].result.value == "yes"


async def test_a_further_attempt_waits_on(file: Path) -> None:
    definition = behaving({"a": "x"}, tasks={"x": {"timeout": 50, "retries": 3}})
    async with life(file) as now:
        run = await now.runtime.workflows.start(definition, functions={"x": asks(now)})
        async for event in run.events():
            if event.event == "start" and event.attempt == 2:
                break
        (form,) = now.ops.pending()
        await now.ops.answer(form.id, {"x": "yes"})
        assert (await run.wait()).results[0].result.value == "yes"
        assert now.told[:2] == ["pending", "answered"]


async def test_what_a_task_has_asked_that_failed_is_taken_back(file: Path) -> None:
    definition = behaving({"a": "x", "b": "y"}, tasks={"x": {"timeout": 20}})
    async with life(file) as now:
        gate = trio.Event()
        handlers = Handlers(definition, x=asks(now), y=lambda _: gate.wait())
        run = await now.runtime.workflows.start(definition, functions=handlers)
        await now.until_told(2)
        assert now.told == ["pending", "withdrawn"]
        assert await owners(now) == []
        gate.set()
        assert (await run.wait()).status == "completed"


async def test_a_suspended_run_keeps_what_it_has_asked_and_a_cancelled_one_does_not(file: Path) -> None:
    async with life(file) as now:
        workflows = now.runtime.workflows
        workflows.functions["x"] = asks(now)
        run = await workflows.start(ONE)
        await now.until_told(1)
        before = now.ops.pending()
        await run.suspend()
        assert now.ops.pending() == before
        assert await owners(now) == ["workflow:w/a/x"]
        again = await workflows.recover("w")
        assert again is not run
        await again.cancel()
        await now.until_told(2)
        assert now.told == ["pending", "withdrawn"]
        assert await owners(now) == []


async def test_a_run_that_is_stopped_before_it_has_asked_again_takes_back_what_it_had_asked(file: Path) -> None:
    async with life(file) as before:
        await before.runtime.workflows.start(ONE, functions={"x": asks(before)})
        await before.until_told(1)
    async with life(file, functions={"x": print}) as after:
        await after.until_told(1)
        run = await after.runtime.workflows.recover("w")
        run.workflow.pause()
        await run.cancel()
        await after.until_told(2)
        assert after.told == ["pending", "withdrawn"]


async def test_a_run_that_is_taken_up_lets_go_of_what_tasks_had_asked_that_are_over(file: Path) -> None:
    """Its process died between the end of a task and that of its ask."""
    definition = behaving({"a": "x", "b": "y"})
    async with life(file) as before:
        run = await before.runtime.workflows.start(definition, functions=Handlers(definition, y=asks(before)))
        await before.until_told(1)
        await before.shown("left", owner="workflow:w/a/x")
        assert not run.over
    async with life(file) as after:
        await after.until_told(2)
        await after.runtime.workflows.recover("w", functions=Handlers(definition, y=asks(after)))
        await until_owned(after, "workflow:w/b/y")
        (form,) = after.ops.pending()
        assert form.schema.label == "y"


@pytest.mark.parametrize("over", [True, False])
async def test_what_a_run_has_left_that_is_over_or_gone_is_never_shown(file: Path, over: bool) -> None:
    async with life(file) as before:
        if over:
            await before.runtime.workflows.run(ONE, functions={"x": lambda _: 1})
        await before.shown("left", owner="workflow:w/a/x")
        await before.shown("mine", owner="somebody")
    async with life(file) as after:
        await until_owned(after, "somebody")
        assert [form.durable for form in after.ops.pending()] == [True]


async def test_a_run_that_is_deleted_takes_back_what_it_has_asked(file: Path) -> None:
    async with life(file) as now:
        run = await now.runtime.workflows.start(ONE, functions={"x": asks(now)})
        await now.until_told(1)
        await run.suspend()
        assert now.runtime.workflows.store is not None
        await now.runtime.workflows.store.delete("w")
        await now.until_told(2)
        assert now.told == ["pending", "withdrawn"]


async def test_an_answer_is_kept_for_a_task_whose_end_was_not_recorded(file: Path) -> None:
    async with life(file) as before:
        reached, gate = trio.Event(), trio.Event()

        async def asks_and_waits(controller: TaskController) -> Any:
            values = await asks(before)(controller)
            reached.set()
            await gate.wait()
            return values

        run = await before.runtime.workflows.start(ONE, functions={"x": asks_and_waits})
        await before.until_told(1)
        (form,) = before.ops.pending()
        await before.ops.answer(form.id, {"x": "yes"})
        await reached.wait()
        with refusing(before.runtime):
            gate.set()
            result = await run.wait()
        assert (result.status, result.durable) == ("completed", False)
        assert await owners(before) == ["workflow:w/a/x"]
    async with life(file) as after:
        again = await after.runtime.workflows.recover("w", functions={"x": asks(after)})
        assert (await again.wait()).results[0].result.value == "yes"
        assert after.told == []


async def test_a_run_without_a_store_asks_by_the_path_of_its_task(file: Path) -> None:
    async with life(file) as now:
        runner = now.runtime.workflows.runner
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: runner.execute(ONE, functions={"x": asks(now)}))
            await now.until_told(1)
            assert await owners(now) == ["/workflows/w/x"]
            nursery.cancel_scope.cancel()


@pytest.mark.case("reports/asking", 3)
async def test_without_a_journal_the_run_that_waited_is_there_as_interrupted_and_asks_anew() -> None:
    """Its store is one that somebody else keeps: all there is of it is what a killed process has written."""
    store, left = MemoryWorkflowStore(), MemoryWorkflowStore()
    async with life(None, workflow_store=store) as before:
        await before.runtime.workflows.start(ONE, functions={"x": asks(before, None)})
        await before.until_told(1)
        (lost,) = before.ops.pending()
        written = await store.get("w")
        assert written is not None
        await left.set(written)
    async with life(None, workflow_store=left) as after:
        (shown,) = await all_runs(after.runtime.workflows)
        assert (shown.id, shown.status, shown.live) == ("w", "running", False)
        late = await after.ops.answer(lost.id, {"x": "yes"})
        assert isinstance(late, AnswerFailure)
        assert late.error.reason == "unknown"
        run = await after.runtime.workflows.recover("w", functions={"x": asks(after, None)})
        await after.until_told(1)
        (form,) = after.ops.pending()
        await after.ops.answer(form.id, {"x": "no"})
        assert (await run.wait()).results[0].result.value == "no"


async def test_a_released_ask_ends_for_the_task_that_waits(file: Path) -> None:
    async with life(file) as now:
        run = await now.runtime.workflows.start(ONE, functions={"x": asks(now)})
        await now.until_told(1)
        assert await now.terminals.release_all("workflow:w/a/x") == 1
        (result,) = (await run.wait()).results
        assert result.result.error is not UNSET
        assert "withdrawn" in result.result.error.message
