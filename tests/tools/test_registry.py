"""The registry: what it keeps, what it shows, and that a call always comes back as data."""

from __future__ import annotations

import contextvars
import threading
from typing import Any

import pytest
import trio
from msgspec import Struct
from trio.testing import MockClock

from greenroom.protocol.errors import ToolError
from greenroom.protocol.tools import ToolCall, ToolDefinition, ToolFailure, ToolResult, ToolSuccess
from greenroom.runtime.tools import Tool, ToolManager


def echo(args: dict[str, Any]) -> dict[str, Any]:
    return args


def T(name: str, **texts: Any) -> Tool:  # noqa: N802
    return Tool(name, echo, **texts)


def call(name: str, arguments: dict[str, Any] | None = None, id: str = "1", **aside: Any) -> ToolCall:
    return ToolCall(id, name, {} if arguments is None else arguments, **aside)


def registry(*tools: Tool) -> ToolManager:
    manager = ToolManager()
    manager.add(tools)
    return manager


def names(tools: ToolManager) -> list[str]:
    return [tool.name for tool in tools.tools()]


def success(value: Any, name: str = "t", id: str = "1") -> ToolSuccess:
    return ToolSuccess(id=id, name=name, value=value)


def failure(error: str, name: str = "t", id: str = "1") -> ToolFailure:
    return ToolFailure(id=id, name=name, error=error)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


# ---------------------------------------------------------------- what it keeps and shows


@pytest.mark.case("tools", 1)
def test_an_empty_registry_has_nothing_to_show() -> None:
    tools = ToolManager()
    assert (tools.count, tools.tool("x"), tools.tools(), tools.definitions()) == (0, None, [], [])


@pytest.mark.case("tools", 2)
def test_a_definition_has_what_the_tool_has_and_its_very_schema() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    tools = registry(
        T("full", description="d", parameters=schema), T("d", description="d"), T("p", parameters=schema), T("bare")
    )
    assert tools.definitions() == [
        ToolDefinition("full", "d", schema),
        ToolDefinition("d", "d"),
        ToolDefinition("p", None, schema),
        ToolDefinition("bare"),
    ]
    assert all(tools.definitions()[at].parameters is schema for at in (0, 2))


@pytest.mark.case("tools", 3)
def test_a_summary_is_shown_in_place_of_the_description_which_stays_on_the_tool() -> None:
    tools = registry(T("t", description="long", summary="short"))
    tool = tools.tool("t")
    assert tools.definitions() == [ToolDefinition("t", "short")]
    assert tool is not None
    assert tool.description == "long"


@pytest.mark.case("tools", 4)
def test_an_empty_summary_is_still_a_summary() -> None:
    assert registry(T("t", description="full", summary="")).definitions() == [ToolDefinition("t", "")]


@pytest.mark.case("tools", 5)
async def test_a_tool_of_a_known_name_takes_its_place() -> None:
    tools = registry(T("a"), T("b"))
    tools.add(Tool("a", lambda: "new"))
    assert (names(tools), tools.count) == (["a", "b"], 2)
    assert await tools.execute(call("a")) == success("new", "a")


@pytest.mark.case("tools", 6)
def test_the_last_of_a_repeated_name_wins() -> None:
    tools = registry(T("a"), T("b"))
    tools.add([T("a", description="a2"), T("a", description="a3")])
    assert names(tools) == ["a", "b"]
    assert tools.definitions()[0].description == "a3"


@pytest.mark.case("tools", 7)
def test_a_tool_that_was_removed_comes_back_at_the_end() -> None:
    tools = registry(T("a"), T("b"))
    tools.remove("a")
    tools.add(T("a"))
    assert names(tools) == ["b", "a"]


@pytest.mark.case("tools", 8)
def test_removing_tells_whether_anything_was_there() -> None:
    tools = registry(T("a"))
    assert (tools.remove("a"), tools.remove("a")) == (True, False)
    tools.add([T("a"), T("b")])
    assert tools.remove(["a", "missing"])
    assert not tools.remove(["absent"])
    assert not tools.remove([])
    assert names(tools) == ["b"]


def test_removing_several_removes_every_one_of_them() -> None:
    tools = registry(T("a"), T("b"), T("c"))
    assert tools.remove(["a", "b"])
    assert names(tools) == ["c"]


