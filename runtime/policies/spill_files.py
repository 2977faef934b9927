"""Spilled results as files that only their owner's account can read."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import tempfile
from pathlib import Path
from typing import Final, final

import trio

__all__ = ["LocalSpill"]

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
        self._root = None if root is None else Path(root)

    async def save(self, owner: str, name: str, text: str) -> str:
        """Write the text; the file's path. Raises OSError, and ValueError for a text without a UTF-8 form, and leaves
        nothing then. Cancelled: it waits for the disk, and the file may be there."""
        return await trio.to_thread.run_sync(self._save, owner, name, text)

    def _save(self, owner: str, name: str, text: str) -> str:
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="greenroom-spill-"))
        written = text.encode()
        folder = self._root / f"session-{hashlib.sha256(owner.encode()).hexdigest()[:12]}"
        place = _open_folder(folder)
        try:
            file = f"{secrets.token_hex(6)}-{OTHER.sub('_', name)[:64]}"
            descriptor = os.open(file, NEW, 0o600, dir_fd=place)
            try:
                with os.fdopen(descriptor, "wb") as opened:
                    opened.write(written)
            except OSError:
                os.unlink(file, dir_fd=place)
                raise
        finally:
            os.close(place)
        return str(folder / file)


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
