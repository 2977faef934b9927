"""Projections: what a log comes to, kept up to date event by event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeVar, final

from msgspec import Struct

from greenroom.protocol.agents import InboxMessage
from greenroom.protocol.sessions.events import (
    InboxSpliced,
    JobEnded,
    JobStarted,
    Todo,
    TodoWrite,
    TurnEnd,
    TurnEndReason,
    TurnStart,
    UserMessage,
)
from greenroom.protocol.sessions.record import SessionEvent

__all__ = ["INBOX", "JOBS", "TODOS", "TURNS", "Inboxes", "Projection", "ProjectionSnapshot", "Turns", "project"]

S = TypeVar("S")


class Projection(Protocol[S]):
    """What one reader wants to know of a log. Its functions are plain and pure: the same events come to the same."""

    @property
    def key(self) -> str:
        """By which it is found in a snapshot."""
        ...

    @property
    def schema(self) -> type[Any]:
        """The type of the view."""
        ...

    @property
    def state_version(self) -> int:
        """Changes when `apply` comes to something else than before."""
        ...

    def init(self) -> S:
        """What no events come to."""
        ...

    def apply(self, state: S, event: SessionEvent) -> S:
        """What they come to with one event more; the same object, if the event is none of its own."""
        ...

    def view(self, state: S) -> Any:
        """What a reader is shown of the state."""
        ...


@final
class ProjectionSnapshot(Struct, frozen=True, rename="camel"):
    """What projections have come to by one event."""

    as_of_seq: int
    """The number of that event; -1 before the first."""
    values: dict[str, Any]


def project(projections: Iterable[Projection[Any]], events: Iterable[SessionEvent]) -> ProjectionSnapshot:
    """What these events come to, for each of the projections."""
    known = tuple(projections)
    states = [projection.init() for projection in known]
    last = -1
    for event in events:
        last = event.seq
        for place, projection in enumerate(known):
            states[place] = projection.apply(states[place], event)
    return ProjectionSnapshot(last, {each.key: each.view(state) for each, state in zip(known, states, strict=True)})


@final
class _Todos:
    """The list of what is to be done: each event holds all of it."""

    key = "todos"
    schema = tuple[Todo, ...]
    state_version = 1

    def init(self) -> tuple[Todo, ...]:
        return ()

    def apply(self, state: tuple[Todo, ...], event: SessionEvent) -> tuple[Todo, ...]:
        return event.data.todos if isinstance(event.data, TodoWrite) else state

    def view(self, state: tuple[Todo, ...]) -> tuple[Todo, ...]:
        return state


@final
class Turns(Struct, frozen=True):
    """How many turns there were, whether one is open, and how the last one ended that did."""

    count: int = 0
    open: bool = False
    last: TurnEndReason | None = None


@final
class _Turns:
    key = "turns"
    schema = Turns
    state_version = 1

    def init(self) -> Turns:
        return Turns()

    def apply(self, state: Turns, event: SessionEvent) -> Turns:
        if isinstance(event.data, TurnStart):
            return Turns(state.count + 1, True, state.last)
        if isinstance(event.data, TurnEnd):
            return Turns(state.count, False, event.data.reason)
        return state

    def view(self, state: Turns) -> Turns:
        return state


@final
class Inboxes(Struct, frozen=True):
    """What waits, and before it what was claimed and has not become a message: the process ended in between."""

    waiting: tuple[InboxMessage, ...] = ()
    in_hand: tuple[InboxMessage, ...] = ()


@final
class _Inbox:
    """What is still to be read."""

    key = "inbox"
    schema = tuple[InboxMessage, ...]
    state_version = 1

    def init(self) -> Inboxes:
        return Inboxes()

    def apply(self, state: Inboxes, event: SessionEvent) -> Inboxes:
        match event.data:
            case InboxSpliced() as data:
                waiting = tuple(message for message in state.waiting if message.id not in data.removed)
                if data.claimed:
                    taken = (message for message in state.waiting if message.id in data.removed)
                    in_hand = (*state.in_hand, *taken)
                else:
                    in_hand = tuple(message for message in state.in_hand if message.id not in data.removed)
                return Inboxes((*waiting, *data.inserted), in_hand)
            case UserMessage() as data:
                read = next((each for each in state.in_hand if each.text == data.content), None)
                return state if read is None else Inboxes(state.waiting, _without(state.in_hand, read))
            case _:
                return state

    def view(self, state: Inboxes) -> tuple[InboxMessage, ...]:
        return (*state.in_hand, *state.waiting)


def _without(messages: tuple[InboxMessage, ...], one: InboxMessage) -> tuple[InboxMessage, ...]:
    return tuple(message for message in messages if message is not one)


@final
class _Jobs:
    """The jobs of whose end the agent has not been told."""

    key = "jobs"
    schema = tuple[JobStarted, ...]
    state_version = 1

    def init(self) -> tuple[JobStarted, ...]:
        return ()

    def apply(self, state: tuple[JobStarted, ...], event: SessionEvent) -> tuple[JobStarted, ...]:
        match event.data:
            case JobStarted() as data:
                return (*state, data)
            case JobEnded() as data:
                return tuple(job for job in state if job.id != data.id)
            case _:
                return state

    def view(self, state: tuple[JobStarted, ...]) -> tuple[JobStarted, ...]:
        return state


INBOX: Final[Projection[Inboxes]] = _Inbox()
JOBS: Final[Projection[tuple[JobStarted, ...]]] = _Jobs()
TODOS: Final[Projection[tuple[Todo, ...]]] = _Todos()
TURNS: Final[Projection[Turns]] = _Turns()
