"""`greenroom attach` as people run it: a process of its own, at a real pseudo-terminal or at a pipe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trio

from greenroom.actors.approver import approval_form
from greenroom.protocol.forms import FieldError
from greenroom.protocol.terminals import AnswerFailure
from greenroom.runtime.pipeline.approvals import ApprovalRequest
from greenroom.runtime.pipeline.handling import Card
from greenroom.runtime.pipeline.invocations import Invocation
from tests.cli.conftest import ROOT
from tests.console.desk import Desk, Output, ended
from tests.console.person import Person
from tests.console.piping import form_of

AGREE = form_of({"control": "confirm", "name": "agree", "label": "Agree?"}, label="Terms", help="Read them.")
NAME = form_of({"name": "name", "label": "Name", "rule": {"required": True}}, label="Who")


async def test_forms_are_answered_one_after_the_other(desk: Desk, person: Person, cooked: list[Any]) -> None:
    first, second = await desk.ask(AGREE), await desk.ask(NAME)
    process = await desk.sits_down(person, "attach", "ops")
    await person.sees("Attached to ops", "Terms", "asked by planner", "Read them.")
    await person.answers("Agree? (y/N)", "y")
    assert await first.answer() == {"agree": True}
    await person.sees("Answered.", "Who", "? Name")
    assert second.values is None
    person.types("Ada\r")
    assert await second.answer() == {"name": "Ada"}
    await person.sees("Answered.")
    third = await desk.ask(AGREE)
    await person.answers("Agree? (y/N)", "n")
    assert await third.answer() == {"agree": False}
    await person.sees("Answered.")
    person.types("q")
    assert await ended(process) == 0
    assert person.mode == cooked


@pytest.mark.case("reports/forms", 1)
async def test_a_no_is_an_answer_and_no_answer_is_none(desk: Desk, person: Person) -> None:
    agree = {"control": "confirm", "name": "agree", "label": "Agree?", "rule": {"required": True}}
    told = await desk.ask(form_of(agree))
    terminals = desk.runtime.terminals
    refused = await terminals.answer("ops", desk.pending()[0], {})
    assert isinstance(refused, AnswerFailure)
    assert refused.error.errors == (FieldError("agree", "Answer yes or no.", "required"),)
    assert (await terminals.answer("ops", desk.pending()[0], {"agree": False})).success
    assert await told.answer() == {"agree": False}

    typed = await desk.ask(form_of(agree))
    process = await desk.sits_down(person, "attach", "ops")
    await person.answers("? Agree? (y/N)", "\r")
    assert await typed.answer() == {"agree": False}
    await person.answers("Answered.", "q")
    assert await ended(process) == 0


@pytest.mark.case("reports/forms", 3)
async def test_ctrl_c_in_the_middle_leaves_the_form_to_others(desk: Desk, person: Person, cooked: list[Any]) -> None:
    asked = await desk.ask(form_of(*({"name": name, "label": f"Field {name}"} for name in "abcde")))
    process = await desk.sits_down(person, "attach", "ops")
    await person.answers("? Field a", "1\r")
    await person.answers("? Field b", "2\x03")
    assert await ended(process) == 130
    assert "still waits" in person.rest()
    assert "Traceback" not in person.text
    assert person.mode == cooked
    (id,) = desk.pending()
    await desk.runtime.terminals.answer("ops", id, {"a": "x"})
    assert await asked.answer() == {"a": "x"}


async def test_ctrl_c_between_forms_leaves(desk: Desk, person: Person, cooked: list[Any]) -> None:
    process = await desk.sits_down(person, "attach", "ops")
    await person.answers("leave with Ctrl-C", "\x03")
    assert await ended(process) == 130
    assert "Traceback" not in person.text
    assert person.mode == cooked


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_gives_the_terminal_back(
    desk: Desk, person: Person, cooked: list[Any], number: signal.Signals
) -> None:
    await desk.ask(NAME)
    process = await desk.sits_down(person, "attach", "ops")
    await person.sees("? Name")
    process.send_signal(number)
    assert await ended(process) == 128 + number
    assert "Traceback" not in person.rest()
    assert person.mode == cooked
    assert len(desk.pending()) == 1


async def test_a_form_that_is_withdrawn_interrupts_its_prompt(desk: Desk, person: Person) -> None:
    first = await desk.ask(NAME)
    process = await desk.sits_down(person, "attach", "ops")
    await person.answers("? Name", "half an ans")
    second = await desk.ask(AGREE)
    first.scope.cancel()
    await person.sees("It was withdrawn", "Terms")
    await person.answers("Agree? (y/N)", "y")
    assert await second.answer() == {"agree": True}
    await person.answers("Answered.", "q")
    assert await ended(process) == 0


async def test_a_form_that_is_answered_elsewhere_interrupts_its_prompt(desk: Desk, person: Person) -> None:
    asked = await desk.ask(NAME)
    process = await desk.sits_down(person, "attach", "ops")
    await person.sees("? Name")
    await desk.runtime.terminals.answer("ops", desk.pending()[0], {"name": "Grace"})
    await person.answers("Somebody else has answered it.", "q")
    assert await asked.answer() == {"name": "Grace"}
    assert await ended(process) == 0


async def test_a_form_that_expires_interrupts_its_prompt(desk: Desk, person: Person) -> None:
    process = await desk.sits_down(person, "attach", "ops")
    await person.sees("Attached")
    await desk.ask(NAME, timeout=1.5)
    await person.sees("? Name", "Nobody has answered it in time.")
    await desk.ask(AGREE)
    await person.sees("? Agree?")
    await desk.runtime.terminals.remove("ops")
    await person.answers("It was taken away: its terminal was removed.", "q")
    assert await ended(process) == 0


async def test_what_the_server_refuses_is_asked_again_with_its_words(desk: Desk, person: Person) -> None:
    def taken(value: object, values: object) -> str | None:
        return "This name is taken." if value == "admin" else None

    def odd(value: object, values: object) -> str | None:
        return "Not on this day." if value == "2026-04-01" else None

    asked = await desk.ask(
        form_of(
            {"name": "name", "label": "Name", "rule": {"custom": taken}},
            {"name": "other", "label": "Other"},
            {"control": "date", "name": "day", "label": "Day", "rule": {"custom": odd}},
        )
    )
    process = await desk.sits_down(person, "attach", "ops")
    await person.answers("? Name", "admin\r")
    await person.answers("? Other", "o\r")
    await person.answers("? Day", "2026-04-01\r")
    seen = await person.sees("Name: This name is taken.", "Day: Not on this day.", "? Name")
    assert "? Other" not in seen
    person.types("ada\r")
    await person.answers("? Day", "2026-04-02\r")
    assert await asked.answer() == {"name": "ada", "other": "o", "day": "2026-04-02"}
    await person.answers("Answered.", "q")
    assert await ended(process) == 0
    assert person.text.count("? Other") < 4


async def test_what_nobody_here_can_repair_is_left_to_others(desk: Desk, person: Person) -> None:
    def never(value: object, values: object) -> str:
        return "Ask the owner."

    await desk.ask(form_of({"name": "a", "label": "A"}, {"name": "b", "hidden": True, "rule": {"custom": never}}))
    process = await desk.sits_down(person, "attach", "ops")
    await person.answers("? A", "1\r")
    await person.sees("b: Ask the owner.", "cannot be answered here")
    agreed = await desk.ask(AGREE)
    await person.answers("Agree? (y/N)", "y")
    assert await agreed.answer() == {"agree": True}
    person.types("q")
    assert await ended(process) == 0
    assert len(desk.pending()) == 1


async def test_what_is_not_asked_stays_what_the_asker_made_it(desk: Desk, person: Person) -> None:
    """A schema tells only the defaults: values that the asker has put in are not for the person to overwrite."""
    asked = await desk.ask(
        form_of(
            {"name": "hidden", "hidden": True, "rule": {"required": True}},
            {"name": "locked", "label": "Locked", "locked": True, "default": "d", "rule": {"minimum": 3}},
            {"name": "free", "label": "Free"},
            {"control": "select", "name": "gone", "label": "Gone", "default": "a", "open": True, "choices": []},
        ),
        values={"hidden": "h", "locked": "put in"},
    )
    process = await desk.sits_down(person, "attach", "ops")
    await person.answers("? Free", "f\r")
    await person.answers("? Gone", "\r")
    assert await asked.answer() == {"hidden": "h", "locked": "put in", "free": "f", "gone": "a"}
    person.types("q")
    await ended(process)


async def test_a_password_is_shown_to_nobody(desk: Desk, person: Person) -> None:
    asked = await desk.ask(
        form_of({"control": "password", "name": "p", "label": "Secret", "rule": {"minimum": 7}}, {"name": "t"})
    )
    process = await desk.sits_down(person, "attach", "ops")
    await person.answers("? Secret", "hunter\r")
    await person.answers("? t", "ok\r")
    await person.answers("? Secret", "hunter2\r")
    assert await asked.answer() == {"p": "hunter2", "t": "ok"}
    await person.answers("Answered.", "q")
    assert await ended(process) == 0
    assert "hunter" not in person.raw


async def test_what_is_long_is_printed_in_full_and_leaves_the_prompt_usable(desk: Desk, person: Person) -> None:
    long = "long " * 10_000
    choices = [{"value": "a", "label": f"Apple {long}", "help": long}, {"value": "b", "label": "Pear"}]
    asked = await desk.ask(
        form_of(
            {"name": "t", "label": f"Text {long}", "default": long},
            {"control": "editor", "name": "e", "label": f"Editor {long}"},
            {"control": "select", "name": "s", "label": f"Select {long}", "choices": choices},
        )
    )
    process = await desk.sits_down(person, "attach", "ops")
    for question, keys in [("? Text", "\r"), ("? Editor", "x\x04"), ("? Select", "\r")]:
        await person.answers(question, keys)
    assert await asked.answer() == {"t": long, "e": "x", "s": "a"}
    await person.answers("Answered.", "q")
    assert await ended(process) == 0
    printed = person.text.replace("\n", "")
    assert all(f"{name} {long.strip()}" in printed for name in ("Text", "Editor", "Select", "Apple"))
    assert len(printed) < 6 * len(long)


async def test_a_line_of_a_command_is_not_read_as_part_of_a_comment(desk: Desk, person: Person) -> None:
    command = "echo safe # list files\nsleep 987 &"
    call = Invocation(call_id="1", name="bash", arguments={"command": command})
    request = ApprovalRequest(id="1", call=call, card=Card("bash", command))
    await desk.ask(approval_form(request) | {"label": "One\nother"})
    process = await desk.sits_down(person, "attach", "ops")
    shown = (await person.sees("? Allow it")).splitlines()
    assert {"One\\nother", "echo safe # list files", "sleep 987 &"} <= {line.strip() for line in shown}
    person.types("\x03")
    await ended(process)


async def test_a_lost_connection_keeps_the_form_and_the_answer(desk: Desk, person: Person) -> None:
    asked = await desk.ask(NAME)
    process = await desk.sits_down(person, "attach", "ops")
    await person.sees("? Name")
    await desk.stop_listening()
    await person.answers("", "Ada\r")
    await person.sees("There is no connection now")
    await desk.listen()
    assert await asked.answer() == {"name": "Ada"}
    await person.answers("Answered.", "q")
    assert await ended(process) == 0


@pytest.mark.case("reports/forms", 3)
async def test_ctrl_c_while_the_answer_is_under_way_says_that_nobody_knows(
    desk: Desk, person: Person, cooked: list[Any]
) -> None:
    await desk.ask(NAME)
    process = await desk.sits_down(person, "attach", "ops")
    await person.sees("? Name")
    await desk.stop_listening()
    person.types("Ada\r")
    await person.answers("There is no connection now", "\x03")
    await person.sees("may have arrived or not")
    assert await ended(process) == 130
    assert "Traceback" not in person.rest()
    assert person.mode == cooked
    await desk.listen()
    assert len(desk.pending()) == 1


async def test_without_the_extra_it_says_how_to_install_it_and_lines_need_none(
    desk: Desk, person: Person, tmp_path: Path
) -> None:
    (tmp_path / "questionary.py").write_text("raise ModuleNotFoundError(name='questionary')")
    process = await desk.sits_down(person, "attach", "ops", PYTHONPATH=str(tmp_path))
    assert await ended(process) == 1
    assert "pip install questionary" in person.rest()
    assert (await desk.pipes("", "attach", "ops", PYTHONPATH=str(tmp_path))).returncode == 0


async def test_prompts_are_shown_on_standard_error_if_the_output_goes_elsewhere(desk: Desk, person: Person) -> None:
    asked = await desk.ask(AGREE)
    process = await trio.lowlevel.open_process(
        ["sh", "-c", f"exec '{desk.greenroom}' attach ops > /dev/null"],
        stdin=person.slave,
        stdout=person.slave,
        stderr=person.slave,
        env={**os.environ, "GREENROOM_URL": desk.url},
    )
    await person.answers("Agree? (y/N)", "y")
    assert await asked.answer() == {"agree": True}
    await person.answers("Answered.", "q")
    assert await ended(process) == 0


async def test_a_terminal_that_shows_nothing_is_refused(desk: Desk, person: Person) -> None:
    process = await trio.lowlevel.open_process(
        ["sh", "-c", f"exec '{desk.greenroom}' attach ops > /dev/null 2> /dev/null"], stdin=person.slave
    )
    assert await ended(process) == 1


async def test_a_closed_input_is_refused_in_a_sentence(desk: Desk) -> None:
    done = await trio.run_process(
        ["sh", "-c", f"exec '{desk.greenroom}' attach ops <&-"], capture_stderr=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith(b"CONSOLE  There is nothing to read answers from")


# -------------------------------------------------------------------- piped


async def test_piped_lines_answer_what_waits_and_the_end_of_the_input_leaves(desk: Desk) -> None:
    first, second = await desk.ask(NAME), await desk.ask(AGREE)
    done = await desk.pipes("\nAda\ny\n", "attach", "ops")
    assert done.returncode == 0, done
    assert await first.answer() == {"name": "Ada"}
    assert await second.answer() == {"agree": True}
    assert done.stdout.decode().splitlines() == [
        "Attached to ops. What you do not answer stays; leave with Ctrl-C.",
        "",
        "Who",
        "asked by planner",
        "Name",
        "Name: Answer this question.",
        "Name",
        "Answered.",
        "",
        "Terms",
        "asked by planner",
        "Read them.",
        "Agree? (y/n) [no]",
        "Answered.",
    ]


async def test_the_form_of_the_readme_is_answered_from_lines(desk: Desk) -> None:
    asked = await desk.ask(json.loads((ROOT / "examples" / "release-review.json").read_text()))
    done = await desk.pipes("y\nRead every change.\nTried it, too.\n.\n1\n25\n\n1,3\n", "attach", "ops")
    assert done.returncode == 0, done
    assert await asked.answer() == {
        "publish": True,
        "reason": "Read every change.\nTried it, too.",
        "channel": "stable",
        "share": 25,
        "notify": ["users", "support"],
    }
    assert "Why? (lines, then one with a single .)" in done.stdout.decode().splitlines()


@pytest.mark.parametrize("text", ["", "y", "y\nNot every change"])
async def test_a_form_whose_input_ends_in_the_middle_stays(desk: Desk, text: str) -> None:
    """A confirmation that must be given is not given by an input that ends, and neither is anything else."""
    agree = {"control": "confirm", "rule": {"required": True}}
    await desk.ask(form_of({**agree, "name": "a"}, {"control": "editor", "name": "e"}, {**agree, "name": "b"}))
    done = await desk.pipes(text, "attach", "ops")
    assert done.returncode == 1
    assert done.stdout.decode().endswith("The input has ended before this form was answered; it still waits.\n")
    assert len(desk.pending()) == 1


async def test_the_end_of_the_input_is_no_answer(desk: Desk) -> None:
    """Every field would take a blank: nobody has said so."""
    first, second = await desk.ask(AGREE), await desk.ask(AGREE)
    done = await desk.pipes("y\n", "attach", "ops")
    assert done.returncode == 1
    assert "The input has ended" in done.stdout.decode()
    assert await first.answer() == {"agree": True}
    assert second.values is None
    assert len(desk.pending()) == 1


async def test_a_form_that_cannot_be_answered_from_the_input_is_left(desk: Desk) -> None:
    await desk.ask(form_of({"control": "number", "rule": {"required": True}}))
    done = await desk.pipes("many\n", "attach", "ops")
    assert done.returncode == 1
    assert "it still waits" in done.stdout.decode()
    assert len(desk.pending()) == 1


async def test_a_default_that_is_taken_away_is_not_sent(desk: Desk) -> None:
    choices = [{"value": "a", "label": "A"}, {"value": "b", "label": "B"}]
    asked = await desk.ask(form_of({"control": "select", "choices": choices, "default": "a"}))
    assert (await desk.pipes("none\n", "attach", "ops")).returncode == 0
    assert await asked.answer() == {}


async def test_wrong_choices_are_refused_by_name_and_the_form_still_waits(desk: Desk) -> None:
    choices = [{"value": "a", "label": "A"}, {"value": "b", "label": "B"}]
    await desk.ask(
        form_of(
            {"control": "checkbox", "name": "notify", "choices": choices},
            {"control": "select", "name": "s", "choices": choices},
        )
    )
    done = await desk.pipes("users,support\n2 bananas\n", "attach", "ops")
    assert done.returncode == 1
    told = done.stdout.decode()
    assert "notify: Choose any of what is on offer" in told
    assert "s: Enter one that is on offer." in told
    assert len(desk.pending()) == 1


async def test_once_ends_when_nothing_waits_though_lines_are_left(desk: Desk) -> None:
    first, second = await desk.ask(NAME), await desk.ask(AGREE)
    done = await desk.pipes("Ada\ny\nmore\n", "attach", "ops", "--once")
    assert done.returncode == 0
    assert await first.answer() == {"name": "Ada"}
    assert await second.answer() == {"agree": True}


async def test_a_pipe_that_stays_open_waits_for_forms_and_is_withdrawn_from(desk: Desk) -> None:
    process = await trio.lowlevel.open_process(
        [desk.greenroom, "attach", "ops"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "GREENROOM_URL": desk.url},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    out = Output(process.stdout)
    await out.sees("Attached")
    asked = await desk.ask(NAME)
    await out.sees("Name\n")
    asked.scope.cancel()
    await out.sees("It was withdrawn")
    asked = await desk.ask(AGREE)
    await out.sees("Agree?")
    await process.stdin.send_all(b"yes\n")
    assert await asked.answer() == {"agree": True}
    await out.sees("Answered.")
    await process.stdin.aclose()
    assert await ended(process) == 0
    await process.stdout.aclose()


async def test_an_unknown_terminal_is_refused_with_those_there_are(desk: Desk) -> None:
    done = await desk.pipes("", "attach", "nobody")
    assert done.returncode == 1
    assert b"ops" in done.stderr
