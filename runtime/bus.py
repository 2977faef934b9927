"""The event bus: who declares an event dispatches it, anybody may listen.

::

    event, dispatch = bus.declare("tools/execute", ToolCall, mode="waterfall", result=ToolResult)

    async def timed(call: ToolCall, next: Next[ToolResult]) -> ToolResult:
        started = trio.current_time()
        result = await next()  # what is beneath: later listeners, and innermost what the dispatcher does by itself
        print(call.name, trio.current_time() - started)
        return result

    bus.on(event, timed)
    result = await dispatch(call, run_the_tool)

There are four modes:

- `emit` announces. Listeners are plain functions, called in order; what one returns is ignored, what one raises is
  logged and stops nobody (an `InvariantError` is raised once all were called). A listener runs outside the tree: a task
  that it starts waits for itself. With `veto=True` the first raise ends the dispatch and is raised in it.
- `waterfall` wraps. Each listener is an async function of the payload and of `next`, which runs all that is beneath it;
  the first registered is outermost, what the dispatcher gives is innermost. What the outermost returns is the outcome,
  and what one raises goes outward.
- `serial` asks one after another: the first value that is neither None nor False ends it and is the outcome.
- `parallel` runs the listeners together and waits for all. Their exceptions come as one group, in order.

Who listens is fixed when a dispatch starts: one added meanwhile is not called, one that ended meanwhile is passed over.
Cancelling a dispatch cancels its listeners. A dispatch without listeners costs one look.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Literal, TypeAlias, TypeVar, final, overload

import trio

from greenroom.protocol.errors import GreenroomError, InvariantError
from greenroom.runtime.context import as_nobody, current_node
from greenroom.runtime.scopes import Scope

__all__ = ["Bus", "Dispatch", "Event", "Mode", "Next", "awaited", "closing_all"]

P = TypeVar("P")
R = TypeVar("R")
L = TypeVar("L", bound=Callable[..., Any])

Mode: TypeAlias = Literal["emit", "waterfall", "serial", "parallel"]

logger = logging.getLogger("greenroom.bus")


@final
class _Listener(Generic[L]):
    """One registration. The same function may have several."""

    __slots__ = ("call", "component", "listening", "scope")

    def __init__(self, call: L, component: str, scope: Scope | None) -> None:
        self.call = call
        self.component = component
        """Whose it is, for the log."""
        self.scope = scope
        self.listening = True


@final
class Event(Generic[L]):
    """A declared event, for listening to; `L` is the type of its listeners, `payload` that of what they get."""

    __slots__ = ("listeners", "mode", "name", "payload", "scope_of", "veto")

    def __init__(
        self, name: str, mode: Mode, payload: type, scope_of: Callable[[Any], Scope | None] | None, *, veto: bool
    ) -> None:
        self.name = name
        self.mode: Mode = mode
        self.payload = payload
        self.scope_of = scope_of
        """Where a payload happens; None for an event that has no scopes."""
        self.veto = veto
        self.listeners: tuple[_Listener[L], ...] = ()
        """The bus's own: use `Bus.on`."""

    @property
    def heard(self) -> bool:
        """Somebody listens: worth building a payload for."""
        return bool(self.listeners)

    def hearing(self, payload: object) -> tuple[_Listener[L], ...]:
        """Those who hear that payload: who listens without a scope, at the payload's own, or at one around it."""
        if self.scope_of is None:
            return self.listeners
        scope = self.scope_of(payload)
        around = set[Scope | None](() if scope is None else scope.chain()) | {None}
        return tuple(listener for listener in self.listeners if listener.scope in around)

    def __repr__(self) -> str:
        return f"<Event {self.name}>"


Dispatch: TypeAlias = Callable[[P], None]
"""The private half of the declaration of an `emit` event: announces one payload."""

Listening: TypeAlias = Callable[[P], object]
"""A listener of an `emit` event."""
Answering: TypeAlias = Callable[[P], Awaitable[R]]
"""A listener of a `serial` or `parallel` event."""


@final
class Next(Generic[R]):
    """What is beneath a listener of a waterfall. It takes nothing, so that nobody swaps the payload.

    Each call runs all of it anew. Not calling it replaces all of it. Raises GreenroomError NEXT_MISUSE for a call while
    another one runs, or after the listener has returned.
    """

    __slots__ = ("_event", "_innermost", "_listeners", "_payload", "_position", "_state")

    def __init__(
        self,
        event: str,
        listeners: tuple[_Listener[Any], ...],
        position: int,
        payload: Any,
        innermost: Callable[[], Awaitable[R]],
    ) -> None:
        self._event = event
        self._listeners = listeners
        self._position = position
        """Of the first listener that is beneath."""
        self._payload = payload
        self._innermost = innermost
        self._state: Literal["open", "running", "over"] = "open"

    async def __call__(self) -> R:
        if self._state != "open":
            what = "twice at once" if self._state == "running" else "after its listener had returned"
            raise GreenroomError(
                "NEXT_MISUSE",
                f"next() of a listener to {self._event} was called {what}; await it, once or one after another.",
                {"event": self._event},
            )
        self._state = "running"
        listeners, position = self._listeners, self._position
        try:
            # All in this one coroutine, which is run for every listener of every call.
            while position < len(listeners):
                listener = listeners[position]
                position += 1
                if listener.listening:
                    next = Next(self._event, listeners, position, self._payload, self._innermost)
                    try:
                        result: R = await listener.call(self._payload, next)
                        return result
                    finally:
                        next._state = "over"
            return await self._innermost()
        finally:
            if self._state == "running":
                self._state = "open"


Wrapping: TypeAlias = Callable[[P, Next[R]], Awaitable[R]]
"""A listener of a `waterfall` event."""
Wrapped: TypeAlias = Callable[[P, Callable[[], Awaitable[R]]], Awaitable[R]]
"""Dispatches a `waterfall` event: the payload, and what is done innermost."""


@final
class Bus:
    """The events of one runtime, by name."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: dict[str, Event[Any]] = {}

    @overload
    def declare(
        self,
        name: str,
        payload: type[P],
        *,
        mode: Literal["emit"] = "emit",
        scoped: Callable[[P], Scope | None] | None = None,
        veto: bool = False,
    ) -> tuple[Event[Listening[P]], Dispatch[P]]: ...

    @overload
    def declare(
        self,
        name: str,
        payload: type[P],
        *,
        mode: Literal["waterfall"],
        result: type[R],
        scoped: Callable[[P], Scope | None] | None = None,
    ) -> tuple[Event[Wrapping[P, R]], Wrapped[P, R]]: ...

    @overload
    def declare(
        self,
        name: str,
        payload: type[P],
        *,
        mode: Literal["serial"],
        result: type[R],
        scoped: Callable[[P], Scope | None] | None = None,
    ) -> tuple[Event[Answering[P, R | None]], Answering[P, R | None]]: ...

    @overload
    def declare(
        self,
        name: str,
        payload: type[P],
        *,
        mode: Literal["parallel"],
        scoped: Callable[[P], Scope | None] | None = None,
    ) -> tuple[Event[Answering[P, object]], Answering[P, None]]: ...

    def declare(
        self,
        name: str,
        payload: type[Any],
        *,
        mode: Mode = "emit",
        result: type[Any] | None = None,
        scoped: Callable[[Any], Scope | None] | None = None,
        veto: bool = False,
    ) -> tuple[Event[Any], Callable[..., Any]]:
        """Declare an event once; the event is for everybody, the dispatch for the declarer alone.

        `result` is the type of the outcome. `scoped(payload)` says where it happens (None: nowhere in particular, where
        only listeners without a scope hear it). Raises GreenroomError DUPLICATE_EVENT.
        """
        if name in self._events:
            raise GreenroomError(
                "DUPLICATE_EVENT", f"The event {name} is declared already; listen to it with bus.on.", {"event": name}
            )
        event = self._events[name] = Event[Any](name, mode, payload, scoped, veto=veto)
        return event, _DISPATCHES[mode](event)

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
    def on(
        self, event: Event[L], listener: L, *, prepend: bool = False, scope: Scope | None = None
    ) -> Callable[[], None]: ...

    @overload
    def on(
        self, event: str, listener: Callable[..., Any], *, prepend: bool = False, scope: Scope | None = None
    ) -> Callable[[], None]: ...

    def on(
        self,
        event: Event[Any] | str,
        listener: Callable[..., Any],
        *,
        prepend: bool = False,
        scope: Scope | None = None,
    ) -> Callable[[], None]:
        """Call `listener` at each dispatch; the returned function ends that and may be called again.

        A listener that an actor registers is the actor's, and ends with it at the latest. `prepend` puts it before
        those there are. With a `scope` it hears what happens there or at a scope beneath it, without one everything.

        Raises GreenroomError WRONG_KIND for an async listener to an event that is announced (a plain one can `tell` an
        actor, which may wait), and for a plain one to any other; NO_SCOPE for a scope where the event has none.
        """
        if isinstance(event, str):
            event = self.event(event)
        _check_kind(event, listener)
        if scope is not None and event.scope_of is None:
            raise GreenroomError(
                "NO_SCOPE", f"{event.name} happens in no scope; listen to it without one.", {"event": event.name}
            )
        node = current_node()
        life = node.place.life if node is not None and node.place is not None else None
        component = getattr(listener, "__qualname__", repr(listener)) if life is None else life.actor.ref.path
        entry = _Listener(listener, component, scope)
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


def _check_kind(event: Event[Any], listener: Callable[..., Any]) -> None:
    waits = awaited(listener)
    if waits and event.mode == "emit":
        raise GreenroomError(
            "WRONG_KIND",
            f"{event.name} is announced, not awaited: its listeners are plain functions. Let yours tell an actor.",
            {"event": event.name},
        )
    if not waits and event.mode != "emit":
        raise GreenroomError(
            "WRONG_KIND", f"{event.name} is awaited: its listeners are async functions.", {"event": event.name}
        )


def closing_all(*closes: Callable[[], None]) -> Callable[[], None]:
    """One function in place of those that several registrations have given: it ends them all, in their order."""

    def close() -> None:
        for end in closes:
            end()

    return close


def awaited(function: Callable[..., Any]) -> bool:
    """Whether it is async: such a function, an object that is called as one, or a `partial` of either."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


