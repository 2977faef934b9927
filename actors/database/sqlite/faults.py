"""What a failure of SQLite means for whoever called."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from greenroom.actors.database.storage import Stop, driver_failure
from greenroom.protocol.database import invalid
from greenroom.protocol.errors import DatabaseError

__all__ = ["is_busy", "is_taken", "typed"]

_TAKEN = frozenset({sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID})


@contextmanager
def typed(path: str, stop: Stop | None = None) -> Generator[None]:
    """Lets what SQLite raises be a `DatabaseError`: ABORTED, VALIDATION for a value that is too large, else DRIVER."""
    try:
        yield
    except OverflowError as error:
        raise _too_big(error) from None
    except sqlite3.Error as error:
        raise _translated(error, path, stop) from error


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else holds the file, so that trying again may help."""
    return _primary(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_taken(error: sqlite3.IntegrityError) -> bool:
    """Whether a row could not be inserted because of its key."""
    return error.sqlite_errorcode in _TAKEN


def _translated(error: sqlite3.Error, path: str, stop: Stop | None) -> DatabaseError:
    if _primary(error) == sqlite3.SQLITE_INTERRUPT or (stop is not None and stop.requested):
        return DatabaseError("ABORTED", "the call was interrupted before it was done")
    if isinstance(error, sqlite3.DataError) or _primary(error) == sqlite3.SQLITE_TOOBIG:
        return _too_big(error)
    if is_busy(error):
        return driver_failure(f"{path} is locked by another program; try again", retryable=True)
    return driver_failure(f"{path} failed: {error}")


def _too_big(error: Exception) -> DatabaseError:
    return invalid(f"a value is larger than can be stored ({error}); store it in parts, or keep it in a file")


def _primary(error: sqlite3.Error) -> int:
    """The primary result code; SQLITE_ERROR for what the module raises without asking SQLite."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF
