"""The tool `bash` as a configuration offers it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from greenroom.actors.cli.composing import open_composition
from greenroom.actors.config import read_config
from greenroom.protocol.errors import ConfigError

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
