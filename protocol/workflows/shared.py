"""What the nodes of one workflow share: its clock, its handlers, and the order in which changes are announced."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, final

from greenroom.protocol.emitter import Emitter, ErrorHandler
from greenroom.protocol.workflows.composition import WorkflowFunction

if TYPE_CHECKING:
    from greenroom.protocol.workflows.node import Node

__all__ = ["Clock", "Shared", "Watcher", "callables"]

Clock: TypeAlias = Callable[[], float]
"""Seconds since 1970."""

Watcher: TypeAlias = Callable[["Node", str, tuple[Any, ...]], object]
"""Called with the node that announces, the event, and its arguments."""


@final
class Shared:
    """One per workflow. Nodes change their state first, line up what follows from it, and then let it happen.

    What is lined up while something happens comes after all that is in line already. So a listener may act on the
    workflow, and what it sets off is announced behind what set it off.
    """

    __slots__ = ("_changes", "_clock", "_happening", "_line", "functions", "suspended", "updated")

    def __init__(
        self,
        *,
        functions: Mapping[str, object] | None,
        clock: Clock,
        updated: int,
        error: ErrorHandler | None = None,
    ) -> None:
        self.functions = callables(functions or {})
        self.updated = updated
        self.suspended = False
        """Whether the workflow goes on elsewhere: nothing of it changes here any more."""
        self._clock = clock
        self._changes = Emitter(("change",), error=error)
        self._line: deque[Callable[[], object]] = deque()
        self._happening = False

    def now(self) -> int:
        """Milliseconds since 1970; 0 for a clock that is set to before."""
        return max(0, int(self._clock() * 1000))

    def touch(self) -> int:
        """Note that something was changed that is stored. Returns when, which never is before an earlier change."""
        self.updated = max(self.updated, self.now())
        return self.updated

    def line_up(self, effect: Callable[[], object]) -> None:
        """Let `effect` happen after all that is in line."""
        self._line.append(effect)

    def announce(self, node: Node, event: str, *args: Any) -> None:
        """Line up an event of `node`: its own listeners hear it first, then those who watch the whole workflow."""
        self._line.append(partial(node.emitter.emit, event, *args))
        if self._changes.heard:
            self._line.append(partial(self._changes.emit, "change", node, event, args))

    def happen(self) -> None:
        """Let what is in line happen, unless that is going on already."""
        if self._happening:
            return
        self._happening = True
        try:
            while self._line:
                self._line.popleft()()
        finally:
            self._happening = False

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with every event of every node from now on; what comes back ends that."""
        return self._changes.on("change", watcher)

    def close(self) -> None:
        """Drop all watchers for good."""
        self._changes.close()


def callables(functions: Mapping[str, object]) -> dict[str, WorkflowFunction]:
    """What can be called of a mapping's own entries, by name. A mapping that makes entries up on demand gives none."""
    return {name: function for name, function in dict(functions).items() if callable(function)}
