"""The file: recognised, owned, brought up to date, and open on two connections."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterable
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final, final

from greenroom.protocol.errors import JournalError
from greenroom.runtime.journal.faults import fault, refused, unusable
from greenroom.runtime.journal.ownership import Ownership
from greenroom.runtime.journal.tables import CORE, Table, declared, refuse_newer, upgrade

__all__ = ["MEMORY", "JournalFile", "inspect", "resolve"]

MEMORY: Final = ":memory:"
"""The path that means no file: a journal that ends with its process."""

APPLICATION: Final = 0x67726E6D
"""`grnm`: the application id in the header, by which a journal is told from other SQLite files."""

CHECKED: Final = 256 * 2**20
"""Bytes up to which a file is checked whole when it is opened, at about a second and a half a gigabyte. Damage in a
larger one shows when it is read."""

PATIENCE: Final = 5.0
"""Seconds to wait for another program (a shell on the file, a backup) that holds SQLite's own write lock."""

KEPT_LOG: Final = 64 * 2**20
"""Bytes that the -wal file keeps for reuse; a burst may let it grow beyond, for a while."""

_MAGIC = b"SQLite format 3\0"
_HEADER = 100
_ID = slice(68, 72)
"""Where the application id is in the header (https://www.sqlite.org/fileformat2.html, section 1.3)."""


@final
class JournalFile:
    """A journal's file, open for writing by this process alone. Everything here blocks.

    Only one connection ever writes or makes checkpoints: SQLite before 3.51.3 may damage a file where two do. Raises
    JournalError: OWNED, FOREIGN, NEWER, CORRUPT, READONLY, FULL, BUSY or IO; nothing is left open then, and a file that
    was refused holds what it held.
    """

    __slots__ = ("_open", "path", "reader", "writer")

    def __init__(self, path: str | os.PathLike[str], tables: Iterable[Table] = ()) -> None:
        self.path = resolve(path)
        tables = declared(tables)
        with ExitStack() as opened, _typed(self.path):
            if self.path == MEMORY:
                self.writer = self.reader = opened.enter_context(closing(_connect(MEMORY)))
            else:
                opened.callback(Ownership(Path(self.path)).release)
                _prepare(self.path)
                # Damage is found by a connection that cannot write, before there is one that could make it worse.
                self.reader = opened.enter_context(closing(_connect_reader(self.path)))
                _check(self.reader, self.path)
                self.writer = opened.enter_context(closing(_connect(_uri(self.path, "mode=rw"))))
                opened.callback(self.reader.close)  # first: only the last connection to close empties the -wal file
                _log_ahead(self.writer, self.path)
                self.writer.execute(f"PRAGMA journal_size_limit = {KEPT_LOG}")
            self.writer.execute("PRAGMA synchronous = FULL")
            upgrade(self.writer, (*CORE, *tables), self.path)
            self._open = opened.pop_all()

    def register(self, tables: Iterable[Table]) -> None:
        """Bring further tables up to date; see `upgrade`. Raises as construction does, and REFUSED for a wrong
        migration."""
        with _typed(self.path):
            upgrade(self.writer, declared(tables), self.path)

    def close(self) -> None:
        """Make a last checkpoint, after which the one file holds everything, and let another process write it."""
        with _typed(self.path):
            self._open.close()


def resolve(path: str | os.PathLike[str]) -> str:
    """The path absolute and with links followed, so that a journal is one however it is named; MEMORY as it is."""
    return MEMORY if path == MEMORY else str(Path(path).resolve())


def inspect(path: str) -> sqlite3.Connection:
    """A connection for looking at a journal, owned or not. Raises JournalError FOREIGN, NEWER, CORRUPT or IO."""
    with ExitStack() as opened, _typed(path):
        connection = opened.enter_context(closing(_connect_reader(path)))
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION:
            raise _foreign(path, "a database of another program")
        refuse_newer(connection, CORE, path)
        opened.pop_all()
    return connection


