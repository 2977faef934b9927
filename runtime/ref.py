"""The address of an actor: how others tell it, ask it, wait for its end and stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeVar, final

from trio.lowlevel import (
    Abort,
    Task,
    cancel_shielded_checkpoint,
    checkpoint,
    checkpoint_if_cancelled,
    current_task,
    enable_ki_protection,
    reschedule,
    wait_task_rescheduled,
)

from greenroom.protocol.errors import ActorDeadlock, ActorError
from greenroom.runtime.context import CURRENT
from greenroom.runtime.lineage import LINEAGE
from greenroom.runtime.mailbox import Closed, Mailbox
from greenroom.runtime.messages import Message, Request
from greenroom.runtime.reply import ANSWERED, KEPT, Reply
from greenroom.runtime.waits import Node, Wait, find_circle

if TYPE_CHECKING:
    from greenroom.runtime.actor import Actor
    from greenroom.runtime.life import Life
    from greenroom.runtime.restart import Supervision
    from greenroom.runtime.tree import Tree

__all__ = ["Ref", "State", "Work", "path_in_words"]

R = TypeVar("R")

State = Literal["starting", "running", "restarting", "stopping", "ended"]


@final
class Ending(Wait):
    """A wait for an actor's end."""

    __slots__ = ("task",)

    task: Task

    @property
    def kind(self) -> str:
        return "join"

    async def wait(self) -> None:
        """Until `end` is called. Cancelled: the wait is over."""
        self.task = current_task()
        await wait_task_rescheduled(self._abort)

    def end(self) -> None:
        self.release()
        reschedule(self.task)

    def _abort(self, _raise_cancel: Any) -> Abort:
        self.release()
        return Abort.SUCCEEDED


@final
class Work(Node):
    """What an actor runs beside its mailbox. Its waits do not make the actor's handler a party of a circle."""

    __slots__ = ("owner",)

    def __init__(self, owner: Ref) -> None:
        super().__init__(owner.name)
        self.owner = owner

    @property
    def label(self) -> str:
        return self.owner.label

    @property
    def place(self) -> Ref:
        return self.owner

    @property
    def above(self) -> Node | None:
        return self.owner.above

    def beneath(self) -> Iterator[Node]:
        for child in (self.owner.children or {}).values():
            yield from child.nodes()


