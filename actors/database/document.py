"""Rows in a JSON document, which is written anew at each change: for few rows that people want to read."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

import msgspec
import sqlite_utils
from msgspec import UNSET, Struct, UnsetType

from greenroom.actors.database.sqlite import MEMORY, SqliteStorage, create, read_stamp, write_stamp
from greenroom.actors.database.storage import Exists, driver_failure
from greenroom.protocol.database import Key, Layout, Migration, Stamp
from greenroom.protocol.errors import DatabaseError

__all__ = ["DocumentStorage"]


_Signature = tuple[int, int, int]
"""By which it is known that nobody has written a file."""


class _Document(Struct, forbid_unknown_fields=True):
    """What stands in the file."""

    tables: dict[str, list[dict[str, Any]]]
    metadata: Stamp | UnsetType = UNSET


@final
class DocumentStorage(SqliteStorage):
    """A database in memory whose content is a document in a file: `{"metadata"?, "tables": {table: [row, ...]}}`, the
    rows in key order.

    A commit writes the whole document beside the file and puts it in its place before it lasts in memory, so that
    killed at any instant the file is as before or as after. One program at a time may use the file: what another one
    has changed since it was opened is not overwritten, and the commit fails with DRIVER. A file that cannot be read, or
    that holds other tables or rows than are declared, is refused and left as it is.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(MEMORY)
        self._file: Final = Path(path).absolute()
        self._layouts: Mapping[str, Layout] = {}
        self._kept: _Document | None = None
        """What the file holds, whatever the order in which it does."""
        self._seen: _Signature | None = None
        """The file as it was last read or written here."""

    def open(self, tables: Mapping[str, Layout], version: int | float | None) -> Migration | None:
        """See `Storage.open`. The file is made if there is none; its folder must be there."""
        self._layouts = tables
        return super().open(tables, version)

    def _restore(self, database: sqlite_utils.Database) -> None:
        found = self._read()
        self._kept = None
        if found is None:
            return
        stamped = () if found.metadata is UNSET else found.metadata.schema
        wanted = self._layouts if found.metadata is UNSET else {table.name: Layout(table) for table in stamped}
        if found.tables.keys() != wanted.keys():
            has, wants = ", ".join(sorted(found.tables)) or "none", ", ".join(sorted(wanted)) or "none"
            raise self._unfit(f"it has the tables {has}, and not {wants}")
        for name, layout in wanted.items():
            self._fill(database, layout, found.tables[name])
        if found.metadata is not UNSET:
            write_stamp(database, found.metadata)
        self._kept = self._document(wanted)

    def _fill(self, database: sqlite_utils.Database, layout: Layout, rows: list[dict[str, Any]]) -> None:
        table = layout.schema
        create(database, table)
        self.prepare(layout)

        def cells() -> Any:
            for number, row in enumerate(rows):
                if table.primary not in row:
                    raise self._unfit(
                        f"row {number} of table {table.name!r} has no {table.primary!r}, which is its key"
                    )
                yield layout.write(row, _no_key)

        try:
            self.insert(layout, cells())
        except Exists:
            raise self._unfit(f"two rows of table {table.name!r} have the same key") from None
        except DatabaseError as error:
            raise error if error.code != "VALIDATION" else self._unfit(error.message) from None

    def _keep(self) -> None:
        document = self._document(self._layouts)
        if document != self._kept:
            if _signature(self._file) not in (None, self._seen):
                raise driver_failure(
                    f"{self._file} was changed by another program since it was opened here, and is left as it is now; "
                    "close the database and open it again"
                )
            self._write(self._file, document)
            self._kept, self._seen = document, _signature(self._file)

    def _document(self, layouts: Mapping[str, Layout]) -> _Document:
        tables = {name: [layout.row(cells) for cells in self.select(layout, ())] for name, layout in layouts.items()}
        stamp = read_stamp(self.database, str(self._file))
        return _Document(tables, UNSET if stamp is None else stamp)

    def _read(self) -> _Document | None:
        self._seen = _signature(self._file)
        try:
            content = self._file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise driver_failure(f"{self._file} cannot be read: {error.strerror}") from error
        try:
            return msgspec.json.decode(content, type=_Document)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise self._unfit(str(error)) from None

    def _write(self, path: Path, document: _Document) -> None:
        content = msgspec.json.format(msgspec.json.encode(document), indent=2)
        beside = path.with_name(f".{path.name}.{uuid.uuid4()}")
        try:
            try:
                with beside.open("xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                beside.replace(path)
            except BaseException:
                beside.unlink(missing_ok=True)
                raise
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)  # else the new name may be lost with the power
            finally:
                os.close(folder)
        except OSError as error:
            raise driver_failure(f"{path} cannot be written: {error.strerror}") from error

    def stamped(self) -> Stamp | None:
        """What the file says of its tables, if there is one and it is stamped."""
        found = self._read()
        return None if found is None or found.metadata is UNSET else found.metadata

    def backup(self, path: str) -> None:
        """See `Storage.backup`: the same document."""
        self._write(Path(path).absolute(), self._document(self._layouts))

    def erase(self) -> None:
        """See `Storage.erase`."""
        self._file.unlink(missing_ok=True)

    def _unfit(self, why: str) -> DatabaseError:
        return driver_failure(f"{self._file} does not hold this database: {why}. It was left as it is")


def _signature(path: Path) -> _Signature | None:
    try:
        status = path.stat()
    except OSError:  # nothing is there, or nothing that can be written: the next step tells
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _no_key() -> Key:
    raise AssertionError("a row without a key is refused before")
