"""Scopes of the bus: where an event happens, and where somebody listens. They route; they secure nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

__all__ = ["Scope"]


@final
class Scope:
    """A place in a tree of scopes, such as application > preset > agent. Its parent is bound once, so there are no
    circles.
    """

    __slots__ = ("name", "parent")

    def __init__(self, name: str, parent: Scope | None = None) -> None:
        self.name = name
        self.parent = parent

    def chain(self) -> Iterator[Scope]:
        """This scope, its parent, and so on up to the outermost."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def __repr__(self) -> str:
        return f"<Scope {' > '.join(scope.name for scope in reversed(list(self.chain())))}>"
