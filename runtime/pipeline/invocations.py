"""Calls as policies are shown them: who calls what with which arguments, beneath which other call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

from msgspec import Struct

from greenroom.runtime.cancel import Cancel
from greenroom.runtime.scopes import Scope

if TYPE_CHECKING:
    from greenroom.runtime.pipeline.outcomes import Outcome

__all__ = ["Invocation", "Settled"]


@final
class Invocation(Struct, frozen=True, eq=False, kw_only=True, weakref=True):
    """One execution of a tool call. It is its own identity: two calls with the same id are two invocations."""

    call_id: str
    """The model's, which need not be unique."""
    name: str
    """Of the tool, whether or not there is one."""
    known: bool = True
    """Whether there was one when the call came."""
    arguments: Any
    """As they came, before the tool reads them: a frozen copy (`thaw` it to have one that can be changed)."""
    agent: str | None = None
    """The path of the actor that calls. None: the program, outside the tree."""
    caller: object = None
    """The note of the call, which nobody verifies."""
    parent: Invocation | None = None
    """The call in whose tool this one was made."""
    scope: Scope | None = None
    """Where it happens."""
    stop: Cancel | None = None
    """What tells it to stop. What waits in a policy on its behalf may listen to that."""

    @property
    def root_id(self) -> str:
        """The id of the outermost call."""
        return self.call_id if self.parent is None else self.parent.root_id

    @property
    def depth(self) -> int:
        """Within how many calls it was made."""
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop."""
        return self.stop is not None and self.stop.is_set()

    def on_stop(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call `listener()` when it is told to stop (at once if it was); what comes back ends that."""
        return _nothing if self.stop is None else self.stop.listen(listener)


@final
class Settled(Struct, frozen=True, eq=False):
    """A call and what it came to: so far (`tools/post-execute`), or in the end (`tools/result`)."""

    call: Invocation
    outcome: Outcome


def _nothing() -> None:
    pass
