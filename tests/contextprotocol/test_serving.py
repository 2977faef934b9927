"""Tools for MCP clients: the package's own client lists and calls them, answers elicitations, and cancels."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import Any

import httpx2
import pytest
import trio
from anthropic.types import ToolParam
from mcp import Client, types
from mcp.client import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from openai.types.chat import ChatCompletionFunctionToolParam
from pydantic import TypeAdapter
from trio.testing import MockClock, wait_all_tasks_blocked

from greenroom import (
    Database,
    RelationManager,
    Runtime,
    Tool,
    ToolManager,
    WorkflowDefinition,
    WorkspaceManager,
    answer_tool,
    database_tool,
    file_tools,
    has_many,
    infer_tool,
    mcp_server,
    memory_driver,
    relation_tool,
    serve_stdio,
    workflow_tool,
    workspace_tool,
)
from greenroom.protocol.schemas import advertising_faults
from greenroom.protocol.workspace import create_file
from tests.contextprotocol.conftest import FORM, SECRET, Connect, accept, answering, texts


async def every_tool(runtime: Runtime) -> dict[str, dict[str, Any]]:
    """Adds every tool that there is; arguments that each of them takes."""
    shop = Database(runtime.tree, memory_driver(), {"p": {"columns": {"id": "string"}}})
    workspaces = WorkspaceManager(runtime.tree)
    workspaces.add("notes", [create_file("a", "x")])
    runtime.tools.add(
        (
            answer_tool(runtime.terminals, "ops"),
            infer_tool(),
            workspace_tool(workspaces),
            *file_tools(workspaces),
            database_tool(runtime.tree),
            relation_tool({"shop": RelationManager(shop, {"p": {"kin": has_many("id", "p")}})}),
            workflow_tool(WorkflowDefinition(id="w", name="w", phases=()), runtime.workflows.runner),
        )
    )
    return {
        "ask": {"to": "me", "schema": FORM},
        "describe": {"name": "ask"},
        "answer": {"operation": "pending"},
        "infer": {"samples": [1]},
        "workspace": {"operation": "list"},
        "read": {"file_path": "a"},
        "write": {"file_path": "a", "content": "y"},
        "edit": {"file_path": "a", "old_string": "y", "new_string": "z"},
        "glob": {"pattern": "*"},
        "grep": {"pattern": "z"},
        "database": {"operation": "create", "id": "shop", "tables": {"p": {"columns": {"id": "string"}}}},
        "relation": {"operation": "find", "model": "p"},
        "workflow": {},
    }


async def answer_pending(runtime: Runtime, terminal: str, **values: Any) -> None:
    """What the person at a terminal does, once something is asked there."""
    await wait_all_tasks_blocked()
    (form,) = runtime.terminals.pending(terminal)
    assert (await runtime.terminals.answer(terminal, form.id, values)).success


async def test_every_tool_is_listed_and_called(runtime: Runtime, client: Connect) -> None:
    arguments = await every_tool(runtime)
    elicit, _ = answering(accept(ship=True))
    async with client(elicit) as mcp:
        listed = [tool.name for tool in (await mcp.list_tools()).tools]
        assert listed == list(arguments)
        for name in listed:
            result = await mcp.call_tool(name, arguments[name])
            assert not result.is_error, (name, texts(result))


async def test_every_schema_is_one_for_models(runtime: Runtime, client: Connect) -> None:
    await every_tool(runtime)
    openai, anthropic = TypeAdapter(ChatCompletionFunctionToolParam), TypeAdapter(ToolParam)
    async with client() as mcp:
        for tool in (await mcp.list_tools()).tools:
            assert advertising_faults(tool.input_schema) == []
            function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
            openai.validate_python({"type": "function", "function": function})
            anthropic.validate_python(
                {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
            )


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        ("plain", "plain", None),
        ({"a": [None, 1.0]}, '{"a":[null,1]}', {"a": [None, 1]}),
        ([1, 2], "[1,2]", None),
        (None, "null", None),
        (["\ud800"], '["\ufffd"]', None),
    ],
)
async def test_a_value_is_text_and_an_object_is_structured_too(
    runtime: Runtime, client: Connect, value: object, text: str, structured: object
) -> None:
    runtime.tools.add(Tool("give", lambda: value))
    async with client() as mcp:
        result = await mcp.call_tool("give", {})
    assert (texts(result), result.structured_content, result.is_error) == ([text], structured, False)


async def test_a_tool_that_makes_a_text_of_its_value_shows_that(runtime: Runtime, client: Connect) -> None:
    workspaces = WorkspaceManager(runtime.tree)
    runtime.tools.add(file_tools(workspaces))
    async with client() as mcp:
        await mcp.call_tool("write", {"file_path": "a", "content": "one"})
        result = await mcp.call_tool("read", {"file_path": "a"})
    assert texts(result) == ["1\tone"]
    assert result.structured_content is not None
    assert result.structured_content["lines"] == [{"number": 1, "text": "one"}]


async def test_what_fails_is_a_result_in_its_own_words(runtime: Runtime, client: Connect) -> None:
    def fail() -> None:
        raise ValueError("the disk is full")

    runtime.tools.add((Tool("fail", fail), Tool("odd", object)))
    async with client() as mcp:
        for name, error in (
            ("fail", "the disk is full"),
            ("missing", "tool not found: missing"),
            ("odd", "the tool 'odd' returned what JSON cannot hold"),
        ):
            result = await mcp.call_tool(name, {})
            assert result.is_error
            assert texts(result)[0].startswith(error)


async def test_the_person_at_the_client_is_asked_there(client: Connect, runtime: Runtime) -> None:
    elicit, asked = answering(accept(ship=True, copies=4))
    async with client(elicit) as mcp:
        result = await mcp.call_tool("ask", {"to": "me", "schema": FORM})
    assert (texts(result), result.structured_content) == (
        ['{"ship":true,"copies":4}'],
        {"ship": True, "copies": 4},
    )
    (params,) = asked
    assert params.message == "Release 2.4"
    assert params.requested_schema["required"] == ["ship"]
    assert runtime.terminals.pending("me") == []


async def test_an_answer_that_the_form_refuses_is_asked_for_anew(client: Connect) -> None:
    elicit, asked = answering(accept(copies=4), accept(ship=True, copies=1), accept(ship=False))
    async with client(elicit) as mcp:
        result = await mcp.call_tool("ask", {"to": "me", "schema": FORM})
    assert result.structured_content == {"ship": False}
    assert [params.message.partition("\n")[0] for params in asked] == [
        "Release 2.4",
        "ship: Answer yes or no.",
        "copies: Enter 3 or more.",
    ]


async def test_who_declines_ends_the_ask(client: Connect, runtime: Runtime) -> None:
    elicit, _ = answering(types.ElicitResult(action="decline"))
    async with client(elicit) as mcp:
        result = await mcp.call_tool("ask", {"to": "me", "schema": FORM})
    assert (result.is_error, texts(result)) == (True, ["The person at the client declined to answer."])
    assert runtime.terminals.pending("me") == []


@pytest.mark.parametrize(
    ("form", "to", "why"),
    [
        (SECRET, "me", "the client cannot ask it: 'pin' is a password, which must not pass through the client"),
        (FORM, "me", "the question was dismissed at the client"),
    ],
)
async def test_what_the_client_does_not_ask_goes_to_the_terminal_and_says_so(
    client: Connect, runtime: Runtime, form: dict[str, Any], to: str, why: str
) -> None:
    elicit, _ = answering(types.ElicitResult(action="cancel"))
    values: dict[str, Any] = {"pin": "12"} if form is SECRET else {"ship": True}
    async with client(elicit) as mcp, trio.open_nursery() as nursery:
        nursery.start_soon(partial(answer_pending, runtime, to, **values))
        result = await mcp.call_tool("ask", {"to": to, "schema": form})
    note = f"This was asked at the terminal 'me' (at the desk), since {why}."
    assert (result.structured_content, texts(result)[1:]) == (values, [note])


async def test_a_client_without_a_dialog_is_told_while_its_person_is_asked(client: Connect, runtime: Runtime) -> None:
    told: list[str | None] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with client() as mcp, trio.open_nursery() as nursery:
        nursery.start_soon(partial(answer_pending, runtime, "me", ship=True))
        result = await mcp.call_tool("ask", {"to": "me", "schema": FORM}, progress_callback=progress)
    note = "This was asked at the terminal 'me' (at the desk), since the client cannot ask its person."
    assert (told, texts(result)[1:]) == ([note], [note])


async def test_nobody_else_is_asked_at_the_client(client: Connect, runtime: Runtime) -> None:
    elicit, asked = answering()
    async with client(elicit) as mcp, trio.open_nursery() as nursery:
        nursery.start_soon(partial(answer_pending, runtime, "ops", ship=True))
        result = await mcp.call_tool("ask", {"to": "ops", "schema": FORM})
    assert (result.structured_content, texts(result)[1:], asked) == ({"ship": True}, [], [])


async def test_a_form_with_faults_is_explained_not_asked(client: Connect) -> None:
    elicit, asked = answering()
    async with client(elicit) as mcp:
        result = await mcp.call_tool("ask", {"to": "me", "schema": {"fields": [{"control": "text"}]}})
    assert result.is_error
    assert texts(result)[0].startswith("this form cannot be asked: ")
    assert asked == []


async def test_a_cancelled_call_takes_its_form_back(
    client: Connect, runtime: Runtime, autojump_clock: MockClock
) -> None:
    async with client() as mcp:
        with trio.move_on_after(5):
            await mcp.call_tool("ask", {"to": "ops", "schema": FORM})
        await wait_all_tasks_blocked()
        assert runtime.terminals.pending("ops") == []
        assert (await mcp.call_tool("describe", {"name": "ask"})).is_error is False


async def test_calls_end_with_their_client(client: Connect, runtime: Runtime) -> None:
    async with trio.open_nursery() as nursery:
        async with client() as mcp:
            nursery.start_soon(mcp.call_tool, "ask", {"to": "ops", "schema": FORM})
            await wait_all_tasks_blocked()
            assert len(runtime.terminals.pending("ops")) == 1
            nursery.cancel_scope.cancel()
    assert runtime.terminals.pending("ops") == []


async def test_a_call_that_takes_long_shows_signs_of_life(runtime: Runtime, autojump_clock: MockClock) -> None:
    told: list[tuple[float, str | None]] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    runtime.tools.add(Tool("slow", partial(trio.sleep, 12)))
    async with Client(mcp_server(runtime.tools), mode="legacy") as mcp:
        await mcp.call_tool("slow", {}, progress_callback=progress)
    assert told == [(5, "slow goes on; 5 s so far."), (10, "slow goes on; 10 s so far.")]


class TestAHostileClient:
    @pytest.mark.parametrize(
        "content",
        [
            {"ship": "perhaps"},
            {"ship": ["a"]},
            {"unknown": True},
            {"ship": True, "copies": "many"},
            {},
        ],
    )
    async def test_answers_with_nothing_that_the_form_does_not_take(self, client: Connect, content: Any) -> None:
        elicit, _ = answering(accept(**content), accept(ship=True))
        async with client(elicit) as mcp:
            result = await mcp.call_tool("ask", {"to": "me", "schema": FORM})
        assert result.structured_content == {"ship": True}

    async def test_that_never_answers_is_not_waited_for_without_end(
        self, runtime: Runtime, autojump_clock: MockClock
    ) -> None:
        async def never(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
            await trio.sleep_forever()
            raise AssertionError

        server = mcp_server(runtime.tools, people=["me"], timeout=60)
        async with Client(server, mode="legacy", elicitation_callback=never) as mcp:
            result = await mcp.call_tool("ask", {"to": "me", "schema": FORM})
        assert texts(result) == ["Nobody has answered at the client within 60 s."]

    async def test_that_only_errs_is_asked_three_times(self, runtime: Runtime) -> None:
        elicit, asked = answering(*[accept(copies=1)] * 9)
        async with Client(mcp_server(runtime.tools, people=["me"]), mode="legacy", elicitation_callback=elicit) as mcp:
            result = await mcp.call_tool("ask", {"to": "me", "schema": FORM})
        assert result.is_error
        assert texts(result)[0].startswith("3 answers were refused, the last one because: ")
        assert len(asked) == 3

    async def test_that_fails_at_asking_leaves_it_to_the_terminal(self, runtime: Runtime) -> None:
        async def fail(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ErrorData:
            return types.ErrorData(code=-32603, message="no window")

        server = mcp_server(runtime.tools, people=["me"])
        async with Client(server, mode="legacy", elicitation_callback=fail) as mcp, trio.open_nursery() as nursery:
            nursery.start_soon(partial(answer_pending, runtime, "me", ship=True))
            result = await mcp.call_tool("ask", {"to": "me", "schema": FORM})
        assert result.structured_content == {"ship": True}
        assert texts(result)[1].endswith("since the client failed at asking its person.")


@pytest.mark.parametrize("to", [["me"], {"name": "me"}, None])
async def test_a_question_to_what_is_no_name_is_malformed(client: Connect, to: Any) -> None:
    async with client() as mcp:
        result = await mcp.call_tool("ask", {"to": to, "schema": FORM})
    assert (result.is_error, "malformed ask call" in texts(result)[0]) == (True, True)


async def test_half_a_character_ends_no_session(runtime: Runtime) -> None:
    """A name of a file that is no UTF-8 comes back so."""
    runtime.tools.add(Tool("half", lambda: "a\ud83d", description="half a \ud83d"))
    stdin, asked = os.pipe()
    heard, stdout = os.pipe()
    calls: list[tuple[str, dict[str, Any]]] = [
        (
            "initialize",
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
        ),
        ("tools/list", {}),
        ("tools/call", {"name": "half"}),
    ]
    async with trio.lowlevel.FdStream(asked) as asking, trio.lowlevel.FdStream(heard) as hearing:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve_stdio, mcp_server(runtime.tools), stdin=stdin, stdout=stdout))
            said = []
            for id, (method, params) in enumerate(calls):
                call = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
                await asking.send_all(json.dumps(call).encode() + b"\n")
                line = b""
                while not line.endswith(b"\n"):
                    line += await hearing.receive_some()
                said.append(line.decode())
            nursery.cancel_scope.cancel()
    os.close(stdin)
    os.close(stdout)
    for answer, text in zip(said[1:], ("half a \ufffd", "a\ufffd"), strict=True):
        assert text in answer


async def test_it_serves_over_transports_of_the_package_too() -> None:
    tools = ToolManager()
    tools.add(Tool("five", lambda: 5))
    app = mcp_server(tools).streamable_http_app(stateless_http=True)
    url = "http://127.0.0.1:8000/mcp"
    async with app.router.lifespan_context(app), httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http:
        async with Client(streamable_http_client(url, http_client=http)) as mcp:
            assert [tool.name for tool in (await mcp.list_tools()).tools] == ["five"]
            assert texts(await mcp.call_tool("five", {})) == ["5"]
