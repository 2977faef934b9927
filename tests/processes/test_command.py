"""Commands as they end: by themselves, by their time, by a person, by cancellation, and with whoever started them."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import trio

from greenroom.actors.process import run_command, scrubbed
from greenroom.actors.process.capture import Capture
from greenroom.protocol.errors import ProcessError
from greenroom.protocol.processes import CommandResult
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.policies import LocalSpill
from tests.cancelling import Doomed, at_every_step
from tests.processes.looking import children, descriptors, files, lives, named, wait_gone

ENV = scrubbed(os.environ)


async def shell(script: str, **options: Any) -> CommandResult:
    return await run_command(["/bin/bash", "-c", script], env=ENV, grace=0.2, **options)


def numbers(result: CommandResult) -> list[int]:
    """The process numbers that a command has printed."""
    return [int(word) for word in result.stdout.text.split()]


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = children(), descriptors()
    yield
    assert children() == before[0], "a process is left, or was not reaped"
    assert descriptors() <= before[1] + 1, "a descriptor is left"


async def test_a_command_tells_its_exit_code_and_both_streams_and_finds_nothing_to_read() -> None:
    result = await shell("cat; echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.signal, result.timed_out, result.aborted) == (3, None, False, False)
    assert (result.stdout.text, result.stderr.text) == ("out\n", "err\n")


async def test_its_time_ends_a_command() -> None:
    result = await shell("echo $$; exec sleep 60", timeout=0.2)
    assert (result.exit_code, result.signal, result.timed_out, result.timeout_ms) == (None, "SIGTERM", True, 200)
    assert not any(map(lives, numbers(result)))


async def test_a_command_that_is_told_to_end_may_still_exit_with_a_code_of_its_own() -> None:
    result = await shell("trap 'exit 7' TERM; sleep 60 & wait", timeout=0.2)
    assert (result.exit_code, result.signal, result.timed_out, result.aborted) == (7, None, True, False)


async def test_whoever_ignores_the_first_signal_is_killed_after_the_grace() -> None:
    began = trio.current_time()
    result = await shell("trap '' TERM; echo $$; sleep 60; sleep 60", timeout=0.1)
    assert trio.current_time() - began >= 0.3
    assert (result.exit_code, result.signal, result.timed_out) == (None, "SIGKILL", True)
    assert not any(map(lives, numbers(result)))


async def test_an_aborted_command_says_so_and_keeps_what_it_had_written() -> None:
    abort = Cancel()
    result = await shell("echo begun; exec sleep 60", abort=abort, heard=lambda text: abort.set("enough"))
    assert (result.signal, result.timed_out, result.aborted) == ("SIGTERM", False, True)
    assert result.stdout.text == "begun\n"


MINE = f"sleep 60.{os.getpid()}"
"""What only these tests run."""


@pytest.mark.parametrize("daemon", ["", "setsid", "setsid setsid sh -c 'trap \"\" TERM; $0 $@; $0 $@'", "env -i"])
async def test_what_a_command_has_left_behind_is_ended_with_it(daemon: str) -> None:
    result = await shell(f"{daemon} {MINE} & until ps -e -o args= | grep '^{MINE}'; do :; done; exit 0")
    assert (result.exit_code, result.stdout.text) == (0, f"{MINE}\n")
    assert named(MINE) == []


@pytest.mark.parametrize("shell_", ["sh", "setsid sh", "env -i setsid /bin/sh"])
async def test_what_begins_while_the_rest_is_being_ended_is_ended_too(shell_: str) -> None:
    result = await shell(f"{shell_} -c '{MINE}; {MINE}; {MINE}' & wait", timeout=0.1)
    assert result.timed_out
    assert named(MINE) == []


async def test_whoever_starts_the_next_and_ends_is_caught_all_the_same(tmp_path: Path) -> None:
    hop = tmp_path / f"hop-{os.getpid()}"
    hop.write_text("#!/bin/sh\nsetsid $0 &\n")
    hop.chmod(0o700)
    for _ in range(5):
        result = await shell(f"{hop}; sleep 0.05; exit 5")
        assert result.exit_code == 5
        assert named(str(hop)) == []


async def test_a_command_may_close_its_output_and_go_on() -> None:
    result = await shell("exec >&-; sleep 0.1; echo still here >&2")
    assert (result.exit_code, result.stdout.text, result.stderr.text) == (0, "", "still here\n")


async def test_a_flood_is_shown_by_its_end() -> None:
    result = await shell("yes 0123456 | head -c 8000000; printf 'the end' >&2")
    assert result.stdout.text == "0123456\n" * 8_000
    assert (result.stdout.truncated, result.stdout.spill_path) == (True, None)
    assert (result.stderr.text, result.stderr.truncated) == ("the end", False)


async def test_what_is_too_much_for_a_file_is_in_none(tmp_path: Path) -> None:
    for size, kept in ((1_000_000, 1), (1_000_001, 0)):
        capture = Capture("stdout", spill=LocalSpill(tmp_path), owner="ada", inline=10, most=1_000_000)
        for start in range(0, size, 60_000):
            await capture.take(b"x" * min(60_000, size - start))
        output = await capture.finish()
        assert (output.text, output.truncated, output.spill_path is not None) == ("x" * 10, True, bool(kept))
        assert [file.stat().st_size for file in files(tmp_path)] == [size] * kept
        capture.discard()


async def test_what_is_not_shown_is_in_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    result = await shell("seq 100000", spill=LocalSpill(tmp_path), owner="ada")
    whole = "".join(f"{number}\n" for number in range(1, 100_001))
    (kept,) = files(tmp_path)
    assert result.stdout.spill_path == str(kept)
    assert kept.read_text("utf-8") == whole
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert result.stdout.text == whole[-64_000:]
    assert result.stdout.truncated


async def test_a_full_disk_costs_the_file_and_not_the_command(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = await shell("seq 100000", spill=LocalSpill(tmp_path / "file"), owner="ada")
    assert (result.exit_code, result.stdout.truncated, result.stdout.spill_path) == (0, True, None)


async def test_a_cut_within_a_character_shows_the_next_one() -> None:
    result = await shell("printf 'x'; yes 'ää' | tr -d '\\n' | head -c 80000")
    assert set(result.stdout.text) == {"ä"}
    assert result.stdout.text.endswith("ä")


async def test_output_is_heard_as_it_comes_and_no_character_is_cut() -> None:
    heard: list[str] = []
    result = await shell("printf '\\303'; sleep 0.05; printf '\\244'; printf '\\377'", heard=heard.append)
    assert "".join(heard) == result.stdout.text == "ä�"


@pytest.mark.parametrize(
    ("command", "options", "told"),
    [
        (["/nowhere/at-all"], {}, "No such file"),
        (["/bin/echo", "a\0b"], {}, "null"),
        (["/bin/echo", "\ud800"], {}, "surrogates"),
        (["/bin/echo"], {"cwd": "/nowhere/at-all"}, "/nowhere/at-all"),
        (["/bin/echo", "x" * 10_000_000], {}, "too long"),
    ],
)
async def test_what_cannot_be_started_is_refused_and_leaves_nothing(
    command: list[str], options: dict[str, Any], told: str
) -> None:
    with pytest.raises(ProcessError, match=told) as refusal:
        await run_command(command, env=ENV, **options)
    assert refusal.value.code == "SPAWN"


async def test_a_command_that_is_cancelled_at_any_moment_is_gone_before_its_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.cancelling.TRIES", 1)  # each of them starts five processes
    spill = LocalSpill(tmp_path)
    before = children()

    async def scenario(doomed: Doomed) -> None:
        ended = await doomed(lambda: shell(f"seq 20000; {MINE} & exit 0", spill=spill, owner="ada"))
        assert children() == before
        assert named(MINE) == []
        kept = files(tmp_path)
        if ended.cancelled:
            assert kept == []
        else:
            assert ended.value.exit_code == 0
            assert [str(path) for path in kept] == [ended.value.stdout.spill_path]
            kept[0].unlink()

    assert await at_every_step(scenario) > 10


LIVED = """
import os, trio
from greenroom.actors.process import run_command, scrubbed

script = "setsid sh -c 'echo $$; sleep 60' & echo $$; trap '' TERM; sleep 60; sleep 60"

async def main():
    await run_command(["/bin/bash", "-c", script], env=scrubbed(os.environ), heard=lambda text: print(text, flush=True))

trio.run(main)
"""


def test_a_command_does_not_outlive_a_greenroom_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", LIVED], stdout=subprocess.PIPE, text=True) as greenroom:
        assert greenroom.stdout is not None
        started = [int(line) for line in islice(filter(str.strip, greenroom.stdout), 2)]
        assert all(map(lives, started))
        greenroom.send_signal(signal.SIGKILL)
    assert wait_gone(*started)