@final
class Ref(Node):
    """One place in the tree, at one path, for as long as an actor lives there: restarts keep it, stops end it.

    It is also the actor's handler node in the wait-for graph, and the tree's own record of the actor.
    """

    __slots__ = (
        "_work",
        "actor",
        "alias",
        "children",
        "life",
        "lineage",
        "mailbox",
        "parent",
        "reason",
        "state",
        "supervision",
        "tree",
        "watchers",
    )

    actor: Actor
    """Who lives here now. Another one after a restart."""
    life: Life
    """The runtime's own record of it."""

    def __init__(self, path: str, tree: Tree, parent: Ref | None, capacity: int) -> None:
        super().__init__(path)
        self.tree = tree
        self.parent = parent
        self.mailbox = Mailbox(capacity)
        self.children: dict[str, Ref] | None = None
        """By name, oldest first."""
        self.state: State = "starting"
        self.reason: str | None = None
        """Why it stops or ended: `stopped`, `removed`, `ended`, `failed`, `cancelled` or what the stopper said."""
        self.alias: str | None = None
        """The terminal that it operates: paths call both by that name."""
        self.supervision: Supervision | None = None
        """How it is restarted. None: never."""
        self.watchers: dict[object, Callable[[Ref], None]] | None = None
        self.lineage = LINEAGE.get()
        """Beneath which runs and agents it was spawned. Its handlers and its children are beneath the same."""
        self._work: Work | None = None

    @property
    def path(self) -> str:
        """Where it is in the tree: `/terminals/reviewer`."""
        return self.name

    @property
    def label(self) -> str:
        return self.alias or self.name

    @property
    def place(self) -> Ref:
        return self

    @property
    def above(self) -> Node | None:
        return None if self.parent is None else self.parent.work

    @property
    def work(self) -> Work:
        """The node of what it runs beside its mailbox."""
        if self._work is None:
            self._work = Work(self)
        return self._work

    @property
    def alive(self) -> bool:
        """It takes messages: it neither stops nor has ended."""
        return not self.mailbox.closed

    def upward(self) -> Iterator[Ref]:
        """This place and those above it, up to the root's."""
        place: Ref | None = self
        while place is not None:
            yield place
            place = place.parent

    def nodes(self) -> Iterator[Node]:
        """Its nodes in the wait-for graph, the handler first. The work only if it can be on a way."""
        yield self
        if self._work is not None or self.children:
            yield self.work

    def tell(self, message: Message) -> None:
        """Put a message into the mailbox without waiting.

        Raises ActorError: MAILBOX_FULL (context `path`, `capacity`), STOPPED, or UNKNOWN for one it does not handle.
        """
        if type(message) not in self.actor.handlers:
            raise self.unhandled(message)
        mailbox = self.mailbox
        if mailbox.closed:
            raise self.stopped()
        if not mailbox.offer(message):
            raise ActorError(
                "MAILBOX_FULL",
                f"The mailbox of {self.name} holds {mailbox.capacity} messages already. "
                "Use `await ref.send(...)` to wait for room, or tell it less often.",
                {"path": self.name, "capacity": mailbox.capacity},
            )

    @enable_ki_protection
    async def send(self, message: Message) -> None:
        """Put a message into the mailbox, standing in line (without a deadline) while it is full.

        Standing in line is a wait like any other: ActorDeadlock if it would close a circle. Raises ActorError STOPPED
        or UNKNOWN. Cancelled: the message was not put in; if it was, `send` returns.
        """
        if type(message) not in self.actor.handlers:
            raise self.unhandled(message)
        await checkpoint_if_cancelled()
        mailbox = self.mailbox
        try:
            if mailbox.offer(message):
                await cancel_shielded_checkpoint()
                return
            waiter = CURRENT.get()
            if waiter is not None:
                self._refuse_circle(waiter)  # no checkpoint from here to the wait
            await mailbox.stand_in_line(message, Wait(waiter, self))
        except Closed:
            raise self.stopped() from None

    @enable_ki_protection
    async def ask(self, message: Request[R], *, urgent: bool = False) -> R:
        """Wait, without a deadline of its own, for the answer.

        The wait begins before the first checkpoint: ActorDeadlock (with the path) if it would close a circle, and then
        nothing was sent. Raises ActorError STOPPED or UNKNOWN, and whatever the handler raises. Cancelled: the request
        is withdrawn; an actor that has not begun with it never sees it, one that keeps its reply is told `Withdrawn`.

        `urgent` overtakes every message but other urgent ones.
        """
        await checkpoint_if_cancelled()
        if type(message) not in self.actor.handlers:
            raise self.unhandled(message)
        waiter = CURRENT.get()
        if waiter is not None and (waiter is self or (waiter.asked and self.waiting)):
            self._refuse_circle(waiter)  # no checkpoint from here to the wait
        if self.mailbox.closed:
            raise self.stopped()
        reply = Reply(message, self, waiter, self)
        self.post(reply, urgent=urgent)
        # What follows is `await reply.wait()` without the coroutine between: the kernel's hottest path.
        if reply.state > KEPT:
            await cancel_shielded_checkpoint()
        else:
            reply.task = current_task()
            await wait_task_rescheduled(reply.abort)
        return reply.value if reply.state == ANSWERED else reply.result()

    def post(self, reply: Reply[Any], *, urgent: bool = False) -> None:
        """Hand a request over, in line if the mailbox is full. A leaf that is idle handles it within this call.

        Only for an actor that takes messages (`alive`); then `await reply.wait()`.
        """
        mailbox = self.mailbox
        receiver = mailbox.receiver
        if receiver is not None and self.actor.at_once:
            receiver.context.run(self.life.serve, reply)
        elif urgent:
            mailbox.control(reply)
        else:
            mailbox.queue(reply)

    @enable_ki_protection
    async def join(self) -> str:
        """Wait, without a deadline, until it has ended for good; the reason.

        A wait for its work and for the message in hand: ActorDeadlock if one of them waits, over whatever steps, for
        the caller. Cancelled: nothing is left of the wait.
        """
        if self.state == "ended":
            await checkpoint()
        else:
            waiter = CURRENT.get()
            if waiter is not None and (path := find_circle((waiter,), (self.work, self))):
                raise circle(path)
            await Ending(waiter, self.work, other=self).wait()
        return self.reason or "ended"

    async def stop(self, *, grace: float = 0.0, reason: str = "stopped") -> None:
        """Stop it and all beneath it, children first and the newest of them first; return when nothing is left.

        `grace` is how many seconds from now the message in hand may take to finish before it is cancelled. Requests
        that get no answer fail with STOPPED. The supervisor carries the stop out, so cancelling the caller undoes
        nothing. Stopping again shortens the grace at most; stopping what has ended does nothing.

        There is no grace for a message in hand that waits, over whatever steps, for the caller, as it could not finish;
        if it comes to wait for the caller later, that wait is refused as a circle. A caller beneath the stopped actor
        is stopped with it, without grace: its `stop` ends by cancellation. Raises ValueError if `grace` is no time.
        """
        waiter = CURRENT.get() if grace > 0 else None
        if self._is_beneath() or (waiter is not None and find_circle((waiter,), (self,))):
            waiter, grace = None, 0.0
        self.stop_soon(grace=grace, reason=reason)
        if waiter is None or self.state == "ended":
            await self.wait_ended()
        else:
            await Ending(waiter, self).wait()

    def stop_soon(self, *, grace: float = 0.0, reason: str = "stopped") -> None:
        """Begin what `stop` does, without waiting for its end."""
        self.tree.begin_stop(self, grace, reason)

    async def wait_ended(self) -> None:
        """Wait, without a deadline, until nothing is left. Unlike `join` it is no wait between parties."""
        if self.state == "ended":
            await checkpoint()
        else:
            await Ending(None, self).wait()

    def watch(self, watcher: Callable[[Ref], None]) -> Callable[[], None]:
        """Call `watcher(ref)` once, synchronously, when it has ended for good; at once if it has.

        The returned function ends the watch and may be called again.
        """
        key = object()
        if self.state == "ended":
            watcher(self)
        elif self.watchers is None:
            self.watchers = {key: watcher}
        else:
            self.watchers[key] = watcher

        def close() -> None:
            if self.watchers is not None:
                self.watchers.pop(key, None)

        return close

    def notice(self, message: Message) -> None:
        """Post over the control lane, if the actor is there and cares."""
        if not self.mailbox.closed and type(message) in self.actor.handlers:
            self.mailbox.control(message)

    def stopped(self) -> ActorError:
        """What an asker gets that will not be answered."""
        return ActorError(
            "STOPPED", f"{self.name} has stopped; look at the tree for what still runs.", {"path": self.name}
        )

    def unhandled(self, message: Message) -> ActorError:
        """What a sender gets whose message has no handler."""
        known = sorted(kind.__name__ for kind in self.actor.handlers)
        return ActorError(
            "UNKNOWN",
            f"{self.name} has no handler for {type(message).__name__}; it handles {', '.join(known) or 'nothing'}.",
            {"path": self.name, "message": type(message).__name__, "known": known},
        )

    def _refuse_circle(self, waiter: Node) -> None:
        if path := find_circle((waiter,), (self,)):
            raise circle(path)

    def _is_beneath(self) -> bool:
        node = CURRENT.get()
        place = node.place if node is not None else None
        return place is not None and self in place.upward()


def path_in_words(path: list[str]) -> str:
    """`a -> b -> a`; a long one is shortened in the middle (the context has it whole)."""
    if len(path) > 12:
        path = [*path[:6], f"... {len(path) - 10} more ...", *path[-4:]]
    return " -> ".join(path)


def circle(path: list[str]) -> ActorDeadlock:
    """The refusal of a wait between actors."""
    return ActorDeadlock(
        "DEADLOCK",
        f"Waiting would close a circle: {path_in_words(path)}. "
        f"{path[0]} is being waited for; answer that first, or tell instead of asking.",
        {"path": path},
    )