@pytest.mark.case("tools", 9)
async def test_a_cleared_registry_knows_no_tool() -> None:
    tools = registry(T("a"), T("b"))
    tools.clear()
    tools.clear()
    assert await tools.execute([call("a"), call("b")]) == [
        failure("tool not found: a", "a"),
        failure("tool not found: b", "b"),
    ]


def test_definitions_and_tools_are_fresh_lists() -> None:
    tools = registry(T("a"))
    tools.definitions().clear()
    tools.tools().clear()
    assert tools.count == len(tools.definitions()) == len(tools.tools()) == 1


def test_tools_may_come_from_any_iterable() -> None:
    tools = ToolManager()
    tools.add(T(name) for name in "ab")
    assert names(tools) == ["a", "b"]


# ---------------------------------------------------------------- one call


@pytest.mark.case("tools", 10)
async def test_an_unknown_name_is_a_failure() -> None:
    assert await ToolManager().execute(call("ghost")) == failure("tool not found: ghost", "ghost")


@pytest.mark.case("tools", 11)
async def test_plain_and_async_functions_are_both_tools() -> None:
    async def async_echo(args: dict[str, Any]) -> Any:
        await trio.lowlevel.checkpoint()
        return args["text"]

    tools = registry(Tool("add", lambda args: args["a"] + args["b"]), Tool("echo", async_echo))
    assert await tools.execute(call("add", {"a": 2, "b": 5})) == success(7, "add")
    assert await tools.execute(call("echo", {"text": "ok"})) == success("ok", "echo")


@pytest.mark.case("tools", 12)
@pytest.mark.parametrize("value", [0, "", False, None])
async def test_an_empty_value_is_a_value(value: object) -> None:
    result = await registry(Tool("t", lambda: value)).execute(call("t"))
    assert isinstance(result, ToolSuccess)
    assert result.value is value


@pytest.mark.case("tools", 13)
@pytest.mark.parametrize("error", [Exception("handler failed"), TypeError("wrong value")])
async def test_what_a_tool_raises_is_told_by_its_message_alone(error: Exception) -> None:
    assert await registry(Tool("t", raising(error))).execute(call("t")) == failure(str(error))


async def test_an_empty_message_stays_empty() -> None:
    assert await registry(Tool("t", raising(ValueError()))).execute(call("t")) == failure("")


@pytest.mark.case("tools", 14)
async def test_an_error_without_a_text_is_told_all_the_same() -> None:
    tools = registry(Tool("t", raising(Unprintable())), Tool("ok", lambda: "done"))
    assert await tools.execute([call("t"), call("ok")]) == [failure("Unknown thrown value"), success("done", "ok")]


async def test_a_group_with_one_leaf_is_told_by_the_leaf() -> None:
    async def with_nursery() -> None:
        async with trio.open_nursery() as outer, trio.open_nursery() as inner:
            outer.start_soon(trio.sleep_forever)
            inner.start_soon(boom)

    async def boom() -> None:
        raise ValueError("the leaf")

    assert await registry(Tool("t", with_nursery)).execute(call("t")) == failure("the leaf")


async def test_a_leaf_beneath_any_number_of_groups_is_told_all_the_same() -> None:
    error: Exception = ValueError("the leaf")
    for _ in range(5_000):
        error = ExceptionGroup[Exception]("one more", [error])
    assert await registry(Tool("t", raising(error))).execute(call("t")) == failure("the leaf")


async def test_a_group_with_several_leaves_is_told_as_a_group() -> None:
    group = ExceptionGroup("both failed", [ValueError("a"), ValueError("b")])
    assert await registry(Tool("t", raising(group))).execute(call("t")) == failure("both failed (2 sub-exceptions)")


async def test_a_call_that_the_provider_could_not_read_runs_nothing() -> None:
    ran: list[object] = []
    tools = registry(Tool("t", ran.append))
    result = await tools.execute(call("t", invalid="the text ended within a string"))
    assert result == failure("malformed arguments: the text ended within a string")
    assert await tools.execute(call("t", invalid="")) == failure("malformed arguments: ")
    assert ran == []


@pytest.mark.case("tools", 19)
@pytest.mark.parametrize("arguments", [{"a": 1}, {}])
async def test_a_function_gets_the_very_arguments_of_the_call(arguments: dict[str, Any]) -> None:
    got: list[object] = []
    await registry(Tool("t", got.append)).execute(call("t", arguments))
    assert got[0] is arguments


