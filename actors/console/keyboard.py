"""A terminal between two forms: nothing is asked, so nothing that is typed may be taken for an answer."""

from __future__ import annotations

import codecs
import os
import termios
from contextlib import suppress
from typing import Final, final

import trio

from greenroom.actors.console.keys import Key, parse_key, split_keys
from greenroom.protocol.errors import TerminalError

__all__ = ["Keyboard", "cancelled"]

_LOCAL_MODES: Final = 3
"""Where `tcgetattr` has the local modes."""


def cancelled(how: str) -> TerminalError:
    """What it comes to when the person leaves."""
    return TerminalError("CANCEL", f"{how}; a form that was not answered still waits.")


@final
class Keyboard:
    """Reads keys one by one, unseen, and for as long as somebody waits for them only."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def wait_left(self) -> None:
        """Wait, without a deadline, for q, Ctrl-D or a hang-up; every other key is swallowed.

        Raises TerminalError CANCEL for Ctrl-C. However it ends, the terminal is in the mode in which it was before.
        """
        try:
            before = termios.tcgetattr(self._fd)
        except termios.error:  # it has hung up
            await trio.lowlevel.checkpoint()
            return
        try:
            self._hide()
            await self._read_until_left()
        finally:
            with suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSANOW, before)

    def discard(self) -> None:
        """Drop what was typed and not read yet."""
        with suppress(termios.error):
            termios.tcflush(self._fd, termios.TCIFLUSH)

    def _hide(self) -> None:
        mode = termios.tcgetattr(self._fd)
        # Without ISIG, Ctrl-C arrives as a key, as it does in a prompt.
        mode[_LOCAL_MODES] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
        termios.tcsetattr(self._fd, termios.TCSANOW, mode)

    async def _read_until_left(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            await trio.lowlevel.wait_readable(self._fd)
            data = os.read(self._fd, 1024)
            if not data:  # it has hung up
                return
            for key in map(parse_key, split_keys(decoder.decode(data))):
                if _is_control(key, "c"):
                    raise cancelled("Left with Ctrl-C")
                if key.name == "q" or _is_control(key, "d"):
                    return


def _is_control(key: Key, letter: str) -> bool:
    return key.ctrl and key.name == letter
