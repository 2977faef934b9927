"""Kills a process that writes a journal, at any moment, and looks at what it left.

`python -m tests.journal.kill_run N [SEED]` does so N times. The suite does it `SUITE` times.
"""

from __future__ import annotations

import os
import random
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import trio

from greenroom.runtime.journal import Event, Journal
from tests.journal.killed import CUT, LEDGER, PAIRED, PLAIN
from tests.journal.stage import opened
from tests.stress.outcome import Failure, Outcome

__all__ = ["LIVES", "LONGEST", "SUITE", "Writers", "kill", "run", "writers"]

SUITE = 20

LIVES = 6
"""How often one file is opened again, at most, before a new one is begun."""
LONGEST = 0.25
"""Seconds that a writer lives, at most; half of them live a tenth of that, so that many are killed while they open."""
PATIENCE = 60.0
"""Seconds within which a process begins or dies, the first of them with all that it imports on a busy machine."""

_ROOT = Path(__file__).resolve().parents[2]


class Record:
    """What writers said of one file, over all their lives."""

    def __init__(self) -> None:
        self.events: dict[tuple[str, int], str] = {}
        """The token of every event that was acknowledged."""
        self.gone: set[str] = set()
        """Streams whose pruning was acknowledged."""
        self.cutting = 0
        """The highest cut that was begun."""
        self.kept = 0
        """The highest one that was acknowledged."""

    def hear(self, line: str) -> None:
        """Take note of one line."""
        match line.split():
            case ["event", stream, number, token]:
                told = self.events.setdefault((stream, int(number)), token)
                assert told == token, f"{stream} {number} was given twice"
            case ["gone", stream]:
                self.gone.add(stream)
            case ["cutting", _, number]:
                self.cutting = max(self.cutting, int(number))
            case ["kept", _, number]:
                self.kept = max(self.kept, int(number))
            case ["open"]:
                pass
            case _:
                raise AssertionError(f"a writer said {line!r}")

    async def check(self, path: Path) -> None:
        """Open the file as the next process does, and compare. Raises AssertionError."""
        async with opened(path, LEDGER) as journal:
            found = {stream: await _all(journal, stream) for stream in (*PAIRED, *PLAIN, CUT)}
            for stream, events in found.items():
                numbers = [event.seq for event in events]
                first = numbers[0] if numbers else 0
                assert numbers == list(range(first, first + len(numbers))), f"{stream} has gaps"
                assert stream == CUT or first == 0, f"{stream} begins with {first}"
            tokens = {(e.stream, e.seq): e.payload.decode().strip() for events in found.values() for e in events}
            for (stream, number), token in self.events.items():
                if stream != CUT or number >= self.cutting:
                    assert tokens.get((stream, number)) == token, f"{stream} {number} was acknowledged as {token}"
            ledger = dict(await journal.select("SELECT stream, count FROM ledger"))
            assert ledger == {stream: len(found[stream]) for stream in PAIRED if found[stream]}, (
                "a unit is there by half"
            )
            streams = {info.name: info for info in await journal.streams(limit=100_000)}
            assert not self.gone & streams.keys(), "a stream that was pruned is back"
            if CUT in streams:
                assert self.kept <= streams[CUT].first <= max(self.cutting, 0), "a cut that nobody asked for"
            for name, info in streams.items():
                assert name.startswith("brief/") == (info.ended is not None), f"{name} ended at {info.ended}"
                assert info.ended is None or info.last == 2, f"{name} is there by half"


async def _all(journal: Journal, stream: str) -> list[Event]:
    events = await journal.read(stream)
    while events and (more := await journal.read(stream, after=events[-1].seq)):
        events += more
    return events


class Writers:
    """The process that forks writers, and its output line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input = process.stdin
        self._output = process.stdout.fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)
        self._lines: deque[str] = deque()
        self._rest = b""

    def live_and_die(self, seed: int, path: Path, seconds: float) -> list[str]:
        """Let one writer live so long, kill it, and return all that it said. It may kill itself before; it says
        `dying` then."""
        self._input.write(f"{seed} {path}\n".encode())
        self._input.flush()
        began = self._next(PATIENCE)
        assert began is not None, "there is no writer"
        assert began.startswith("writer "), began
        said: list[str] = []
        end = time.monotonic() + seconds
        while (line := self._next(end - time.monotonic())) is not None:
            if line == "dead" and any(each.startswith("dying ") for each in said):
                return said
            assert line != "dead", "the writer ended by itself; what it raised is on the standard error"
            said.append(line)
        with suppress(ProcessLookupError):  # it may be dying by itself
            os.kill(int(began.split()[1]), signal.SIGKILL)
        while (line := self._next(PATIENCE)) != "dead":
            assert line is not None, "the killed writer does not die"
            said.append(line)
        return said

    def _next(self, seconds: float) -> str | None:
        """The next line, or None if there is none within so many seconds."""
        while not self._lines:
            if not self._selector.select(max(seconds, 0)):
                return None
            data = os.read(self._output, 2**16)
            assert data, "the writers' process has ended"
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._lines.extend(line.decode() for line in lines)
        return self._lines.popleft()


@contextmanager
def writers(module: str = "tests.journal.killed") -> Generator[Writers, None, None]:
    """The writers' process, which is that module, for the length of a block."""
    command = [sys.executable, "-m", module]
    with subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield Writers(process)
        finally:
            process.kill()


def kill(examples: int, seed: int) -> tuple[list[Failure], Counter[str]]:
    """Kill so many writers: what was wrong after which, and how often the writers said what.

    After one that left something wrong the next one begins a new file. A writer that was killed before its file was
    open is counted as `early`.
    """
    random_ = random.Random(seed)
    failures: list[Failure] = []
    heard: Counter[str] = Counter()
    with writers() as alive, tempfile.TemporaryDirectory() as folder:
        path, record, left = Path(folder, "0.db"), Record(), LIVES
        for number in range(examples):
            seconds = random_.random() * LONGEST * random_.choice((0.1, 1.0))
            try:
                said = alive.live_and_die(random_.randrange(2**32), path, seconds)
                heard.update([line.split()[0] for line in said] or ["early"])
                for line in said:
                    record.hear(line)
                trio.run(record.check, path)
            except Exception as wrong:
                steps = f"kill {number}, of {path.name}, after {seconds:.4f} s: {type(wrong).__name__}: {wrong}"
                failures.append(Failure(seed, steps))
                left = 1
            left -= 1
            if not left:
                for file in Path(folder).glob(f"{path.name}*"):
                    file.unlink()
                path, record, left = Path(folder, f"{number + 1}.db"), Record(), random_.randint(1, LIVES)
    return failures, heard


def run(examples: int, seed: int) -> Outcome:
    """Kill so many writers; see `tests.stress`."""
    return Outcome(examples, kill(examples, seed)[0])


def main(arguments: list[str]) -> int:
    """Run the command with these arguments and return its exit code."""
    examples = int(arguments[0])
    seed = int(arguments[1]) if arguments[1:] else random.SystemRandom().randrange(2**32)
    failures, heard = kill(examples, seed)
    for failure in failures:
        print(f"failed, seed {failure.seed}: {failure.steps}")
    print(", ".join(f"{count} {word}" for word, count in heard.most_common()))
    print(f"journal kills: {examples} examples, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
