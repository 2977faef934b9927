"""What a policy may do to a call: deny it, wrap it, judge its outcome, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from msgspec import Struct
from trio.testing import MockClock

from greenroom.protocol.errors import GreenroomError, InvariantError, ToolError
from greenroom.protocol.tools import ToolFailure, ToolSuccess
from greenroom.runtime.bus import Bus, Next
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.pipeline.execution import conclude_turn, current_invocation, defer_context
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.outcomes import Outcome, ToolFail, ToolOk
from greenroom.runtime.pipeline.pipeline import Pipeline
from greenroom.runtime.pipeline.snapshot import thaw
from greenroom.runtime.pipeline.verdicts import Accept, Allow, Block, Deny, Review, Verdict
from greenroom.runtime.scopes import Scope
from greenroom.runtime.tools import Tool, ToolManager, tool_function
from tests.pipeline.track import Track, call


@pytest.fixture
def track() -> Track:
    return Track()


def boom() -> None:
    raise LookupError("no such thing")


# -------------------------------------------------------------------- before the tool


@pytest.mark.case("pipeline", 9)
async def test_a_denied_call_runs_nothing_and_is_told_of_once(track: Track) -> None:
    ran: list[object] = []
    track.tool(ran.append)
    track.on(track.pipeline.pre_execute, lambda call: Deny("not on a Sunday"))
    assert await track.error() == "The call was not run: not on a Sunday"
    assert ran == []
    assert track.seen == ["pre", "post", "result"]
    assert track.log.events == ["call 1", "result 1"]
    assert track.outcome.code == "DENIED"


@pytest.mark.case("pipeline", 10)
async def test_where_a_verdict_cannot_be_had_nothing_runs_and_nothing_is_judged(track: Track) -> None:
    finalized: list[str] = []

    def finalize(call: Invocation, outcome: Outcome) -> str:
        finalized.append(call.name)
        return outcome.content or ""

    track.tool(lambda: "done", finalize=finalize)
    track.on(track.pipeline.pre_execute, lambda call: boom())
    assert await track.error() == "no such thing"
    assert (track.seen, finalized) == (["pre", "result"], ["t"])


@pytest.mark.case("pipeline", 12)
async def test_a_policy_that_allows_hides_the_others_but_no_guard(track: Track) -> None:
    track.tool(lambda: "done")
    track.on(track.pipeline.pre_execute, lambda call: Deny("hidden"))
    track.on(track.pipeline.pre_execute, lambda call: Allow(), prepend=True)
    assert await track.value() == "done"
    close = track.pipeline.guard(lambda call: f"{call.name} is guarded")
    assert await track.error() == "The call was not run: t is guarded"
    close()
    assert await track.value() == "done"


async def test_the_first_reason_wins_of_all_then_of_the_outermost_scope() -> None:
    app = Scope("app")
    agent = Scope("agent", app)
    pipeline = Pipeline(Bus())
    tools = ToolManager(pipeline=pipeline, scope=agent)
    tools.add(Tool("t", lambda: "done"))
    asked: list[str] = []

    def guard(name: str, reason: str | None, scope: Scope | None) -> None:
        def says(_: Invocation) -> str | None:
            asked.append(name)
            return reason

        pipeline.guard(says, scope=scope)

    guard("agent", "the agent", agent)
    guard("app", "the app", app)
    guard("other", "elsewhere", Scope("other", app))
    guard("all", None, None)
    assert await tools.execute(call()) == ToolFailure(id="1", name="t", error="The call was not run: the app")
    assert asked == ["all", "app"]


@pytest.mark.parametrize("verdict", [None, True, "allow", Verdict()])
async def test_what_is_no_verdict_allows_nothing(track: Track, verdict: Any) -> None:
    track.tool(lambda: "done")
    track.on(track.pipeline.pre_execute, lambda call: verdict)
    assert "no verdict" in await track.error()
    assert track.seen == ["pre", "result"]


@pytest.mark.case("pipeline", 28)
async def test_policies_see_a_call_of_a_tool_that_is_not_there(track: Track) -> None:
    assert await track.error("ghost") == "tool not found: ghost"
    assert track.seen == ["pre", "around", "post", "result"]
    assert track.outcome.code == "UNKNOWN_TOOL"


async def test_policies_see_arguments_as_they_came_and_cannot_change_them(track: Track) -> None:
    class Add(Struct):
        a: int

    got: list[Any] = []
    track.tools.add(Tool("t", lambda add: add.a, parameters=Add))

    def tamper(call: Invocation) -> Verdict:
        got.append(call.arguments)
        with pytest.raises(TypeError, match="read-only"):
            call.arguments["a"] = 3
        return Allow()

    track.on(track.pipeline.pre_execute, tamper)
    given = {"a": "2", "more": [1]}
    assert await track.value(arguments=given) == 2
    assert got == [given]
    assert got[0] is not given
    await track.error(arguments={"a": "x"})
    assert track.results[-1].outcome.code == "INVALID_ARGS"  # type: ignore[attr-defined]


@pytest.mark.parametrize("arguments", [{1: 2}, {"a": (1,)}, {"a": -0.0}, {"a": 2**53}, {"a": "\ud800"}])
async def test_arguments_that_cannot_be_kept_fail_before_any_policy(track: Track, arguments: Any) -> None:
    track.tool(lambda: "done")
    assert "malformed arguments" in await track.error(arguments=arguments)
    assert track.seen == ["result"]
    assert track.outcome.code == "INVALID_ARGS"


async def test_arguments_that_a_provider_could_not_read_fail_before_any_policy(track: Track) -> None:
    result = await track.tools.execute(call(invalid="the text ended within a string"))
    assert result == ToolFailure(id="1", name="t", error="malformed arguments: the text ended within a string")
    assert track.seen == ["result"]


# -------------------------------------------------------------------- around the tool


@pytest.mark.case("pipeline", 11)
async def test_what_a_tool_raises_is_an_outcome_to_those_around_it(track: Track) -> None:
    seen: list[Outcome] = []

    async def around(call: Invocation, next: Next[Outcome]) -> Outcome:
        seen.append(await next())
        return seen[0]

    track.bus.on(track.pipeline.execute, around)
    track.tool(boom)
    assert await track.error() == "no such thing"
    (outcome,) = seen
    assert isinstance(outcome, ToolFail)
    assert isinstance(outcome.cause, LookupError)
    assert track.seen == ["pre", "around", "post", "result"]


async def test_a_policy_may_answer_in_place_of_the_tool_by_the_tools_own_rules(track: Track) -> None:
    track.tool(boom, returns=int, render=lambda arguments, value: f"<{value}>")
    track.on(track.pipeline.execute, lambda call: ToolOk(7 if call.arguments else "seven"))
    assert await track.value(arguments={"a": 1}) == 7
    assert track.outcome.content == "<7>"
    assert "the tool returned what it should not" in await track.error()
    assert track.results[-1].outcome.code == "INVALID_TOOL_OUTPUT"  # type: ignore[attr-defined]


@pytest.mark.parametrize("outcome", [None, "done", Outcome()])
async def test_what_is_no_outcome_is_a_failure(track: Track, outcome: Any) -> None:
    track.tool(lambda: "done")
    track.on(track.pipeline.execute, lambda call: outcome)
    assert "no outcome" in await track.error()


@pytest.mark.case("pipeline", 18)
@pytest.mark.parametrize("value", [{1: "a"}, (1, 2), math.nan, -0.0, {"a": [{"b": {1}}]}, "\ud800"])
async def test_a_value_that_is_no_json_is_a_failure(track: Track, value: Any) -> None:
    track.tool(lambda: value)
    assert "the tool returned what it should not" in await track.error()
    assert track.outcome.code == "INVALID_TOOL_OUTPUT"


@pytest.mark.case("pipeline", 19)
@pytest.mark.parametrize(("value", "kept"), [(2**53, False), (-(2**53), False), (2**53 - 1, True), (1 - 2**53, True)])
async def test_an_integer_is_one_that_every_reader_holds(track: Track, value: int, kept: bool) -> None:
    track.tool(lambda: [value])
    result = await track.execute()
    assert isinstance(result, ToolSuccess) is kept


async def test_a_renderer_that_raises_is_a_fault_of_the_tool(track: Track) -> None:
    track.tool(lambda: 1, render=lambda arguments, value: 1 / 0)
    assert await track.error() == "what the tool returned cannot be rendered: division by zero"
    assert track.outcome.code == "INVALID_TOOL_OUTPUT"


# -------------------------------------------------------------------- after the tool


async def test_another_text_leaves_the_value_and_another_value_is_rendered(track: Track) -> None:
    track.tool(lambda: [1, 2], render=lambda arguments, value: f"{len(value)} of them")
    reviews: list[Review] = [Accept(content="two"), Accept(value=[1]), Accept(content="x", value=[1])]
    track.on(track.pipeline.post_execute, lambda settled: reviews.pop(0))
    assert await track.value() == [1, 2]
    assert await track.value() == [1]
    assert [settled.outcome.content for settled in track.results] == ["two", "1 of them"]
    assert "both a value and a text" in await track.error()


async def test_a_failure_gets_no_value(track: Track) -> None:
    track.tool(boom)
    track.on(track.pipeline.post_execute, lambda settled: Accept(value=1))
    assert "a value for a call that failed" in await track.error()


@pytest.mark.case("pipeline", 23)
async def test_of_a_blocked_call_only_the_blockers_texts_are_left(track: Track) -> None:
    def work() -> str:
        defer_context("from the tool")
        return "secret"

    track.tool(work)
    reviews: list[Review] = [Accept(contexts=("of the policy",)), Block("say less", contexts=("of the blocker",))]
    track.on(track.pipeline.post_execute, lambda settled: reviews.pop(0))
    await track.value()
    assert track.results[0].outcome.contexts == ("from the tool", "of the policy")
    assert await track.error() == "say less"
    assert track.results[1].outcome == ToolFail(
        "say less", "BLOCKED", content="Error: say less", contexts=("of the blocker",)
    )


async def test_a_deferred_text_survives_the_failure_of_its_tool(track: Track) -> None:
    def work() -> None:
        defer_context("tried the north door")
        boom()

    track.tool(work)
    await track.error()
    assert track.outcome.contexts == ("tried the north door",)


async def test_a_tool_may_end_the_turn_only_if_it_succeeds(track: Track) -> None:
    def work(arguments: dict[str, Any]) -> None:
        conclude_turn()
        if arguments:
            boom()

    track.tool(work)
    await track.value()
    await track.error(arguments={"fail": True})
    assert track.results[0].outcome == ToolOk(None, concludes_turn=True, content="null")
    assert isinstance(track.results[1].outcome, ToolFail)


def test_outside_of_a_call_there_is_nothing_to_say_to_it() -> None:
    assert current_invocation() is None
    for say in (conclude_turn, lambda: defer_context("x")):
        with pytest.raises(GreenroomError, match="within a tool"):
            say()


@pytest.mark.case("pipeline", 27)
async def test_what_an_observer_does_changes_nothing(track: Track) -> None:
    def tamper(settled: Settled) -> None:
        outcome: Any = settled.outcome
        for harm in (
            lambda: outcome.value["list"].append(3),
            lambda: outcome.value.update(more=1),
            lambda: setattr(outcome, "value", 1),
            lambda: setattr(settled, "outcome", None),
        ):
            with pytest.raises((TypeError, AttributeError)):
                harm()
        raise LookupError("and then it raises")

    track.bus.on(track.pipeline.result, tamper, prepend=True)
    track.tool(lambda: {"list": [1, 2]})
    assert await track.value() == {"list": [1, 2]}
    assert track.log.events == ["call 1", "result 1"]
    assert track.log.settled[0].outcome.content == '{"list":[1,2]}'


async def test_a_broken_invariant_is_raised_and_the_call_recorded_all_the_same(track: Track) -> None:
    def broken(_: Settled) -> None:
        raise InvariantError("INVARIANT", "two results of one call")

    track.bus.on(track.pipeline.result, broken)
    track.tool(lambda: 1)
    with pytest.raises(InvariantError):
        await track.execute()
    assert track.log.events == ["call 1", "result 1"]


async def test_a_value_is_a_copy_that_its_receiver_may_change(track: Track) -> None:
    kept = {"list": [1]}
    track.tool(lambda: kept)
    value = await track.value()
    value["list"].append(2)
    assert kept == {"list": [1]} == thaw(track.outcome.value)


# -------------------------------------------------------------------- stopping


async def test_a_call_that_is_stopped_before_it_begins_meets_no_policy(track: Track) -> None:
    stop = Cancel()
    stop.set()
    track.tool(lambda: "done")
    assert "stopped before it ran" in await track.error(stop=stop)
    assert (track.seen, track.outcome.code) == (["result"], "ABORTED_BEFORE_DISPATCH")


async def test_a_call_that_is_stopped_before_its_tool_runs_is_judged_all_the_same(track: Track) -> None:
    stop = Cancel()
    track.tool(lambda: "done")

    def allow(_: Invocation) -> Verdict:
        stop.set()
        return Allow()

    track.on(track.pipeline.pre_execute, allow)
    await track.error(stop=stop)
    assert (track.seen, track.outcome.code) == (["pre", "post", "result"], "ABORTED_BEFORE_DISPATCH")


async def test_a_stop_ends_the_tool_and_not_the_policies(track: Track, autojump_clock: MockClock) -> None:
    stop = Cancel()

    async def slow(settled: Settled) -> Review:
        await trio.sleep(5)
        return Accept()

    async def hang() -> None:
        defer_context("hung")
        await trio.sleep_forever()

    track.tool(hang)
    track.on(track.pipeline.post_execute, slow)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_later, stop)
        assert "stopped while it ran" in await track.error(stop=stop)
    assert (track.outcome.code, track.outcome.contexts) == ("ABORTED", ("hung",))
    assert trio.current_time() == 6


@pytest.mark.case("pipeline", 22)
async def test_the_error_of_a_tool_that_is_stopped_stays(track: Track, autojump_clock: MockClock) -> None:
    stop = Cancel()

    async def fail() -> None:
        stop.set()
        boom()

    track.tool(fail)
    assert await track.error(stop=stop) == "no such thing"


async def test_a_success_is_none_once_the_call_is_stopped(track: Track) -> None:
    stop = Cancel()

    def work() -> str:
        stop.set()
        return "done"

    track.tool(work)
    assert "stopped while it ran" in await track.error(stop=stop)
    assert track.outcome.code == "ABORTED"


async def test_a_call_that_is_stopped_between_two_runs_did_run(track: Track) -> None:
    stop = Cancel()

    async def twice(call: Invocation, next: Next[Outcome]) -> Outcome:
        await next()
        stop.set()
        return await next()

    track.bus.on(track.pipeline.execute, twice)
    track.tool(boom)
    assert "stopped while it ran" in await track.error(stop=stop)
    assert track.outcome.code == "ABORTED"


async def _later(stop: Cancel) -> None:
    await trio.sleep(1)
    stop.set()


# -------------------------------------------------------------------- nested calls, other callers


async def test_a_nested_call_passes_all_stages_and_its_texts_go_with_the_outer_result(track: Track) -> None:
    async def outer() -> Any:
        return await track.tools.run("inner", {"a": 1})

    def inner(arguments: Any) -> Any:
        defer_context("from within")
        return arguments

    track.tool(outer)
    track.tool(inner, "inner")
    assert await track.value() == {"a": 1}
    nested, whole = track.results
    assert nested.call.parent is whole.call
    assert nested.call.root_id == whole.call.call_id == "1"
    assert whole.outcome.contexts == ("from within",)


async def test_a_function_of_a_task_is_under_policy_too(track: Track) -> None:
    class Input(Struct):
        input: Any

    track.tool(boom)
    track.tool(lambda: "done", "ok")
    with pytest.raises(LookupError, match="no such thing"):
        await tool_function(track.tools, "t")(Input({}))
    assert await tool_function(track.tools, "ok")(Input({})) == "done"
    track.on(track.pipeline.pre_execute, lambda call: Deny("not from a task"))
    with pytest.raises(ToolError, match="not from a task") as denied:
        await tool_function(track.tools, "ok")(Input({}))
    assert denied.value.code == "DENIED"


async def test_without_a_policy_a_call_is_just_run() -> None:
    pipeline = Pipeline(Bus())
    tools = ToolManager(pipeline=pipeline)
    got: list[Any] = []
    value = object()

    def work(arguments: Any) -> object:
        got.append(arguments)
        return value

    tools.add(Tool("t", work))
    given = {"a": (1,)}
    assert await tools.execute(call(arguments=given)) == ToolSuccess(id="1", name="t", value=value)
    assert got[0] is given
    close = pipeline.guard(lambda call: None)
    assert isinstance(await tools.execute(call(arguments=given)), ToolFailure)
    close()
    assert isinstance(await tools.execute(call(arguments=given)), ToolSuccess)
