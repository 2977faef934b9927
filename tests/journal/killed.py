"""The process that is killed while it writes: `python -m tests.journal.killed`, in the project's root.

It imports everything once, and then forks a writer for every line `SEED PATH` of its input, so that a kill costs
milliseconds. A writer says in one line each what it begins and what was acknowledged to it. The line before its first
is `writer PID`, the one after its last, when it is dead, `dead`.

`obey` lets another module be such a process, with another life.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NoReturn

import trio

from greenroom.runtime.journal import Append, End, Journal, Outcome, Statement, Table
from tests.journal.stage import opened

__all__ = ["CUT", "LEDGER", "PAIRED", "PLAIN", "obey", "say"]

Life = Callable[[str, str], Awaitable[object]]
"""What a writer does with its seed and its path, until it is killed."""

PAIRED = ("paired/a", "paired/b")
"""Streams with a count in the ledger, in one unit with each event."""
PLAIN = ("plain/a", "plain/b")
CUT = "cut"
"""A stream whose oldest events are deleted now and then."""

LEDGER = Table("ledger", {"stream": str, "count": int}, "stream", not_null=["count"])
COUNT = 'INSERT INTO ledger VALUES (?, 1) ON CONFLICT ("stream") DO UPDATE SET "count" = "count" + 1'

WRITERS = 12
TURNS = 8
"""Units of a writer between an opening of the file and its closing."""


def say(*words: object) -> None:
    """One line, whole: it is shorter than what a pipe takes at once."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def write(journal: Journal, name: str) -> None:
    """Some units of every kind, each said once it is acknowledged."""
    random_ = random.Random(name)
    for turn in range(TURNS):
        token = f"{name}.{turn}"
        payload = token.encode() + b" " * random_.choice((1, 100, 9_000))
        match random_.choice(("paired", "paired", "plain", "posted", "cut", "brief")):
            case "paired":
                stream = random_.choice(PAIRED)
                number, _ = await journal.write(Append(stream, "said", payload), Statement(COUNT, (stream,)))
                say("event", stream, number, token)
            case "plain":
                stream = random_.choice(PLAIN)
                say("event", stream, await journal.append(stream, "said", payload), token)
            case "posted":
                stream = random_.choice(PLAIN)
                journal.post(Append(stream, "said", payload), done=partial(acknowledged, stream, token))
            case "cut":
                number = await journal.append(CUT, "said", payload)
                say("event", CUT, number, token)
                say("cutting", CUT, number - 5)
                say("kept", CUT, await journal.cut(CUT, before=number - 5))
            case _:
                stream = f"brief/{token}"
                await journal.write(*[Append(stream, "said", payload)] * 3, End(stream))
                for pruned in await journal.prune(older_than=-1000, streams=[stream]):
                    say("gone", pruned)


def acknowledged(stream: str, token: str, outcome: Outcome) -> None:
    assert isinstance(outcome, tuple), outcome
    say("event", stream, outcome[0], token)


async def live(seed: str, path: str) -> None:
    """Open, write, close, for ever."""
    life = 0
    while True:
        async with opened(path, LEDGER) as journal:
            say("open")
            async with trio.open_nursery() as nursery:
                for writer in range(WRITERS):
                    nursery.start_soon(write, journal, f"{seed}.{life}.{writer}")
        life += 1


def obey(life: Life) -> None:
    """Fork a writer for every line of the input."""
    for line in sys.stdin:
        fork(life, *line.rstrip("\n").split(" ", 1))


def fork(life: Life, seed: str, path: str) -> None:
    """A writer, until somebody kills it."""
    pid = os.fork()
    if pid == 0:
        become_writer(life, seed, path)
    os.waitpid(pid, 0)
    say("dead")


def become_writer(life: Life, seed: str, path: str) -> NoReturn:
    try:
        say("writer", os.getpid())
        trio.run(life, seed, path)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(1)


if __name__ == "__main__":
    obey(live)
