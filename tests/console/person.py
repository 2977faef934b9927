"""Somebody at a pseudo-terminal: sees what is printed there, and types."""

from __future__ import annotations

import codecs
import fcntl
import os
import re
import select
import struct
import termios
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, TextIO

import trio

__all__ = ["PATIENCE", "Person", "opened", "seated"]

PATIENCE: Final = 30.0
"""Seconds within which whatever a test waits for has happened; a machine under load is slow."""

_ESCAPES: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]")


class Person:
    """The eyes and the keyboard at a terminal of 100 columns and 40 rows.

    They look at it all the time, in a thread of their own: who prints to a terminal at which nobody looks is stopped.
    """

    def __init__(self, master: int, slave: int) -> None:
        self._master = master
        self._lock = threading.Lock()
        self._left = threading.Event()
        self._seen = 0
        self._marks = 1000
        self._more = trio.Event()
        self._told: trio.lowlevel.TrioToken | None = None
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.slave = slave
        """The terminal, for a process to be started at."""
        self.raw = ""
        """All that was sent to the screen so far."""

    @property
    def mode(self) -> list[Any]:
        """The terminal's attributes, as `termios` has them."""
        return termios.tcgetattr(self.slave)

    @property
    def text(self) -> str:
        """All that was printed so far, without what moves the cursor and sets colors."""
        return _ESCAPES.sub("", self.raw).replace("\r", "")

    def types(self, keys: str) -> None:
        """Press these keys, all at once."""
        os.write(self._master, keys.encode())

    def hangs_up(self) -> None:
        """Close the window; nothing can be seen or typed after that."""
        with self._lock:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, self._master)
            os.close(null)
        self._left.set()

    async def sees(self, *texts: str) -> str:
        """Wait for the texts, one after the other; everything that was printed from the last such wait on."""
        self._told = trio.lowlevel.current_trio_token()
        start = self._seen
        with trio.move_on_after(PATIENCE):
            for text in texts:
                while (found := self.text.find(text, self._seen)) < 0:
                    await self._more.wait()
                self._seen = found + len(text)
            return self.text[start : self._seen]
        raise AssertionError(f"waited in vain for {texts!r}; what was seen is {self.text[start:]!r}")

    async def answers(self, question: str, keys: str) -> None:
        """Wait for a question, then type."""
        await self.sees(question)
        self.types(keys)

    def rest(self) -> str:
        """Everything that has been printed from the last wait on.

        What is printed last is on its way for a moment; a mark that is sent after it is seen after it.
        """
        self._marks += 1
        mark = f"\x1b[{self._marks}~"  # no key, nothing that a program prints, and no text
        with suppress(OSError):  # a terminal that was hung up shows nothing more
            os.write(self.slave, mark.encode())
            until = time.monotonic() + PATIENCE
            while mark not in self.raw and not self._left.is_set():
                assert time.monotonic() < until, "the terminal shows nothing more"
                self._look(0.1)
        start, self._seen = self._seen, len(self.text)
        return self.text[start:]

    def watch(self) -> None:
        """Keep looking until the window is closed. Called in the thread."""
        while not self._left.is_set():
            if self._look(0.1) and self._told is not None:
                with suppress(trio.RunFinishedError):
                    self._told.run_sync_soon(self._tell)

    def leave(self) -> None:
        self._left.set()

    def _look(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        with self._lock:
            if self._left.is_set() or not select.select([self._master], [], [], 0)[0]:
                return False
            self.raw += self._decode(os.read(self._master, 65_536))
        return True

    def _tell(self) -> None:
        self._more.set()
        self._more = trio.Event()


@contextmanager
def seated() -> Generator[Person]:
    """Somebody at a terminal that is closed in the end."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    person = Person(master, slave)
    eyes = threading.Thread(target=person.watch)
    eyes.start()
    try:
        yield person
    finally:
        person.leave()
        eyes.join()
        os.close(master)
        os.close(slave)


@contextmanager
def opened(fd: int) -> Generator[tuple[TextIO, TextIO]]:
    """The terminal as a program has it: standard input and output."""
    with open(fd, closefd=False) as stdin:
        stdout = open(fd, "w", closefd=False)  # noqa: SIM115 - closed below, where a terminal may have hung up
        try:
            yield stdin, stdout
        finally:
            with suppress(OSError):
                stdout.close()
