"""The tool `bash` as a configuration offers it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from greenroom.actors.agent import Agent
from greenroom.actors.cli.composing import open_composition
from greenroom.actors.config import read_config
from greenroom.actors.providers import ScriptedProvider
from greenroom.protocol.agents import MessageInput, ProviderResult
from greenroom.protocol.errors import ConfigError
from greenroom.protocol.tools import ToolCall

LOOK = {"command": "pwd; echo $DEPLOY_TOKEN; seq 20000", "description": "Look around"}


async def test_a_table_offers_it_with_its_jobs_and_names_the_credentials_that_commands_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "sesame")
    table: dict[str, Any] = {"root": str(tmp_path), "spill": str(tmp_path / "long")}
    async with open_composition(read_config({"bash": {**table, "env": ["DEPLOY_TOKEN"]}})) as runtime:
        assert {"bash", "job_list", "job_output", "job_kill"} <= {tool.name for tool in runtime.tools.tools()}
        started = await runtime.tools.run("bash", LOOK | {"run_in_background": True})
        over = await runtime.tools.run("job_output", {"job_id": started["jobId"], "wait": True})
        assert over["text"].startswith("[... ")
        whole = (await runtime.tools.run("bash", LOOK))["stdout"]
        kept = trio.Path(whole["spillPath"])
        assert (await kept.read_text()).startswith(f"{tmp_path}\nsesame\n1\n")
        assert kept.is_relative_to(tmp_path / "long")
    async with open_composition(read_config({"bash": table})) as runtime:
        assert (
            "sesame" not in (await runtime.tools.run("bash", {"command": "env", "description": "x"}))["stdout"]["text"]
        )


async def test_a_command_finds_files_that_it_is_told_of_from_the_folder_that_it_begins_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file names places relative to the folder of greenroom, and commands begin in another one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work").mkdir()
    config = read_config({"bash": {"root": "work", "spill": "long"}, "sessions": {"root": "logs"}})
    commands = ("seq 20000", "head -c 10 $GREENROOM_SESSION_LOG")
    calls = [ToolCall("1", "bash", {"command": command, "description": "x"}) for command in commands]
    script = [ProviderResult("", tools=(call,)) for call in calls]
    async with open_composition(config) as runtime:
        session = await runtime.sessions.open("ada")
        agent = runtime.agents.add(
            Agent(ScriptedProvider([*script, ProviderResult("Seen.")]), session=session, tools=runtime.tools)
        )
        agent.context.messages.add(MessageInput("user", "Look."))
        await agent.generate()
        long, looked = [each.content for each in agent.conversation.messages() if each.role == "tool"]
    assert f"all of it: {tmp_path}/long/" in long
    assert looked.startswith('{"version"')


async def test_without_the_table_there_are_no_commands() -> None:
    async with open_composition(read_config({})) as runtime:
        assert runtime.tools.tool("bash") is None


@pytest.mark.parametrize(
    ("table", "told"), [({"root": "/nowhere/at-all"}, "bash.root"), ({"root": "/", "env": ["NO_SUCH"]}, "bash.env")]
)
async def test_a_table_that_cannot_be_used_is_refused_by_its_key(table: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told) as refused:
        async with open_composition(read_config({"bash": table})):
            raise AssertionError("nothing is offered")
    assert refused.value.code == "BASH"
    assert "NO_SUCH" not in refused.value.message
