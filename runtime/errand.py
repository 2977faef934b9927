"""Errands: pieces of an actor's work that have places of their own in the tree, without a mailbox that is served.

::

    errand = begin(Errand(), "fetch", parent=self.ref, nursery=nursery)  # in the task that does the work
    try:
        with trio.CancelScope() as scope:
            errand.cancel_with(scope)
            ...  # waits start here, actors are spawned beneath, and whoever stops the place cancels the scope
    finally:
        await finish(errand)
"""

from __future__ import annotations

from typing import TypeVar, final

import trio
from trio.lowlevel import enable_ki_protection

from greenroom.runtime.actor import Actor
from greenroom.runtime.context import CURRENT
from greenroom.runtime.life import end_all, move_in
from greenroom.runtime.life import finish as end_for_good
from greenroom.runtime.patience import OPEN, spawned
from greenroom.runtime.ref import Ref
from greenroom.runtime.waits import Wait

__all__ = ["Errand", "begin", "finish"]

E = TypeVar("E", bound="Errand")


@final
class _Doing(Wait):
    """The owner's work goes on when the errand is done, so that whoever waits for the owner waits for the errand."""

    __slots__ = ()

    @property
    def kind(self) -> str:
        return "errand"


class Errand(Actor):
    """Who does a piece of work, in a task that somebody else has started. It takes no messages.

    A whole actor has a nursery and a loop of its own, which cost more than many a piece of work.
    """

    __slots__ = ("_doing",)

    _doing: _Doing

    @property
    def stopping(self) -> bool:
        """Whether its place, or one that it is beneath, is being stopped."""
        return not self.ref.alive

    def cancel_with(self, scope: trio.CancelScope) -> None:
        """Let a stop of its place cancel `scope` from now on, instead of an earlier one."""
        self._life.scope = scope
        if self.stopping:
            scope.cancel()


@enable_ki_protection
def begin(errand: E, name: str, *, parent: Ref, nursery: trio.Nursery) -> E:
    """Give the errand its place at `<parent's path>/<name>`, and let the waits of this task start there.

    What is spawned beneath it runs in `nursery`, which is the parent's or within it. `name` must be free
    (`free_place`). The task owes a `finish`.
    """
    ref = Ref(f"{parent.path}/{name}", parent.tree, parent, 1)
    move_in(ref, errand)
    ref.life.nursery = nursery
    ref.state = "running"
    if parent.children is None:
        parent.children = {}
    parent.children[name] = ref
    if OPEN:
        spawned(ref)
    errand._doing = _Doing(parent.work, ref.work)  # pyright: ignore[reportPrivateUsage]
    CURRENT.set(ref.work)
    ref.tree.announce_started(ref)
    return errand


@enable_ki_protection
async def finish(errand: Errand) -> None:
    """Stop what is beneath the errand, wait until nothing of that is left, and give up its place.

    Without a checkpoint if nothing is beneath. A cancelled caller waits as well, as it would for a nursery of its own.
    """
    ref = errand.ref
    ref.mailbox.close()
    if ref.children:
        ref.state = "stopping"
        with trio.CancelScope(shield=True):
            await end_all(ref)
    ref.life.scope = ref.life.nursery = None
    errand._doing.release()  # pyright: ignore[reportPrivateUsage]
    ref.reason = ref.reason or "ended"
    end_for_good(ref)
