"""The guard of a command: a process of its own that ends the command if whoever started it is killed.

A killed program can end nothing any more. The guard holds one end of a pipe, and the program the other one alone: when
that closes without a word the program is gone, and the guard kills the command and all that bears its mark.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from typing import Final, final

import trio

from greenroom.actors.process.family import MARK

__all__ = ["Guard"]

_SCRIPT: Final = """\
leader=
while read -r word; do
    [ "$word" = over ] && exit 0
    leader=$word
done
for round in 1 2 3; do
    [ -n "$leader" ] && kill -KILL "-$leader"
    for file in $(grep -lsF -- "$1" /proc/[0-9]*/environ); do
        number=${file#/proc/}
        kill -KILL "${number%/environ}"
    done
done
"""
"""Three rounds, for what was just being started by what was just being killed."""

_PATIENCE: Final = 1.0
"""Seconds for it to leave when it is told to."""


@final
class Guard:
    """Made by `Guard.begin`, before the command is started; ended by `end`, after the command."""

    def __init__(self, process: trio.Process, pipe: int) -> None:
        self._process = process
        self._pipe = pipe

    @classmethod
    async def begin(cls, mark: str) -> Guard:
        """Start one for the command with this mark. Raises OSError. Cancelled: none was started."""
        reading, writing = os.pipe()
        try:
            process = await trio.lowlevel.open_process(
                ["/bin/sh", "-c", _SCRIPT, "guard", f"{MARK}={mark}"],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={"PATH": os.defpath},
                cwd="/",
            )
        except BaseException:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        return cls(process, writing)

    def watch(self, leader: int) -> None:
        """Tell it the command's process."""
        self._tell(str(leader))

    async def end(self) -> None:
        """Tell it that the command is over, and wait until it is gone too. A cancelled caller waits as well."""
        self._tell("over")
        os.close(self._pipe)
        with trio.CancelScope(shield=True):
            with trio.move_on_after(_PATIENCE):
                await self._process.wait()
                return
            self._process.kill()
            await self._process.wait()

    def _tell(self, word: str) -> None:
        with suppress(BrokenPipeError):  # somebody has killed it
            os.write(self._pipe, f"{word}\n".encode())
