"""Tokens that tell others to stop, and why."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol, final, runtime_checkable

import trio

__all__ = ["Cancel", "CancelToken"]

logger = logging.getLogger("greenroom.cancel")


@runtime_checkable
class CancelToken(Protocol):
    """What can be waited for to be told to stop: a `Cancel`, or a bare `trio.Event`."""

    def is_set(self) -> bool: ...
    async def wait(self) -> None: ...


@final
class Cancel:
    """A `CancelToken` with a reason, which can also be listened to. It is set once and stays set."""

    __slots__ = ("_event", "_listeners", "_set", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        """Why it was set, if that was said."""
        self._set = False
        self._event: trio.Event | None = None
        self._listeners: dict[object, Callable[[], object]] | None = None

    def is_set(self) -> bool:
        """Whether it was set."""
        return self._set

    def set(self, reason: str | None = None) -> None:
        """Tell everybody to stop. Does nothing if it was set before: the first reason is the one that counts.

        What a listener raises is logged, and keeps nobody else from being told.
        """
        if self._set:
            return
        self._set, self.reason = True, reason
        if self._event is not None:
            self._event.set()
        listeners, self._listeners = self._listeners, None
        for listener in (listeners or {}).values():
            try:
                listener()
            except Exception:
                logger.exception("A listener to being told to stop raised")

    async def wait(self) -> None:
        """Wait, without a deadline, until it is set."""
        if self._set:
            await trio.lowlevel.checkpoint()
            return
        if self._event is None:
            self._event = trio.Event()
        await self._event.wait()

    def listen(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call `listener()` when it is set, in the step of whoever sets it; at once if it is. What comes back ends
        that."""
        if self._set:
            listener()
            return _nothing
        key = object()
        if self._listeners is None:
            self._listeners = {}
        self._listeners[key] = listener

        def close() -> None:
            if self._listeners is not None:
                self._listeners.pop(key, None)

        return close


def _nothing() -> None:
    pass
