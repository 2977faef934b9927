"""Tools of outside MCP servers in a registry: sound servers, and those that are slow, dead or hostile."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from mcp import Client, types
from mcp.server import Server
from trio.testing import MockClock, wait_all_tasks_blocked

from greenroom import Runtime, Tool, ToolError, ToolManager, mcp_server, mount_mcp
from greenroom.actors.mcp import mounting
from greenroom.actors.mcp.elicited import elicited_form
from greenroom.actors.mcp.names import mounted_name
from greenroom.protocol.forms import serialize_form
from tests.contextprotocol.conftest import FORM

OBJECT: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def server_of(*tools: types.Tool, call: Any = None) -> Server[Any]:
    """A server with these tools; `call(name, arguments)` answers."""

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(tools))

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
        return await call(context, params)

    return Server("outside", on_list_tools=list_tools, on_call_tool=call_tool)


def text(words: str, structured_content: object = None) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=words)], structured_content=structured_content)


def tool(name: str, input_schema: dict[str, Any] = OBJECT, output_schema: dict[str, Any] | None = None) -> types.Tool:
    return types.Tool(name=name, input_schema=input_schema, output_schema=output_schema)


async def refusal(tools: ToolManager, name: str, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await tools.run(name, arguments)
    return caught.value


async def test_a_registry_is_served_and_mounted_again() -> None:
    served, tools = ToolManager(), ToolManager()
    served.add(Tool("add", lambda numbers: {"sum": numbers["a"] + 1}, description="Adds one.", parameters=OBJECT))
    async with mount_mcp(tools, "calc", mcp_server(served)) as mounted:
        assert mounted.names == ("mcp__calc__add",)
        (definition,) = tools.definitions()
        assert (definition.description, definition.parameters) == ("Adds one.", OBJECT)
        assert await tools.run("mcp__calc__add", {"a": "4"}) == {"sum": 5}, (
            "arguments are read as every tool reads them"
        )
    assert (tools.count, mounted.alive) == (0, False)


async def test_arguments_are_checked_before_the_server_is_asked() -> None:
    tools, asked = ToolManager(), []

    async def call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        asked.append(params)
        return text("done")

    async with mount_mcp(tools, "s", server_of(tool("t"), call=call)):
        error = await refusal(tools, "mcp__s__t", a="many")
        assert (error.code, asked) == ("TOOL", [])
        assert await tools.run("mcp__s__t", {"a": 1}) == "done"


async def test_a_server_over_stdio_is_started_and_ended_with_its_scope() -> None:
    tools = ToolManager()
    command = [sys.executable, "-c", "from greenroom.actors.cli import main; main()", "mcp"]
    with trio.fail_after(60):
        async with mount_mcp(tools, "own", command, connect_timeout=40):
            assert "mcp__own__infer" in [each.name for each in tools.tools()]
            assert (await tools.run("mcp__own__infer", {"samples": [1]}))["type"] == "object"
    assert tools.count == 0


async def test_a_program_that_is_none_and_one_that_says_nothing_cannot_be_mounted() -> None:
    tools = ToolManager()
    for command, why in (
        (["/nowhere/at-all"], "No such file"),
        ([sys.executable, "-c", "pass"], "cannot be mounted"),
        ([sys.executable, "-c", "print('no JSON', flush=True); import sys; sys.stdin.read()"], "within 1 s"),
    ):
        with pytest.raises(ToolError, match=why) as caught, trio.fail_after(30):
            async with mount_mcp(tools, "s", command, connect_timeout=1):
                raise AssertionError("it was mounted")
        assert caught.value.context["server"] == "s"
    assert tools.count == 0


async def test_a_server_that_dies_fails_the_calls_under_way_and_later_ones() -> None:
    tools = ToolManager()
    script = (
        "import trio\nfrom greenroom import *\nasync def main():\n tools = ToolManager()\n"
        " tools.add(Tool('die', lambda: __import__('os')._exit(3)))\n await serve_stdio(mcp_server(tools))\n"
        "trio.run(main)"
    )
    with trio.fail_after(60):
        async with mount_mcp(tools, "mortal", [sys.executable, "-c", script], connect_timeout=40):
            for _ in range(2):
                error = await refusal(tools, "mcp__mortal__die")
                assert error.code == "TOOL"
                assert error.context == {"server": "mortal", "tool": "die"}


async def test_what_the_block_raises_comes_out_as_it_is() -> None:
    with pytest.raises(KeyError):
        async with mount_mcp(ToolManager(), "s", server_of()):
            raise KeyError("mine")


async def test_a_call_has_a_deadline(autojump_clock: MockClock) -> None:
    tools = ToolManager()

    async def call(context: Any, params: Any) -> types.CallToolResult:
        await trio.sleep_forever()
        raise AssertionError

    async with mount_mcp(tools, "slow", server_of(tool("t"), call=call), timeout=7):
        began = trio.current_time()
        error = await refusal(tools, "mcp__slow__t", a=1)
        assert (error.code, trio.current_time() - began) == ("TOOL_TIMEOUT", 7)


class TestAnElicitation:
    async def test_is_asked_of_the_person_while_the_clock_stands_still(
        self, runtime: Runtime, autojump_clock: MockClock
    ) -> None:
        tools = ToolManager()

        async def answer() -> None:
            await trio.sleep(50)
            (form,) = runtime.terminals.pending("ops")
            assert form.schema.label == "Release 2.4"
            assert form.schema.help == "The MCP server 'other' asks this."
            await runtime.terminals.answer("ops", form.id, {"ship": True})

        server = mcp_server(runtime.tools, people=["me"])
        async with mount_mcp(tools, "other", server, timeout=5, ask=partial(runtime.ask, "ops")):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(answer)
                values = await tools.run("mcp__other__ask", {"to": "me", "schema": FORM})
        assert values == {"ship": True}

    async def test_that_nobody_answers_is_dismissed(self, runtime: Runtime, autojump_clock: MockClock) -> None:
        tools = ToolManager()
        server = mcp_server(runtime.tools, people=["me"])
        ask = partial(runtime.ask, "ops", timeout=20)
        async with mount_mcp(tools, "other", server, timeout=5, ask=ask):
            assert (await refusal(tools, "mcp__other__ask", to="me", schema=FORM)).code == "TOOL_TIMEOUT"
        assert runtime.terminals.pending("ops") == []

    async def test_is_not_offered_where_nobody_can_be_asked(self, runtime: Runtime) -> None:
        tools = ToolManager()
        async with mount_mcp(tools, "other", mcp_server(runtime.tools, people=["me"])):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(tools.run, "mcp__other__ask", {"to": "me", "schema": FORM})
                await wait_all_tasks_blocked()
                assert len(runtime.terminals.pending("me")) == 1, "it went to the terminal of the server"
                nursery.cancel_scope.cancel()

    @pytest.mark.parametrize(
        ("part", "control"),
        [
            (
                {"type": "string", "title": "T", "minLength": 2},
                {"control": "text", "label": "T", "rule": {"minimum": 2}},
            ),
            ({"type": "string", "format": "email"}, {"control": "text", "rule": {"email": True}}),
            ({"type": "string", "format": "date"}, {"control": "date"}),
            ({"type": "integer", "maximum": 3}, {"control": "number", "rule": {"maximum": 3, "integer": True}}),
            ({"type": "boolean", "default": True}, {"control": "confirm", "default": True}),
            (
                {"type": "string", "enum": ["a"], "enumNames": ["A"]},
                {"control": "select", "choices": [{"value": "a", "label": "A"}]},
            ),
            (
                {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "maxItems": 1},
                {"control": "checkbox", "choices": [{"value": "a", "label": "A"}], "rule": {"maximum": 1}},
            ),
        ],
    )
    def test_is_a_form(self, part: dict[str, Any], control: dict[str, Any]) -> None:
        schema = elicited_form("s", "Please", {"properties": {"x": part}})
        assert schema is not None
        (field,) = serialize_form(schema)["fields"]
        assert field == {"name": "x"} | control

    @pytest.mark.parametrize(
        "requested",
        [
            {},
            {"properties": []},
            {"properties": {"x": 3}},
            {"properties": {"x": {"type": "object"}}},
            {"properties": {"x": {"type": "string", "enum": [1, None]}}},
            {"properties": {"x": {"type": "string", "oneOf": [{"title": "A"}]}}},
            {"properties": {"x": {"type": "number", "minimum": "many"}}},
            {"properties": {"x": {"type": "string", "title": 3}}, "required": [[]]},
        ],
    )
    def test_that_is_none_is_no_form(self, requested: Mapping[str, Any]) -> None:
        assert elicited_form("s", "Please", requested) is None


class TestAHostileServer:
    @pytest.mark.parametrize(
        "result",
        [
            text("no structure"),
            text("", structured_content={"n": "x" * 99}),
            text("", structured_content=["n"]),
        ],
    )
    async def test_that_breaks_its_own_schema_is_refused(self, result: types.CallToolResult) -> None:
        tools = ToolManager()

        async def call(context: Any, params: Any) -> types.CallToolResult:
            return result

        gives = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        async with mount_mcp(tools, "s", server_of(tool("t", output_schema=gives), call=call)):
            assert "its own schema refuses" in (await refusal(tools, "mcp__s__t", a=1)).message

    async def test_that_asks_for_endless_matching_holds_nobody_up(self) -> None:
        tools = ToolManager()

        async def call(context: Any, params: Any) -> types.CallToolResult:
            return text("", structured_content={"n": "a" * 40 + "!"})

        gives = {"type": "object", "properties": {"n": {"type": "string", "pattern": "^(a+)+$"}}}
        async with mount_mcp(tools, "s", server_of(tool("t", output_schema=gives), call=call)):
            with trio.fail_after(5):
                assert await tools.run("mcp__s__t", {"a": 1}) == {"n": "a" * 40 + "!"}

    async def test_that_lists_without_end_is_not_mounted(self) -> None:
        async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
            return types.ListToolsResult(tools=[tool(f"t{n}") for n in range(500)], next_cursor="again")

        server: Server[Any] = Server("endless", on_list_tools=list_tools)
        with pytest.raises(ToolError, match="no end, or more than 1024"):
            async with mount_mcp(ToolManager(), "s", server):
                raise AssertionError("it was mounted")

    async def test_whose_tool_cannot_be_shown_has_the_others_mounted(self) -> None:
        endless: dict[str, Any] = {"type": "object", "properties": {"x": {"$ref": "#"}}}
        tools = ToolManager()
        async with mount_mcp(tools, "s", server_of(tool("bad", input_schema=endless), tool("good"))) as mounted:
            assert mounted.names == ("mcp__s__good",)

    async def test_that_takes_names_of_others_gets_its_own(self) -> None:
        tools = ToolManager()
        tools.add(Tool("mcp__s__t", lambda: "mine"))
        async with mount_mcp(tools, "s", server_of(tool("t"), tool("a b"), tool("a.b"), tool("x" * 99))) as mounted:
            assert len(set(mounted.names)) == 4
            assert all(len(name) <= 64 for name in mounted.names)
            assert await tools.run("mcp__s__t", {}) == "mine"
        assert [each.name for each in tools.tools()] == ["mcp__s__t"]


def test_a_name_is_the_same_each_time() -> None:
    assert mounted_name("my server", "do/it", ()) == "mcp__my_server__do_it"
    taken = {"mcp__my_server__do_it"}
    assert mounted_name("my server", "do/it", taken) == mounted_name("my server", "do/it", taken)
    assert mounted_name("my server", "do/it", taken) != mounted_name("my server", "do it", taken)


async def test_a_tool_that_is_listed_again_and_again_is_one(caplog: pytest.LogCaptureFixture) -> None:
    tools = ToolManager()
    async with mount_mcp(tools, "s", server_of(*[tool("same") for _ in range(40)], tool("other"))) as mounted:
        assert mounted.names == ("mcp__s__same", "mcp__s__other")
    assert "lists the tool same again" in caplog.text


async def test_any_number_of_sessions_with_one_server_have_names_of_their_own() -> None:
    tools, names = ToolManager(), set[str]()
    async with AsyncExitStack() as sessions:
        for _ in range(40):
            names.update((await sessions.enter_async_context(mount_mcp(tools, "s", server_of(tool("same"))))).names)
        assert len(names) == tools.count == 40
    assert tools.count == 0


async def test_a_list_that_is_too_long_is_refused_also_on_one_page() -> None:
    tools = ToolManager()
    with pytest.raises(ToolError, match="1024"):
        async with mount_mcp(tools, "s", server_of(*[tool(f"t{number}") for number in range(1025)])):
            raise AssertionError("it was mounted")
    assert tools.count == 0


NO_TEXT = """
import json, sys
ANSWERS = {
    "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                   "serverInfo": {"name": "s", "version": "1"}},
    "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}
for line in sys.stdin:
    asked = json.loads(line)
    sys.stdout.buffer.write(b"\\xff\\xfe\\n")
    if "id" in asked:
        result = ANSWERS.get(asked["method"])
        outcome = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
        sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"]} | outcome).encode() + b"\\n")
    sys.stdout.flush()
"""
"""A server that sends bytes which are no text before each of its answers."""


async def test_bytes_that_are_no_text_are_passed_over() -> None:
    tools = ToolManager()
    with trio.fail_after(30):
        async with mount_mcp(tools, "s", [sys.executable, "-c", NO_TEXT], connect_timeout=20):
            assert await tools.run("mcp__s__t", {}) == "done"


async def test_a_session_that_breaks_off_while_it_is_unmounted_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def break_off() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("the pipe is broken")

    @asynccontextmanager
    async def connect(elicit: object) -> AsyncGenerator[Client]:
        async with Client(server_of(tool("t"))) as client, trio.open_nursery() as nursery:
            nursery.start_soon(break_off)
            yield client

    monkeypatch.setattr(mounting, "_connector", lambda *_: connect)
    tools = ToolManager()
    async with mount_mcp(tools, "s", server_of()) as mounted:
        assert mounted.alive
    assert (mounted.alive, tools.count) == (False, 0)


async def test_arguments_that_json_cannot_hold_fail_their_call_alone() -> None:
    tools = ToolManager()

    async def call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return text("done")

    async with mount_mcp(tools, "s", server_of(tool("t", {"type": "object"}), call=call)):
        for bad in ("half a \ud83d", object()):
            assert "malformed" in (await refusal(tools, "mcp__s__t", a=bad)).message
        assert await tools.run("mcp__s__t", {"a": "whole"}) == "done"
