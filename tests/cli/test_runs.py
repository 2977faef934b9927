"""Workflows from the command line: run, seen, steered, suspended, killed and taken up again."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from greenroom.actors.client import connect
from tests.cli.conftest import GREENROOM, ROOT, SECONDS, begin, run, serving

RELEASE = ("examples/release_workflow.json", "--functions", "examples.release_workflow")
APPROVED = {"publish": True, "reason": "Looked at it."}

MODULE = """
import trio

def fine(controller):
    return controller.key

def broken(controller):
    raise ValueError("it cannot work")

async def wait(controller):
    return await controller.signal("go")

_hidden = print
"""


@pytest.fixture
def place(tmp_path: Path) -> Callable[..., list[str]]:
    """Writes a workflow of these behaviours, and gives the words that run it."""
    (tmp_path / "behaviours.py").write_text(MODULE, "utf-8")

    def written(*steps: str, **members: Any) -> list[str]:
        phases = [{"tasks": [{"id": step, "behavior": step}]} for step in steps]
        file = tmp_path / "workflow.json"
        file.write_text(json.dumps({"id": "flow", "phases": phases, **members}), "utf-8")
        return [str(file), "--functions", "behaviours"]

    return written


class Running:
    """`greenroom run` in a process of its own, which serves its terminals."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stderr is not None
        while not (found := re.search(r"gateway (ws://\S+)", line := process.stderr.readline())):
            assert line, process.communicate(timeout=SECONDS)
        self.url = found[1]


@contextmanager
def running(*words: str, modules: Path | str = "", diary: Path | str = "") -> Generator[Running]:
    process = begin("run", *words, "--port", "0", "--json", PYTHONPATH=str(modules), RELEASE_DIARY=str(diary))
    try:
        yield Running(process)
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


def events(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


async def _at_reviewer(url: str, answer: bool) -> str:
    async with connect(url) as client, client.attach("reviewer") as reviewer:
        with trio.fail_after(SECONDS):
            if not reviewer.pending:
                await anext(reviewer)
        (id,) = reviewer.pending
        assert not answer or (await reviewer.answer(id, APPROVED)).success
        return id


def asked(url: str) -> str:
    """The id of the form that the reviewer is asked, once it is."""
    return trio.run(_at_reviewer, url, False)


def approve(url: str) -> None:
    """The reviewer agrees."""
    trio.run(_at_reviewer, url, True)


# -------------------------------------------------------------------- running


def test_a_run_prints_a_line_for_each_thing_that_happens(place: Callable[..., list[str]], tmp_path: Path) -> None:
    done = run("run", *place("fine", "fine"), PYTHONPATH=str(tmp_path))
    assert (done.code, done.err) == (0, "")
    lines = [line.split(maxsplit=2)[2] for line in done.out.splitlines()]
    assert lines[0] == "phase-0/fine  start"
    assert 'phase-1/fine  complete  "flow/phase-1/fine"' in lines
    assert lines[-1] == "run  complete"


@pytest.mark.parametrize(("bail", "code"), [(True, 1), (False, 0)], ids=["bail", "no bail"])
def test_the_exit_code_tells_what_a_run_came_to(
    place: Callable[..., list[str]], tmp_path: Path, bail: bool, code: int
) -> None:
    done = run("run", *place("broken", "fine", bail=bail), PYTHONPATH=str(tmp_path))
    assert done.code == code
    assert "phase-0/broken  fail  it cannot work" in done.out
    assert ("phase-1/fine  start" in done.out) is not bail


def test_a_flat_list_of_steps_is_a_workflow(place: Callable[..., list[str]], tmp_path: Path) -> None:
    _, *words = place()
    done = run("run", "-", *words, stdin='{"steps": [{"name": "fine"}]}', PYTHONPATH=str(tmp_path))
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("words", "stdin", "says"),
    [
        (["run", "-"], '{"phases": [{"tasks": [{"run": "x"}]}]}', "phases[0].tasks[0].run"),
        (["run", "-"], '{"steps": [{"name": "nothing"}]}', "nothing"),
        (
            ["run", "-", "--functions", "no_such_module"],
            '{"steps": [{"name": "x"}]}',
            "There is no module no_such_module",
        ),
        (["runs", "--data", "no-such.db"], None, "There is no file"),
        (["resume", "x", "--data", "no-such.db"], None, "There is no file"),
        (["signal", "x", "go", "so"], None, "A text is written"),
    ],
)
def test_what_cannot_be_run_is_told_in_a_sentence(words: list[str], stdin: str | None, says: str) -> None:
    done = run(*words, stdin=stdin)
    assert done.code == 1
    assert says in done.err
    assert "Traceback" not in done.err


def test_a_person_answers_a_run_from_another_process() -> None:
    with running(*RELEASE, "--terminal", "reviewer") as release:
        asked(release.url)
        shown = run("show", "release-4.2", url=release.url)
        assert "Tests  completed  attempt 2 of 3" in shown.out
        assert "Ask the reviewer  running  waits for reviewer" in shown.out
        approve(release.url)
        out, _ = release.process.communicate(timeout=SECONDS)
        assert release.process.returncode == 0
        last = events(out)[-1]
        assert (last["event"], last["number"]) == ("complete", len(events(out)))


# -------------------------------------------------------------------- suspended, killed, resumed


