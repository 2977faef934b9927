"""Tools that a configuration names in its policies: a name that is none is refused, not passed over."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from greenroom.actors.cli.commands.chatting import offer_people_and_agents
from greenroom.actors.cli.composing import open_composition
from greenroom.actors.cli.naming import names_of_commands
from greenroom.actors.config import read_config
from greenroom.actors.providers import ScriptedProvider
from greenroom.actors.system import Runtime
from greenroom.protocol.errors import ConfigError
from greenroom.protocol.tools import ToolCall, ToolFailure, ToolResult, ToolSuccess
from greenroom.runtime.tools import Tool
from tests.cli.conftest import run

ROOT = Path(__file__).resolve().parent.parent.parent


def test_a_misspelled_tool_is_refused_by_every_command_before_anybody_can_call_it(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(f'[bash]\nroot = "{tmp_path}"\n[approvals]\ntools = ["bsah"]\nmode = "never"\n')
    for words in (("config", "check", str(file)), ("serve", "--port", "0", "--config", str(file))):
        ended = run(*words)
        assert (ended.code, ended.out) == (1, "")
        assert "CONFIG_UNKNOWN_TOOL" in ended.err
        assert "approvals.tools names bsah (did you mean bash?)" in ended.err


async def test_all_names_of_no_tool_are_told_at_once_with_the_nearest_ones() -> None:
    document = {
        "approvals": {"tools": ["infer", "infr"], "mode": "never"},
        "policies": {
            "timeout": {"seconds": 1, "tools": ["describ"]},
            "retry": {"tools": ["zzzzzzzzzz"], "attempts": 2},
            "spill": {"max_inline_bytes": 9, "skip": ["read", "graep"]},
            "repeats": {"exclude": ["Infer"]},
        },
    }
    with pytest.raises(ConfigError) as refused:
        async with open_composition(read_config(document)):
            pass
    assert refused.value.code == "CONFIG_UNKNOWN_TOOL"
    assert refused.value.context["keys"] == [
        {"key": "approvals.tools", "tool": "infr", "nearest": "infer"},
        {"key": "policies.timeout.tools", "tool": "describ", "nearest": "describe"},
        {"key": "policies.retry.tools", "tool": "zzzzzzzzzz", "nearest": None},
        {"key": "policies.spill.skip", "tool": "graep", "nearest": None},
        {"key": "policies.repeats.exclude", "tool": "Infer", "nearest": "infer"},
    ]
    assert {"infer", "describe"} < set(refused.value.context["known"])


@pytest.mark.parametrize("name", ["write", "bash", "subagent", "", " infer", "infer ", "mcp_calc__add", "*"])
async def test_a_tool_that_this_configuration_does_not_offer_cannot_be_named(tmp_path: Path, name: str) -> None:
    document = {"workspaces": {"roots": [str(tmp_path)]}, "approvals": {"tools": [name], "mode": "never"}}
    with pytest.raises(ConfigError):
        async with open_composition(read_config(document)):
            pass


async def test_what_chat_alone_offers_may_be_named_in_a_file_for_all_commands(tmp_path: Path) -> None:
    tables = {
        "workspaces": {"roots": [str(tmp_path)], "tools": "files"},
        "subagents": {"continuable": True},
    }
    names = names_of_commands(read_config(tables))
    document = {**tables, "approvals": {"tools": sorted(names), "mode": "never"}}
    async with open_composition(read_config(document)) as runtime:
        before = {tool.name for tool in runtime.tools.tools()}
        await offer_people_and_agents(runtime, ScriptedProvider([]), "chat", read_config(document))
        added = {tool.name for tool in runtime.tools.tools()} - before
    assert added | {"report", "ask_user_question"} == names
    assert names_of_commands(read_config({})) == {"ask", "agent"}


async def sleep(_: object) -> None:
    await trio.sleep(9)


async def called(tool: str, runtime: Runtime) -> ToolResult:
    return await runtime.tools.execute(ToolCall("1", tool, {}))


async def test_until_a_server_brings_the_named_tool_all_tools_of_servers_need_approval(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    document = {"approvals": {"tools": ["mcp__clac__add"], "mode": "never"}}
    async with open_composition(read_config(document)) as runtime:
        assert any("approvals.tools names mcp__clac__add, which no MCP server" in said for said in caplog.messages)
        runtime.tools.add([Tool("mcp__calc__add", lambda _: 1), Tool("other", lambda _: 2)])
        refused = await called("mcp__calc__add", runtime)
        assert isinstance(refused, ToolFailure)
        assert "by rule" in refused.error
        assert isinstance(await called("other", runtime), ToolSuccess)
        runtime.tools.add(Tool("mcp__clac__add", lambda _: 3))
        assert isinstance(await called("mcp__clac__add", runtime), ToolFailure)
        assert isinstance(await called("mcp__calc__add", runtime), ToolSuccess)
        runtime.tools.remove("mcp__clac__add")
        assert isinstance(await called("mcp__calc__add", runtime), ToolFailure)


async def test_a_deadline_for_a_tool_that_no_server_has_brought_is_one_for_all_tools_of_servers(
    autojump_clock: MockClock,
) -> None:
    document = {"policies": {"timeout": {"seconds": 5, "tools": ["mcp__clac__add"]}}}
    async with open_composition(read_config(document)) as runtime:
        runtime.tools.add([Tool("mcp__calc__add", sleep), Tool("other", sleep)])
        slow = await called("mcp__calc__add", runtime)
        assert isinstance(slow, ToolFailure)
        assert "took longer than 5 s" in slow.error
        assert isinstance(await called("other", runtime), ToolSuccess)


async def test_a_tool_of_a_server_that_is_offered_from_elsewhere_is_not_missing(autojump_clock: MockClock) -> None:
    document = {"approvals": {"tools": ["mcp__calc__add"], "mode": "never"}}
    async with open_composition(read_config(document), others=["mcp__calc__add"]) as runtime:
        runtime.tools.add(Tool("mcp__calc__sub", lambda _: 1))
        assert isinstance(await called("mcp__calc__sub", runtime), ToolSuccess)


async def test_where_no_terminal_is_named_it_is_said_at_the_start_and_to_whoever_calls(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_composition(read_config({"approvals": {"tools": ["infer"]}})) as runtime:
        (said,) = [record.getMessage() for record in caplog.records if record.name == "greenroom.config"]
        assert said.startswith("approvals.terminal names nobody who is asked: every call of infer is refused")
        refused = await called("infer", runtime)
        assert isinstance(refused, ToolFailure)
        assert "no terminal was named for approvals" in refused.error
        assert "approvals.terminal" in refused.error


async def test_the_policies_of_the_documentation_are_of_tools_that_its_file_offers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (text,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "policies.md").read_text("utf-8"), re.DOTALL)
    async with open_composition(read_config(tomllib.loads(text))) as runtime:
        assert runtime.tools.tool("write") is not None
