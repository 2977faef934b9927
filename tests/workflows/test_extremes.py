"""Runs at the edge: values as deep and as large as they may be, errors that cannot be told, bounds that are none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from greenroom import TaskController, WorkflowError
from greenroom.protocol.schemas.gates import MAX_INTEGER_BITS, MAX_LEVELS
from greenroom.protocol.workflows import PhaseOptions, TaskOptions, WorkflowResult
from greenroom.runtime.cancel import Cancel
from tests.workflows.stage import behaving, opened, statuses

ONE = behaving({"a": "x"})
TWO = behaving({"a": "x y"})


async def rests(_controller: TaskController) -> None:
    await trio.sleep(1)


async def parks(_controller: TaskController) -> None:
    await trio.sleep_forever()


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def message(result: WorkflowResult) -> str:
    error = result.results[0].result.error
    assert error
    return error.message


# -------------------------------------------------------------------- values


async def test_what_a_run_has_taken_can_be_read_again_however_deep_it_is(autojump_clock: MockClock) -> None:
    def deep(_controller: TaskController) -> object:
        return nested(MAX_LEVELS)

    async def waits(controller: TaskController) -> object:
        return await controller.signal("go")

    metadata = {"deep": nested(MAX_LEVELS - 1)}
    async with opened(data=":memory:", functions={"x": deep, "y": waits}) as runtime:
        options = PhaseOptions(tasks={"x": TaskOptions(metadata=metadata)})
        run = await runtime.workflows.start(behaving({"a": "x", "b": "y"}), phases={"a": options})
        await run.signal("go", nested(MAX_LEVELS - 1))
        assert (await run.wait()).status == "completed"
        runtime.workflows.remove("w")
        read = (await runtime.workflows.look("w")).workflow
        assert [result.result.value for result in read.results()] == [nested(MAX_LEVELS), nested(MAX_LEVELS - 1)]
        assert read.snapshot().phases[0].tasks[0].metadata == metadata


async def test_signals_may_have_more_values_together_than_each_of_them(autojump_clock: MockClock) -> None:
    async def waits(controller: TaskController) -> None:
        await controller.signal("go")

    many = [0] * 150_000
    async with opened(data=":memory:", functions={"x": waits}) as runtime:
        run = await runtime.workflows.start(ONE)
        for name in ("first", "second"):
            await run.signal(name, many)
        runtime.workflows.remove("w")
        assert (await runtime.workflows.look("w")).snapshot().signals == {"first": many, "second": many}


async def test_an_integer_that_nobody_could_write_down_is_refused(autojump_clock: MockClock) -> None:
    async def waits(controller: TaskController) -> object:
        await controller.signal("go")
        return 1 << MAX_INTEGER_BITS

    async with opened(data=":memory:", functions={"x": waits}) as runtime:
        run = await runtime.workflows.start(ONE)
        with pytest.raises(WorkflowError, match="more than 14,000 bits") as refusal:
            await run.signal("note", 10**5000)
        assert refusal.value.code == "RESTORE"
        await run.signal("go", (1 << MAX_INTEGER_BITS) - 1)
        result = await run.wait()
        assert "more than 14,000 bits" in message(result)
        assert result.durable is True


# -------------------------------------------------------------------- errors


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def in_groups(levels: int) -> Exception:
    errors: list[Exception] = [ValueError("far inside")]
    for _ in range(levels):
        errors = [ExceptionGroup("around", errors)]
    return errors[0]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unprintable(), "Unprintable"),
        (in_groups(3000), "far inside"),
        (ExceptionGroup("both", [in_groups(0), in_groups(2)]), "far inside; far inside"),
        (asyncio.CancelledError("a job elsewhere was cancelled"), "a job elsewhere was cancelled"),
    ],
    ids=["unprintable", "deep", "several", "asyncio"],
)
async def test_whatever_a_handler_raises_fails_its_task_and_no_other(
    autojump_clock: MockClock, error: BaseException, told: str
) -> None:
    def fails(_controller: TaskController) -> None:
        raise error

    async with opened() as runtime:
        result = await runtime.workflows.run(TWO, functions={"x": fails, "y": rests})
    assert statuses(result.workflow) == {"w": "completed", "a": "failed", "x": "failed", "y": "completed"}
    assert message(result) == told


async def test_a_store_whose_error_cannot_be_printed_is_told_by_its_type(autojump_clock: MockClock) -> None:
    class Store:
        async def get(self, id: str) -> None:
            await trio.lowlevel.checkpoint()

        async def set(self, snapshot: object) -> None:
            await trio.lowlevel.checkpoint()
            raise Unprintable

    async with opened(workflow_store=Store()) as runtime:
        result = await runtime.workflows.run(ONE, functions={"x": lambda _: None})
    assert result.fault
    assert result.fault.message == "Unprintable"


# -------------------------------------------------------------------- bounds


@pytest.mark.parametrize("bound", [{"timeout": "5"}, {"timeout": True}, {"budget": 5}, {"cancel": 5}], ids=str)
async def test_a_bound_of_the_wrong_type_is_refused_and_the_id_stays_free(
    autojump_clock: MockClock, bound: dict[str, Any]
) -> None:
    async with opened(data=":memory:", functions={"x": lambda _: None}) as runtime:
        workflow = runtime.workflows.add(ONE)
        with pytest.raises(WorkflowError, match=f"The {next(iter(bound))} of a run is") as refusal:
            await runtime.workflows.run(workflow, **bound)
        assert refusal.value.code == "MUTATION"
        assert (await runtime.workflows.run(workflow)).status == "completed"


@pytest.mark.parametrize("timeout", [10**400, float("nan"), float("inf"), 0, -1])
async def test_a_timeout_beyond_what_a_timer_holds_is_none(autojump_clock: MockClock, timeout: float) -> None:
    async with opened() as runtime:
        result = await runtime.workflows.run(ONE, functions={"x": rests}, timeout=timeout)
    assert result.status == "completed"


async def test_a_run_whose_token_breaks_ends_stored() -> None:
    class Broken:
        def is_set(self) -> bool:
            return False

        async def wait(self) -> None:
            await trio.lowlevel.checkpoint()
            raise RuntimeError("broken")

    async with opened(data=":memory:", functions={"x": parks}) as runtime:
        with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="broken")):
            await runtime.workflows.run(ONE, cancel=Broken())
        runtime.workflows.remove("w")
        assert (await runtime.workflows.look("w")).status == "stopped"
        assert (await runtime.workflows.run(behaving({"a": "x"}, id="v"), cancel=cancelled())).status == "stopped"


def cancelled() -> Cancel:
    token = Cancel()
    token.set()
    return token
