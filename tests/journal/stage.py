"""What the journal's tests have in common: a journal in a tree, and what must not be seen of it from outside."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from greenroom.protocol.errors import JournalError
from greenroom.runtime.journal import Event, Journal, Table, open_journal
from greenroom.runtime.tree import run_tree

__all__ = ["NOTES", "attempted", "code_of", "counting", "held", "opened", "payloads", "shell"]

T = TypeVar("T")

NOTES = Table("notes", {"id": str, "text": str, "owner": str}, "id", not_null=["text"])
"""A table as a store would declare one."""


@asynccontextmanager
async def opened(path: Path | str = ":memory:", *tables: Table, **options: Any) -> AsyncGenerator[Journal, None]:
    """A journal for the length of a block, in a tree of its own."""
    async with run_tree() as tree:
        yield await open_journal(tree, path, tables=tables, **options)


def counting() -> Callable[[], float]:
    """A wall clock that counts its readings. The writer reads it once a transaction, so an event's time tells in which
    one it was committed."""
    return itertools.count(1.0).__next__


def payloads(events: list[Event]) -> list[bytes]:
    """What the events say."""
    return [event.payload for event in events]


def shell(path: Path, *statements: str) -> list[Any]:
    """What another program sees that opens the file: the rows of the last statement."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        rows: list[Any] = []
        for statement in statements:
            rows = connection.execute(statement).fetchall()
        return rows


async def attempted(attempt: Awaitable[T]) -> T | JournalError:
    """What it returns, or the JournalError that it raises."""
    try:
        return await attempt
    except JournalError as error:
        return error


def code_of(raised: Any) -> str:
    """The code of a JournalError, also one that a `pytest.raises` caught."""
    error = getattr(raised, "value", raised)
    assert isinstance(error, JournalError), error
    return error.code


@contextmanager
def held(path: Path) -> Generator[Callable[[], None], None, None]:
    """Another program holds SQLite's write lock, until the function is called or the block left: commits stand
    still."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection.rollback