def test_ctrl_c_suspends_a_recorded_run_and_says_how_it_goes_on(tmp_path: Path) -> None:
    data, diary = str(tmp_path / "release.db"), tmp_path / "diary.txt"
    words = (*RELEASE, "--data", data, "--terminal", "reviewer")
    with running(*words, diary=diary) as release:
        form = asked(release.url)
        release.process.send_signal(signal.SIGINT)
        _, err = release.process.communicate(timeout=SECONDS)
        assert release.process.returncode == 130
        (way_back,) = re.findall(r"It goes on with: greenroom (.*)", err)
        assert data in way_back
    listed = run("runs", "--data", data).out
    assert "to be resumed" in listed
    assert re.search(r"\d of \d", listed), "its tasks are counted"
    assert "not under way here: resume it" in run("show", "release-4.2", "--data", data).out
    with running(*words, diary=diary) as release:
        assert asked(release.url) == form  # the same question, asked once in all
        approve(release.url)
        release.process.communicate(timeout=SECONDS)
        assert release.process.returncode == 0
    carried_out = Counter(line.split(",")[0] for line in diary.read_text("utf-8").splitlines())
    assert carried_out["release-4.2/check/build"] == 1
    assert carried_out["release-4.2/publish/upload"] == 1


def test_a_killed_run_is_resumed_where_it_was_and_its_events_are_kept(tmp_path: Path) -> None:
    data, diary = str(tmp_path / "release.db"), tmp_path / "diary.txt"
    with running(*RELEASE, "--data", data, "--terminal", "reviewer", diary=diary) as release:
        asked(release.url)
        held = run("runs", "--data", data)
        assert held.code == 1
        assert str(release.process.pid) in held.err
        release.process.kill()
    before = events(run("logs", "release-4.2", "--data", data, "--json").out)
    assert [event["number"] for event in before] == list(range(1, len(before) + 1))
    resumed = begin(
        *("resume", "release-4.2", "--data", data, "--functions", "examples.release_workflow"),
        *("--terminal", "reviewer", "--port", "0"),
        RELEASE_DIARY=str(diary),
    )
    approve(Running(resumed).url)
    assert resumed.wait(timeout=SECONDS) == 0
    resumed.communicate(timeout=SECONDS)
    after = events(run("logs", "release-4.2", "--data", data, "--json", "--after", str(len(before))).out)
    assert after[0]["number"] == len(before) + 1
    assert diary.read_text("utf-8").count("check/build") == 1
    picture = json.loads(run("show", "release-4.2", "--data", data, "--json").out)
    assert picture["run"]["status"] == "completed"
    unknown = run("resume", "release-4.3", "--data", data)
    assert (unknown.code, unknown.err) == (1, "UNKNOWN  There is no run release-4.3. There is release-4.2.\n")


def test_at_a_terminal_a_run_is_drawn_as_it_stands_until_ctrl_c(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 40, 120, 0, 0))
    data = str(tmp_path / "release.db")
    words = ("run", *RELEASE, "--data", data, "--terminal", "reviewer", "--port", "0")
    process = subprocess.Popen(
        [GREENROOM, *words], cwd=ROOT, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    seen = b""
    try:
        while b"waits for" not in seen:
            seen += os.read(master, 4096)
        process.send_signal(signal.SIGINT)
        while b"It goes on with" not in seen:
            seen += os.read(master, 4096)
        assert process.wait(timeout=SECONDS) == 130
    finally:
        process.kill()
        process.wait(timeout=SECONDS)
        os.close(master)
    assert b"of 3 modules" in seen
    assert b"attempt 2 of 3" in seen


def test_ctrl_c_stops_a_run_that_is_not_recorded(place: Callable[..., list[str]], tmp_path: Path) -> None:
    with running(*place("wait"), modules=tmp_path) as flow:
        assert flow.process.stdout is not None
        assert flow.process.stdout.readline(), "it has begun once something is told of it"
        flow.process.send_signal(signal.SIGINT)
        _, err = flow.process.communicate(timeout=SECONDS)
    assert flow.process.returncode == 130
    assert "flow was stopped" in err


# -------------------------------------------------------------------- at a server


def test_a_run_is_listed_followed_and_signalled_from_other_shells(
    place: Callable[..., list[str]], tmp_path: Path
) -> None:
    with running(*place("fine", "wait"), modules=tmp_path) as flow:
        follower = begin("logs", "flow", "--follow", "--json", url=flow.url)
        assert follower.stdout is not None
        assert json.loads(follower.stdout.readline())["number"] == 1
        assert "1 of 2" in run("runs", url=flow.url).out
        written = events(run("logs", "flow", "--json", "--after", "2", url=flow.url).out)
        assert written[0]["number"] == 3
        unknown = run("show", "flaw", url=flow.url)
        assert (unknown.code, "There is flow." in unknown.err) == (1, True)
        assert run("signal", "flow", "go", '{"by": "ada"}', url=flow.url).code == 0
        out, _ = follower.communicate(timeout=SECONDS)
        assert events(out)[-1]["event"] == "complete"
        assert follower.returncode == 0


def test_a_run_is_cancelled_from_another_shell(place: Callable[..., list[str]], tmp_path: Path) -> None:
    with running(*place("wait"), modules=tmp_path) as flow:
        cancelled = run("cancel", "flow", url=flow.url)
        assert json.loads(cancelled.out)["status"] == "stopped"
        flow.process.communicate(timeout=SECONDS)
        assert flow.process.returncode == 1


def test_a_server_takes_up_what_was_cut_off(tmp_path: Path) -> None:
    data = str(tmp_path / "release.db")
    with running(*RELEASE, "--data", data, "--terminal", "reviewer") as release:
        asked(release.url)
        release.process.kill()
    with serving("--data", data, "--functions", "examples.release_workflow") as server:
        approve(server.url)
        until = time.monotonic() + SECONDS
        while "completed" not in (listed := run("runs", url=server.url).out):
            assert time.monotonic() < until, listed
        resumed = run("resume", "release-4.2", url=server.url)
        assert json.loads(resumed.out)["status"] == "completed"
