"""`greenroom config`, and a server that a file configures."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from greenroom.actors.config import load_config, read_config
from tests.cli.conftest import run, serving

FILE = """
[terminals]
names = ["a", "b"]
timeout = 7
[gateway]
grace = 3
[journal]
data = "{data}"
"""


def test_a_server_is_configured_by_a_file_and_flags_win(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(FILE.format(data=tmp_path / "journal"))
    shown = run("config", "show", str(file))
    assert shown.code == 0
    assert 'names = ["a", "b"]' in shown.out
    assert read_config(tomllib.loads(shown.out)) == load_config(file)
    with serving("--config", str(file)) as server:  # and with --terminal, --port and --grace
        drawn = run("tree", url=server.url)
        assert "reviewer" in drawn.out
        assert "── a " not in drawn.out
        assert "journal" in drawn.out
    assert (tmp_path / "journal").is_file()


def test_a_wrong_file_is_refused_by_every_command_that_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text("[gatway]\n[terminals]\nname = 1\n")
    for command in (("config", "check"), ("config", "show"), ("serve", "--config")):
        ended = run(*command, str(file))
        assert (ended.code, ended.out) == (1, "")
        assert "did you mean [gateway]?" in ended.err
        assert "did you mean terminals.names?" in ended.err


def test_a_file_whose_provider_is_not_installed_is_refused_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    data = tmp_path / "journal"
    file.write_text(f'[journal]\ndata = "{data}"\n[policies.spill]\nmax_inline_bytes = 9\nstore = "nowhere"\n')
    for words in (("config", "check", str(file)), ("serve", "--config", str(file)), ("tools", "--config", str(file))):
        ended = run(*words)
        assert (ended.code, ended.out) == (1, "")
        assert "NO_PROVIDER  The seam spill has no provider nowhere; there are: local." in ended.err
    assert not data.exists()


def test_the_tools_of_a_file_are_listed_without_a_gateway(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(f'[workspaces]\nroots = ["{tmp_path}"]\n')
    listed = run("tools", "--config", str(file), "--json", url="ws://127.0.0.1:9/rpc")
    assert [tool["name"] for tool in json.loads(listed.out)] == ["describe", "infer", "workspace"]


def test_what_may_be_a_secret_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    name = "ghp_looks_like_a_name"
    file.write_text(
        f'[llm]\nkey = "{name}"\nprovider = "openai"\nmodel = "m"\n[bash]\nroot = "{tmp_path}"\nenv = ["{name}"]\n'
    )
    for words in (("config", "show", str(file)), ("config", "show", str(file), "--json")):
        shown = run(*words)
        assert shown.code == 0
        assert "ghp_looks_like_a_name" not in shown.out + shown.err
        assert "ghp_looks_like_a_name" in run(*words, ghp_looks_like_a_name="secret").out
        if words[-1] != "--json":
            assert read_config(tomllib.loads(shown.out)).llm.provider == "openai"
    refused = run("chat", "--config", str(file), stdin="go\n")
    assert refused.code == 1
    assert "llm.key names no credential" in refused.err
    assert "ghp_looks_like_a_name" not in refused.err


def test_a_key_is_explained() -> None:
    assert "How long a call may take" in run("config", "explain", "policies.timeout.seconds").out
    assert "A deadline for calls" in run("config", "explain", "[policies.timeout]").out
    assert "Seconds that a client" in run("config", "explain", "gateway.grace").out
    everything = run("config", "explain")
    assert everything.code == 0
    assert "[databases]" in everything.out
    assert run("config", "explain", "gateway.nothing").code == 1
    assert "There is no policies.spil (did you mean policies.spill?)" in run("config", "explain", "policies.spil").err
