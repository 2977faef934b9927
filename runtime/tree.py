"""The tree of actors: spawn, supervise, stop, look.

Every actor is one task in its parent's nursery. What ends, ends whole: nothing beneath it outlives it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from math import isnan
from typing import final

import msgspec
import trio
from trio.lowlevel import enable_ki_protection

from greenroom.protocol.errors import ActorError
from greenroom.protocol.schemas.gates import encodable
from greenroom.protocol.text import path_segment
from greenroom.protocol.tree import ActorSnapshot, PatienceSnapshot, TreeSnapshot, WaitSnapshot
from greenroom.runtime.actor import Actor, Leaf
from greenroom.runtime.bus import Bus
from greenroom.runtime.deadlines import Deadlines
from greenroom.runtime.file_access import FileAccess
from greenroom.runtime.inbox import InboxEvents
from greenroom.runtime.life import carry_out, end_all, finish, move_in, start
from greenroom.runtime.patience import OPEN, spawned
from greenroom.runtime.pipeline.pipeline import Pipeline
from greenroom.runtime.ref import Ref
from greenroom.runtime.restart import Restart, Supervision, unused
from greenroom.runtime.waits import Node, WaitGraph

__all__ = ["ActorEnded", "ActorFailed", "ActorStarted", "Tree", "free_place", "run_tree"]

logger = logging.getLogger("greenroom.tree")


class ActorStarted(msgspec.Struct, frozen=True):
    """`actor/started`: an actor is at its place; `restarts` counts how often it began anew there."""

    path: str
    restarts: int = 0


class ActorFailed(msgspec.Struct, frozen=True):
    """`actor/failed`: an actor failed; `restarting` tells whether it begins anew."""

    path: str
    error: Exception
    restarting: bool


class ActorEnded(msgspec.Struct, frozen=True):
    """`actor/ended`: nothing is left of the actor and all that was beneath it."""

    path: str
    reason: str


def free_place(parent: Ref, name: str) -> str:
    """A name that `spawn` takes beneath `parent`, for an actor that users call `name`, whatever text that is.

    An actor of that name which was removed may still be ending at the place; `~2` and so on stand behind it then.
    """
    place = base = path_segment(name).encode(errors="backslashreplace").decode() or "%"
    number = 1
    while place in (parent.children or {}):
        number += 1
        place = f"{base}~{number}"
    return place


class Root(Actor):
    """The place above all: it has no task and takes no messages. It lives as long as `run_tree`'s block."""


