"""A gate that a paused node closes, and those who wait in front of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

__all__ = ["Gate"]


@final
class Gate:
    """Open until it is closed, and again once it is opened. Nothing here waits: whoever does is called back.

    ::

        while not gate.is_open:
            opened = trio.Event()
            leave = gate.on_open(opened.set)
            try:
                await opened.wait()
            finally:
                leave()
    """

    __slots__ = ("_open", "_waiting")

    def __init__(self) -> None:
        self._open = True
        self._waiting: dict[object, Callable[[], object]] = {}

    @property
    def is_open(self) -> bool:
        """Whether one may pass."""
        return self._open

    def close(self) -> None:
        """Let nobody pass until `open`."""
        self._open = False

    def open(self) -> None:
        """Let everybody pass, and call those who wait, in the order in which they came. They must not raise."""
        self._open = True
        waiting, self._waiting = self._waiting, {}
        for call in waiting.values():
            call()

    def on_open(self, call: Callable[[], object]) -> Callable[[], None]:
        """Call `call` once when the gate opens, at once if it is open. What comes back takes the call away again."""
        key = object()
        if self._open:
            call()
        else:
            self._waiting[key] = call

        def leave() -> None:
            self._waiting.pop(key, None)

        return leave
