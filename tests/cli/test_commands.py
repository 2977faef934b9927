"""Serving, asking, answering and looking, each in a process of its own."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from greenroom.actors.cli.app import COMMANDS
from greenroom.actors.cli.demo import STEPS
from tests.cli.conftest import ROOT, SECONDS, Server, begin, run

FORM = str(ROOT / "examples" / "release-review.json")
GOOD = {"publish": True, "reason": "Looked at every change.", "channel": "stable", "share": 25}


def wait_for_form(server: Server, terminal: str = "reviewer") -> dict[str, Any]:
    """The one form that is pending there, once it is."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        listed = json.loads(run("pending", terminal, "--json", url=server.url).out)
        if listed:
            (form,) = listed
            return dict(form)
    raise TimeoutError("no form came")


def test_a_form_asked_by_one_process_is_answered_by_another(server: Server, tmp_path: Path) -> None:
    asker = begin("ask", "reviewer", FORM, "--as", "release-agent", url=server.url)
    form = wait_for_form(server)
    assert (form["from"], form["to"], form["status"]) == ("release-agent", "reviewer", "pending")
    table = run("pending", url=server.url)
    assert form["id"] in table.out
    assert "Release 4.2 is ready to publish" in table.out

    hasty = run("answer", "reviewer", form["id"], "-", url=server.url, stdin='{"publish": true, "reason": "ok"}')
    assert hasty.code == 1
    assert "reason: Write at least 10 characters." in hasty.err
    assert asker.poll() is None

    values = tmp_path / "values.json"
    values.write_text(json.dumps(GOOD), "utf-8")
    accepted = run("answer", "reviewer", form["id"][:8], str(values), url=server.url)
    assert accepted.code == 0, accepted.err
    out, err = asker.communicate(timeout=SECONDS)
    assert (asker.returncode, err) == (0, "")
    assert json.loads(out) == json.loads(accepted.out) == {**GOOD, "notify": ["support"]}

    late = run("answer", "reviewer", form["id"], str(values), url=server.url)
    assert late.code == 1
    assert "any more" in late.err


def test_an_asker_that_is_killed_leaves_no_form_behind(server: Server) -> None:
    asker = begin("ask", "reviewer", FORM, url=server.url)
    wait_for_form(server)
    asker.kill()
    asker.communicate(timeout=SECONDS)
    until = time.monotonic() + SECONDS
    while json.loads(run("pending", "--json", url=server.url).out):
        assert time.monotonic() < until, "the form of a dead asker is still there"


def test_a_form_that_nobody_answers_ends_with_the_reason(shared_server: Server) -> None:
    ended = run("ask", "reviewer", FORM, "--timeout", "0.2", url=shared_server.url)
    assert ended.code == 1
    assert ended.err.startswith("ABANDONED")
    assert "in time" in ended.err