@pytest.mark.case("tools", 20)
async def test_a_caller_goes_to_the_function_and_nowhere_else() -> None:
    got: list[tuple[object, ...]] = []
    caller = {"subject": "user-42"}

    def note(*values: object) -> None:
        got.append(values)

    tools = registry(Tool("t", note))
    results = [await tools.execute(call("t")), await tools.execute(call("t", caller=caller))]
    assert [len(values) for values in got] == [1, 2]
    assert got[1][1] is caller
    assert results == [success(None)] * 2
    assert tools.definitions() == [ToolDefinition("t")]


@pytest.mark.case("tools", 21)
async def test_a_function_with_no_room_for_the_caller_does_not_get_it() -> None:
    tools = registry(T("one"), Tool("none", lambda: "nothing asked"))
    assert await tools.execute(call("one", {"a": 1}, caller="me")) == success({"a": 1}, "one")
    assert await tools.execute(call("none", {"a": 1}, caller="me")) == success("nothing asked", "none")


async def test_a_function_that_needs_a_caller_gets_none_if_there_is_none() -> None:
    def who(args: Any, caller: object) -> object:
        return caller

    assert await registry(Tool("t", who)).execute(call("t")) == success(None)


def test_a_function_that_no_call_can_satisfy_is_refused_by_name() -> None:
    def three(a: object, b: object, c: object) -> None: ...
    def keyword(a: object, *, needed: object) -> None: ...

    unfit: list[Any] = [three, keyword]
    for function in unfit:
        with pytest.raises(TypeError, match="'crowded'"):
            Tool("crowded", function)


@pytest.mark.case("tools", 22)
async def test_executing_a_tool_directly_raises_what_it_raises() -> None:
    error = KeyError("x")

    async def later() -> None:
        await trio.lowlevel.checkpoint()
        raise error

    for function in (raising(error), later):
        with pytest.raises(KeyError) as caught:
            await Tool("t", function).execute({})
        assert caught.value is error


# ---------------------------------------------------------------- several calls


@pytest.mark.case("tools", 15)
async def test_each_call_of_a_batch_ends_on_its_own() -> None:
    tools = registry(Tool("add", lambda args: args["a"] + args["b"]), Tool("boom", raising(Exception("nope"))))
    batch = [call("add", {"a": 1, "b": 1}, "a"), call("boom", id="b"), call("ghost", id="c")]
    assert await tools.execute(batch) == [
        success(2, "add", "a"),
        failure("nope", "boom", "b"),
        failure("tool not found: ghost", "ghost", "c"),
    ]


@pytest.mark.case("tools", 16)
async def test_results_stand_in_the_order_of_the_calls_and_not_of_their_ends(autojump_clock: MockClock) -> None:
    ended: list[float] = []

    async def sleep(args: dict[str, Any]) -> None:
        await trio.sleep(args["seconds"])
        ended.append(args["seconds"])

    results = await registry(Tool("t", sleep)).execute(
        [call("t", {"seconds": 0.025}, "slow"), call("t", {"seconds": 0}, "fast")]
    )
    assert ended == [0, 0.025]
    assert [result.id for result in results] == ["slow", "fast"]
    assert trio.current_time() == pytest.approx(0.025)


@pytest.mark.case("tools", 17)
async def test_equal_ids_stay_separate_calls() -> None:
    results = await registry(T("t")).execute([call("t", {"v": "first"}, "same"), call("t", {"v": "second"}, "same")])
    assert results == [success({"v": "first"}, id="same"), success({"v": "second"}, id="same")]


@pytest.mark.case("tools", 18)
async def test_a_batch_may_be_empty_or_large() -> None:
    tools = registry(Tool("square", lambda args: args["n"] ** 2))
    assert await tools.execute([]) == []
    results = await tools.execute([call("square", {"n": n}, str(n)) for n in range(200)])
    assert [result.id for result in results] == [str(n) for n in range(200)]
    assert (results[7], results[199]) == (success(49, "square", "7"), success(39601, "square", "199"))


async def test_calls_of_a_batch_start_in_their_order() -> None:
    started: list[int] = []
    tools = registry(Tool("t", lambda args: started.append(args["n"])))
    await tools.execute([call("t", {"n": n}) for n in range(50)])
    assert started == list(range(50))


