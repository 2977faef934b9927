"""How long a search may take: it looks at the clock, and for its cancellation, between two matches."""

from __future__ import annotations

import time
from typing import final

import trio

from greenroom.protocol.errors import WorkspaceError
from greenroom.protocol.workspace import Query
from greenroom.protocol.workspace.slicing import printable

__all__ = ["Budget"]


@final
class Budget:
    """A check for work in a worker thread, which may take `seconds` from its first look (`None`: as long as it likes).

    Raises `WorkspaceError` LIMIT (context `query`, `seconds`), and what trio raises in a thread that was cancelled.
    """

    __slots__ = ("_end", "_query", "_seconds")

    def __init__(self, query: Query, seconds: float | None) -> None:
        self._query = query
        self._seconds = seconds
        self._end: float | None = None

    def __call__(self) -> None:
        trio.from_thread.check_cancelled()
        if self._seconds is None:
            return
        now = time.monotonic()
        if self._end is None:
            self._end = now + self._seconds
        elif now > self._end:
            raise WorkspaceError(
                "LIMIT",
                f"Going through all files for this query takes more than {self._seconds:g} s, so it was given up and "
                "nothing was changed. Look for something that is there less often, or set a limit.",
                {"query": printable(self._query.text), "seconds": self._seconds},
            )
