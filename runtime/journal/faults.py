"""What a failure of SQLite or of the file system means for the journal, and what can be done about it."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from greenroom.protocol.errors import JournalError

__all__ = ["closed", "fault", "refusal", "refused", "typed", "unusable"]

# The primary result codes (https://www.sqlite.org/rescode.html) that condemn one statement and not the transaction.
_STATEMENT = frozenset(
    {
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_RANGE,
    }
)
_CODES = {
    sqlite3.SQLITE_FULL: "FULL",
    sqlite3.SQLITE_READONLY: "READONLY",
    sqlite3.SQLITE_PERM: "READONLY",
    sqlite3.SQLITE_CORRUPT: "CORRUPT",
    sqlite3.SQLITE_NOTADB: "CORRUPT",
    sqlite3.SQLITE_BUSY: "BUSY",
    sqlite3.SQLITE_LOCKED: "BUSY",
}
_ERRNOS = {
    errno.ENOSPC: "FULL",
    errno.EDQUOT: "FULL",
    errno.EROFS: "READONLY",
    errno.EACCES: "READONLY",
    errno.EPERM: "READONLY",
}
_ADVICE = {
    "FULL": "there is no room for it. What was recorded is unharmed; make room, and later writes will succeed",
    "READONLY": "it may not be written here. Make the file and its folder writable, or use another file",
    "CORRUPT": "it is damaged. Move it away together with its -wal file, then put a copy back or start with a new "
    "file; `sqlite3 FILE .recover` saves what can still be read",
    "BUSY": "another program holds it locked. Close what has it open, and try again",
    "IO": "the file system refused. What was acknowledged is unharmed; look at the disk",
}


def fault(error: sqlite3.Error | OSError, path: str) -> JournalError:
    """The typed error for a failure of the whole file: FULL, READONLY, CORRUPT, BUSY, and IO for whatever else."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return _homeless(path, error.strerror or str(error))
    if isinstance(error, OSError):
        return unusable(_ERRNOS.get(error.errno or 0, "IO"), path, error.strerror or str(error))
    return unusable(_CODES.get(_primary(error), "IO"), path, str(error))


def _homeless(path: str, reason: str) -> JournalError:
    folder = Path(path).parent
    return JournalError(
        "IO",
        f"The journal {path} cannot be used: there is no folder {folder}. Make it, or name another file ({reason}).",
        {"path": path, "reason": reason},
    )


def unusable(code: str, path: str, reason: str) -> JournalError:
    """A JournalError about the whole file, which says what to do: FULL, READONLY, CORRUPT, BUSY or IO."""
    context = {"path": path, "reason": reason}
    return JournalError(code, f"The journal {path} cannot be used: {_ADVICE[code]} ({reason}).", context)


def refused(error: sqlite3.Error | JournalError) -> JournalError | None:
    """The typed error for a failure that is the unit's own; None if it is the transaction's."""
    if isinstance(error, JournalError):
        return error
    return refusal(error) if _primary(error) in _STATEMENT else None


def refusal(error: Exception) -> JournalError:
    """REFUSED, because of `error`."""
    try:
        reason = str(error)
    except Exception:  # it came out of a parameter's own code
        reason = type(error).__name__
    return JournalError(
        "REFUSED", f"The journal refused this, and nothing of it was recorded: {reason}.", {"reason": reason}
    )


@contextmanager
def typed() -> Generator[None, None, None]:
    """Lets what is wrong with a statement or its parameters be REFUSED, where SQLite was not asked or said nothing.

    That may be anything, since a parameter's own code runs (https://docs.python.org/3/library/sqlite3.html, adapters).
    What SQLite raises passes.
    """
    try:
        yield
    except (sqlite3.Error, JournalError):
        raise
    except Exception as error:
        raise refusal(error) from error


def closed(path: str) -> JournalError:
    """What is raised by everything that comes after the journal's end."""
    return JournalError("CLOSED", f"The journal {path} is closed; open it again to read or write it.", {"path": path})


def _primary(error: sqlite3.Error) -> int:
    """The primary result code; SQLITE_ERROR for what the module raises without asking SQLite, such as a wrong
    parameter."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF
