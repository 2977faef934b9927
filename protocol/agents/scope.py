"""Scopes: what of an agent's instructions, tools and files a run may see."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import final

from msgspec import Struct, field

from greenroom.protocol.emitter import Emitter, ErrorHandler, Listener

__all__ = ["Scope", "ScopeManager"]

Names = tuple[str, ...] | None


def _fresh() -> str:
    return str(uuid.uuid4())


@final
class Scope(Struct, frozen=True, omit_defaults=True):
    """For each kind the names that are seen: `None` for all, an empty tuple for none."""

    name: str
    instructions: Names = None
    tools: Names = None
    files: Names = None
    """Paths in the active workspace."""
    id: str = field(default_factory=_fresh)

    def narrow(self, child: Scope) -> Scope:
        """What both let through, in the child's order, as a scope of the child's name with an id of its own."""
        return Scope(
            child.name,
            _both(self.instructions, child.instructions),
            _both(self.tools, child.tools),
            _both(self.files, child.files),
        )


def _both(outer: Names, inner: Names) -> Names:
    if outer is None or inner is None:
        return outer if inner is None else inner
    return tuple(name for name in inner if name in outer)


@final
class ScopeManager:
    """Scopes by id. Events of its `emitter`, after the change: `create(scope)`, `remove(id)`, `clear()`."""

    def __init__(self, *, on: Mapping[str, Listener] | None = None, error: ErrorHandler | None = None) -> None:
        self.emitter = Emitter(("create", "remove", "clear"), on=on, error=error)
        self._scopes: dict[str, Scope] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._scopes)

    def scope(self, id: str) -> Scope | None:
        """The one of that id, if there is one."""
        return self._scopes.get(id)

    def scopes(self) -> list[Scope]:
        """All of them, in order."""
        return list(self._scopes.values())

    def create(self, name: str, *, instructions: Names = None, tools: Names = None, files: Names = None) -> Scope:
        """Make one and keep it."""
        scope = Scope(name, instructions, tools, files)
        self._scopes[scope.id] = scope
        self.emitter.emit("create", scope)
        return scope

    def remove(self, ids: str | Iterable[str]) -> bool:
        """Remove them; whether one of them was there."""
        removed = False
        for id in (ids,) if isinstance(ids, str) else tuple(ids):
            if self._scopes.pop(id, None) is not None:
                removed = True
                self.emitter.emit("remove", id)
        return removed

    def clear(self) -> None:
        """Remove all of them."""
        if self._scopes:
            self._scopes.clear()
            self.emitter.emit("clear")
