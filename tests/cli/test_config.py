"""`greenroom config`, and a server that a file configures."""

from __future__ import annotations

from pathlib import Path

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
    assert "names = ('a', 'b')" in shown.out
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


def test_a_key_is_explained() -> None:
    assert "Seconds that a client" in run("config", "explain", "gateway.grace").out
    everything = run("config", "explain")
    assert everything.code == 0
    assert "[databases]" in everything.out
    assert run("config", "explain", "gateway.nothing").code == 1
