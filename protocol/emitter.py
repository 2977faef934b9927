"""A synchronous emitter: named events, listeners called in the order in which they registered."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias, final

from greenroom.protocol.errors import GreenroomError

__all__ = ["Emitter", "ErrorHandler", "Listener"]

Listener: TypeAlias = Callable[..., object]
"""Called with the event's arguments; what it returns is dropped."""

ErrorHandler: TypeAlias = Callable[[Exception, str], object]
"""Called with what a listener raised and the name of the event that it was called for."""


@final
class Emitter:
    """Calls listeners at once, in order of registration, over a snapshot taken when the event is emitted.

    A listener that registers or leaves while an event is emitted changes the next event, not this one. An `Exception`
    that a listener raises is handed to `error` and stops neither its siblings nor the caller; one that `error` itself
    raises is dropped. Anything else, cancellation above all, propagates at once. An emitter without listeners holds no
    containers, and emitting costs one test.

    `events` names what may be listened to; `on` registers first listeners by event name.
    """

    __slots__ = ("_closed", "_error", "_events", "_listeners")

    def __init__(
        self, events: Collection[str], *, on: Mapping[str, Listener] | None = None, error: ErrorHandler | None = None
    ) -> None:
        self._events = events
        self._error = error
        self._closed = False
        # A key of its own for each registration: the same listener may stand here twice and leaves one at a time.
        self._listeners: dict[str, dict[object, Listener]] | None = None
        for event, listener in (on or {}).items():
            self.on(event, listener)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def heard(self) -> bool:
        """Whether anybody listens to anything: worth putting together what is to be emitted."""
        return self._listeners is not None

    def hears(self, event: str) -> bool:
        """Whether anybody listens to this event."""
        return self._listeners is not None and event in self._listeners

    @property
    def count(self) -> int:
        """How many listeners are registered, over all events."""
        return sum(map(len, self._listeners.values())) if self._listeners else 0

    def on(self, event: str, listener: Listener) -> Callable[[], None]:
        """Register `listener`; the function that comes back takes it away again, at most once.

        On a closed emitter nothing is registered. Raises `GreenroomError` EVENT for a name that is not among `events`.
        """
        if event not in self._events:
            known = sorted(self._events)
            raise GreenroomError(
                "EVENT",
                f"There is no event {event!r} to listen to; there are: {', '.join(known)}.",
                {"event": event, "known": known},
            )
        key = object()

        def off() -> None:
            if self._listeners is None or (registered := self._listeners.get(event)) is None:
                return
            registered.pop(key, None)
            if not registered:
                del self._listeners[event]
                if not self._listeners:
                    self._listeners = None

        if not self._closed:
            if self._listeners is None:
                self._listeners = {}
            self._listeners.setdefault(event, {})[key] = listener
        return off

    def emit(self, event: str, *args: Any) -> None:
        """Call the listeners of `event`. Returns when the last has returned; silent once closed."""
        if self._listeners is None or (registered := self._listeners.get(event)) is None:
            return
        for listener in tuple(registered.values()):
            try:
                listener(*args)
            except Exception as error:
                self.report(error, event)

    def report(self, error: Exception, event: str) -> None:
        """Hand `error` to the error handler as if a listener of `event` had raised it."""
        if self._error is None:
            return
        # The last resort may fail too; the caller is no party to that.
        with contextlib.suppress(Exception):
            self._error(error, event)

    def close(self) -> None:
        """Drop all listeners for good; idempotent. An event being emitted still reaches its snapshot."""
        self._closed = True
        self._listeners = None
