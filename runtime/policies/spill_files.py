"""Spilled results as files that only their owner's account can read."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final, final

import trio

__all__ = ["LocalSpill", "SpillFile"]

OTHER: Final = re.compile(r"[^A-Za-z0-9_.-]")
NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@final
class LocalSpill:
    """Keeps results beneath `root`; None: in a private folder of the system's for temporary files, made at first use.

    Each owner has a folder of its own (mode 0700), each result a file (0600) with a name that nobody can guess. A link
    in the place of a folder is removed, not followed; a folder there that belongs to another account is not used.
    Nothing is ever deleted.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        # Whoever is told of a file may be in another folder: a command, for one.
        self._root = None if root is None else Path(root).absolute()

    async def save(self, owner: str, name: str, text: str) -> str:
        """Write the text; the file's path. Raises OSError, and ValueError for a text without a UTF-8 form, and leaves
        nothing then. Cancelled: it waits for the disk, and the file may be there."""
        return await trio.to_thread.run_sync(self._save, owner, name, text)

    async def create(self, owner: str, name: str) -> SpillFile:
        """A new file that is still empty, for what comes piece by piece. Raises OSError. Cancelled: it waits for the
        disk, and then the file is there."""
        return await trio.to_thread.run_sync(self._create, owner, name)

    def _save(self, owner: str, name: str, text: str) -> str:
        written = text.encode()  # first: what has no such form leaves nothing
        file = self._create(owner, name)
        try:
            file.write_now(written)
        except OSError:
            file.discard()
            raise
        file.close()
        return file.path

    def _create(self, owner: str, name: str) -> SpillFile:
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="greenroom-spill-"))
        folder = self._root / f"session-{hashlib.sha256(owner.encode()).hexdigest()[:12]}"
        place = _open_folder(folder)
        try:
            file = f"{secrets.token_hex(6)}-{OTHER.sub('_', name)[:64]}"
            return SpillFile(str(folder / file), os.open(file, NEW, 0o600, dir_fd=place))
        finally:
            os.close(place)


@final
class SpillFile:
    """A file of `LocalSpill` that is being written. Whoever has it owes a `close` or a `discard`."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor

    async def write(self, data: bytes) -> None:
        """Add to it. Raises OSError. Cancelled: it waits for the disk."""
        await trio.to_thread.run_sync(self.write_now, data)

    def write_now(self, data: bytes) -> None:
        """Add to it. Blocks. Raises OSError."""
        assert self._descriptor is not None, "it was closed"
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def close(self) -> None:
        """Nothing more is added. Again: nothing happens."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def discard(self) -> None:
        """Remove it, and close it if it was not."""
        self.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)


def _open_folder(folder: Path) -> int:
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.is_symlink():
        folder.unlink()
    folder.mkdir(mode=0o700, exist_ok=True)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(place).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another account", str(folder))
        os.fchmod(place, 0o700)  # it may have been there already
    except OSError:
        os.close(place)
        raise
    return place
