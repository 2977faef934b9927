"""The ask tool and the answer tool: forms between models and whoever sits at a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.toolbox import answer_tool, ask_tool, describe_tool, infer_terminal_code
from greenroom.actors.toolbox.answer import DESCRIPTION as HOW_TO_ANSWER
from greenroom.actors.toolbox.ask import DESCRIPTION as HOW_TO_ASK
from greenroom.protocol.errors import FormError, TerminalDeadlock, TerminalError, ToolDeadlock, ToolError
from greenroom.protocol.forms import parse_form
from greenroom.protocol.schemas import advertising_faults
from greenroom.protocol.tools import ToolCall, ToolFailure, ToolResult, ToolSuccess
from greenroom.runtime.tools import Tool, ToolManager

FORM: dict[str, Any] = {
    "fields": [
        {"control": "confirm", "name": "ship", "label": "Ship it?", "rule": {"required": True}},
        {"control": "number", "name": "count", "rule": {"maximum": 9}},
    ]
}


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    async with open_runtime() as runtime:
        for name in ("a", "b", "c"):
            runtime.terminals.add(name)
        yield runtime


async def ask(runtime: Runtime, to: object, schema: object = FORM, from_: str | None = "a", **options: Any) -> Any:
    return await ask_tool(runtime.terminals, from_, **options).execute({"to": to, "schema": schema})


async def answer(runtime: Runtime, id: object, values: object, to: str = "b") -> Any:
    arguments = {"operation": "answer", "id": id, "values": values}
    return await answer_tool(runtime.terminals, to).execute(arguments)


async def pending(runtime: Runtime, to: str = "b") -> Any:
    return await answer_tool(runtime.terminals, to).execute({"operation": "pending"})


async def refused(attempt: Callable[[], Any], code: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await attempt()
    assert caught.value.code == code
    json.dumps(caught.value.encode())
    return caught.value


# ---------------------------------------------------------------- one answers what the other asks


async def test_a_form_is_listed_answered_and_returned(runtime: Runtime, nursery: trio.Nursery) -> None:
    got: list[Any] = []

    async def asker() -> None:
        got.append(await ask(runtime, "b"))

    nursery.start_soon(asker)
    await wait_all_tasks_blocked()
    [listed] = await pending(runtime)
    assert listed == {"id": listed["id"], "from": "a", "schema": FORM}
    assert await answer(runtime, listed["id"], {"ship": False}) == {"answered": listed["id"]}
    await wait_all_tasks_blocked()
    assert got == [{"ship": False}]
    assert await pending(runtime) == []


async def test_a_form_that_is_asked_in_nobodys_name_is_listed_without_one(
    runtime: Runtime, nursery: trio.Nursery
) -> None:
    nursery.start_soon(lambda: ask(runtime, "b", from_=None))
    await wait_all_tasks_blocked()
    [listed] = await pending(runtime)
    assert sorted(listed) == ["id", "schema"]
    await answer(runtime, listed["id"], {"ship": True})


async def test_nobody_can_ask_in_anothers_name(runtime: Runtime, nursery: trio.Nursery) -> None:
    tool = ask_tool(runtime.terminals, "a")
    nursery.start_soon(tool.execute, {"to": "b", "schema": FORM, "from": "c", "from_": "c"})
    await wait_all_tasks_blocked()
    [listed] = await pending(runtime)
    assert listed["from"] == "a"
    await answer(runtime, listed["id"], {"ship": True})


@pytest.mark.parametrize("batched", [False, True])
async def test_a_cancelled_call_withdraws_its_form(runtime: Runtime, batched: bool, autojump_clock: MockClock) -> None:
    tools = ToolManager()
    tools.add(ask_tool(runtime.terminals, "a"))
    call = ToolCall("1", "ask", {"to": "b", "schema": FORM})
    with trio.move_on_after(5) as scope:
        await (tools.execute([call, call]) if batched else tools.execute(call))
    assert scope.cancelled_caught
    await wait_all_tasks_blocked()
    assert runtime.terminals.pending() == []


@pytest.mark.case("reports/asking", 4)
@pytest.mark.parametrize("answered_first", [0, 1])
async def test_two_equal_forms_of_one_batch_are_two_tickets(
    runtime: Runtime, nursery: trio.Nursery, answered_first: int
) -> None:
    tools = ToolManager()
    tools.add(ask_tool(runtime.terminals, "a"))
    form = {"fields": [{"control": "text", "name": "v"}]}
    results: list[ToolResult] = []

    async def batch() -> None:
        results.extend(await tools.execute([ToolCall(id, "ask", {"to": "b", "schema": form}) for id in "12"]))

    nursery.start_soon(batch)
    await wait_all_tasks_blocked()
    ids = [listed["id"] for listed in await pending(runtime)]
    assert len(set(ids)) == 2
    for at in (answered_first, 1 - answered_first):
        await answer(runtime, ids[at], {"v": ["one", "two"][at]})
    await wait_all_tasks_blocked()
    assert results == [
        ToolSuccess(id="1", name="ask", value={"v": "one"}),
        ToolSuccess(id="2", name="ask", value={"v": "two"}),
    ]


# ---------------------------------------------------------------- what is refused before anything is asked

UNFIT: list[dict[str, Any]] = [
    {"fields": [{"control": "wizard", "name": "x"}]},
    {"fields": [{"control": "text", "name": "x"}, {"control": "text", "name": "x"}]},
    {"fields": [{"control": "text", "name": "x", "odd": 1}]},
    {"fields": [{"control": "select", "name": "x", "choices": []}]},
    {"fields": [{"control": "select", "name": "x", "open": True, "choices": []}]},
    {"fields": [{"control": "checkbox", "name": "x", "choices": [{"value": "v", "label": "V", "disabled": True}]}]},
]


@pytest.mark.case("terminals", 36)
@pytest.mark.parametrize("schema", UNFIT)
async def test_a_form_with_a_fault_is_not_asked_and_the_fault_is_told(runtime: Runtime, schema: dict[str, Any]) -> None:
    error = await refused(lambda: ask(runtime, "b", schema), "TOOL")
    assert any(told in error.message for told in ("control", "'x'", "x:"))
    assert set(error.context) in ({"schema"}, {"control", "field"})
    assert runtime.terminals.pending() == []


@pytest.mark.case("terminals", 36)
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"schema": FORM}, "to is missing"),
        ({"to": "", "schema": FORM}, 'to is ""'),
        ({"to": "b"}, "schema is missing"),
        ({"to": None, "schema": FORM}, "to is null"),
        ({"to": "b", "schema": {"fields": [], "meta": math.nan}}, "schema.meta is a number that is not finite"),
    ],
)
async def test_a_call_that_is_no_question_is_refused(runtime: Runtime, arguments: dict[str, Any], told: str) -> None:
    error = await refused(lambda: ask_tool(runtime.terminals, "a").execute(arguments), "TOOL")
    assert error.message.startswith("malformed ask call: ")
    assert told in error.message
    assert list(error.context) == ["args"]
    assert runtime.terminals.pending() == []


async def test_an_unknown_terminal_is_told_with_the_known_ones(runtime: Runtime) -> None:
    error = await refused(lambda: ask(runtime, "nobody"), "TOOL")
    assert error.context == {"to": "nobody", "known": ["a", "b", "c"]}
    assert "nobody" in error.message


async def test_a_circle_is_refused_with_its_path_and_a_way_out(runtime: Runtime, nursery: trio.Nursery) -> None:
    nursery.start_soon(lambda: ask(runtime, "b"))
    await wait_all_tasks_blocked()
    error = await refused(lambda: ask(runtime, "a", from_="b"), "DEADLOCK")
    assert isinstance(error, ToolDeadlock)
    assert error.path == ["b", "a", "b"]
    assert error.context == {"from": "b", "to": "a", "path": ["b", "a", "b"]}
    assert "b -> a -> b" in error.message
    assert "answer" in error.message.lower()
    nursery.cancel_scope.cancel()


async def test_a_full_terminal_is_told_as_a_failure_of_the_call(runtime: Runtime) -> None:
    runtime.terminals.add("full", cap=0)
    error = await refused(lambda: ask(runtime, "full"), "TOOL")
    assert error.context == {"to": "full"}


async def test_a_form_that_nobody_answers_expires_with_the_reason(runtime: Runtime, autojump_clock: MockClock) -> None:
    error = await refused(lambda: ask(runtime, "b", timeout=60.0), "EXPIRE")
    assert error.context == {"to": "b", "reason": "timeout"}
    assert trio.current_time() == pytest.approx(60)


async def test_a_form_whose_terminal_goes_expires_with_another_reason(runtime: Runtime, nursery: trio.Nursery) -> None:
    errors: list[ToolError] = []

    async def asker() -> None:
        errors.append(await refused(lambda: ask(runtime, "b"), "EXPIRE"))

    nursery.start_soon(asker)
    await wait_all_tasks_blocked()
    await runtime.terminals.remove("b")
    await wait_all_tasks_blocked()
    assert errors[0].context == {"to": "b", "reason": "removed"}


async def test_a_terminal_that_has_stopped_takes_no_form(runtime: Runtime) -> None:
    terminal = runtime.terminals.terminal("b")
    assert terminal is not None
    await terminal.ref.stop(reason="stopped")
    error = await refused(lambda: ask(runtime, "b"), "EXPIRE")
    assert error.context == {"to": "b", "reason": "stopped"}


# ---------------------------------------------------------------- what an answer is refused for


@pytest.mark.case("terminals", 37)
async def test_a_refused_answer_names_the_fields_and_may_be_mended(runtime: Runtime, nursery: trio.Nursery) -> None:
    nursery.start_soon(lambda: ask(runtime, "b"))
    await wait_all_tasks_blocked()
    [listed] = await pending(runtime)
    id = listed["id"]

    unknown = await refused(lambda: answer(runtime, "nope", [None]), "ANSWER")
    assert unknown.context == {"id": "nope", "reason": "unknown"}
    assert id in unknown.message

    rejected = await refused(lambda: answer(runtime, id, {"count": 12}), "ANSWER")
    errors = rejected.context["errors"]
    assert {key: rejected.context[key] for key in ("id", "reason")} == {"id": id, "reason": "rejected"}
    assert [(error["field"], error["rule"]) for error in errors] == [("ship", "required"), ("count", "maximum")]
    assert all(f"{error['field']}: {error['message']}" in rejected.message for error in errors)

    assert await answer(runtime, id, {"ship": True, "count": 9}) == {"answered": id}
    late = await refused(lambda: answer(runtime, id, {"ship": False}), "ANSWER")
    assert late.context == {"id": id, "reason": "unknown"}


@pytest.mark.parametrize(
    ("values", "told"),
    [({"ship": None}, "ship"), ({"ship": True, "count": {}}, "count"), ([1], "`values`"), ("x", "`values`")],
)
async def test_values_that_no_form_could_take_are_refused_by_name(
    runtime: Runtime, nursery: trio.Nursery, values: object, told: str
) -> None:
    nursery.start_soon(lambda: ask(runtime, "b"))
    await wait_all_tasks_blocked()
    [listed] = await pending(runtime)
    error = await refused(lambda: answer(runtime, listed["id"], values), "TOOL")
    assert error.context == {"values": values}
    assert told in error.message
    assert await answer(runtime, listed["id"], {"ship": True}) == {"answered": listed["id"]}


async def test_only_the_forms_of_its_own_terminal_can_be_answered(runtime: Runtime, nursery: trio.Nursery) -> None:
    nursery.start_soon(lambda: ask(runtime, "b"))
    await wait_all_tasks_blocked()
    [listed] = await pending(runtime)
    assert await pending(runtime, "c") == []
    error = await refused(lambda: answer(runtime, listed["id"], {"ship": True}, to="c"), "ANSWER")
    assert error.context["reason"] == "unknown"
    assert listed["id"] not in error.message.removeprefix(f"no form {listed['id']}")
    await answer(runtime, listed["id"], {"ship": True})


@pytest.mark.parametrize("arguments", [{}, {"operation": "list"}, {"operation": "answer", "id": "x"}])
async def test_a_call_that_is_no_answer_is_refused(runtime: Runtime, arguments: dict[str, Any]) -> None:
    error = await refused(lambda: answer_tool(runtime.terminals, "b").execute(arguments), "TOOL")
    assert error.message.startswith("malformed answer call: ")
    assert error.context == {"args": arguments}


# ---------------------------------------------------------------- codes and texts


@pytest.mark.case("terminals", 39)
def test_a_terminals_error_has_a_code_of_the_tools() -> None:
    for code in ("DEADLOCK", "EXPIRE"):
        assert infer_terminal_code(TerminalError(code, "")) == code
    assert infer_terminal_code(TerminalDeadlock("DEADLOCK", "", {"path": []})) == "DEADLOCK"
    for code in ("TARGET", "CANCEL", "DRIVER"):
        assert infer_terminal_code(TerminalError(code, "")) == "TOOL"
    assert infer_terminal_code(Exception()) is None
    assert infer_terminal_code(FormError("ABANDONED", "")) is None


@pytest.mark.case("reports/database", 3)
async def test_every_built_in_tool_can_be_shown_to_any_model(runtime: Runtime) -> None:
    tools = ToolManager()
    tools.add(Tool("odd", lambda: None, parameters={"anyOf": [{"properties": {"x": {}}}, {"properties": {"y": {}}}]}))
    tools.add([describe_tool(tools), ask_tool(runtime.terminals, "a"), answer_tool(runtime.terminals, "a")])
    assert {each.name: advertising_faults(each.parameters) for each in tools.definitions()} == {
        "odd": [],
        "describe": [],
        "ask": [],
        "answer": [],
    }


@pytest.mark.parametrize("name", ["describe", "ask", "answer"])
async def test_a_summary_is_one_sentence_that_points_at_the_description(runtime: Runtime, name: str) -> None:
    tools = ToolManager()
    tools.add([describe_tool(tools), ask_tool(runtime.terminals, "a"), answer_tool(runtime.terminals, "a")])
    tool = tools.tool(name)
    assert tool is not None
    assert tool.summary is not None
    assert f"describe('{name}')" in tool.summary
    assert tool.summary.count(". ") == 0
    result = await tools.execute(ToolCall("1", "describe", {"name": name}))
    assert result == ToolSuccess(id="1", name="describe", value=tool.description)


async def test_a_tool_of_another_name_points_at_that_name(runtime: Runtime) -> None:
    tool = ask_tool(runtime.terminals, "a", name="ask_lead")
    assert tool.summary is not None
    assert "describe('ask_lead')" in tool.summary


async def test_the_example_of_the_ask_tool_can_be_asked_and_has_the_answer_it_shows(
    runtime: Runtime, nursery: trio.Nursery
) -> None:
    example, _, rest = HOW_TO_ASK.partition("Example:\n")[2].partition("\nreturns ")
    returned, _ = json.JSONDecoder().raw_decode(rest)
    arguments = json.loads(example) | {"to": "b"}
    got: list[Any] = []

    async def asker() -> None:
        got.append(await ask_tool(runtime.terminals, "a").execute(arguments))

    nursery.start_soon(asker)
    await wait_all_tasks_blocked()
    [listed] = await pending(runtime)
    await answer(runtime, listed["id"], {"ship": True})
    await wait_all_tasks_blocked()
    assert got == [returned]


async def test_the_example_of_the_answer_tool_is_accepted(runtime: Runtime, nursery: trio.Nursery) -> None:
    form = json.loads(HOW_TO_ANSWER.partition("Example: the form ")[2].partition(" with id")[0])
    call = json.loads(HOW_TO_ANSWER.partition("is answered by\n")[2].partition("\n")[0])
    assert parse_form(form) is not None
    nursery.start_soon(lambda: ask(runtime, "b", form))
    await wait_all_tasks_blocked()
    [listed] = await pending(runtime)
    assert await answer_tool(runtime.terminals, "b").execute(call | {"id": listed["id"]}) == {"answered": listed["id"]}


async def test_an_agent_learns_from_the_registry_why_its_question_failed(runtime: Runtime) -> None:
    tools = ToolManager()
    tools.add(ask_tool(runtime.terminals, "a"))
    result = await tools.execute(ToolCall("1", "ask", {"to": "a", "schema": FORM}))
    assert isinstance(result, ToolFailure)
    assert "circle" in result.error
