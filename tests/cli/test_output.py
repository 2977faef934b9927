"""What is printed reaches whoever reads it in full, or is said to be lost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.cli.conftest import ROOT, SECONDS, Server, begin, run, run_in_shell
from tests.cli.test_commands import wait_for_form

FORM = str(ROOT / "examples" / "release-review.json")
ASKER = "an agent with a name that needs more room than a line of eighty columns has, and then some"


@pytest.fixture
def asked(server: Server) -> Iterator[Server]:
    """A gateway at which somebody with a long name asks."""
    asker = begin("ask", "reviewer", FORM, "--as", ASKER, url=server.url)
    try:
        yield server
    finally:
        asker.kill()
        asker.communicate(timeout=SECONDS)


def test_a_pipe_gets_every_line_in_full(asked: Server) -> None:
    id = wait_for_form(asked)["id"]
    head, row = run("pending", url=asked.url, COLUMNS="40").out.splitlines()
    assert head.split()[:6] == ["id", "at", "asked", "by", "form", "fields"]
    assert row.split()[0] == id
    assert ASKER in row
    assert "share, day, notify" in row
    wait = re.compile(f"{ASKER} as /clients/[\\w-]+ waits for reviewer  Ask$", re.MULTILINE)
    assert wait.search(run("tree", url=asked.url, COLUMNS="40").out)
    watcher = begin("tree", "--watch", url=asked.url, COLUMNS="40")
    assert watcher.stdout is not None
    while not wait.search(line := watcher.stdout.readline()):
        assert line, watcher.communicate(timeout=SECONDS)
    watcher.kill()
    watcher.communicate(timeout=SECONDS)


def test_a_narrow_terminal_gets_the_whole_id(asked: Server) -> None:
    id = wait_for_form(asked)["id"]
    shown = run_in_shell("script -qec 'stty cols 44; greenroom pending' /dev/null < /dev/null", asked.url)
    assert id in shown.out


@pytest.mark.parametrize("words", ["--help", "pending", "pending --json", "tree", "tree --watch", "serve --port 0"])
def test_a_full_disk_is_told_in_a_sentence(shared_server: Server, words: str) -> None:
    ended = run_in_shell(f"greenroom {words} > /dev/full", shared_server.url)
    assert ended.code == 1
    assert ended.err.splitlines()[-1] == "OUTPUT  The output cannot be written: No space left on device."
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("words", ["--help", "pending", "pending --json", "tree", "tree --watch"])
def test_a_reader_that_has_gone_is_left_alone(shared_server: Server, words: str) -> None:
    ended = run_in_shell(f"set -o pipefail; greenroom {words} | true", shared_server.url)
    assert (ended.code, ended.err) == (1, "")


def test_json_stays_json_in_a_pipe(asked: Server) -> None:
    wait_for_form(asked)
    assert json.loads(run("tree", "--json", url=asked.url, COLUMNS="40").out)["root"]["path"] == "/"
