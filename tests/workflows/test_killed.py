"""A real process that is killed in the middle of a run, and what the next one makes of what it left."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from greenroom import open_runtime
from tests.workflows.killed import QUESTIONS, RELEASE, SUICIDE, asking, calls, kill, release
from tests.workflows.stage import seen

SECONDS = 30


@pytest.mark.case("reports/workflows", 1)
async def test_a_run_that_was_killed_while_a_person_is_asked_goes_on_with_the_answer(tmp_path: Path) -> None:
    await trio.to_thread.run_sync(kill, "release", tmp_path)
    async with open_runtime(data=tmp_path / "journal") as runtime:
        ops = runtime.terminals.add("ops")
        (listed,) = await runtime.workflows.list()
        assert (listed.id, listed.status) == ("w", "running")
        (form,) = ops.pending()
        assert form.durable
        runtime.workflows.functions.update(release(tmp_path, runtime))
        with trio.fail_after(SECONDS):
            run = await runtime.workflows.recover("w")
            assert await runtime.workflows.start(RELEASE) is run
            assert (await ops.answer(form.id, {"x": "yes"})).success
            result = await run.wait()
        assert [each.result.value for each in result.results] == ["sent", {"x": "yes"}, "posted"]
        assert ops.pending() == []
        assert runtime.terminals.durable is not None
        assert runtime.terminals.durable.owners() == []
    assert calls(tmp_path) == ["send", "ask", "ask", "post"]


@pytest.mark.case("reports/workflows", 5)
async def test_an_answer_that_was_recorded_is_used_and_no_question_is_asked_twice(tmp_path: Path) -> None:
    await trio.to_thread.run_sync(kill, "questions", tmp_path)
    async with open_runtime(data=tmp_path / "journal") as runtime:
        ops = runtime.terminals.add("ops")
        asked: list[str] = []
        ops.emitter.on("pending", lambda record: asked.append(record.schema.label))
        runtime.workflows.functions.update(asking(tmp_path, runtime))
        with trio.fail_after(SECONDS):
            run = await runtime.workflows.recover(QUESTIONS["id"])
            (form,) = ops.pending()
            assert (await ops.answer(form.id, {"x": "answer to q2"})).success
            result = await run.wait()
        assert {each.task: each.result.value for each in result.results} == {
            name: [f"answer to {name}1", f"answer to {name}2"] for name in "pq"
        }
        assert asked == ["q2"]
    assert sorted(calls(tmp_path)) == ["p", "q", "q"]


@pytest.mark.case("reports/workflows", 3)
async def test_a_behaviour_that_ends_its_process_is_entered_so_many_times_and_no_more(tmp_path: Path) -> None:
    with trio.fail_after(SECONDS):
        await trio.to_thread.run_sync(kill, "suicide", tmp_path)
    assert calls(tmp_path) == ["x"] * 3, "two attempts, and one that was granted"
    async with open_runtime(data=tmp_path / "journal", functions={"x": print}) as runtime:
        assert (await runtime.workflows.recover_all()).runs == ()
        snapshot = (await runtime.workflows.look(SUICIDE["id"])).snapshot()
        assert seen(snapshot) == {"suicide": "completed", "a": "failed", "x": "failed"}
        assert snapshot.phases[0].tasks[0].result.result.error.origin == "recovery"  # type: ignore[union-attr]
