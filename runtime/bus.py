"""The event bus: who declares an event dispatches it, anybody may listen.

Events of mode `emit` are announcements: listeners are plain functions, called in the order of their registration; what
one returns is ignored, what one raises is logged and stops nobody. Who listens is fixed when a dispatch starts: one
added meanwhile is not called, one that ended meanwhile is passed over. Whoever dispatches, a listener runs outside the
tree: a task that it starts waits for itself. A dispatch without listeners costs one look.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar, final, overload

from greenroom.protocol.errors import GreenroomError
from greenroom.runtime.context import as_nobody, current_node

__all__ = ["Bus", "Dispatch", "Event"]

P = TypeVar("P")

logger = logging.getLogger("greenroom.bus")


@final
class _Listener(Generic[P]):
    """One registration. The same function may have several."""

    __slots__ = ("call", "component", "listening")

    def __init__(self, call: Callable[[P], object], component: str) -> None:
        self.call = call
        self.component = component
        """Whose it is, for the log."""
        self.listening = True


@final
class Event(Generic[P]):
    """A declared event, for listening to. `payload` is the type of what its listeners get."""

    __slots__ = ("listeners", "mode", "name", "payload")

    def __init__(self, name: str, mode: Literal["emit"], payload: type[P]) -> None:
        self.name = name
        self.mode = mode
        self.payload = payload
        self.listeners: tuple[_Listener[P], ...] = ()
        """The bus's own: use `Bus.on`."""

    @property
    def heard(self) -> bool:
        """Somebody listens: worth building a payload for."""
        return bool(self.listeners)

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
            for listener in event.listeners:  # a tuple, so it stays the same
                if listener.listening:
                    try:
                        as_nobody(listener.call, payload)
                    except Exception:
                        logger.exception("The listener of %s to %s raised", listener.component, name)

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

    @overload
    def on(self, event: Event[P], listener: Callable[[P], object], *, prepend: bool = False) -> Callable[[], None]: ...

    @overload
    def on(self, event: str, listener: Callable[[Any], object], *, prepend: bool = False) -> Callable[[], None]: ...

    def on(
        self, event: Event[Any] | str, listener: Callable[[Any], object], *, prepend: bool = False
    ) -> Callable[[], None]:
        """Call `listener(payload)` at each dispatch; the returned function ends that and may be called again.

        A listener that an actor registers is the actor's, and ends with it at the latest. `prepend` puts it before
        those there are.

        Raises GreenroomError WRONG_KIND for an async listener: a plain one can `tell` an actor, which may wait.
        """
        if isinstance(event, str):
            event = self.event(event)
        if inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(type(listener).__call__):
            raise GreenroomError(
                "WRONG_KIND",
                f"{event.name} is announced, not awaited: its listeners are plain functions. Let yours tell an actor.",
                {"event": event.name},
            )
        node = current_node()
        life = node.place.life if node is not None and node.place is not None else None
        component = getattr(listener, "__qualname__", repr(listener)) if life is None else life.actor.ref.path
        entry = _Listener(listener, component)
        listeners = event.listeners
        event.listeners = (entry, *listeners) if prepend else (*listeners, entry)

        def close() -> None:
            entry.listening = False
            others = event.listeners
            event.listeners = tuple(other for other in others if other is not entry)
            if life is not None:
                life.forget(close)

        if life is not None:
            life.at_end(close)
        return close
