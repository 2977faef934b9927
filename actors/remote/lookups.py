"""Ids on the wire for live objects in methods: how an object is found, at each call anew."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias, TypeVar, final

from greenroom.protocol.errors import ConfigError

__all__ = ["Lookups", "Resolve", "Wires"]

T = TypeVar("T")

Resolve: TypeAlias = Callable[[str], T | Awaitable[T | None] | None]
"""Gives the object of an id, or None if there is none; plain or async."""

Wires: TypeAlias = tuple[tuple[type, str], ...]
"""Classes, each with what follows the names of its parameters."""

ID: Final = "id"


class _Kind:
    """How objects of one class are named and found."""

    __slots__ = ("ways", "wire")

    def __init__(self, wire: str) -> None:
        self.wire = wire
        self.ways: dict[object, Resolve[Any]] = {}
        """The newest is the last, and holds."""


@final
class Lookups:
    """What the parameters of remote methods may be besides JSON values: objects that live here, told by their ids.

    ::

        runtime.remote.lookups.register(Project, projects.get)

    A parameter `project: Project` is then `projectId` on the wire, a text. The object is looked up at each call and
    never kept, so it may be anything that the id stands for at that moment: a method must not take for granted that it
    is still alive after its next `await`.
    """

    def __init__(self) -> None:
        self._kinds: dict[type, _Kind] = {}

    def register(self, kind: type[T], resolve: Resolve[T], *, wire: str = ID) -> Callable[[], None]:
        """Let parameters of the class `kind` be ids, for which `resolve` finds the object.

        `wire` follows the parameter's name: with `key`, `project: Project` is `projectKey`. What is returned takes the
        registration back, as often as it is called; methods that need it are then refused at their calls with
        `gateway/lookup-unavailable`.

        Raises ConfigError REMOTE for a class that is registered already; `override` replaces how it is found.
        """
        known = self._kinds.get(kind)
        if known is not None and known.ways:
            raise ConfigError(
                "REMOTE",
                f"Ids of {kind.__name__} are looked up already; `override` says how else, for as long as you want.",
                {"class": kind.__name__},
            )
        self._kinds[kind] = _Kind(wire)
        return self._enter(kind, resolve)

    def override(self, kind: type[T], resolve: Resolve[T]) -> Callable[[], None]:
        """Find objects of that class in another way, until what is returned is called.

        Raises ConfigError REMOTE for a class that is not registered.
        """
        if not self.knows(kind):
            known = ", ".join(each.__name__ for each in self._kinds) or "none"
            raise ConfigError(
                "REMOTE",
                f"No ids of {kind.__name__} are looked up, so there is nothing to override; `register` it. There are: "
                f"{known}.",
                {"class": kind.__name__},
            )
        return self._enter(kind, resolve)

    def _enter(self, kind: type, resolve: Resolve[Any]) -> Callable[[], None]:
        ways, place = self._kinds[kind].ways, object()
        ways[place] = resolve

        def close() -> None:
            ways.pop(place, None)

        return close

    @property
    def wires(self) -> Wires:
        """The classes of which ids are looked up now, each with what follows the names of its parameters."""
        return tuple((kind, known.wire) for kind, known in self._kinds.items() if known.ways)

    def knows(self, kind: type) -> bool:
        """Whether ids of that class are looked up now."""
        known = self._kinds.get(kind)
        return known is not None and bool(known.ways)

    async def find(self, kind: type[T], id: str) -> T | None:
        """The object of that id, or None. Raises what looking it up raises, and LookupError if nothing can."""
        known = self._kinds.get(kind)
        if known is None or not known.ways:
            raise LookupError(kind.__name__)
        found = next(reversed(known.ways.values()))(id)
        return (await found) if inspect.isawaitable(found) else found
