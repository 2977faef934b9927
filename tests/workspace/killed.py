"""`python -m tests.workspace.killed FOLDER`: saves again and again, and is killed at each step of it.

A process of its own forks a child for each step. The child saves and is killed (SIGKILL) right before the step: a step
is one call of a function that is written in C, so that every system call of a save is among them. Once a child has come
through, it prints how many were killed, and how many of those had left something for the next one to sweep away.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Final

from greenroom.actors.workspace import DirectoryWorkspace

BEFORE: Final = "before\r\n" * 1000
AFTER: Final = "after\n" * 2000


def main(folder: Path) -> None:
    """Kill a save at every step, and fail if the file is ever anything but one of both."""
    littered = 0
    for step in itertools.count():
        (folder / "sub").mkdir(exist_ok=True)
        (folder / "sub" / "old").write_bytes(BEFORE.encode())
        (folder / "new").unlink(missing_ok=True)
        child = os.fork()
        if not child:
            save(folder, step)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        found = (folder / "sub" / "old").read_bytes().decode()
        assert found in (BEFORE, AFTER), f"step {step} left {found[:50]!r} and {len(found) - 50} more"
        if (folder / "new").exists():
            assert (folder / "new").read_bytes() == AFTER.encode(), f"step {step} left a new file by half"
        if not os.WIFSIGNALED(status):
            assert os.waitstatus_to_exitcode(status) == 0
            assert found == AFTER
            print(step, littered)
            return
        littered += any(folder.rglob(".greenroom-*"))


def save(folder: Path, step: int) -> None:
    """Save over a file and into a new one; die before that step."""
    left = step

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal left
        if event == "c_call":
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    workspace = DirectoryWorkspace(folder)
    sys.setprofile(count)
    workspace.write("sub/old", AFTER)
    workspace.write("new", AFTER)
    sys.setprofile(None)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
