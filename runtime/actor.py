"""Actors: one task, one mailbox, one message at a time.

::

    class Add(Request[int], frozen=True):
        value: int

    class Counter(Actor):
        def __init__(self) -> None:
            super().__init__()
            self.total = 0

        @handles(Add)
        def add(self, message: Add) -> int:
            self.total += message.value
            return self.total

    async with run_tree() as tree:
        counter = tree.spawn(Counter(), "counter")
        assert await counter.ask(Add(2)) == 2
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, TypeVarTuple

from greenroom.protocol.errors import ActorError
from greenroom.runtime.context import CURRENT
from greenroom.runtime.messages import Message, Withdrawn
from greenroom.runtime.ref import Ref
from greenroom.runtime.reply import IN_HAND, KEPT, WITHDRAWN, Reply
from greenroom.runtime.restart import Restart

if TYPE_CHECKING:
    from greenroom.runtime.life import Life
    from greenroom.runtime.tree import Tree

__all__ = ["Actor", "Leaf", "handles"]

F = TypeVar("F", bound=Callable[..., Any])
Ts = TypeVarTuple("Ts")

_HANDLES = "__greenroom_handles__"


def handles(kind: type[Message]) -> Callable[[F], F]:
    """Marks a method, plain or async, as the handler of one type of message.

    What it returns is the answer to a request; what it raises is raised in the asker. A raise at a message that was
    only told is the actor's failure.
    """

    def mark(method: F) -> F:
        setattr(method, _HANDLES, kind)
        return method

    return mark


class Actor:
    """Base of everything that lives in the tree. Subclass it and mark handlers with `@handles`.

    An actor owns a nursery: work that `start_soon` starts and children that `spawn` starts end with it.
    """

    __slots__ = ("_life", "ref")

    handlers: ClassVar[dict[type[Message], tuple[Callable[..., Any], bool]]] = {}
    """By the exact type of the message: the function, and whether it is async."""

    kind: ClassVar[str] = "actor"
    """What a picture of the tree calls it: the name of its class in lower case, where the class says nothing else."""

    at_once: ClassVar[bool] = False
    """Its handlers never wait, so that while it is idle it can handle a request in the step of whoever asks."""

    hosts: ClassVar[bool] = False
    """Of a leaf: its handlers call functions of others (listeners, rules). They run outside the tree as `as_nobody` has
    it: what they start and what they register is not the actor's."""

    ref: Ref
    """Its address. Set when it is spawned, before anything of it runs."""
    _life: Life

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kind" not in vars(cls):
            cls.kind = cls.__name__.lstrip("_").lower()
        names = {
            kind: name
            for base in reversed(cls.__mro__)
            for name, method in vars(base).items()
            if (kind := getattr(method, _HANDLES, None)) is not None
        }
        cls.handlers = {
            kind: (method, inspect.iscoroutinefunction(method))
            for kind, name in names.items()
            if getattr(method := getattr(cls, name), _HANDLES, kind) is kind  # an override needs no mark of its own
        }

    # ---------------------------------------------------------------- what a subclass overrides

    async def on_start(self) -> None:
        """Runs before the first message, anew after each restart. Raising is the actor's failure."""

    def on_end(self, reason: str) -> None:
        """Runs once when this actor ends, for good or for a restart (`restarted`), also under cancellation.

        So it must not wait. What it raises is logged. Its work and its children have ended. Replies that are still kept
        afterwards fail with STOPPED.
        """

    def refusal(self, message: Message, reason: str) -> Exception:
        """What the asker of a request gets that was still queued when the actor ended."""
        return self.ref.stopped()

    @property
    def durable_name(self) -> str | None:
        """The name by which it owns what is recorded for it and for what is beneath it: that of something which goes
        on, in another process, where this one has ended. None: it is nothing of the kind, and goes by its path."""
        return None

    # ---------------------------------------------------------------- what a subclass calls

    @property
    def tree(self) -> Tree:
        """The tree it lives in."""
        return self.ref.tree

    def take_reply(self) -> Reply[Any]:
        """Keep the reply of the request in hand: what the handler returns is no answer then, the cell's `answer` is.

        If its asker gives up, a `Withdrawn` comes over the control lane (to a handler for it, if there is one).
        Raises ActorError UNKNOWN if the message in hand was told, or its reply was taken before.
        """
        reply = self._life.reply
        if reply is None or reply.state not in (IN_HAND, WITHDRAWN):
            raise ActorError("UNKNOWN", f"{self.ref.path} has no reply in hand to take.", {"path": self.ref.path})
        if reply.withdrawn:  # while an async handler was waiting
            self.ref.notice(Withdrawn(reply))
        else:
            reply.state = KEPT
        return reply

    def start_soon(self, function: Callable[[*Ts], Awaitable[object]], *args: *Ts, name: object = None) -> None:
        """Run `function(*args)` as the actor's work, beside its mailbox. Its waits are those of the actor's work node.

        An Exception of it is the actor's failure. It is cancelled when the actor ends.
        """
        nursery = self._life.nursery
        if nursery is None:
            path = self.ref.path
            raise ActorError("STOPPED", f"{path} does not run: it can start nothing.", {"path": path})
        nursery.start_soon(self._work, function, args, name=name or function)

    def spawn(
        self,
        child: Actor | Callable[[], Actor],
        name: str,
        *,
        restart: Restart | None = None,
        capacity: int = 1024,
    ) -> Ref:
        """Start a child actor at `<path>/<name>`; see `Tree.spawn`."""
        return self.tree.spawn(child, name, parent=self.ref, restart=restart, capacity=capacity)

    def end(self) -> None:
        """End by itself after the message in hand, as if its mailbox had nothing more to give. Also from its work."""
        self._life.end()

    def fail(self, error: Exception) -> None:
        """Fail, as if a message that was only told had raised `error`: from its work, say.

        No further message is taken, and a handler that waits is cancelled.
        """
        self._life.fail(error)

    async def _work(self, function: Callable[..., Awaitable[object]], args: tuple[Any, ...]) -> None:
        CURRENT.set(self.ref.work)
        with self._life.failing():
            await function(*args)


class Leaf(Actor):
    """An actor that owns no work and never waits: plain handlers only, and no nursery, which makes it small.

    Subclassing it with an async handler, or overriding `on_start`, is a TypeError.
    """

    __slots__ = ()

    at_once = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        waiting = [method.__name__ for method, is_async in cls.handlers.values() if is_async]
        if waiting or cls.on_start is not Actor.on_start:
            raise TypeError(
                f"{cls.__name__} is a Leaf, which never waits; make it an Actor to await in {waiting or 'on_start'}"
            )
