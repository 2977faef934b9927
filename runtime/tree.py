"""The tree of actors: spawn, supervise, stop, look.

Every actor is one task in its parent's nursery. What ends, ends whole: nothing beneath it outlives it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import final

import msgspec
import trio

from greenroom.protocol.errors import ActorError
from greenroom.protocol.tree import ActorSnapshot, TreeSnapshot, WaitSnapshot
from greenroom.runtime.actor import Actor, Leaf
from greenroom.runtime.bus import Bus
from greenroom.runtime.context import CURRENT
from greenroom.runtime.deadlines import Deadlines
from greenroom.runtime.mailbox import Closed
from greenroom.runtime.ref import Ref
from greenroom.runtime.reply import HELD, Reply
from greenroom.runtime.restart import Restart, Supervision
from greenroom.runtime.waits import Node, WaitGraph

__all__ = ["ActorEnded", "ActorFailed", "ActorStarted", "Tree", "run_tree"]


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


@final
class _Root(Actor):
    """The place above all: it has no task and no messages of its own."""

    __slots__ = ("tree_failed",)

    def fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()


@final
class Tree:
    """All actors of one runtime. Made by `run_tree`."""

    __slots__ = ("_announce_ended", "_announce_failed", "_announce_started", "_ended", "_failed", "_started", "bus", "deadlines", "root", "waits")

    def __init__(self) -> None:
        self.bus = Bus()
        self.waits = WaitGraph()
        """The parties of the wait-for graph that are only names."""
        self.deadlines = Deadlines()
        """Every expiry of the runtime, in one heap."""
        root = _Root()
        self.root = root.ref = Ref("", self, None, root, 1)
        self.root.state = "running"
        self._started, self._announce_started = self.bus.declare("actor/started", ActorStarted)
        self._failed, self._announce_failed = self.bus.declare("actor/failed", ActorFailed)
        self._ended, self._announce_ended = self.bus.declare("actor/ended", ActorEnded)

    def spawn(
        self,
        child: Actor | Callable[[], Actor],
        name: str,
        *,
        parent: Ref | None = None,
        restart: Restart | None = None,
        capacity: int = 1024,
    ) -> Ref:
        """Start an actor at `<parent's path>/<name>` (`/<name>` without one); it takes messages from now on.

        `child` is the actor, or a function that makes one; a restartable child needs the function. `restart` says when it
        begins anew (default: never). `capacity` bounds its mailbox.

        Raises ActorError EXISTS if the path is taken, STOPPED if the parent does not run any more or is a leaf.
        """
        place = parent or self.root
        path = f"{place.path}/{name}"
        if place.children is not None and name in place.children:
            raise ActorError("EXISTS", f"There is an actor at {path} already; stop it first, or choose another name.", {"path": path})
        if place.mailbox.closed:
            raise place.stopped()
        nursery = place.actor._open_nursery()  # pyright: ignore[reportPrivateUsage]
        supervision = None
        if isinstance(child, Actor):
            if restart is not None and restart.when != "never":
                raise TypeError(f"{path} is to be restarted, so spawn needs a function that makes it, not the actor itself")
            actor = child
        else:
            if restart is not None and restart.when != "never":
                supervision = Supervision(restart, child)
            actor = child()
        ref = Ref(path, self, place, actor, capacity)
        ref.supervision = supervision
        actor.ref = ref
        if place.children is None:
            place.children = {}
        place.children[name] = ref
        nursery.start_soon(self._run_leaf if isinstance(actor, Leaf) else self._run, ref, name=path)
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

    def begin_stop(self, ref: Ref, grace: float, reason: str) -> None:
        """Mark an actor as stopping and see to it that it ends. Calling it again changes nothing."""
        if ref.mailbox.closed:
            return
        ref.reason = reason
        ref.state = "stopping"
        idle = ref.mailbox.idle
        ref.mailbox.close()
        if ref.supervision is not None and ref.supervision.pause is not None:
            ref.supervision.pause.cancel()
        if not idle and not isinstance(ref.actor, Leaf) and ref.parent is not None:
            # It is busy with a message, and so cannot see to its children itself: its parent does.
            supervisor = ref.parent.actor._open_nursery()  # pyright: ignore[reportPrivateUsage]
            supervisor.start_soon(self._carry_out, ref, grace, name=f"stop {ref.path}")

    async def _carry_out(self, ref: Ref, grace: float) -> None:
        CURRENT.set(None)
        await self._stop_children(ref)
        if grace > 0:
            with trio.move_on_after(grace):
                await ref.wait_ended()
        scope = ref.actor._scope  # pyright: ignore[reportPrivateUsage]
        if scope is not None:
            scope.cancel()

    async def _stop_children(self, ref: Ref) -> None:
        """One after another, the newest first."""
        while ref.children:
            child = next(reversed(ref.children.values()))
            self.begin_stop(child, 0.0, ref.reason or "stopped")
            await child.wait_ended()

    # ---------------------------------------------------------------- the task of an actor

    async def _run_leaf(self, ref: Ref) -> None:
        CURRENT.set(ref)
        try:
            while True:
                self._begin(ref)
                failure: Exception | None = None
                try:
                    await ref.actor._loop()  # pyright: ignore[reportPrivateUsage]
                except Closed:
                    return
                except Exception as error:
                    failure = error
                if not await self._renew(ref, failure):
                    return
        finally:
            self._finish(ref)

    async def _run(self, ref: Ref) -> None:
        CURRENT.set(ref)
        try:
            while True:
                self._begin(ref)
                failure = await self._live(ref, ref.actor)
                if not await self._renew(ref, failure):
                    return
        finally:
            self._finish(ref)

    async def _live(self, ref: Ref, actor: Actor) -> Exception | None:
        """One life between two restarts; what it failed by, or None. Nothing beneath it is left afterwards."""
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            actor._nursery = nursery  # pyright: ignore[reportPrivateUsage]
            with trio.CancelScope() as scope:
                actor._scope = scope  # pyright: ignore[reportPrivateUsage]
                try:
                    if not ref.mailbox.closed:
                        await actor.on_start()
                    await actor._loop()  # pyright: ignore[reportPrivateUsage]
                except Closed:
                    pass
                except Exception as error:
                    failure = error
            await self._stop_children(ref)
            actor._nursery = actor._scope = None  # pyright: ignore[reportPrivateUsage]
            nursery.cancel_scope.cancel()
        return actor._failure or failure  # pyright: ignore[reportPrivateUsage]

    def _begin(self, ref: Ref) -> None:
        if not ref.mailbox.closed:
            ref.state = "running"
        if self._started.heard:
            self._announce_started(ActorStarted(ref.path, ref.supervision.restarts if ref.supervision else 0))

    async def _renew(self, ref: Ref, failure: Exception | None) -> bool:
        """Put a new actor at the place of one that ended, if its rule says so. False: it ends for good."""
        while True:
            supervision = ref.supervision
            again = supervision is not None and not ref.mailbox.closed and supervision.allows(failure is not None)
            delay = supervision.take_one(trio.current_time()) if again and supervision else None
            if failure is not None and self._failed.heard:
                self._announce_failed(ActorFailed(ref.path, failure, delay is not None))
            if supervision is None or delay is None:
                if not ref.mailbox.closed:
                    ref.reason = "ended" if failure is None else "failed"
                if again and ref.parent is not None:
                    ref.parent.actor.fail(self._exceeded(ref, failure))
                return False
            ref.state = "restarting"
            self._let_go(ref, "restarted")
            with trio.CancelScope() as supervision.pause:
                await trio.sleep(delay)
            supervision.pause = None
            if ref.mailbox.closed:
                return False
            try:
                actor = supervision.factory()
            except Exception as error:
                failure = error
                continue
            actor.ref = ref
            ref.actor = actor
            return True

    @staticmethod
    def _exceeded(ref: Ref, failure: Exception | None) -> ActorError:
        rule = ref.supervision.rule if ref.supervision is not None else Restart()
        error = ActorError(
            "RESTARTS",
            f"{ref.path} ended more than {rule.intensity} times within {rule.within:g} s"
            + (f", at last by {type(failure).__name__}: {failure}" if failure is not None else "")
            + ". Its parent fails with it.",
            {"path": ref.path, "intensity": rule.intensity, "within": rule.within},
        )
        error.__cause__ = failure
        return error

    def _let_go(self, ref: Ref, reason: str) -> None:
        """The end of one actor object: its own `on_end`, then STOPPED for what it held."""
        try:
            ref.actor.on_end(reason)
        except Exception as error:
            self._announce_failed(ActorFailed(ref.path, error, False))
        for wait in list(ref.asked or ()):
            if type(wait) is Reply and wait.to is ref and wait.state == HELD:
                wait.fail(ref.stopped())

    def _finish(self, ref: Ref) -> None:
        """The end for good. Without a checkpoint: it also runs in a task that is being cancelled."""
        ref.mailbox.close()
        reason = ref.reason = ref.reason or "cancelled"
        self._let_go(ref, reason)
        while (item := ref.mailbox.take()) is not None:
            if type(item) is Reply:
                item.fail(ref.actor.refusal(item.message, reason))
        ref.state = "ended"
        if ref.parent is not None and ref.parent.children is not None:
            ref.parent.children.pop(ref.path.rpartition("/")[2], None)
            if not ref.parent.children:
                ref.parent.children = None
        for watcher in ref.watchers or ():
            watcher(ref)
        ref.watchers = None
        for node in ref.nodes():
            for wait in list(node.asked or ()):
                if type(wait) is Reply and wait.to is ref and wait.target is ref.work:
                    wait.answer(reason)
        if self._ended.heard:
            self._announce_ended(ActorEnded(ref.path, reason))

    # ---------------------------------------------------------------- looking

    def snapshot(self) -> TreeSnapshot:
        """The whole tree as one immutable struct: states, mailbox depths, waits, deadlines. Any task may take it, at any time."""
        nodes: list[Node] = list(self.waits.parties())
        root = self._snapshot(self.root, nodes)
        waits: dict[int, WaitSnapshot] = {}
        for node in nodes:
            for wait in node.waiting or ():
                waits.setdefault(
                    id(wait),
                    WaitSnapshot(
                        from_=tuple(dict.fromkeys(start.label for start in wait.starts())),
                        to=wait.label or wait.target.label,
                        message=type(wait.message).__name__ if isinstance(wait, Reply) else "send",
                    ),
                )
        return TreeSnapshot(root=root, waits=tuple(waits.values()), deadlines=len(self.deadlines), next_due=self.deadlines.next_due)

    def _snapshot(self, ref: Ref, nodes: list[Node]) -> ActorSnapshot:
        nodes.extend(ref.nodes())
        return ActorSnapshot(
            path=ref.path or "/",
            kind=type(ref.actor).__name__.lstrip("_").lower() if ref is not self.root else "root",
            state=ref.state,
            mailbox=ref.mailbox.depth,
            restarts=ref.supervision.restarts if ref.supervision else 0,
            operates=ref.alias,
            children=tuple(self._snapshot(child, nodes) for child in (ref.children or {}).values()),
        )


@asynccontextmanager
async def run_tree() -> AsyncIterator[Tree]:
    """A tree for the length of an `async with` block.

    Leaving the block stops every actor, the newest first; leaving it by an exception or by cancellation cancels them all at
    once. An actor at the top whose restart intensity is exceeded cancels the block and raises its ActorError RESTARTS here.
    """
    tree = Tree()
    root = tree.root
    raised: Exception | None = None
    async with trio.open_nursery() as nursery:
        root.actor._nursery = nursery  # pyright: ignore[reportPrivateUsage]
        nursery.start_soon(tree.deadlines.run)
        try:
            yield tree
            await tree._stop_children(root)  # pyright: ignore[reportPrivateUsage]
        except Exception as error:  # raised again outside, where it is not wrapped in a group
            raised = error
        root.mailbox.close()
        nursery.cancel_scope.cancel()
    root.state = "ended"
    if (failure := root.actor._failure) is not None:  # pyright: ignore[reportPrivateUsage]
        raise failure from raised
    if raised is not None:
        raise raised
