"""What there is of a command's processes, as the system tells it."""

from __future__ import annotations

import os
import time
from pathlib import Path

__all__ = ["children", "descriptors", "files", "lives", "named", "wait_gone"]


def lives(number: int) -> bool:
    """Whether there is a process of that number that runs."""
    try:
        with open(f"/proc/{number}/stat", "rb") as stat:
            return stat.read().rpartition(b") ")[2][:1] not in b"ZX"
    except OSError:
        return False


def children() -> set[int]:
    """The processes whose parent this one is, also those that ended and were not reaped."""
    found: set[int] = set()
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as told:
            found.update(map(int, told.read().split()))
    return found


def descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))


def named(text: str) -> list[int]:
    """The processes that run and have the text in their arguments."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            shown = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in shown and lives(int(entry.parent.name)):
            found.append(int(entry.parent.name))
    return found


def files(folder: Path) -> list[Path]:
    """Every file beneath it."""
    return [path for path in folder.rglob("*") if path.is_file()]


def wait_gone(*numbers: int, seconds: float = 10.0) -> bool:
    """Whether all of these processes end within that time."""
    end = time.monotonic() + seconds
    while any(map(lives, numbers)):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
