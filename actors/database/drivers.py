"""Where a database can keep its rows."""

from __future__ import annotations

import os

from greenroom.actors.database.document import DocumentStorage
from greenroom.actors.database.sqlite import SqliteStorage
from greenroom.actors.database.storage import Storage

__all__ = ["json_driver", "memory_driver", "sqlite_driver"]


def json_driver(path: str | os.PathLike[str]) -> Storage:
    """Rows in a JSON document, made at the first use if there is none, and written anew at each change."""
    return DocumentStorage(path)


def memory_driver() -> Storage:
    """Rows in memory, gone when the database is closed. Each is a new and empty one."""
    return SqliteStorage()


def sqlite_driver(path: str | os.PathLike[str]) -> Storage:
    """Rows in an SQLite file, made at the first use if there is none. Tables of others in it are left alone."""
    return SqliteStorage(path)
