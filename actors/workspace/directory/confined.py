"""A directory that nothing leads out of: files are reached from its descriptor, part by part, and no link is followed.

Whoever swaps a folder for a link meanwhile gains nothing: what is open stays what it was, and every step is relative to
it (`openat` with `O_NOFOLLOW`, POSIX.1-2017). All of it blocks.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, NamedTuple, final

from greenroom.actors.workspace.directory.paths import DEEPEST, is_plain, is_temporary, path_error, temporary_name
from greenroom.protocol.errors import WorkspaceError

if sys.platform != "win32":
    import fcntl

__all__ = ["Confined", "Found", "Save", "Signature", "changed_on_disk", "signature"]

_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_ROOT: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_FOLDER: Final = _ROOT | _NOFOLLOW
_READ: Final = os.O_RDONLY | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0)
"""Without O_NONBLOCK, opening a pipe would wait for its other end."""
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW

PATIENCE: Final = 10.0
"""Seconds to wait for another process that is just saving into the directory."""
PAUSE: Final = 0.002

Signature = tuple[int, int, int, int]
"""By which a file is recognised without being read."""


class Save(NamedTuple):
    """A file that is to be saved: its bytes, whose owner and mode it takes over (`None`: a new file's), and what is
    expected in its place (`None`: nothing)."""

    parts: tuple[str, ...]
    data: bytes
    like: os.stat_result | None
    expected: os.stat_result | None

    @property
    def path(self) -> str:
        return "/".join(self.parts)


class Found(NamedTuple):
    """A file as it is on the disk. `data` is `None` if it is larger than what was asked for."""

    data: bytes | None
    status: os.stat_result


def signature(status: os.stat_result) -> Signature:
    """Two different states of a file have different ones, but for changes within the clock's resolution."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@final
class Confined:
    """The files beneath one directory. Parts are those that `split_path` gave; `path` says the same in messages.

    Raises `WorkspaceError`: PATH for what is there but is no file, IO (context `path`, `reason`) for what the operating
    system refuses, CHANGED if a file is not what was expected.
    """

    __slots__ = ("_descriptor", "_private", "root")

    def __init__(self, root: str | os.PathLike[str], private: Collection[str]) -> None:
        self.root = os.fspath(root)
        if os.open not in os.supports_dir_fd:
            raise WorkspaceError(
                "IO",
                f"{self.root} cannot be a workspace here: this system cannot keep a program within a directory.",
                {"path": self.root, "reason": sys.platform},
            )
        with _reported(self.root):
            # The root itself may be reached by a link: its owner chose it.
            self._descriptor = os.open(self.root, _ROOT)
        self._private = private

    def close(self) -> None:
        """Let go of the directory."""
        os.close(self._descriptor)

    @contextmanager
    def alone(self) -> Generator[None]:
        """Keep other processes that save by this class out of the directory. A killed one lets go of it at once."""
        if sys.platform == "win32":
            raise AssertionError("no such directory can be opened on this system")
        end = time.monotonic() + PATIENCE
        while not self._lock():
            if time.monotonic() > end:
                raise WorkspaceError(
                    "IO",
                    f"Another process has been saving into {self.root} for {PATIENCE:g} s. Try again later.",
                    {"path": self.root, "reason": "locked"},
                )
            time.sleep(PAUSE)
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _lock(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # a file system without locks: what others change is found all the same
        return True

    # ---------------------------------------------------------------- looking

    def walk(self, most: int, *, sweep: bool = False) -> dict[str, os.stat_result]:
        """Every file that a path can name, in no promised order; links and what else is no file are passed over.

        `sweep` removes what processes left that were killed while they saved, which only who is `alone` may do. Raises
        `WorkspaceError` LIMIT for more than `most` files.
        """
        files: dict[str, os.stat_result] = {}
        with _reported(self.root):
            for path, status in self._walk(os.open(".", _FOLDER, dir_fd=self._descriptor), "", sweep):
                files[path] = status
                if len(files) > most:
                    raise WorkspaceError(
                        "LIMIT",
                        f"{self.root} holds more than {most:,} files. Use a smaller directory, or allow more files.",
                        {"path": self.root, "limit": most},
                    )
        return files

    def _walk(self, folder: int, prefix: str, sweep: bool) -> Iterator[tuple[str, os.stat_result]]:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):  # gone, swapped, not ours
                        if not is_plain(name, self._private):
                            if sweep and is_temporary(name) and entry.is_file(follow_symlinks=False):
                                os.unlink(name, dir_fd=folder)
                        elif entry.is_dir(follow_symlinks=False):
                            if prefix.count("/") == DEEPEST:
                                continue  # no path can name what is in it
                            inner = os.open(name, _FOLDER, dir_fd=folder)
                            yield from self._walk(inner, f"{prefix}{name}/", sweep)
                        elif entry.is_file(follow_symlinks=False):
                            yield prefix + name, entry.stat(follow_symlinks=False)
        finally:
            os.close(folder)

    def has(self, parts: tuple[str, ...]) -> bool:
        """Whether a file is there."""
        path = "/".join(parts)
        with _reported(path), self._folder(parts) as folder, suppress(FileNotFoundError):
            if folder is not None:
                return stat.S_ISREG(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode)
        return False

    def load(self, parts: tuple[str, ...], most: int) -> Found | None:
        """The file, with its bytes if they are not more than `most`; `None` if there is none."""
        path = "/".join(parts)
        with _reported(path), self._folder(parts) as folder:
            if folder is None or _status(folder, path, parts[-1]) is None:
                return None
            with suppress(FileNotFoundError):
                descriptor = os.open(parts[-1], _READ, dir_fd=folder)
                with open(descriptor, "rb") as file:
                    status = os.fstat(descriptor)
                    if not stat.S_ISREG(status.st_mode):
                        raise _no_file(path, status)
                    data = file.read(most + 1) if status.st_size <= most else b""
                    return Found(data if max(len(data), status.st_size) <= most else None, status)
            return None

    # ---------------------------------------------------------------- changing

    def save(self, saves: Sequence[Save]) -> Iterator[os.stat_result]:
        """Save files, making folders: write all of them beside their places, then put one after another into its place.

        Yields each time what is known of the file then: it is on the disk. CHANGED, and neither this file nor a later
        one is changed, if something else is in its place than is expected.
        """
        staged: list[str] = []
        try:
            staged.extend(map(self._stage, saves))
            for number, save in enumerate(saves):
                yield self._publish(save, staged[number])
        finally:
            for save, name in zip(saves, staged, strict=False):
                self._discard(save, name)

    def _stage(self, save: Save) -> str:
        name = temporary_name()
        with _reported(save.path), self._folder(save.parts, make=True) as folder:
            assert folder is not None, "it was made"
            descriptor = os.open(name, _CREATE, 0o666 if save.like is None else 0o600, dir_fd=folder)
            try:
                with open(descriptor, "wb") as file:
                    file.write(save.data)
                    file.flush()
                    if save.like is not None:
                        _dress(descriptor, save.like)
                    os.fsync(descriptor)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name, dir_fd=folder)
                raise
        return name

    def _publish(self, save: Save, staged: str) -> os.stat_result:
        path, name = save.path, save.parts[-1]
        with _reported(path), self._folder(save.parts) as folder:
            if folder is None:
                raise changed_on_disk(path)
            _expect(folder, path, name, save.expected)
            if save.expected is None:
                _put_anew(folder, path, name, staged)
            else:
                os.replace(staged, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
            return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def _discard(self, save: Save, staged: str) -> None:
        """Remove what was staged, if it is still there: what cannot be removed now is swept later."""
        with suppress(OSError, WorkspaceError), self._folder(save.parts) as folder:
            if folder is not None:
                os.unlink(staged, dir_fd=folder)

    def remove(self, parts: tuple[str, ...], expected: os.stat_result) -> None:
        """Remove the file. CHANGED, and nothing happens, if it is not the expected one."""
        path, name = "/".join(parts), parts[-1]
        with _reported(path), self._folder(parts) as folder:
            if folder is None:
                raise changed_on_disk(path)
            _expect(folder, path, name, expected)
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)

    def move(
        self, source: tuple[str, ...], target: tuple[str, ...], expected: os.stat_result, there: os.stat_result | None
    ) -> os.stat_result:
        """Move a file, whose folders are made, over what is expected to be there, and return what is known of it then.

        CHANGED, and nothing happens, if one of both is not what is expected.
        """
        path, aim = "/".join(source), "/".join(target)
        with _reported(path), ExitStack() as open_folders:
            before = open_folders.enter_context(self._folder(source))
            after = open_folders.enter_context(self._folder(target, make=True))
            if before is None or after is None:
                raise changed_on_disk(path)
            _expect(before, path, source[-1], expected)
            _expect(after, aim, target[-1], there)
            if there is not None and os.path.samestat(expected, there):
                raise path_error(aim, f"it is the same file as {path}, by another name")
            os.rename(source[-1], target[-1], src_dir_fd=before, dst_dir_fd=after)
            os.fsync(after)
            os.fsync(before)
            return os.stat(target[-1], dir_fd=after, follow_symlinks=False)

    # ---------------------------------------------------------------- the way to a file

    @contextmanager
    def _folder(self, parts: tuple[str, ...], *, make: bool = False) -> Generator[int | None]:
        """The descriptor of the folder that the last part is in; `None` if there is no such folder."""
        path = "/".join(parts)
        folder: int | None = os.dup(self._descriptor)
        try:
            for part in parts[:-1]:
                assert folder is not None
                inner = _enter(folder, path, part, make)
                os.close(folder)
                folder = inner
                if folder is None:
                    break
            yield folder
        finally:
            if folder is not None:
                os.close(folder)


