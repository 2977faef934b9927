"""Who may write a journal: one process at a time, and the others are told which."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import final

from greenroom.protocol.errors import JournalError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["Ownership"]

PATIENCE = 1.0
"""Seconds in which an owner that is ending, or one that has not yet written its number, becomes clear."""
PAUSE = 0.02


@final
class Ownership:
    """The right to write a journal, from construction to `release`; a killed process loses it at once.

    It is an operating system's lock on `<journal>-lock`, which holds the owner's process number as text. The lock is on
    a file of its own since closing any descriptor of the journal itself would drop the locks that SQLite has on it
    (https://www.sqlite.org/howtocorrupt.html, section 2.2). Blocks up to a second before it refuses.

    Raises JournalError OWNED (context `path`, `pid`) or OSError.
    """

    __slots__ = ("_descriptor", "_path")

    def __init__(self, journal: Path) -> None:
        self._path = Path(f"{journal}-lock")
        give_up = time.monotonic() + PATIENCE
        while (descriptor := self._take()) is None:
            owner = _recorded(self._path)
            if time.monotonic() > give_up or (owner is not None and _runs(owner)):
                raise _owned(journal, owner)
            time.sleep(PAUSE)  # in a worker thread
        self._descriptor = descriptor

    def _take(self) -> int | None:
        """A descriptor that holds the lock, with our number written; None: somebody else holds it."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not _locked(descriptor):
                os.close(descriptor)
                return None
            try:
                ours = os.path.samestat(os.fstat(descriptor), os.stat(self._path))
            except FileNotFoundError:
                ours = False
            if not ours:  # its last owner removed it between our opening and our locking: the lock is on nothing
                os.close(descriptor)
                return None
            os.truncate(descriptor, 0)
            os.write(descriptor, b"%d\n" % os.getpid())
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def release(self) -> None:
        """Let another process write. The lock's file is removed; call it once."""
        try:
            self._path.unlink(missing_ok=True)
        except PermissionError:  # Windows keeps what is open; the file alone locks nobody out
            pass
        finally:
            os.close(self._descriptor)


def _locked(descriptor: int) -> bool:
    """Take the lock if nobody has it. It hangs on the open file, so it also keeps this process from a second
    opening."""
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # beyond the number, which stays readable
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if isinstance(error, BlockingIOError | PermissionError):
            return False
        raise
    return True


def _recorded(path: Path) -> int | None:
    try:
        return int(path.read_bytes())
    except (OSError, ValueError):
        return None


def _runs(pid: int) -> bool:
    """A process of that number runs, as far as can be seen from here."""
    if sys.platform == "win32":
        return True  # a signal 0 would end it there
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _owned(journal: Path, pid: int | None) -> JournalError:
    who = "another process" if pid is None else "this process" if pid == os.getpid() else f"process {pid}"
    return JournalError(
        "OWNED",
        f"The journal {journal} is open for writing in {who} already. Stop that one first, or use another file; "
        "it can be read from here at any time.",
        {"path": str(journal), "pid": pid},
    )
