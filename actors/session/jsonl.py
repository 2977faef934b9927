"""Sessions as files of lines of JSON: one file for each, in a folder of its own."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar, final

import trio

from greenroom.actors.session.persistence import Stored, exists_already
from greenroom.protocol.errors import JournalError, SessionError
from greenroom.protocol.sessions import SessionEvent, SessionHeader
from greenroom.protocol.sessions.codec import decode_header, encode, escaped, read_lines
from greenroom.runtime.journal.ownership import Ownership

__all__ = ["JsonlPersistence"]

T = TypeVar("T")

NAME: Final = "session.jsonl"
HEADER: Final = 2**20
"""Bytes that the first line of a log may have, where logs are listed."""
NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@final
class JsonlPersistence:
    """Sessions at `<root>/<project>/<id>/session.jsonl`, the header on the first line, an event on each further one.

    A file is made with its first events, whole or not at all, and never over another one. One process writes it: the
    right to it is the lock of a file beside it, which a killed process loses. What was written is on the disk; a write
    that fails is cut off again, and a line that was torn by the end of a process is cut when the file is opened. Raises
    SessionError: OWNED, CORRUPT, UNSUPPORTED, and IO for what the disk refuses.
    """

    durable = True

    def __init__(self, root: str | os.PathLike[str], *, project: str = "default") -> None:
        self._folder = Path(root) / escaped(project)
        self._open: dict[str, _File] = {}
        self._limiter = trio.CapacityLimiter(1)

    def path(self, id: str) -> Path:
        """The file of that session."""
        return self._folder / escaped(id) / NAME

    async def claim(self, id: str) -> Stored | None:
        file = await self._run(id, lambda: _claimed(self.path(id), id))
        if file is None:
            return None
        self._open[id] = file
        stored, file.stored = file.stored, None
        return stored

    async def read(self, id: str, after: int = -1) -> Stored | None:
        return await self._run(id, lambda: _read(self.path(id), id, after))

    async def list(self) -> list[SessionHeader]:
        return await self._run("", lambda: _headers(self._folder))

    async def append(self, header: SessionHeader, events: Sequence[SessionEvent]) -> None:
        id = header.id
        lines = b"".join(encode(event) + b"\n" for event in events)
        file = self._open.get(id)
        if file is None:
            whole = encode(header) + b"\n" + lines
            self._open[id] = await self._run(id, lambda: _made(self.path(id), id, whole))
        else:
            await self._run(id, lambda: file.append(lines))

    async def release(self, id: str) -> None:
        file = self._open.pop(id, None)
        if file is not None:
            await self._run(id, file.close)

    async def _run(self, id: str, work: Callable[[], T]) -> T:
        """In a worker thread, one after another; a cancelled caller waits for it to end."""
        try:
            return await trio.to_thread.run_sync(work, limiter=self._limiter)
        except OSError as error:
            raise SessionError(
                "IO",
                f"The log of the session {id} cannot be used at {error.filename or self.path(id)}: "
                f"{error.strerror or error}. What was written is unharmed; look at the disk, and try again.",
                {"session": id, "reason": error.strerror or str(error)},
            ) from error


@final
class _File:
    """A file that is open for writing by this process. Everything here blocks."""

    def __init__(self, path: Path, descriptor: int, owned: Ownership, size: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._owned = owned
        self._size = size
        """Where the next line begins."""
        self.stored: Stored | None = None

    def append(self, lines: bytes) -> None:
        size = os.fstat(self._descriptor).st_size
        if size < self._size:
            reason = f"it has {size} bytes and had {self._size}: somebody else has changed it"
            raise OSError(errno.EIO, reason, str(self._path))
        if size > self._size:  # what was left of a write that failed
            os.ftruncate(self._descriptor, self._size)
        try:
            _write(self._descriptor, lines, self._size)
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(lines)

    def close(self) -> None:
        try:
            os.close(self._descriptor)
        finally:
            self._owned.release()


def _opened(path: Path, mode: int = os.O_RDONLY) -> int:
    """The descriptor of a file that is there. Anything else in its place is refused: a pipe would let whoever opens it
    wait for its other end, and some devices never end."""
    descriptor = os.open(path, mode | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
    return descriptor


def _write(descriptor: int, content: bytes, at: int) -> None:
    rest = memoryview(content)
    while rest:
        written = os.pwrite(descriptor, rest, at)
        rest, at = rest[written:], at + written


def _claimed(path: Path, id: str) -> _File | None:
    if not path.exists():
        return None
    owned = _owned(path, id)
    try:
        descriptor = _opened(path, os.O_RDWR)
        try:
            with open(descriptor, "rb", closefd=False) as content:
                lines = read_lines(content.read(), id)
            os.ftruncate(descriptor, lines.sound)
            os.fsync(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
    except BaseException:
        owned.release()
        raise
    file = _File(path, descriptor, owned, lines.sound)
    file.stored = Stored(lines.header, lines.events)
    return file


def _made(path: Path, id: str, content: bytes) -> _File:
    """The file with its first lines: written beside its place and linked there, so that it is never there by half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    owned = _owned(path, id)
    try:
        draft = path.with_name(f".{NAME}-{secrets.token_hex(6)}")
        descriptor = os.open(draft, NEW, 0o600)
        try:
            try:
                _write(descriptor, content, 0)
                os.fsync(descriptor)
                os.link(draft, path)
            finally:
                os.unlink(draft)
            for folder in (path.parent, path.parent.parent):
                _sync(folder)
        except BaseException:
            os.close(descriptor)
            raise
    except FileExistsError:
        owned.release()
        raise exists_already(id) from None
    except BaseException:
        owned.release()
        raise
    return _File(path, descriptor, owned, len(content))


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _owned(path: Path, id: str) -> Ownership:
    try:
        return Ownership(path)
    except JournalError as error:
        pid = error.context.get("pid")
        who = "another process" if pid is None else f"process {pid}"
        raise SessionError(
            "OWNED",
            f"The log of the session {id} is open for writing in {who} already: stop that one first. It can be read "
            "from here at any time.",
            {"session": id, "pid": pid},
        ) from None


def _read(path: Path, id: str, after: int) -> Stored | None:
    try:
        with open(_opened(path), "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return None
    lines = read_lines(content, id)
    return Stored(lines.header, lines.events[after + 1 :])


def _headers(folder: Path) -> list[SessionHeader]:
    """Those that can be read, by id. A file in the wrong folder is nobody's."""
    headers: list[SessionHeader] = []
    for path in folder.glob(f"*/{NAME}"):
        try:
            with open(_opened(path), "rb") as file:
                header = decode_header(file.readline(HEADER))
        except (OSError, SessionError):
            continue
        if escaped(header.id) == path.parent.name:
            headers.append(header)
    return sorted(headers, key=lambda header: header.id)
