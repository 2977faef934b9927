"""`greenroom config check` refuses what a server would, and leaves no trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from greenroom.actors.cli.checking import check_config
from greenroom.actors.config import read_config
from greenroom.actors.system import open_runtime
from greenroom.protocol.errors import GreenroomError
from tests.cli.conftest import run

RAISING = """
def services(runtime):
    raise OSError("gone")

def functions(runtime):
    raise SystemExit
"""


def everything(folder: Path) -> dict[Path, bytes | None]:
    return {each: each.read_bytes() if each.is_file() else None for each in folder.rglob("*")}


@pytest.mark.parametrize(
    ("document", "code", "said"),
    [
        ({"bash": {"root": "nowhere"}}, "BASH", "nowhere"),
        ({"bash": {"root": ".", "env": ["NO_SUCH_CREDENTIAL"]}}, "BASH", "bash.env"),
        ({"remote": {"services": "nomod"}}, "FUNCTIONS", "nomod"),
        ({"remote": {"services": "empty"}}, "SERVICES", "empty"),
        ({"remote": {"services": "raising"}}, "FUNCTIONS", "`services` of the module raising failed: OSError: gone"),
        ({"workflows": {"functions": "raising"}}, "FUNCTIONS", "`functions` of the module raising failed: SystemExit"),
        ({"workflows": {"functions": "nomod"}}, "FUNCTIONS", "nomod"),
        ({"workflows": {"functions": "empty"}}, "FUNCTIONS", "no public functions"),
        ({"workspaces": {"roots": ["nowhere"]}}, "IO", "nowhere"),
        ({"databases": {"files": {"shop": "nowhere/shop.db"}}}, "DATABASE", "nowhere"),
        ({"databases": {"files": {"shop": "empty.py"}}}, "DRIVER", "empty.py"),
        ({"gateway": {"tokens": "nowhere.toml"}}, "FILE", "nowhere.toml"),
        ({"gateway": {"host": "0.0.0.0"}}, "BIND", "0.0.0.0"),
        ({"gateway": {"trusted_hosts": ["http://x"]}}, "TRUST", "http://x"),
        ({"gateway": {"cert": "empty.py", "key": "empty.py"}}, "TLS", "empty.py"),
        ({"journal": {"data": "nowhere/work.db"}}, "IO", "there is no folder"),
        ({"journal": {"data": "empty.py"}}, "FOREIGN", "empty.py"),
        ({"journal": {"data": "empty.py/work.db"}}, "IO", "there is no folder"),
        ({"journal": {"data": "cut.db"}}, "CORRUPT", "cut off"),
        ({"journal": {"data": "."}}, "IO", ""),
        ({"approvals": {"tools": ["bash"]}}, "CONFIG_UNKNOWN_TOOL", "bash"),
        ({"policies": {"spill": {"max_inline_bytes": 1, "store": "nowhere"}}}, "NO_PROVIDER", "nowhere"),
        ({"llm": {"provider": "nowhere"}}, "NO_PROVIDER", "nowhere"),
        ({"subagents": {"provider": "nowhere"}}, "NO_PROVIDER", "nowhere"),
    ],
)
async def test_what_a_server_would_refuse_is_refused(
    document: dict[str, Any], code: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.setattr("sys.path", [*sys.path])  # the folder is put there
    (tmp_path / "empty.py").write_text("import os, json  # no database, no certificate, nothing to offer\n" * 20)
    (tmp_path / "raising.py").write_text(RAISING)
    (tmp_path / "cut.db").write_bytes(b"SQLite format 3\0")
    before = everything(tmp_path)
    with pytest.raises(GreenroomError) as refused:
        await check_config(read_config(document))
    assert refused.value.code == code
    assert said in refused.value.message
    assert everything(tmp_path) == before


@pytest.mark.parametrize("recorded", [False, True])
async def test_what_can_be_used_is_looked_at_and_not_touched(
    recorded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    if recorded:
        async with open_runtime(data=tmp_path / "work.db"):
            pass
    before = everything(tmp_path)
    document = {
        "terminals": {"names": ["ann"]},
        "journal": {"data": "work.db"},
        "sessions": {"root": "logs"},
        "workspaces": {"roots": ["notes"]},
        "databases": {"files": {"shop": "shop.db", "list": "list.json"}},
        "bash": {"root": "notes", "spill": "large"},
        "approvals": {"tools": ["bash"], "terminal": "ann"},
        "policies": {"spill": {"max_inline_bytes": 100, "root": "spilled"}},
    }
    await check_config(read_config(document))
    assert everything(tmp_path) == before


async def test_a_journal_that_a_server_writes_at_the_moment_can_be_used(tmp_path: Path) -> None:
    data = tmp_path / "work.db"
    async with open_runtime(data=data):
        await check_config(read_config({"journal": {"data": str(data)}}))


def test_a_file_that_no_server_could_use_is_refused_in_words(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    for text, said in (
        ('[bash]\nroot = "nowhere"\n', "BASH  bash.root: commands cannot begin in nowhere"),
        ('[remote]\nservices = "nomod"\n', "FUNCTIONS  There is no module nomod"),
    ):
        file.write_text(text)
        ended = run("config", "check", str(file))
        assert (ended.code, ended.out) == (1, "")
        assert said in ended.err


def test_a_file_for_chat_is_accepted_with_what_other_commands_would_make_of_it(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(f'[bash]\nroot = "{tmp_path}"\n[approvals]\ntools = ["bash"]\n')
    ended = run("config", "check", str(file))
    assert (ended.code, ended.out) == (0, f"{file} can be used.\n")
    assert "approvals.terminal names nobody who is asked: every call of bash is refused" in ended.err