async def test_a_name_is_looked_up_when_its_call_runs() -> None:
    tools = ToolManager()
    tools.add(Tool("swap", lambda: tools.add(Tool("late", lambda: "found"))))
    assert [
        await tools.execute(call("late")),
        await tools.execute(call("swap")),
        await tools.execute(call("late")),
    ] == [
        failure("tool not found: late", "late"),
        success(None, "swap"),
        success("found", "late"),
    ]


# ---------------------------------------------------------------- cancellation and threads


@pytest.mark.parametrize("several", [False, True])
async def test_cancellation_is_no_failure(several: bool, autojump_clock: MockClock) -> None:
    tools = registry(Tool("t", trio.sleep_forever))
    with trio.move_on_after(1) as scope:
        await (tools.execute([call("t"), call("t")]) if several else tools.execute(call("t")))
    assert scope.cancelled_caught


async def test_a_cancelled_call_does_not_start() -> None:
    ran: list[object] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        await registry(Tool("t", ran.append)).execute(call("t"))
    assert ran == []


async def test_keyboard_interrupt_passes_through() -> None:
    tools = registry(Tool("t", raising(KeyboardInterrupt())))
    with pytest.raises(KeyboardInterrupt):
        await tools.execute(call("t"))
    with pytest.RaisesGroup(KeyboardInterrupt):
        await tools.execute([call("t")])


async def test_of_a_group_that_holds_a_cancellation_only_that_passes_through(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails_while_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("while cancelled")

    async def both() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails_while_cancelled)
            nursery.start_soon(trio.sleep_forever)

    with trio.move_on_after(1) as scope:
        await registry(Tool("t", both)).execute(call("t"))
    assert scope.cancelled_caught
    assert "while cancelled" in caplog.text


async def test_a_blocking_function_runs_in_a_thread_under_the_limit_given() -> None:
    limiter = trio.CapacityLimiter(1)
    seen: list[tuple[bool, int]] = []

    def block(args: dict[str, Any]) -> None:
        seen.append((threading.current_thread() is threading.main_thread(), limiter.borrowed_tokens))

    for thread in (True, limiter):
        assert await registry(Tool("t", block, thread=thread)).execute(call("t")) == success(None)
    assert seen == [(False, 0), (False, 1)]
    assert limiter.borrowed_tokens == 0


def test_an_async_function_runs_in_no_thread() -> None:
    async def function() -> None: ...

    with pytest.raises(TypeError, match="'t'"):
        Tool("t", function, thread=True)


async def test_a_context_variable_is_shared_by_a_single_call_only() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    tools = registry(Tool("t", lambda: variable.set("set") and None))
    await tools.execute([call("t")])
    assert variable.get() == "unset"
    await tools.execute(call("t"))
    assert variable.get() == "set"


# ---------------------------------------------------------------- tools that take structs


class Add(Struct):
    a: int
    b: int = 1


async def test_a_tool_with_a_struct_gets_the_struct() -> None:
    got: list[object] = []
    tools = registry(Tool("add", got.append, parameters=Add))
    for arguments in ({"a": "2", "b": 5.0, "c": "dropped"}, {"a": 3}):
        await tools.execute(call("add", arguments))
    assert got == [Add(2, 5), Add(3, 1)]


async def test_a_call_that_spells_no_such_struct_is_refused_with_the_fields_at_fault() -> None:
    ran: list[object] = []
    tool = Tool("add", ran.append, parameters=Add)
    with pytest.raises(
        ToolError, match="malformed add call: a is missing, expected integer; b is null, expected integer"
    ) as caught:
        await tool.execute({"b": None})
    assert (caught.value.code, caught.value.context) == ("TOOL", {"args": {"b": None}})
    assert ran == []


async def test_a_refusal_can_be_encoded_whatever_the_arguments_were() -> None:
    hostile: dict[str, Any] = {}
    hostile["a"] = hostile
    with pytest.raises(ToolError) as caught:
        await Tool("add", echo, parameters=Add).execute(hostile)
    assert caught.value.context == {"args": "a is a container that holds itself"}


def raising(error: BaseException) -> Any:
    def function(args: object) -> ToolResult:
        raise error

    return function