def check_journal(path: str | os.PathLike[str]) -> None:
    """Raise what opening the file for writing would, as far as its first bytes and its folder tell: JournalError
    FOREIGN, CORRUPT, READONLY or IO. Nothing is made or changed, not even beside it, as SQLite would. Blocks. That a
    process writes it is no fault."""
    resolved = resolve(path)
    if resolved == MEMORY:
        return
    folder = Path(resolved).parent
    if not folder.is_dir():
        raise unusable("IO", resolved, f"there is no folder {folder}")
    with _typed(resolved):
        if not _recognise(resolved) and not os.access(folder, os.W_OK):
            raise unusable("READONLY", resolved, f"nothing can be made in {folder}")


def _connect_reader(path: str) -> sqlite3.Connection:
    """A connection to a journal that cannot write it. It needs no ownership, and works beside an owner.

    Raises sqlite3.Error.
    """
    connection = _connect(_uri(path, "mode=ro"))
    try:
        connection.execute("SELECT 1 FROM sqlite_master")
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or _has_log(path):
            raise
        # Reading needs files beside it that cannot be made. But where nothing can be written nothing changes either.
        connection = _connect(_uri(path, "mode=ro&immutable=1"))
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(path: str) -> None:
    """See to it that there is a journal at `path`, if a new one with nothing in it. Raises JournalError FOREIGN or
    CORRUPT."""
    if _recognise(path) and Path(f"{path}-journal").exists():
        # Killed while it was being made: SQLite puts back what was there, which may be nothing.
        with closing(_connect(_uri(path, "mode=rw"))) as connection:
            connection.execute("PRAGMA schema_version")
    if not _recognise(path):
        with closing(_connect(_uri(path, "mode=rwc"))) as connection:
            connection.execute(f"PRAGMA application_id = {APPLICATION}")


def _recognise(path: str) -> bool:
    """Whether the file is a journal; False if there is none yet, or an empty one.

    It is opened as it will be used, which shows at once that it cannot be written.
    """
    try:
        with open(path, "r+b") as file:
            header = file.read(_HEADER)
    except FileNotFoundError:
        header = b""
    if not header:
        if _has_log(path):
            raise unusable("CORRUPT", path, "the file is empty, and its -wal file is not")
        return False
    if not header.startswith(_MAGIC):
        raise _foreign(path, "either no database or a damaged one")
    if len(header) < _HEADER:
        raise unusable("CORRUPT", path, "it was cut off in its header")
    if int.from_bytes(header[_ID]) != APPLICATION:
        raise _foreign(path, "a database of another program")
    return True


def _foreign(path: str, what: str) -> JournalError:
    return JournalError(
        "FOREIGN",
        f"{path} is no journal of greenroom: it is {what}. It was not touched; name another file, or move it away.",
        {"path": path},
    )


def _log_ahead(writer: sqlite3.Connection, path: str) -> None:
    """Readers must not wait for the writer, nor it for them (https://www.sqlite.org/wal.html)."""
    (mode,) = writer.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise unusable("IO", path, "it lies where no memory can be shared, as SQLite's write-ahead log needs")


def _check(reader: sqlite3.Connection, path: str) -> None:
    size = os.path.getsize(path)
    (page,) = reader.execute("PRAGMA page_size").fetchone()
    if size % page and not _has_log(path):  # SQLite reads the rest of a last page as zeros
        raise unusable("CORRUPT", path, "its last page was cut off")
    if size <= CHECKED:
        (found,) = reader.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise unusable("CORRUPT", path, found)


def _has_log(path: str) -> bool:
    """Something was committed to its -wal file and is not yet in the file itself."""
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


def _uri(path: str, options: str) -> str:
    return f"{Path(path).as_uri()}?{options}"


def _connect(target: str) -> sqlite3.Connection:
    """In autocommit mode, and for any thread: whoever uses it sees to it that only one does at a time."""
    return sqlite3.connect(
        target, uri=target != MEMORY, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )


@contextmanager
def _typed(path: str) -> Generator[None, None, None]:
    """Lets what SQLite and the file system raise be JournalErrors."""
    try:
        yield
    except sqlite3.Error as error:
        raise refused(error) or fault(error, path) from error
    except OSError as error:
        raise fault(error, path) from error