def changed_on_disk(path: str, *others: str) -> WorkspaceError:
    """The refusal of an edit that would overwrite what somebody else has written."""
    paths = [path, *others]
    named = ", ".join(paths[:10]) + (f" and {len(paths) - 10} more" if len(paths) > 10 else "")
    return WorkspaceError(
        "CHANGED",
        f"Somebody else has changed, made or removed {named} since it was last read here, so nothing was done. Read it "
        "again, then decide.",
        {"path": path, "paths": paths},
    )


def _enter(folder: int, path: str, part: str, make: bool) -> int | None:
    """The descriptor of a folder in a folder, which is made if that is wanted; `None` if there is none."""
    try:
        return os.open(part, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            return None
    except OSError:
        mode = os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            raise path_error(path, f"{part} is a link, and links are not followed", found="link") from None
        if stat.S_ISDIR(mode):
            raise
        if make:
            raise path_error(path, f"{part} is a file, not a folder", found="file") from None
        return None
    with suppress(FileExistsError):
        os.mkdir(part, dir_fd=folder)
        os.fsync(folder)
    return os.open(part, _FOLDER, dir_fd=folder)


def _status(folder: int, path: str, name: str) -> os.stat_result | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise _no_file(path, status)
    return status


def _no_file(path: str, status: os.stat_result) -> WorkspaceError:
    if stat.S_ISLNK(status.st_mode):
        return path_error(path, "it is a link, and links are not followed", found="link")
    if stat.S_ISDIR(status.st_mode):
        return path_error(path, "it is a folder", found="folder")
    return path_error(path, "it is no ordinary file", found="other")


def _expect(folder: int, path: str, name: str, expected: os.stat_result | None) -> None:
    """Raise CHANGED if what is there is not what is expected. Only a moment lies between this and what it guards."""
    status = _status(folder, path, name)
    if (status is None) != (expected is None):
        raise changed_on_disk(path)
    if status is not None and expected is not None and signature(status) != signature(expected):
        raise changed_on_disk(path)


def _put_anew(folder: int, path: str, name: str, staged: str) -> None:
    """Give the staged file its name, and overwrite nothing, whoever was quicker."""
    try:
        os.link(staged, name, src_dir_fd=folder, dst_dir_fd=folder)
    except FileExistsError:
        raise changed_on_disk(path) from None
    except OSError:  # a file system that has no second names; nothing was there a moment ago
        os.replace(staged, name, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        os.unlink(staged, dir_fd=folder)


def _dress(descriptor: int, like: os.stat_result) -> None:
    """Give an open file the owner and the mode of another; the mode last, as a change of owner takes bits off it."""
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))


@contextmanager
def _reported(path: str) -> Generator[None]:
    """What the operating system refuses in the block is a `WorkspaceError` IO."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise WorkspaceError("IO", f"{path}: {reason}.", {"path": path, "reason": reason}) from error
