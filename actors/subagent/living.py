"""The sub-agents that live: which are at work, when they have finished, and that their parents are told."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import final

from msgspec import Struct

from greenroom.actors.agent import Agent
from greenroom.actors.subagent.child import Child, tell
from greenroom.protocol.agents import StopReason
from greenroom.protocol.errors import GreenroomError
from greenroom.runtime.bus import Bus
from greenroom.runtime.inbox import InboxClaimed, InboxDiscarded
from greenroom.runtime.ref import Ref

__all__ = ["Living"]

logger = logging.getLogger("greenroom.subagents")


class SubagentStarted(Struct, frozen=True):
    """`subagent/start`: a sub-agent has something to do. One `subagent/end` with the same `run_id` follows."""

    run_id: str
    child: str
    parent: str | None
    provider: str
    label: str


class SubagentEnded(Struct, frozen=True):
    """`subagent/end`: nothing more is to be done for it, and its parent has been told."""

    run_id: str
    child: str
    parent: str | None
    stop_reason: StopReason


@final
class Living:
    """By id, those that live. `ended(child)` hears of each that does not any more.

    Nothing here waits. What its parent cannot be told, since its inbox is full, it is told when that has changed.
    """

    def __init__(self, bus: Bus, ended: Callable[[Child], None]) -> None:
        self.children: dict[str, Child] = {}
        self._ended = ended
        self._untold: dict[Child, None] = {}
        """Those that have finished, and whose parent knows nothing of it yet."""
        self._numbers = count(1)
        self._announce_start = bus.declare("subagent/start", SubagentStarted)[1]
        self._announce_end = bus.declare("subagent/end", SubagentEnded)[1]
        bus.on("inbox/claimed", self._tell_again)
        bus.on("inbox/discarded", self._tell_again)

    def publish(self, child: Child, place: Ref) -> None:
        """One more lives, at that place, and its activation has begun."""
        self.children[child.id] = child
        place.watch(lambda _place: self._forget(child))
        child.agent.emitter.on("start", partial(self.activate, child))
        child.agent.emitter.on("finish", partial(self._look, child))
        child.agent.emitter.on("error", partial(self._look, child))
        self._announce(child)

    def _announce(self, child: Child) -> None:
        """It is at work, and so are those above it, which wait for it."""
        parent = None if child.parent is None else child.parent.id
        self._announce_start(SubagentStarted(child.result.run_id, child.id, parent, child.provider, child.label))
        if parent is not None and (above := self.children.get(parent)) is not None:
            self.activate(above)

    def of(self, parent: Agent | None) -> list[Child]:
        """Those of one parent, in the order in which they were begun."""
        return [child for child in self.children.values() if child.parent is parent]

    def outermost(self) -> list[Child]:
        """Those that no other sub-agent has begun."""
        return [
            child for child in self.children.values() if child.parent is None or child.parent.id not in self.children
        ]

    def activate(self, child: Child, _told: object = None) -> None:
        """There is something to do for it, if there was nothing before."""
        if child.settled:
            child.activate()
            self._announce(child)

    def _look(self, child: Child, _told: object = None) -> None:
        """Settle it, if nothing more is to be done for it and for those beneath it."""
        agent = child.agent
        if child.settled or not child.continuable or not agent.ref.alive:
            return
        if agent.status != "running" and not agent.inbox.wakes and all(each.settled for each in self.of(agent)):
            self._settle(child)

    def _settle(self, child: Child) -> None:
        """Tell its parent, and then, not before, be done with it."""
        parent = child.parent
        if child.continuable and parent is not None and parent.ref.alive:
            try:
                tell(parent, child.notice())
            except GreenroomError as error:
                if error.code == "INBOX_FULL":  # again when something of it was read
                    self._untold[child] = None
                    return
                logger.warning("%s could not be told of the end of %s: %s", parent.ref.path, child.id, error)
        self._untold.pop(child, None)
        child.settled, child.idle_since = True, next(self._numbers)
        above = None if parent is None else parent.id
        self._announce_end(SubagentEnded(child.result.run_id, child.id, above, child.result.stop_reason))
        if above is not None and (waiting := self.children.get(above)) is not None:
            self._look(waiting)

    def _tell_again(self, told: InboxClaimed | InboxDiscarded) -> None:
        for child in list(self._untold):
            if child.parent is not None and child.parent.ref.path == told.agent:
                if self.children.get(child.id) is child:  # and not one that goes on after it
                    self._look(child)
                else:
                    self._settle(child)

    def _forget(self, child: Child) -> None:
        """It has ended, with all beneath it."""
        del self.children[child.id]
        self._ended(child)
        if not child.settled:
            self._settle(child)
