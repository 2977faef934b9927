"""What a run comes to: failures and whether they end it, retries, deadlines, values."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from greenroom import Permanent, RetryAfter, TaskController, WorkflowResult
from greenroom.protocol.workflows import MAX_TIMER_MS, NO_MESSAGE, TaskError, TaskOutcome
from tests.workflows.stage import Handlers, behaving, opened, statuses


def fails(message: str = "broken", times: int = 1_000) -> Callable[[TaskController], Any]:
    """Raises in so many attempts, then returns the number of the attempt."""

    def handler(controller: TaskController) -> int:
        if controller.attempt <= times:
            raise RuntimeError(message.format(controller.attempt))
        return controller.attempt

    return handler


async def parks(_controller: TaskController) -> None:
    await trio.sleep_forever()


def takes(seconds: float, value: object = "done") -> Callable[[TaskController], Any]:
    async def handler(_controller: TaskController) -> object:
        await trio.sleep(seconds)
        return value

    return handler


async def run(definition: dict[str, Any], /, handlers: dict[str, Any] | None = None, **options: Any) -> WorkflowResult:
    async with opened() as runtime:
        given = handlers if isinstance(handlers, Handlers) else Handlers(definition, **(handlers or {}))
        return await runtime.workflows.runner.execute(definition, functions=given, **options)


def outcome(result: WorkflowResult, task: str) -> TaskOutcome:
    return next(each.result for each in result.results if each.task == task)


def failure(result: WorkflowResult, task: str) -> TaskError:
    error = outcome(result, task).error
    assert isinstance(error, TaskError)
    return error


@pytest.mark.case("workflows", 1)
async def test_a_failure_that_does_not_bail_is_a_result_beside_others(autojump_clock: MockClock) -> None:
    result = await run(behaving({"a": "x y", "b": "z"}), {"x": fails()})
    assert statuses(result.workflow) == {
        "w": "completed",
        "a": "failed",
        "x": "failed",
        "y": "completed",
        "b": "completed",
        "z": "completed",
    }
    assert failure(result, "x").origin == "handler"
    assert len(result.results) == 3


@pytest.mark.case("workflows", 2)
async def test_a_failure_that_bails_skips_siblings_and_later_phases(autojump_clock: MockClock) -> None:
    result = await run(behaving({"a": "x y", "b": "z"}, bail=True), {"x": fails(), "y": parks})
    assert statuses(result.workflow) == {
        "w": "failed",
        "a": "failed",
        "x": "failed",
        "y": "skipped",
        "b": "skipped",
        "z": "skipped",
    }
    assert [each.task for each in result.results] == ["x"]


@pytest.mark.case("workflows", 3)
async def test_tasks_in_line_behind_a_failure_that_bails_are_never_started(autojump_clock: MockClock) -> None:
    result = await run(behaving({"a": "x y z"}, each={"a": {"concurrency": 1}}, bail=True), {"x": fails()})
    tasks = {task.id: (task.status, task.attempts) for task in result.workflow.phases[0].tasks}
    assert tasks == {"x": ("failed", 1), "y": ("skipped", 0), "z": ("skipped", 0)}


@pytest.mark.parametrize(
    ("workflow_bail", "phase_bail", "option", "status"),
    [
        pytest.param(False, True, None, "failed", marks=pytest.mark.case("workflows", 4)),
        pytest.param(True, False, None, "completed", marks=pytest.mark.case("workflows", 5)),
        pytest.param(None, False, True, "failed", marks=pytest.mark.case("workflows", 6)),
        pytest.param(None, True, False, "completed", marks=pytest.mark.case("workflows", 7)),
    ],
)
async def test_a_phase_says_whether_it_bails_unless_the_caller_does(
    autojump_clock: MockClock, workflow_bail: bool | None, phase_bail: bool, option: bool | None, status: str
) -> None:
    members: dict[str, Any] = {} if workflow_bail is None else {"bail": workflow_bail}
    definition = behaving({"a": "x", "b": "y"}, each={"a": {"bail": phase_bail}}, **members)
    result = await run(definition, {"x": fails()}, **({} if option is None else {"bail": option}))
    assert result.status == status
    assert statuses(result.workflow)["b"] == ("skipped" if status == "failed" else "completed")


@pytest.mark.case("workflows", 8)
async def test_a_task_fails_with_what_its_last_attempt_raised(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x"}, tasks={"x": {"retries": 2}})
    handlers = Handlers(definition, x=fails("e{}"))
    result = await run(definition, handlers)
    assert handlers.calls == [("x", 1), ("x", 2), ("x", 3)]
    assert failure(result, "x").message == "e3"


@pytest.mark.case("workflows", 9)
async def test_an_attempt_that_is_made_good_disturbs_nobody(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x y"}, tasks={"x": {"retries": 1}}, bail=True)
    result = await run(definition, {"x": fails(times=1), "y": takes(1)})
    assert set(statuses(result.workflow).values()) == {"completed"}
    assert outcome(result, "x").value == 2


@pytest.mark.case("workflows", 10)
async def test_a_retry_keeps_its_slot(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "t u"}, tasks={"t": {"retries": 2}}, each={"a": {"concurrency": 1}})
    handlers = Handlers(definition, t=fails(times=2))
    await run(definition, handlers)
    assert [task for task, _ in handlers.calls] == ["t", "t", "t", "u"]


@pytest.mark.case("workflows", 11)
async def test_a_sibling_that_fails_for_good_ends_retries(autojump_clock: MockClock) -> None:
    async def again(_controller: TaskController) -> None:
        await trio.sleep(1)
        raise RuntimeError("again")

    async def final(_controller: TaskController) -> None:
        await trio.sleep(1.5)
        raise RuntimeError("final")

    definition = behaving({"a": "t u"}, tasks={"t": {"retries": 5}}, bail=True)
    handlers = Handlers(definition, t=again, u=final)
    result = await run(definition, handlers)
    assert statuses(result.workflow) == {"w": "failed", "a": "failed", "t": "skipped", "u": "failed"}
    assert handlers.calls.count(("t", 3)) == 0


@pytest.mark.case("workflows", 12)
async def test_an_attempt_that_takes_too_long_fails_by_its_deadline(autojump_clock: MockClock) -> None:
    result = await run(behaving({"a": "x", "b": "y"}, tasks={"x": {"timeout": 20}}), {"x": parks})
    assert result.status == "completed"
    assert failure(result, "x").origin == "timeout"
    assert "'w/a/x'" in failure(result, "x").message
    assert trio.current_time() == pytest.approx(0.02)


@pytest.mark.case("workflows", 13)
async def test_a_handler_that_raises_when_its_deadline_cancels_it_fails_once(autojump_clock: MockClock) -> None:
    async def raises(_controller: TaskController) -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise RuntimeError("on the way out")

    failed: list[object] = []
    definition = behaving({"a": "x", "b": "y"}, tasks={"x": {"timeout": 20}}, bail=True)
    result = await run(definition, {"x": raises}, on={"fail": failed.append})
    assert statuses(result.workflow) == {"w": "failed", "a": "failed", "x": "failed", "b": "skipped", "y": "skipped"}
    assert failure(result, "x").origin == "timeout"
    assert len(failed) == 1


@pytest.mark.case("workflows", 14)
async def test_an_attempt_that_is_quicker_than_the_one_before_completes(autojump_clock: MockClock) -> None:
    async def slow_at_first(controller: TaskController) -> None:
        await trio.sleep(10 if controller.attempt == 1 else 0.001)

    definition = behaving({"a": "x"}, tasks={"x": {"timeout": 20, "retries": 1}})
    result = await run(definition, {"x": slow_at_first})
    (task,) = result.workflow.phases[0].tasks
    assert (task.status, task.attempts) == ("completed", 2)


@pytest.mark.case("workflows", 15)
@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), MAX_TIMER_MS / 1000 + 1])
async def test_what_is_no_deadline_ends_nothing(autojump_clock: MockClock, timeout: float) -> None:
    definition = behaving({"a": "x"}, tasks={"x": {"timeout": 0}})
    result = await run(definition, {"x": takes(100_000)}, timeout=timeout)
    assert statuses(result.workflow) == {"w": "completed", "a": "completed", "x": "completed"}


@pytest.mark.case("workflows", 15)
async def test_a_run_that_takes_too_long_is_stopped(autojump_clock: MockClock) -> None:
    result = await run(behaving({"a": "x"}), {"x": parks}, timeout=0.02)
    assert statuses(result.workflow) == {"w": "stopped", "a": "skipped", "x": "skipped"}
    assert trio.current_time() == pytest.approx(0.02)


@pytest.mark.case("workflows", 18)
@pytest.mark.parametrize("phases", [{}, {"a": "", "b": ""}])
async def test_a_workflow_without_tasks_completes(autojump_clock: MockClock, phases: dict[str, str]) -> None:
    result = await run(behaving(phases))
    assert (result.status, result.results) == ("completed", ())
    assert all(phase.status == "pending" for phase in result.workflow.phases)


@pytest.mark.case("workflows", 19)
async def test_a_task_without_a_behaviour_completes_with_null(autojump_clock: MockClock) -> None:
    definition = {"id": "w", "name": "w", "phases": [{"id": "a", "name": "a", "tasks": [{"id": "x", "name": "x"}]}]}
    result = await run(definition)
    assert outcome(result, "x") == TaskOutcome(success=True, value=None)


@pytest.mark.case("workflows", 20)
async def test_a_value_that_is_no_json_is_a_failure_or_a_retry(autojump_clock: MockClock) -> None:
    def dated(controller: TaskController) -> object:
        return datetime.datetime(2000, 1, 1) if controller.attempt == 1 else "2000-01-01"

    result = await run(behaving({"a": "x y"}, tasks={"y": {"retries": 1}}), {"x": dated, "y": dated})
    assert failure(result, "x").origin == "handler"
    assert outcome(result, "y").value == "2000-01-01"


@pytest.mark.case("workflows", 20)
async def test_an_error_without_a_text_gets_one(autojump_clock: MockClock) -> None:
    result = await run(behaving({"a": "x"}), {"x": fails("")})
    assert failure(result, "x").message == NO_MESSAGE


async def test_an_error_of_a_handlers_nursery_is_told_without_its_group(autojump_clock: MockClock) -> None:
    async def nested(_controller: TaskController) -> None:
        async def inner() -> None:
            raise RuntimeError("deep inside")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(inner)

    result = await run(behaving({"a": "x"}), {"x": nested})
    assert failure(result, "x").message == "deep inside"


async def test_a_permanent_failure_ends_retries(autojump_clock: MockClock) -> None:
    def hopeless(_controller: TaskController) -> None:
        raise Permanent("no such account")

    definition = behaving({"a": "x"}, tasks={"x": {"retries": 5}})
    handlers = Handlers(definition, x=hopeless)
    result = await run(definition, handlers)
    assert handlers.calls == [("x", 1)]
    assert failure(result, "x") == TaskError(origin="handler", message="no such account")


async def test_a_rest_between_attempts_takes_no_slot_and_grows(autojump_clock: MockClock) -> None:
    starts: list[tuple[str, float]] = []

    def noted(controller: TaskController) -> None:
        starts.append((controller.task.id, trio.current_time()))
        if controller.task.id == "t" and controller.attempt < 4:
            raise RuntimeError("not yet")

    backoff = {"initial": 1000, "factor": 3, "max": 5000}
    definition = behaving({"a": "t u"}, tasks={"t": {"retries": 3, "backoff": backoff}}, each={"a": {"concurrency": 1}})
    result = await run(definition, {"t": noted, "u": noted})
    assert result.status == "completed"
    assert [task for task, _ in starts] == ["t", "u", "t", "t", "t"]
    times = [time for task, time in starts if task == "t"]
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == pytest.approx([1, 3, 5])


async def test_a_handler_may_say_when_to_try_again(autojump_clock: MockClock) -> None:
    def busy(controller: TaskController) -> float:
        if controller.attempt == 1:
            raise RetryAfter(30)
        return trio.current_time()

    definition = behaving({"a": "x"}, tasks={"x": {"retries": 1, "backoff": {"initial": 1}}})
    result = await run(definition, {"x": busy})
    assert outcome(result, "x").value == pytest.approx(30)


async def test_a_task_that_rests_is_skipped_at_once_with_its_run(autojump_clock: MockClock) -> None:
    definition = behaving({"a": "x"}, tasks={"x": {"retries": 1, "backoff": {"initial": 60_000}}})
    result = await run(definition, {"x": fails()}, timeout=1)
    assert statuses(result.workflow) == {"w": "stopped", "a": "skipped", "x": "skipped"}
    assert trio.current_time() == pytest.approx(1)


async def test_silence_fails_the_attempt_and_the_next_one_knows_the_last_frame(
    autojump_clock: MockClock,
) -> None:
    async def quiet_at_first(controller: TaskController) -> object:
        if controller.attempt == 1:
            controller.report({"note": "half way"})
            await trio.sleep(4)
            assert controller.pulse()
            await trio.sleep(4)
            controller.report({"note": "nearly there"})
            await trio.sleep_forever()
        return None if not controller.previous else controller.previous.note

    definition = behaving({"a": "x"}, tasks={"x": {"retries": 1, "heartbeat": 5000}})
    result = await run(definition, {"x": quiet_at_first})
    assert outcome(result, "x").value == "nearly there"
    assert trio.current_time() == pytest.approx(13)


async def test_a_task_that_is_silent_to_the_end_of_its_heartbeat_says_so(autojump_clock: MockClock) -> None:
    result = await run(behaving({"a": "x"}, tasks={"x": {"heartbeat": 5000}}), {"x": parks})
    assert failure(result, "x").origin == "timeout"
    assert "Nothing was heard" in failure(result, "x").message


async def test_silence_is_announced_once_until_something_is_heard_again(autojump_clock: MockClock) -> None:
    heard: list[float] = []

    async def mostly_quiet(controller: TaskController) -> None:
        controller.task.emitter.on("silence", lambda: heard.append(trio.current_time()))
        await trio.sleep(10)
        controller.pulse()
        await trio.sleep(1)

    await run(behaving({"a": "x"}), {"x": mostly_quiet}, silence=2)
    assert heard == pytest.approx([2])


@pytest.mark.case("reports/workflows", 2)
async def test_deadlines_that_fire_lose_no_slot(autojump_clock: MockClock) -> None:
    running = most = 0

    async def slow(controller: TaskController) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await trio.sleep(10 if controller.attempt == 1 else 0)
        finally:
            running -= 1

    names = [f"x{number}" for number in range(100)]
    definition = behaving(
        {"a": " ".join([*names, "y"])},
        tasks={name: {"timeout": 20, "retries": 1 if name == "x0" else 0} for name in names},
        each={"a": {"concurrency": 1}},
    )
    handlers = Handlers(definition, **dict.fromkeys([*names, "y"], slow))
    handlers["y"] = lambda _controller: "after all"
    result = await run(definition, handlers)
    assert most == 1
    assert handlers.calls[:3] == [("x0", 1), ("x0", 2), ("x1", 1)]
    assert [each.result.success for each in result.results] == [True, *[False] * 99, True]


@pytest.mark.case("reports/workflows", 6)
async def test_long_deadlines_fire_no_sooner_than_they_are_due(autojump_clock: MockClock) -> None:
    """On a mocked clock: none of them ends within the first second, and the longest outlasts a month."""
    definition = behaving(
        {"a": "longest zero absent"}, tasks={"longest": {"timeout": MAX_TIMER_MS}, "zero": {"timeout": 0}}
    )
    month = takes(30 * 86_400)
    result = await run(definition, {"longest": takes(24 * 86_400), "zero": month, "absent": month}, timeout=2_592_000.0)
    assert result.status == "completed"
    assert [each.result.success for each in result.results] == [True, True, True]
