"""The event bus: who declares an event dispatches it, anybody may listen.

Events of mode `emit` are announcements: listeners are plain functions, called in the order of their registration; what
one returns is ignored, what one raises is logged and stops nobody. A dispatch without listeners costs one look.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar, cast, final

from greenroom.protocol.errors import GreenroomError

__all__ = ["Bus", "Dispatch", "Event"]

P = TypeVar("P")

logger = logging.getLogger("greenroom.bus")


@final
class Event(Generic[P]):
    """A declared event, for listening to. `payload` is the type of what its listeners get."""

    __slots__ = ("_listeners", "mode", "name", "payload")

    def __init__(self, name: str, mode: Literal["emit"], payload: type[P]) -> None:
        self.name = name
        self.mode = mode
        self.payload = payload
        self._listeners: tuple[Callable[[P], object], ...] = ()

    @property
    def heard(self) -> bool:
        """Somebody listens: worth building a payload for."""
        return bool(self._listeners)

    def __repr__(self) -> str:
        return f"<Event {self.name}>"


Dispatch = Callable[[P], None]
"""The private half of a declaration: announces one payload. Never raises what a listener raises."""


@final
class Bus:
    """The events of one runtime, by name."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: dict[str, Event[Any]] = {}

    def declare(self, name: str, payload: type[P], *, mode: Literal["emit"] = "emit") -> tuple[Event[P], Dispatch[P]]:
        """Declare an event once; the event is for everybody, the dispatch for the declarer alone.

        Raises GreenroomError DUPLICATE_EVENT.
        """
        if name in self._events:
            raise GreenroomError(
                "DUPLICATE_EVENT", f"The event {name} is declared already; listen to it with bus.on.", {"event": name}
            )
        event = self._events[name] = Event(name, mode, payload)

        def dispatch(payload: P) -> None:
            for listener in event._listeners:  # pyright: ignore[reportPrivateUsage] # a tuple: those added meanwhile are not called
                try:
                    listener(payload)
                except Exception:
                    logger.exception("A listener of %s raised", name)

        return event, dispatch

    def event(self, name: str) -> Event[Any]:
        """The event of that name. Raises GreenroomError UNKNOWN_EVENT, naming the known ones."""
        found = self._events.get(name)
        if found is None:
            known = sorted(self._events)
            raise GreenroomError(
                "UNKNOWN_EVENT",
                f"No event is called {name}; known are {', '.join(known)}.",
                {"event": name, "known": known},
            )
        return found

    def events(self) -> list[Event[Any]]:
        """All declared events, by name."""
        return [self._events[name] for name in sorted(self._events)]

    def on(
        self, event: Event[P] | str, listener: Callable[[P], object], *, prepend: bool = False
    ) -> Callable[[], None]:
        """Call `listener(payload)` at each dispatch; the returned function ends that and may be called again.

        Raises GreenroomError WRONG_KIND for an async listener: a plain one can `tell` an actor, which may wait.
        """
        if isinstance(event, str):
            event = cast("Event[P]", self.event(event))
        if inspect.iscoroutinefunction(listener):
            raise GreenroomError(
                "WRONG_KIND",
                f"{event.name} is announced, not awaited: its listeners are plain functions. Let yours tell an actor.",
                {"event": event.name},
            )
        listeners = event._listeners  # pyright: ignore[reportPrivateUsage]
        event._listeners = (listener, *listeners) if prepend else (*listeners, listener)  # pyright: ignore[reportPrivateUsage]
        open_ = True

        def close() -> None:
            nonlocal open_
            if open_:
                open_ = False
                rest = list(event._listeners)  # pyright: ignore[reportPrivateUsage]
                rest.remove(listener)
                event._listeners = tuple(rest)  # pyright: ignore[reportPrivateUsage]

        return close
