"""`greenroom chat` at a real terminal, and from a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from greenroom.actors.session import JsonlPersistence
from tests.cli.conftest import GREENROOM, SECONDS, begin, run
from tests.console.desk import TAKES_TERMINAL, ended
from tests.console.person import PATIENCE, Person, seated

FORM = {"label": "Publish?", "fields": [{"control": "confirm", "name": "sure", "label": "Sure"}]}
CTRL_C = "\x03"


def calling(content: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"content": content, "tools": [{"id": "1", "name": name, "arguments": arguments}]}


ASKING = calling("I ask. ", "ask", to="you", schema=FORM)


@pytest.fixture
def person() -> Iterator[Person]:
    with seated() as person:
        yield person


def script(folder: Path, *turns: dict[str, Any]) -> str:
    file = folder / "script.json"
    file.write_text(json.dumps(turns))
    return str(file)


async def sits_down(person: Person, *words: str, **environment: str) -> trio.Process:
    """Run `greenroom chat` at the person's terminal."""
    return await trio.lowlevel.open_process(
        [sys.executable, "-ISc", TAKES_TERMINAL, str(GREENROOM), "chat", *words],
        stdin=person.slave,
        stdout=person.slave,
        stderr=person.slave,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", **environment},
    )


class Talk:
    """`greenroom chat` whose input is a pipe that stays open."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._lines, self._output = process.stdin, process.stdout

    def says(self, *lines: str, until: str) -> str:
        """Type these lines; what is printed from now on, up to that text."""
        self._lines.writelines(f"{line}\n" for line in lines)
        self._lines.flush()
        return self.reads(until)

    def reads(self, text: str) -> str:
        seen = ""
        while text not in seen:
            line = self._output.readline()
            assert line, f"it ended, and {text!r} is not in {seen!r}"
            seen += line
        return seen


@contextmanager
def talking(*words: str) -> Generator[Talk]:
    process = begin("chat", *words, stdin=subprocess.PIPE)
    try:
        yield Talk(process)
        out, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, err) == (0, ""), out
    finally:
        process.kill()
        process.wait()


async def test_a_question_of_the_agent_is_answered_in_the_conversation(person: Person, tmp_path: Path) -> None:
    before = person.mode
    chat = await sits_down(person, "--script", script(tmp_path, ASKING, {"content": "It is published."}))
    await person.answers("You", "publish it\r")
    seen = await person.sees("Publish?")
    assert "I ask." in seen
    await person.answers("Sure", "y")
    await person.sees('{"sure": true}', "It is published.")
    await person.answers("You", CTRL_C)
    assert await ended(chat) == 130
    assert person.mode == before


async def test_ctrl_c_at_a_question_stops_the_turn_and_all_beneath_it_and_no_more(
    person: Person, tmp_path: Path
) -> None:
    """The question is one of an agent that works for the one in the conversation."""
    turns = (calling("", "agent", task="ask"), ASKING, {"content": "Well, then."})
    chat = await sits_down(person, "--script", script(tmp_path, *turns))
    await person.answers("You", "go\r")
    await person.sees("helper started")
    await person.answers("Sure", CTRL_C)
    seen = await person.sees("Stopped.")
    assert "helper stopped" in seen
    await person.answers("You", "and now?\r")
    await person.sees("Well, then.")
    await person.answers("You", CTRL_C)
    assert await ended(chat) == 130


async def test_ctrl_c_closes_the_call_of_a_model_that_says_nothing(person: Person) -> None:
    before = person.mode
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        port = listener.socket.getsockname()[1]
        words = ("--provider", "openai", "--model", "m", "--base-url", f"http://127.0.0.1:{port}/v1")
        chat = await sits_down(person, *words, OPENAI_API_KEY="k")
        await person.answers("You", "hello\r")
        with trio.fail_after(PATIENCE):
            async with await listener.accept() as call:
                assert b"hello" in await _request(call)
                person.types(CTRL_C)
                assert await call.receive_some() == b""
        await person.sees("Stopped.")
        await person.answers("You", CTRL_C)
        assert await ended(chat) == 130
    assert person.mode == before


async def _request(call: trio.SocketStream) -> bytes:
    """The head and the body of a request."""
    data = b""
    while not data.endswith(b"}"):
        data += await call.receive_some()
    return data


async def test_who_hangs_up_ends_the_conversation(person: Person, tmp_path: Path) -> None:
    chat = await sits_down(person, "--script", script(tmp_path, ASKING))
    await person.answers("You", "go\r")
    await person.sees("Sure")
    person.hangs_up()
    assert await ended(chat) in (1, 129, 130)  # 1: nothing can be shown any more


def test_lines_of_a_pipe_are_turns_and_answers_until_its_end(tmp_path: Path) -> None:
    file = script(tmp_path, ASKING, {"content": "It is published."})
    done = run("chat", "--script", file, stdin="publish it\ny\n")
    assert (done.code, done.err) == (0, "")
    assert "I ask. \nPublish?\n" in done.out
    assert "It is published.\n" in done.out


def test_an_input_that_ends_in_the_middle_of_a_form_is_a_failure(tmp_path: Path) -> None:
    done = run("chat", "--script", script(tmp_path, ASKING, {"content": "never"}), stdin="publish it\n")
    assert done.code == 1
    assert "Stopped." in done.out
    assert "never" not in done.out


def test_without_a_script_there_is_a_conversation_that_shows_how_it_goes() -> None:
    done = run("chat", stdin="hello\ny\nnothing\n")
    assert done.code == 0
    assert '"more":"nothing"' in done.out


@pytest.mark.parametrize(("answer", "said"), [("y", '"type": "integer"'), ("n", "a person refused it: not today")])
def test_a_call_that_the_file_wants_approved_is_asked_about(tmp_path: Path, answer: str, said: str) -> None:
    turns = script(tmp_path, calling("", "infer", samples=[1, 2]), {"content": "That was it."})
    file = tmp_path / "greenroom.toml"
    file.write_text(f'[approvals]\ntools = ["infer"]\n[llm]\nscript = "{turns}"\n')
    done = run("chat", "--config", str(file), stdin=f"go\n{answer}\nnot today\n")
    assert done.code == 0
    assert "May infer run?" in done.out
    assert said in done.out
    assert "That was it." in done.out


def test_an_agent_that_works_on_files_reads_edits_and_asks(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("port 8000\n")
    question = {"id": "port", "question": "Which port?", "options": [{"label": "8080"}, {"label": "9000"}]}
    edit = calling("", "edit", file_path="a.txt", old_string="8000", new_string="8080")
    turns = script(
        tmp_path,
        calling("", "read", file_path="a.txt"),
        calling("I ask. ", "ask_user_question", questions=[question]),
        edit,
        {"content": "It is done."},
    )
    file = tmp_path / "greenroom.toml"
    file.write_text(f'[workspaces]\nroots = ["{folder}"]\ntools = "files"\n[llm]\nscript = "{turns}"\n')
    done = run("chat", "--config", str(file), stdin="go\n8080\n\n")
    assert (done.code, done.err) == (0, "")
    assert "Which port?" in done.out
    assert "It is done." in done.out
    assert (folder / "a.txt").read_text() == "port 8080\n"


def test_a_conversation_goes_on_in_its_session(tmp_path: Path) -> None:
    data = str(tmp_path / "chat.db")
    for turn in ("one", "two"):
        words = ("--script", script(tmp_path, {"content": f"It is {turn}."}), "--session", "tutor", "--data", data)
        done = run("chat", *words, stdin=f"say {turn}\n")
        assert (done.code, done.err) == (0, "")
    log = run("log", "tutor", "--data", data)
    said = [log.out.index(text) for text in ("say one", "It is one.", "say two", "It is two.")]
    assert said == sorted(said)


@pytest.mark.parametrize("kept", [True, False], ids=["session", "memory"])
def test_a_line_that_comes_while_the_agent_works_by_itself_waits_for_what_it_comes_to(
    tmp_path: Path, kept: bool
) -> None:
    def until(name: str) -> str:
        return f"until [ -e {name} ]; do sleep 0.01; done"

    turns = (
        calling("", "bash", command=until("asked"), description="Build", run_in_background=True),
        {"content": "It is being built."},
        calling("", "bash", command=f"touch woken; {until('thanked')}", description="Look"),
        calling("", "job_list"),
        {"content": "The build\x1b[2J is done."},
        {"content": "You are welcome."},
    )
    config = tmp_path / "greenroom.toml"
    logs = f'[sessions]\nroot = "{tmp_path}/logs"\n[agent_loop]\nsession = "me"\n' if kept else ""
    config.write_text(f'{logs}[bash]\nroot = "{tmp_path}"\n[approvals]\ntools = ["job_list"]\n')
    with talking("--config", str(config), "--script", script(tmp_path, *turns)) as chat:
        chat.says("go", until="It is being built.")
        (tmp_path / "asked").touch()
        while not (tmp_path / "woken").exists():
            time.sleep(0.01)
        chat.says("thanks", until="by itself")
        (tmp_path / "thanked").touch()
        chat.reads("May job_list run?")
        rest = chat.says("y", "", until="You are welcome.")
    assert "The build is done.\nYou are welcome." in rest


def test_what_the_agent_has_said_by_itself_is_shown_before_what_it_is_asked_next(tmp_path: Path) -> None:
    turns = (
        calling("", "bash", command="until [ -e asked ]; do sleep 0.01; done", description="x", run_in_background=True),
        {"content": "It is being built."},
        {"content": "The build is done."},
        {"content": "You are welcome."},
    )
    config = tmp_path / "greenroom.toml"
    config.write_text(
        f'[sessions]\nroot = "{tmp_path}/logs"\n[agent_loop]\nsession = "me"\n[bash]\nroot = "{tmp_path}"\n'
    )
    log = JsonlPersistence(tmp_path / "logs").path("me")
    with talking("--config", str(config), "--script", script(tmp_path, *turns)) as chat:
        chat.says("go", until="It is being built.")
        (tmp_path / "asked").touch()
        while log.read_text().count('"turn/end"') < 2:
            time.sleep(0.01)
        assert "The build is done." in chat.says("thanks", until="You are welcome.")


def test_a_session_that_nothing_keeps_is_refused() -> None:
    done = run("chat", "--session", "tutor", stdin="go\n")
    assert done.code == 1
    assert "agent_loop.session and sessions.root do not fit" in done.err


@pytest.mark.parametrize(("depth", "said"), [(3, "The child is done."), (0, "DEPTH")])
def test_an_agent_has_agents_of_its_own_where_the_file_says(tmp_path: Path, depth: int, said: str) -> None:
    turns = script(
        tmp_path,
        calling("", "subagent", description="a part", prompt="Do the part."),
        {"content": "The child is done."},
        {"content": "All is done."},
    )
    file = tmp_path / "greenroom.toml"
    file.write_text(f'[subagents]\nmax_depth = {depth}\n[llm]\nscript = "{turns}"\n')
    data = str(tmp_path / "chat.db")
    done = run("chat", "--config", str(file), "--session", "boss", "--data", data, stdin="go\n")
    assert (done.code, done.err) == (0, "")
    assert said in run("log", "boss", "--data", data, "--json").out


def test_what_the_model_says_cannot_steer_the_terminal(tmp_path: Path) -> None:
    done = run("chat", "--script", script(tmp_path, {"content": "a\x1b[2Jb\r\nc"}), stdin="go\n")
    assert "ab\nc\n" in done.out
    assert "\x1b[2J" not in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--provider", "openai"], "MODEL  Say which model of openai"),
        (["--script", "no-such-file.json"], "FILE  no-such-file.json cannot be read"),
        (["--script", "pyproject.toml"], "JSON  pyproject.toml is no JSON"),
        (["--script", "examples/release-review.json"], "SCRIPT  examples/release-review.json is no list"),
        (["--provider", "anthropic", "--model", "m"], "KEY  "),
    ],
)
def test_what_cannot_be_begun_is_refused_with_a_reason(words: list[str], said: str) -> None:
    done = run("chat", *words, stdin="go\n", ANTHROPIC_API_KEY="")
    assert done.code == 1
    assert said in done.err


def test_a_model_that_fails_says_why_and_the_conversation_goes_on() -> None:
    words = ("--provider", "openai", "--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    done = run("chat", *words, stdin="go\nagain\n", OPENAI_API_KEY="secret-key")
    assert done.code == 0
    assert done.out.count("NETWORK") == 2
    assert "secret-key" not in done.out + done.err


@pytest.mark.parametrize(("encoding", "seen"), [("utf-8", "hé \\ud83d x"), ("ascii", "h\\xe9 \\ud83d x")])
def test_what_the_output_cannot_hold_is_spelled_out(tmp_path: Path, encoding: str, seen: str) -> None:
    done = run(
        "chat", "--script", script(tmp_path, {"content": "hé \ud83d x"}), stdin="go\n", PYTHONIOENCODING=encoding
    )
    assert (done.code, seen in done.out) == (0, True)


def test_a_closed_output_is_said_and_nobody_is_asked() -> None:
    words = ["sh", "-c", 'exec "$0" chat >&-', str(GREENROOM)]
    done = subprocess.run(words, input="go\n", capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr.split()[0]) == (1, "CONSOLE")
