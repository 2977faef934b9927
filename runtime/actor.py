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

import trio

from greenroom.protocol.errors import ActorError
from greenroom.runtime.context import CURRENT
from greenroom.runtime.messages import Message
from greenroom.runtime.ref import Ref
from greenroom.runtime.reply import HELD, Reply
from greenroom.runtime.restart import Restart

if TYPE_CHECKING:
    from greenroom.runtime.tree import Tree

__all__ = ["Actor", "Leaf", "handles"]

F = TypeVar("F", bound=Callable[..., Any])
Ts = TypeVarTuple("Ts")

_HANDLES = "__greenroom_handles__"


def handles(kind: type[Message]) -> Callable[[F], F]:
    """Marks a method, plain or async, as the handler of one type of message.

    What it returns is the answer to a request; what it raises is raised in the asker. A raise at a message that was only
    told is the actor's failure.
    """

    def mark(method: F) -> F:
        setattr(method, _HANDLES, kind)
        return method

    return mark


class Actor:
    """Base of everything that lives in the tree. Subclass it and mark handlers with `@handles`.

    An actor owns a nursery: work that `start_soon` starts and children that `spawn` starts end with it.
    """

    __slots__ = ("_failure", "_nursery", "_over", "_reply", "_scope", "ref")

    handlers: ClassVar[dict[type[Message], tuple[Callable[..., Any], bool]]] = {}
    """By the exact type of the message: the function, and whether it is async."""

    ref: Ref
    """Its address. Set when it is spawned, before anything of it runs."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.handlers = dict(cls.handlers)
        for method in vars(cls).values():
            if kind := getattr(method, _HANDLES, None):
                cls.handlers[kind] = method, inspect.iscoroutinefunction(method)

    def __init__(self) -> None:
        self._reply: Reply[Any] | None = None
        self._over = False
        self._failure: Exception | None = None
        self._nursery: trio.Nursery | None = None
        self._scope: trio.CancelScope | None = None

    # ---------------------------------------------------------------- what a subclass overrides

    async def on_start(self) -> None:
        """Runs before the first message, anew after each restart. Raising is the actor's failure."""

    def on_end(self, reason: str) -> None:
        """Runs when this actor ends, for good or for a restart (`restarted`), also under cancellation: it must not wait.

        Replies that are still kept afterwards fail with STOPPED. Its children have ended unless all was cancelled at once.
        """

    def refusal(self, message: Message, reason: str) -> Exception:
        """What the asker of a request gets that was still queued when the actor ended."""
        return self.ref.stopped()

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
        reply, self._reply = self._reply, None
        if reply is None:
            raise ActorError("UNKNOWN", f"{self.ref.path} has no reply in hand to take.", {"path": self.ref.path})
        return reply

    def start_soon(
        self, function: Callable[[*Ts], Awaitable[object]], *args: *Ts, name: object = None
    ) -> None:
        """Run `function(*args)` as the actor's work, beside its mailbox. Its waits are those of the actor's work node.

        An Exception of it is the actor's failure. It is cancelled when the actor ends.
        """
        self._open_nursery().start_soon(self._work, function, args, name=name or function)

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
        """End by itself after the message in hand, as if its mailbox had nothing more to give."""
        self._over = True

    def fail(self, error: Exception) -> None:
        """Fail as if the message in hand had raised: from its work, or when a child's intensity is exceeded."""
        if self._failure is None:
            self._failure = error
        if self._scope is not None:
            self._scope.cancel()

    # ---------------------------------------------------------------- what the runtime calls

    def _open_nursery(self) -> trio.Nursery:
        if self._nursery is None:
            raise ActorError(
                "STOPPED", f"{self.ref.path} does not run: it can start nothing beneath it.", {"path": self.ref.path}
            )
        return self._nursery

    async def _work(self, function: Callable[..., Awaitable[object]], args: tuple[Any, ...]) -> None:
        CURRENT.set(self.ref.work)
        try:
            await function(*args)
        except Exception as error:
            self.fail(error)

    async def _loop(self) -> None:
        """Handle messages until `end`, or until the mailbox closes (`Closed`) or a told message's handler raises."""
        receive, handlers = self.ref.mailbox.receive, self.handlers
        while not self._over:
            message = await receive()
            if type(message) is Reply:
                message.state = HELD
                self._reply = message
                message = message.message
            handler, is_async = handlers[type(message)]
            try:
                result = handler(self, message)
                if is_async:
                    result = await result
            except Exception as error:
                if self._reply is None:
                    raise  # nobody asked, or the reply was taken: the actor's failure
                self._reply.fail(error)
            else:
                if self._reply is not None:
                    self._reply.answer(result)
            # an idle actor holds nothing of its last message
            message = result = self._reply = None


class Leaf(Actor):
    """An actor that owns no work and never waits: plain handlers only, and no nursery, which makes it small.

    Subclassing it with an async handler, or overriding `on_start`, is a TypeError.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        waiting = [method.__name__ for method, is_async in cls.handlers.values() if is_async]
        if waiting or cls.on_start is not Actor.on_start:
            raise TypeError(f"{cls.__name__} is a Leaf, which never waits; make it an Actor to await in {waiting or 'on_start'}")
