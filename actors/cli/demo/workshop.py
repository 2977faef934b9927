"""Where the demo's workflow runs: a folder of its own, and a process that may be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, final

import trio

__all__ = ["RUN", "Workshop"]

RUN: Final = "release-4.2"
"""The id of the run."""


@final
class Workshop:
    """A folder with the example's workflow, its record and its diary, and the process that runs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "release.db"
        self.diary = folder / "diary.txt"
        """A line for each step that is carried out, written by the step itself."""
        self.process: trio.Process | None = None
        self.form = ""
        """The id of the form that the reviewer was asked when the process was killed."""

    async def start(self, words: Sequence[str]) -> trio.Process:
        """Start `greenroom` with these words, on the record; its folder is the current one there."""
        where = ("--data", str(self.data), "--functions", "release_workflow", "--terminal", "reviewer", "--port", "0")
        command = [sys.executable, "-c", "from greenroom_command import main; main()", *words, *where]
        self.process = await trio.lowlevel.open_process(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env={**os.environ, "RELEASE_DIARY": str(self.diary), "NO_COLOR": "1"},
        )
        return self.process

    async def steps(self) -> Counter[str]:
        """How often each step was carried out."""
        lines = (await trio.Path(self.diary).read_text("utf-8")).splitlines()
        return Counter(line.partition(",")[0].removeprefix(f"{RUN}/") for line in lines)

    async def close(self) -> None:
        """Leave no process behind."""
        if self.process is not None:
            self.process.kill()
            with trio.CancelScope(shield=True):
                await self.process.wait()
