"""Kills a process in which people are being asked, workflows run, or an agent makes calls, at any moment, and looks at
what it left.

No acknowledged answer, event or result may be missing, no form shown that nobody waits for, and no ask left hanging; no
recorded task is executed again, no call runs twice, and its log says whether it may have run. Runs and agents are
killed between any two statements of a transaction as well.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Protocol

import trio

from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.terminal import DurableAsk, Notice
from greenroom.protocol.errors import FormError
from tests.clock import settle
from tests.durable.killed import OWNER, PLACES, form, key_of, place
from tests.journal.kill_run import LIVES, LONGEST, Writers, writers
from tests.sessions.afterlife import TurnsRecord
from tests.stress.outcome import Failure, Outcome
from tests.workflows.afterlife import RunsRecord

__all__ = ["SUITE", "run"]

SUITE = 20

RUNS_LONGEST = 3 * LONGEST
"""A run takes more steps than an ask."""


class Said(Protocol):
    """What the processes have said of one file, and whether the file bears it out."""

    def hear(self, line: str) -> None:
        """Take note of one line. Raises AssertionError for one that cannot be."""
        ...

    async def check(self, path: Path, last: bool) -> None:
        """Open the file as the next process does, and compare. Raises AssertionError."""
        ...


class Record:
    """Of asks. No key is used for another question."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.shown: dict[str, str] = {}
        """The id under which each key was shown."""
        self.tried: dict[str, set[str]] = {}
        """Every answer that was begun."""
        self.outcomes: dict[str, str] = {}
        """What was acknowledged to an answerer or an asker: a token, or the reason of an end."""
        self.releasing: set[str] = set()
        self.released: set[str] = set()

    def hear(self, line: str) -> None:
        """Take note of one line."""
        match line.split():
            case ["asking", key]:
                self.asked.add(key)
            case ["shown", id, key]:
                assert self.shown.setdefault(key, id) == id, f"{key} was shown under two ids"
            case ["answering", key, token]:
                self.tried.setdefault(key, set()).add(token)
            case ["got" | "answered" | "ended", key, outcome]:
                told = self.outcomes.setdefault(key, outcome)
                assert told == outcome, f"{key} ended twice: {told}, {outcome}"
            case ["releasing", key]:
                self.releasing.add(key)
            case ["released", key]:
                self.released.add(key)
            case _:
                raise AssertionError(f"it said {line!r}")

    async def check(self, path: Path, last: bool) -> None:
        """Open the file as the next process does, and compare. Raises AssertionError."""
        async with open_runtime(data=path, timeout=None) as runtime:
            for name in PLACES:
                runtime.terminals.add(name)
            await settle()
            assert runtime.terminals.durable is not None
            asks = {ask.key: ask for ask in runtime.terminals.durable.owned_by(OWNER)}
            for ask in asks.values():
                assert ask.key in self.asked, f"{ask.key} was never asked"
                assert ask.key not in self.released, f"{ask.key} is back after it was released"
                self._check_outcome(ask)
            for key in self.shown.keys() | self.outcomes.keys():
                assert key in asks or key in self.releasing, f"{key} was acknowledged, and is gone"
            pending = {str(record.schema.label): record.id for record in runtime.terminals.pending()}
            waiting = {ask.key: ask.id for ask in asks.values() if ask.status == "pending"}
            assert pending == waiting, "what is shown is not what is waited for"
            if last:
                await self._finish(runtime, list(asks))

    def _check_outcome(self, ask: DurableAsk) -> None:
        assert self.shown.get(ask.key, ask.id) == ask.id, f"{ask.key} has another id"
        outcome = ask.outcome["token"] if ask.status == "answered" else ask.outcome
        if (told := self.outcomes.get(ask.key)) is not None:
            assert outcome == told, f"{ask.key} was acknowledged as {told}, and is {ask.status}: {outcome}"
        if ask.status == "answered":
            assert outcome in self.tried[ask.key], f"{ask.key} has an answer that nobody gave"

    async def _finish(self, runtime: Runtime, keys: list[str]) -> None:
        """Every ask ends, once its form is answered."""

        def hear(notice: Notice) -> None:
            if notice.kind == "pending":
                nursery.start_soon(runtime.terminals.answer, notice.to, notice.id, {"token": key_of(notice)})

        async def ask(key: str) -> None:
            try:
                values = await runtime.ask(place(key), form(key), key=key, owner=OWNER)
            except FormError as error:
                outcome, possible = error.context["reason"], {"timeout"}
            else:
                outcome, possible = values["token"], self.tried.get(key, set()) | {key}
            assert outcome in possible, f"{key} ended as {outcome}"
            assert await runtime.terminals.release(key, owner=OWNER)

        with trio.move_on_after(5) as deadline:
            async with trio.open_nursery() as nursery:
                for name in PLACES:
                    runtime.terminals.subscribe(name, hear)
                for record in runtime.terminals.pending():
                    nursery.start_soon(
                        runtime.terminals.answer, str(record.to), record.id, {"token": str(record.schema.label)}
                    )
                for key in keys:
                    nursery.start_soon(ask, key)
        assert not deadline.cancelled_caught, "an ask is left hanging"
        assert not runtime.terminals.pending(), "a form is left of which everybody has let go"


def run(examples: int, seed: int) -> Outcome:
    """Kill so many processes; see `tests.stress`. After one that left something wrong the next begins a new file.

    Asks, runs and agents take turns, file by file.
    """
    random_ = random.Random(seed)
    failures: list[Failure] = []
    with (
        writers("tests.durable.killed") as asks,
        writers("tests.workflows.lives") as runs,
        writers("tests.sessions.lives") as turns,
        tempfile.TemporaryDirectory() as folder,
    ):
        kinds: Iterator[tuple[Writers, type[Said], float]] = cycle(
            [(asks, Record, LONGEST), (runs, RunsRecord, RUNS_LONGEST), (turns, TurnsRecord, RUNS_LONGEST)]
        )
        path, left = Path(folder, "0.db"), LIVES
        alive, begin, longest = next(kinds)
        record = begin()
        for number in range(examples):
            seconds = random_.random() * longest * random_.choice((0.1, 1.0))
            left -= 1
            try:
                for line in alive.live_and_die(random_.randrange(2**32), path, seconds):
                    record.hear(line)
                trio.run(record.check, path, not left)
            except Exception as wrong:
                steps = f"kill {number}, of {path.name}, after {seconds:.4f} s: {type(wrong).__name__}: {wrong}"
                failures.append(Failure(seed, steps))
                left = 0
            if not left:
                for file in Path(folder).glob(f"{path.name}*"):
                    file.unlink()
                path, left = Path(folder, f"{number + 1}.db"), random_.randint(1, LIVES)
                alive, begin, longest = next(kinds)
                record = begin()
    return Outcome(examples, failures)
