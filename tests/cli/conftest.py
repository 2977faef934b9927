"""The command line as people run it: a real process, its output, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GREENROOM = Path(sys.executable).with_name("greenroom")
SECONDS = 30.0
"""What any command here may take by the wall clock."""


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def run(*words: str, url: str | None = None, stdin: str | None = None, **environment: str) -> Ended:
    """Run `greenroom` with these words to its end."""
    done = subprocess.run(
        [GREENROOM, *words],
        cwd=ROOT,
        env=_environment(url, environment),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def run_in_shell(line: str, url: str | None = None) -> Ended:
    """Run a line of bash in which `greenroom` is the command, to its end."""
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=ROOT,
        env=_environment(url, {"PATH": f"{GREENROOM.parent}:{os.environ['PATH']}"}),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def begin(
    *words: str, url: str | None = None, stdin: int = subprocess.DEVNULL, **environment: str
) -> subprocess.Popen[str]:
    """Start `greenroom` with these words; whoever starts it ends it."""
    return subprocess.Popen(
        [GREENROOM, *words],
        cwd=ROOT,
        env=_environment(url, environment),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _environment(url: str | None, more: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, "NO_COLOR": "1", **({} if url is None else {"GREENROOM_URL": url}), **more}


class Server(NamedTuple):
    """A gateway in a process of its own."""

    process: subprocess.Popen[str]
    url: str


@contextmanager
def serving(*words: str, grace: float = 0.5, port: int = 0) -> Generator[Server]:
    """A gateway with the terminals `reviewer` and `ops`, and whatever else these words of its command say."""
    places = ("--terminal", "reviewer", "--terminal", "ops")
    process = begin("serve", "--port", str(port), *places, "--grace", str(grace), *words)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("ws://127.0.0.1:"), process.communicate(timeout=SECONDS)
        yield Server(process, url)
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


@pytest.fixture
def server() -> Iterator[Server]:
    """A gateway of the test's own."""
    with serving() as server:
        yield server


@pytest.fixture
def patient_server() -> Iterator[Server]:
    """One that waits long for clients that are lost."""
    with serving(grace=30) as server:
        yield server


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Server]:
    """A gateway for tests that leave it as it was."""
    with serving() as server:
        yield server
