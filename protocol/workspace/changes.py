"""What a workspace tells of itself after each change, and a bounded memory of calls that can be undone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, final

from msgspec import Struct

from greenroom.protocol.workspace.files import File

__all__ = [
    "WORKSPACE_EVENTS",
    "Announce",
    "Change",
    "Cleared",
    "History",
    "Moved",
    "Removed",
    "Written",
    "announce_nothing",
]

WORKSPACE_EVENTS: Final = ("write", "remove", "move", "clear")


@final
class Written(Struct, frozen=True, tag="write"):
    """`write(file)`: the file is there, new or changed."""

    file: File


@final
class Removed(Struct, frozen=True, tag="remove"):
    """`remove(path)`: nothing is at the path any more."""

    path: str


@final
class Moved(Struct, frozen=True, tag="move"):
    """`move(source, target)`: the file is at the other path, in place of one that may have been there."""

    source: str
    target: str


@final
class Cleared(Struct, frozen=True, tag="clear"):
    """`clear()`: there are no files any more."""


Change: TypeAlias = Written | Removed | Moved | Cleared

Announce: TypeAlias = Callable[[Change], None]
"""Called after each change, in the step of the call that makes it. It must not raise."""


def announce_nothing(change: Change) -> None:
    """For a workspace that nobody listens to."""


class Undoable(Protocol):
    """What one call has changed."""

    @property
    def before(self) -> Mapping[str, object]:
        """By path, what was there before. A call that has changed nothing has none."""
        ...

    @property
    def size(self) -> int | None:
        """How many bytes are held for it; `None` if something that it changed could not be held."""
        ...


C = TypeVar("C", bound=Undoable)


@final
class History(Generic[C]):
    """The last calls, as many of them as fit: at most `calls`, which hold at most `size` bytes together.

    A call that does not fit by itself cannot be undone, and then no earlier one can be either.
    """

    __slots__ = ("_begin", "_calls", "_most", "_open", "_size", "_used")

    def __init__(self, begin: Callable[[], C], calls: int, size: int) -> None:
        self._begin = begin
        self._calls: deque[tuple[C, int]] = deque()
        self._most = calls
        self._size = size
        self._used = 0
        self._open: C | None = None

    @contextmanager
    def call(self) -> Generator[C]:
        """What is changed within the block is one call, also what is changed before it raises, and in blocks within."""
        if self._open is not None:
            yield self._open
            return
        call = self._open = self._begin()
        try:
            yield call
        finally:
            self._open = None
            if call.before:
                self._add(call)

    def last(self) -> C | None:
        """The last call that can be undone."""
        return self._calls[-1][0] if self._calls else None

    def pop(self) -> None:
        """The last call was undone."""
        _, size = self._calls.pop()
        self._used -= size

    def _add(self, call: C) -> None:
        size = call.size
        if size is None:
            size = self._size + 1
        self._calls.append((call, size))
        self._used += size
        while self._calls and (len(self._calls) > self._most or self._used > self._size):
            _, oldest = self._calls.popleft()
            self._used -= oldest