def test_the_tree_shows_terminals_and_who_waits(server: Server) -> None:
    asker = begin("ask", "ops", FORM, "--as", "agent", url=server.url)
    wait_for_form(server, "ops")
    drawn = run("tree", url=server.url)
    assert drawn.code == 0
    assert "reviewer  terminal" in drawn.out
    assert "waits for ops" in drawn.out
    snapshot = json.loads(run("tree", "--json", url=server.url).out)
    assert snapshot["root"]["path"] == "/"
    asker.kill()
    asker.communicate(timeout=SECONDS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_and_tells_those_who_wait(server: Server, number: signal.Signals) -> None:
    asker = begin("ask", "reviewer", FORM, url=server.url)
    wait_for_form(server)
    started = time.monotonic()
    server.process.send_signal(number)
    assert server.process.wait(timeout=SECONDS) == 0
    assert time.monotonic() - started < 10
    _, err = asker.communicate(timeout=SECONDS)
    assert asker.returncode == 1
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["ask", "nobody", FORM], 1, "reviewer, ops"),
        (["ask", "reviewer", "no-such-file.json"], 1, "cannot be read"),
        (["ask", "reviewer", "README.md"], 1, "no JSON"),
        (["ask", "reviewer", FORM, "--durable", "x"], 1, "--client-id"),
        (["answer", "reviewer", "", "-"], 1, "greenroom pending reviewer"),
        (["pending", "--url", "foo"], 1, "begins with ws:// or wss://"),
        (["runs", "--data", "README.md"], 1, "it is either no database or a damaged one"),
        (["serve", "--port", "0", "--data", "/nope/x.db"], 1, "there is no folder /nope"),
        (["answer", "nobody", "id", "-"], 1, "no terminal nobody"),
        (["answer", "reviewer", "id", "-"], 1, "any more"),
        (["pending", "nobody"], 1, "reviewer, ops"),
        (["ask"], 2, "TO"),
        (["serv"], 2, "serve"),
        (["demo", "--break", "nothing"], 1, "serve, attach"),
        (["ask", "reviewer", FORM, "--timeout", "-1"], 2, "--timeout"),
        (["ask", "reviewer", FORM, "--timeout", "nan"], 2, "--timeout"),
        (["ask", "reviewer", FORM, "--timeout", "inf"], 2, "--timeout"),
        (["serve", "--port", "0", "--timeout", "-5"], 2, "--timeout"),
        (["serve", "--port", "0", "--timeout", "nan"], 2, "--timeout"),
        (["serve", "--port", "0", "--grace", "-5"], 2, "--grace"),
        (["serve", "--port", "99999"], 2, "--port"),
        (["serve", "--port", "-1"], 2, "--port"),
        (["serve", "--port", "0", "--terminal", ""], 2, "needs a name"),
        (["serve", "--port", "0", "--terminal", "a", "--terminal", "a"], 2, "one terminal a"),
    ],
    ids=lambda value: "-".join(value)[:40] if isinstance(value, list) else "",
)
def test_what_cannot_be_done_says_what_to_do(shared_server: Server, words: list[str], code: int, says: str) -> None:
    ended = run(*words, url=shared_server.url, stdin="{}")
    assert ended.code == code, ended
    assert says in ended.err + ended.out
    assert "Traceback" not in ended.err


def test_standard_input_is_named_as_such(shared_server: Server) -> None:
    for words in (("ask", "reviewer", "-"), ("answer", "reviewer", "id", "-")):
        assert "Standard input is no JSON" in run(*words, url=shared_server.url, stdin="so").err


def test_each_fault_of_a_form_is_told_once(shared_server: Server) -> None:
    text, unnamed = '{"control": "text", "name": "a"}', '{"control": "text", "name": ""}'
    form = f'{{"fields": [{text}, {text}, {unnamed}]}}'
    told = run("ask", "reviewer", "-", url=shared_server.url, stdin=form).err
    first, *others = told.strip().splitlines()
    assert "There is 1 more problem." in first
    assert len(others) == 1
    assert others[0].strip() not in first


@pytest.mark.parametrize("form", ["[]", '{"fields": [{"control": "wizard", "name": "a"}]}', '{"fields": 1}'])
def test_a_form_with_a_fault_is_refused_by_name(shared_server: Server, form: str) -> None:
    ended = run("ask", "reviewer", "-", url=shared_server.url, stdin=form)
    assert ended.code == 1
    assert "Traceback" not in ended.err
    assert ended.err.strip()


def test_without_a_gateway_it_says_how_to_start_one() -> None:
    ended = run("pending", url="ws://127.0.0.1:9/rpc")
    assert ended.code == 1
    assert "greenroom serve" in ended.err


def test_a_port_that_is_taken_is_refused_in_words(shared_server: Server) -> None:
    ended = run("serve", "--port", shared_server.url.rpartition(":")[2].removesuffix("/rpc"))
    assert ended.code == 1
    assert "Traceback" not in ended.err
    assert "in use" in ended.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does_with_an_example_and_its_exit_codes(command: str) -> None:
    ended = run(command, "--help")
    assert ended.code == 0
    assert f"Usage: greenroom {command}" in ended.out
    assert command == "demo" or re.search(rf"^ .*greenroom {command} ", ended.out, re.MULTILINE)
    assert "Exit codes: 0 done, 1 refused or failed" in ended.out


def test_the_help_names_every_command_and_the_first_steps() -> None:
    ended = run("--help")
    assert ended.code == 0
    assert all(f" {command} " in ended.out for command in COMMANDS)
    assert "greenroom demo" in ended.out
    assert "greenroom run release.json" in ended.out


def test_the_demo_happens() -> None:
    ended = run("demo")
    assert ended.code == 0, ended
    assert "Everything happened as it should." in ended.out


@pytest.mark.parametrize("step", STEPS)
def test_a_sabotaged_demo_is_noticed(step: str) -> None:
    ended = run("demo", "--break", step)
    assert ended.code == 1, ended
    assert f"{step} failed:" in ended.out
