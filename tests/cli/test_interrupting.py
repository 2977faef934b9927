"""Commands that are interrupted while they wait, and what they leave behind."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import GREENROOM, SECONDS, Server, begin, run, run_in_shell

READING = pytest.mark.parametrize(
    "words", [["ask", "reviewer", "-"], ["answer", "reviewer", "some-id", "-"]], ids=["ask", "answer"]
)


def wait_until_read(source: int) -> None:
    """Wait until nothing is left of what was written for the process at the other end to read."""
    _wait_for(lambda: _unread(source) == 0, "it does not read its input")


def _unread(source: int) -> int:
    """How many bytes can be read there."""
    (count,) = struct.unpack("i", fcntl.ioctl(source, termios.FIONREAD, b"\0" * 4))
    return int(count)


def _wait_for(reached: Callable[[], bool], what_else: str) -> None:
    until = time.monotonic() + SECONDS
    while not reached():
        assert time.monotonic() < until, what_else
        time.sleep(0.01)


def interrupt(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Send SIGINT; the exit code, and what was said."""
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    return process.returncode, err


@READING
def test_ctrl_c_ends_a_command_that_reads_a_pipe(shared_server: Server, words: list[str]) -> None:
    source, sink = os.pipe()
    os.write(sink, b'{"half":')
    process = begin(*words, url=shared_server.url, stdin=source)
    wait_until_read(source)
    assert interrupt(process) == (130, "")
    os.close(source)
    os.close(sink)


@READING
def test_ctrl_c_ends_a_command_that_reads_a_terminal(shared_server: Server, words: list[str]) -> None:
    master, slave = pty.openpty()
    os.write(master, b'{"half":\n')
    _wait_for(lambda: _unread(slave) > 0, "the line does not come through")  # a terminal passes it on in its own time
    process = begin(*words, url=shared_server.url, stdin=slave)
    wait_until_read(slave)
    assert interrupt(process) == (130, "")
    os.close(master)
    os.close(slave)


def test_ctrl_c_while_the_program_is_imported_is_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "trio_websocket.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n", "utf-8")
    ended = run("pending", PYTHONPATH=str(tmp_path))
    assert (ended.code, ended.out, ended.err) == (130, "", "")


@pytest.mark.parametrize("words", ["ask reviewer -", "answer reviewer some-id -"])
def test_a_closed_input_is_refused_in_a_sentence(shared_server: Server, words: str) -> None:
    ended = run_in_shell(f"greenroom {words} <&-", shared_server.url)
    assert ended.code == 1
    assert ended.err.startswith("FILE  Standard input is closed")


def test_the_tree_is_watched_without_an_input_too(shared_server: Server) -> None:
    watcher = subprocess.Popen(
        ["bash", "-c", f"exec {GREENROOM} tree --watch --url {shared_server.url} <&-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watcher.stdout is not None
    assert watcher.stdout.readline() == "/  root\n"
    assert interrupt(watcher) == (130, "")
