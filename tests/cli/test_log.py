"""`greenroom log`: what an agent did, read by a person or a program, from a file that may have a writer."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import trio

from greenroom.actors.session import JsonlPersistence, Session
from greenroom.actors.system import open_runtime
from tests.cli.conftest import SECONDS, begin, run


def _talk(session: Session) -> None:
    session.append("user/message", {"content": "Look\x1b[2J\n1\tat it"})
    session.append("turn/start", {})
    session.append("step/start", {})
    calls = [{"id": "1", "name": "look", "arguments": {"at": "\x1b]0;it\x07"}}]
    batch = session.append("assistant/message", {"content": "", "calls": calls}).seq
    call = {"callId": "1", "name": "look", "arguments": {"at": "it"}, "position": 0}
    called = session.append("tool/call", call, sources=[batch]).seq
    error = {"code": "DENIED", "message": "no"}
    result = {"callId": "1", "name": "look", "content": "Error: no", "error": error, "position": 0}
    session.append("tool/result", result, sources=[called])
    session.append("step/end", {})
    session.append("turn/end", {"reason": "aborted", "cause": "enough"})
    session.append("todo/write", {"todos": [{"content": "rest", "status": "pending"}]})
    session.append("mine/\x1b[31mnote", {"by": 1}, ignorable=True)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    async def write() -> None:
        async with open_runtime(data=tmp_path / "work.db") as runtime:
            _talk(await runtime.sessions.open("planner"))

    trio.run(write)
    return tmp_path / "work.db"


def test_a_log_is_printed_as_a_transcript_that_steers_no_terminal(data: Path) -> None:
    ended = run("log", "planner", "--data", str(data))
    assert (ended.code, ended.err) == (0, "")
    assert "\x1b" not in ended.out
    lines = [re.sub(r"^ +(\d+) \S+ \S+ ", r"\1 ", line) for line in ended.out.splitlines()]
    assert lines == [
        "0 user  Look",
        "          1       at it",
        "1 turn  begins",
        '4 call  look {"at":"it"}',
        "5 result of look  Error: no",
        "7 turn  aborted: enough",
        "8 todo  [pending] rest",
        '9 mine/note  {"by":1}',
    ]
    after = run("log", "planner", "--data", str(data), "--after", "7")
    assert len(after.out.splitlines()) == 2
    assert run("log", "planner", "--data", str(data), "--after", "99")[:2] == (0, "")


def test_inboxes_sub_agents_and_jobs_are_shown(tmp_path: Path) -> None:
    message = {"id": "m", "kind": "followup", "text": "More\x1b[2J."}
    request = {"description": "changes", "prompt": "Read."}
    said: list[tuple[str, dict[str, Any]]] = [
        ("agent/inbox/spliced", {"inserted": [message]}),
        ("agent/inbox/spliced", {"removed": ["m"]}),
        ("agent/inbox/spliced", {"removed": ["m"], "claimed": True}),
        ("subagent/descriptor", {"provider": "reader", "request": request}),
        ("job/started", {"id": "bash-1", "label": "make\x1b[2J all"}),
        ("job/ended", {"id": "bash-1"}),
    ]

    async def write() -> None:
        async with open_runtime(data=tmp_path / "work.db") as runtime:
            session = await runtime.sessions.open("planner")
            for kind, data in said:
                session.append(kind, data)

    trio.run(write)
    ended = run("log", "planner", "--data", str(tmp_path / "work.db"))
    assert (ended.code, ended.err) == (0, "")
    lines = [re.sub(r"^ +(\d+) \S+ \S+ ", r"\1 ", line) for line in ended.out.splitlines()]
    assert lines == [
        "0 inbox  followup: More.",
        "1 inbox  1 discarded",
        "3 sub-agent  changes (built by reader)",
        "4 job  bash-1 begins: make all",
        "5 job  bash-1 is over",
    ]


def test_an_export_is_a_file_that_is_read_as_the_same_log(data: Path, tmp_path: Path) -> None:
    ended = run("log", "planner", "--data", str(data), "--json")
    header, *events = [json.loads(line) for line in ended.out.splitlines()]
    assert (header["id"], header["version"]) == ("planner", 1)
    assert [event["seq"] for event in events] == list(range(10))
    file = JsonlPersistence(tmp_path / "logs").path("planner")
    file.parent.mkdir(parents=True)
    file.write_text(ended.out, "utf-8")
    again = run("log", "planner", "--root", str(tmp_path / "logs"), "--json")
    assert again.out == ended.out


def test_an_unknown_log_and_no_place_are_refused_in_a_sentence(data: Path) -> None:
    unknown = run("log", "nobody", "--data", str(data))
    assert (unknown.code, unknown.out) == (1, "")
    assert "there are planner" in unknown.err
    nowhere = run("log", "planner")
    assert nowhere.code == 1
    assert "--data FILE, or --root FOLDER" in nowhere.err
    missing = run("log", "planner", "--data", f"{data}.not")
    assert missing.code == 1
    assert "Traceback" not in missing.err
    assert not Path(f"{data}.not").exists()


def test_without_an_agent_the_logs_are_named(data: Path, tmp_path: Path) -> None:
    assert run("log", "--data", str(data))[:2] == (0, "planner\n")
    (header,) = json.loads(run("log", "--data", str(data), "--json").out)
    assert header["id"] == "planner"
    assert run("log", "--root", str(tmp_path / "none"))[:2] == (0, "There are no logs here.\n")


def test_a_log_is_followed_while_it_is_written(tmp_path: Path) -> None:
    async def write() -> None:
        async with open_runtime(data=tmp_path / "work.db") as runtime:
            session = await runtime.sessions.open("planner")
            session.append("turn/start", {})
            await runtime.sessions.flush(session)
            process = await trio.to_thread.run_sync(
                lambda: begin("log", "planner", "--data", str(tmp_path / "work.db"), "--follow", "--json")
            )
            try:
                assert process.stdout is not None
                lines = [json.loads(await trio.to_thread.run_sync(process.stdout.readline)) for _ in range(2)]
                session.append("user/message", {"content": "now"})
                await runtime.sessions.flush(session)
                lines.append(json.loads(await trio.to_thread.run_sync(process.stdout.readline)))
                assert lines[2]["data"] == {"content": "now"}
                process.send_signal(signal.SIGINT)
                assert await trio.to_thread.run_sync(lambda: process.wait(SECONDS)) == 130
            finally:
                process.kill()
                await trio.to_thread.run_sync(process.communicate)

    trio.run(write)


def test_an_open_turn_is_said_to_be_open(tmp_path: Path) -> None:
    async def write() -> None:
        async with open_runtime(session_persistence=JsonlPersistence(tmp_path)) as runtime:
            session = await runtime.sessions.open("planner")
            session.append("turn/start", {})
            session.append("user/message", {"content": "in it"})

    trio.run(write)
    for after in ("-1", "0"):
        ended = run("log", "planner", "--root", str(tmp_path), "--after", after)
        assert "in it" in ended.out
        assert "turn is open" in ended.out + ended.err