@final
class Tree:
    """All actors of one runtime. Made by `run_tree`."""

    __slots__ = (
        "_ended",
        "_failed",
        "_started",
        "bus",
        "deadlines",
        "file_access",
        "inboxes",
        "pipeline",
        "root",
        "waits",
    )

    def __init__(self) -> None:
        self.bus = Bus()
        self.pipeline = Pipeline(self.bus)
        self.inboxes = InboxEvents(self.bus)
        self.file_access = FileAccess(self.bus)
        self.waits = WaitGraph()
        """The parties of the wait-for graph that are only names."""
        self.deadlines = Deadlines()
        """Every expiry of the runtime, in one heap."""
        self.root = Ref("", self, None, 1)
        move_in(self.root, Root())
        self._started = self.bus.declare("actor/started", ActorStarted)
        self._failed = self.bus.declare("actor/failed", ActorFailed)
        self._ended = self.bus.declare("actor/ended", ActorEnded)

    @enable_ki_protection
    def spawn(
        self,
        child: Actor | Callable[[], Actor],
        name: str,
        *,
        parent: Ref | None = None,
        restart: Restart | None = None,
        capacity: int = 1024,
    ) -> Ref:
        """Start an actor at `<parent's path>/<name>`; it takes messages, and children, from now on.

        `child` is the actor, or a function that makes one; a restartable child needs the function. `restart` says when
        it begins anew (default: never). `capacity` bounds its mailbox.

        Raises ActorError EXISTS if the path is taken, STOPPED if the parent does not run any more or is a leaf;
        ValueError for a name that is no segment of a path and for an actor that was spawned before.
        """
        place = parent or self.root
        if not name or "/" in name or not encodable(name):
            raise ValueError(
                f"An actor's name is one segment of its path, not {name!r}; "
                "quote what may hold a slash or a lone surrogate"
            )
        path = f"{place.path}/{name}"
        if place.children is not None and name in place.children:
            raise ActorError(
                "EXISTS", f"There is an actor at {path} already; stop it first, or choose another name.", {"path": path}
            )
        life = place.life
        if not place.alive or life.over:
            raise place.stopped()
        if isinstance(place.actor, Leaf):
            raise ActorError(
                "STOPPED", f"{place.path} is a leaf: nothing runs beneath it. Make it an Actor.", {"path": place.path}
            )
        supervision = None
        if restart is not None and restart.when != "never":
            if isinstance(child, Actor):
                raise TypeError(
                    f"{path} is to be restarted: spawn needs a function that makes it, not the actor itself"
                )
            supervision = Supervision(restart, child)
        actor = unused(child if isinstance(child, Actor) else child())
        ref = Ref(path, place.tree, place, capacity)
        ref.supervision = supervision
        move_in(ref, actor)
        if place.children is None:
            place.children = {}
        place.children[name] = ref
        if OPEN:
            spawned(ref)
        if life.nursery is not None:
            start(ref, life.nursery)  # else the parent starts it when it begins itself
        return ref

    def find(self, path: str) -> Ref:
        """The actor at that path. Raises ActorError UNKNOWN, naming what there is at the last place that exists."""
        place = self.root
        for name in path.strip("/").split("/") if path.strip("/") else ():
            found = (place.children or {}).get(name)
            if found is None:
                known = list(place.children or ())
                raise ActorError(
                    "UNKNOWN",
                    f"There is no actor at {path}; beneath {place.path or '/'} there are {', '.join(known) or 'none'}.",
                    {"path": path, "known": known},
                )
            place = found
        return place

    @enable_ki_protection
    def begin_stop(self, ref: Ref, grace: float, reason: str) -> None:
        """Mark an actor as stopping and see to it that it ends. Again: only a shorter grace counts."""
        if ref.parent is None:
            raise ActorError("STOPPED", "The root of the tree ends with its block, and not before.", {"path": "/"})
        if isnan(grace):
            raise ValueError(f"The grace of a stop is seconds, not {grace}")
        life = ref.life
        deadline = trio.current_time() + max(grace, 0.0)
        if not ref.alive:
            if life.grace is not None:
                life.grace.deadline = min(life.grace.deadline, deadline)
            return
        ref.reason = reason
        ref.state = "stopping"
        receiver = ref.mailbox.receiver
        idle = receiver is not None
        ref.mailbox.close()
        if receiver is not None and ref.actor.at_once and life.reply is None:
            # Between two messages: what it keeps ends in this step, so that nobody waits for what is gone already.
            receiver.context.run(life.let_go, reason)
        if ref.supervision is not None and ref.supervision.pause is not None:
            ref.supervision.pause.cancel()
        supervisor = ref.parent.life.nursery
        if not idle and life.scope is not None and supervisor is not None:
            if grace > 0:
                life.grace = trio.CancelScope(deadline=deadline)
            supervisor.start_soon(carry_out, ref, name=f"stop {ref.path}")
        # One that is idle, or has not begun or is already ending, sees to its end itself.

    # ---------------------------------------------------------------- announcing

    def announce_started(self, ref: Ref) -> None:
        """Told by an actor's task."""
        event, announce = self._started
        if event.heard:
            announce(ActorStarted(ref.path, ref.supervision.restarts if ref.supervision else 0))

    def announce_failed(self, ref: Ref, error: Exception, restarting: bool) -> None:
        """Told by an actor's task. Logged as well: a failure that nobody listens for must show somewhere."""
        logger.error("%s failed%s", ref.path or "/", " and begins anew" if restarting else "", exc_info=error)
        event, announce = self._failed
        if event.heard:
            announce(ActorFailed(ref.path or "/", error, restarting))

    def announce_ended(self, ref: Ref, reason: str) -> None:
        """Told by an actor's task, as the last thing it does."""
        event, announce = self._ended
        if event.heard:
            announce(ActorEnded(ref.path, reason))

    # ---------------------------------------------------------------- looking

    def snapshot(self) -> TreeSnapshot:
        """The whole tree as one immutable struct: states, mailbox depths, waits, deadlines. Any task may take it."""
        nodes: list[Node] = []
        root = self._snapshot(self.root, nodes)
        nodes.extend(self.waits.parties())
        waits = {wait: None for node in nodes for wait in node.asked or ()}
        return TreeSnapshot(
            root=root,
            waits=tuple(
                WaitSnapshot(
                    from_=tuple(dict.fromkeys(start.label for start in wait.starts())),
                    to=wait.label or wait.target.label,
                    message=wait.kind,
                )
                for wait in waits
            ),
            deadlines=len(self.deadlines),
            next_due=self.deadlines.next_due,
            patient=tuple(
                PatienceSnapshot(scope.node.label, scope.remaining, scope.rest is not None)
                for scope in tuple(OPEN)
                if scope.node is not None and scope.node.place is not None and scope.node.place.tree is self
            ),
        )

    def _snapshot(self, ref: Ref, nodes: list[Node]) -> ActorSnapshot:
        nodes.extend(ref.nodes())
        return ActorSnapshot(
            path=ref.path or "/",
            kind=ref.actor.kind,
            state=ref.state,
            mailbox=ref.mailbox.depth,
            restarts=ref.supervision.restarts if ref.supervision else 0,
            operates=ref.alias,
            children=tuple(self._snapshot(child, nodes) for child in (ref.children or {}).values()),
        )


@asynccontextmanager
async def run_tree() -> AsyncGenerator[Tree]:
    """A tree for the length of an `async with` block.

    Leaving the block stops every actor, the newest first; leaving it by an exception or by cancellation cancels them
    all at once. What the block raises comes out as it is, in no group. An actor at the top whose restart intensity is
    exceeded cancels the block, and its ActorError RESTARTS is raised here.
    """
    tree = Tree()
    root = tree.root
    life, root.state = root.life, "running"
    raised: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            life.nursery, life.scope = nursery, nursery.cancel_scope
            nursery.start_soon(tree.deadlines.run)
            try:
                yield tree
                root.state = "stopping"
                root.mailbox.close()
                await end_all(root)
            except trio.Cancelled:
                raise
            except BaseException as error:  # raised again below, where no nursery wraps it in a group
                raised = error
            root.mailbox.close()
            nursery.cancel_scope.cancel()
        failure, life.failure = life.failure, None
        if failure is not None:
            raise failure from raised if isinstance(raised, Exception) else None
        if raised is not None:
            raise raised
    finally:
        root.reason = root.reason or "ended"
        life.scope = life.nursery = None
        finish(root)
        del raised  # no cycle through the traceback
