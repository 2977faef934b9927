"""`greenroom tree --watch`, at a terminal and without one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any, NamedTuple

import pytest
import trio

from tests.console.desk import Desk, Output, ended
from tests.console.person import Person
from tests.console.piping import form_of

FORM = form_of({})


@pytest.mark.parametrize(("keys", "code"), [("\x03", 130), ("xq", 0)])
async def test_the_tree_is_drawn_again_as_it_changes(
    desk: Desk, person: Person, cooked: list[Any], keys: str, code: int
) -> None:
    process = await desk.sits_down(person, "tree", "--watch")
    await person.sees("ops  terminal")
    asked = await desk.ask(FORM)
    await person.sees("planner waits for ops")
    asked.scope.cancel()
    desk.runtime.terminals.add("\x1b[31mred\x1b[0m")
    await person.sees("red  terminal")
    person.types(keys)
    assert await ended(process) == code
    assert "Traceback" not in person.rest()
    assert person.mode == cooked
    assert person.raw.rfind("\x1b[?25h") > person.raw.rfind("\x1b[?25l")
    assert "\x1b[31mred" not in person.raw


async def test_sigterm_gives_the_terminal_back(desk: Desk, person: Person, cooked: list[Any]) -> None:
    process = await desk.sits_down(person, "tree", "--watch")
    await person.sees("ops  terminal")
    process.send_signal(signal.SIGTERM)
    assert await ended(process) == 143
    person.rest()
    assert person.mode == cooked
    assert person.raw.rfind("\x1b[?25h") > person.raw.rfind("\x1b[?25l")


async def test_without_a_terminal_each_change_is_printed_once(desk: Desk) -> None:
    process = await watching(desk)
    out = Output(process.stdout)
    assert (await out.sees("ops  terminal")).startswith("/  root")
    await desk.ask(FORM)
    assert (await out.sees("planner waits for ops")).count("ops  terminal") == 1
    await leave(process)


async def test_json_is_an_object_a_line(desk: Desk) -> None:
    process = await watching(desk, "--json")
    out = Output(process.stdout)
    assert json.loads(await out.sees("\n"))["root"]["path"] == "/"
    await desk.ask(FORM)
    (wait,) = json.loads(await out.sees("\n"))["waits"]
    assert wait["to"] == "ops"
    await leave(process)


class Watching(NamedTuple):
    process: trio.Process
    stdout: trio.abc.ReceiveStream


async def watching(desk: Desk, *words: str) -> Watching:
    """Watch the tree without a terminal."""
    process = await trio.lowlevel.open_process(
        [desk.greenroom, "tree", "--watch", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={**os.environ, "GREENROOM_URL": desk.url, "NO_COLOR": "1"},
    )
    assert process.stdout is not None
    return Watching(process, process.stdout)


async def leave(watching: Watching) -> None:
    watching.process.send_signal(signal.SIGINT)
    assert await ended(watching.process) == 130
    await watching.stdout.aclose()