# -------------------------------------------------------------------- the four modes


def _emit(event: Event[Listening[P]]) -> Dispatch[P]:
    def dispatch(payload: P) -> None:
        if not event.listeners:
            return
        broken: InvariantError | None = None
        for listener in event.hearing(payload):
            if listener.listening:
                try:
                    as_nobody(listener.call, payload)
                except InvariantError as error:
                    broken = broken or error
                except Exception:
                    if event.veto:
                        raise
                    logger.exception("The listener of %s to %s raised", listener.component, event.name)
        if broken is not None:
            raise broken

    return dispatch


def _waterfall(event: Event[Wrapping[P, R]]) -> Wrapped[P, R]:
    async def dispatch(payload: P, innermost: Callable[[], Awaitable[R]]) -> R:
        if not event.listeners:
            return await innermost()
        return await Next(event.name, event.hearing(payload), 0, payload, innermost)()

    return dispatch


def _serial(event: Event[Answering[P, R | None]]) -> Answering[P, R | None]:
    async def dispatch(payload: P) -> R | None:
        for listener in event.hearing(payload):
            if listener.listening:
                value = await listener.call(payload)
                if value is not None and value is not False:
                    return value
        return None

    return dispatch


def _parallel(event: Event[Answering[P, object]]) -> Answering[P, None]:
    async def dispatch(payload: P) -> None:
        listeners = event.hearing(payload)
        errors: dict[int, Exception] = {}

        async def run(position: int) -> None:
            if listeners[position].listening:
                try:
                    await listeners[position].call(payload)
                except Exception as error:
                    errors[position] = error

        async with trio.open_nursery() as nursery:
            for position in range(len(listeners)):
                nursery.start_soon(run, position)
        if errors:
            raise ExceptionGroup(f"listeners to {event.name} raised", [errors[each] for each in sorted(errors)])

    return dispatch


_DISPATCHES: dict[Mode, Callable[[Event[Any]], Callable[..., Any]]] = {
    "emit": _emit,
    "waterfall": _waterfall,
    "serial": _serial,
    "parallel": _parallel,
}
