"""The task of an actor: its life, or its lives where it is restarted, and its end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast, final

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from greenroom.runtime.actor import Actor, Leaf
from greenroom.runtime.context import as_nobody, belong_to
from greenroom.runtime.messages import Message, Withdrawn
from greenroom.runtime.patience import OPEN, left
from greenroom.runtime.ref import Ending, Ref
from greenroom.runtime.reply import IN_HAND, KEPT, Reply
from greenroom.runtime.restart import unused

__all__ = ["Life", "carry_out", "end_all", "finish", "move_in", "start"]

logger = logging.getLogger("greenroom.tree")


@final
class Life:
    """What the runtime keeps of one actor object, from its start to its restart or end."""

    __slots__ = ("_closing", "_let_go", "actor", "failure", "grace", "nursery", "over", "reply", "scope")

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self.reply: Reply[Any] | None = None
        """The cell of the request in hand."""
        self.over = False
        """No further message is taken."""
        self.failure: Exception | None = None
        self.nursery: trio.Nursery | None = None
        """Where its work and its children run. None before and after that."""
        self.scope: trio.CancelScope | None = None
        """Around its start and its handlers. None before and after that."""
        self.grace: trio.CancelScope | None = None
        """How long a stop waits for the message in hand. Its deadline was fixed when the stop began."""
        self._closing: dict[Callable[[], None], None] | None = None
        self._let_go = False

    def fail(self, error: Exception) -> None:
        """End as failed, after the step that runs now. Its first failure is the one that counts."""
        if self.failure is not None or self._let_go:
            logger.error("%s failed when it was ending already", self.actor.ref.path, exc_info=error)
            return
        self.failure = error
        self.end()
        if self.scope is not None:
            self.scope.cancel()

    def end(self) -> None:
        """Take no further message."""
        self.over = True
        self.actor.ref.mailbox.wake()

    def failing(self) -> _Failing:
        """What is raised in the block is its failure. Cancellation passes, whatever it comes together with."""
        return _Failing(self)

    def at_end(self, function: Callable[[], None]) -> None:
        """Call `function()` when this life is over, after the actor's own `on_end`; at once if it is."""
        if self._let_go:
            function()
        elif self._closing is None:
            self._closing = {function: None}
        else:
            self._closing[function] = None

    def forget(self, function: Callable[[], None]) -> None:
        """Undo `at_end`."""
        if self._closing is not None:
            self._closing.pop(function, None)

    def let_go(self, reason: str) -> None:
        """The end of the actor object: its `on_end`, then STOPPED for what it holds. Once, without a checkpoint."""
        if self._let_go:
            return
        ref = self.actor.ref
        _contained(self.actor.on_end, reason, of=ref)
        self._let_go = True
        closing, self._closing = self._closing, None
        for function in closing or ():
            _contained(function, of=ref)
        if self.reply is not None:
            self.reply.fail(ref.stopped())
            self.reply = None
        for wait in list(ref.asked or ()):
            if type(wait) is Reply and wait.to is ref and IN_HAND <= wait.state <= KEPT:
                wait.fail(ref.stopped())
        ref.mailbox.drop(Withdrawn)  # a successor has kept none of them

    @disable_ki_protection
    def serve(self, reply: Reply[Any]) -> None:
        """Handle a request by a plain handler: for an idle leaf, in the step of whoever asks."""
        self.reply = reply
        reply.state = IN_HAND
        message = reply.message
        actor = self.actor
        try:
            result = actor.handlers[type(message)][0](actor, message)
        except Exception as error:
            if not (reply.fail(error) or reply.withdrawn):
                self.fail(error)  # it was answered before: nobody else hears of it
        except BaseException:
            reply.withdraw()  # an interrupt ends the asker, in whose step this is
            raise
        else:
            if reply.state == IN_HAND:
                reply.answer(result)
        self.reply = None

    async def handle(self) -> None:
        """Handle messages until the life is over or the mailbox is closed.

        Raises what a handler raises that nobody asked.
        """
        actor = self.actor
        mailbox, handlers = actor.ref.mailbox, actor.handlers
        take, more = mailbox.take, mailbox.more
        reply: Reply[Any] | None
        while not self.over:
            message: Any = take()
            if message is None:
                if not await more():
                    return
                continue
            if type(message) is Reply:
                self.reply = reply = message  # pyright: ignore[reportUnknownVariableType]  # narrowed from Any
                reply.state = IN_HAND
                message = reply.message
            else:
                reply = None
            try:
                handler, is_async = handlers[type(message)]
                result = handler(actor, message)
                if is_async:
                    result = await result
            except Exception as error:
                if reply is None or not (reply.fail(error) or reply.withdrawn):
                    raise  # nobody asked, or it was answered before: nobody else hears of it
            else:
                if reply is not None and reply.state == IN_HAND:
                    reply.answer(result)
            # an idle actor holds nothing of its last message
            message = result = reply = self.reply = None


class _Failing:
    """`Life.failing`. No generator: since Python 3.13 an error and the frame that throws it in know each other."""

    __slots__ = ("_life",)

    def __init__(self, life: Life) -> None:
        self._life = life

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, Exception):
            self._life.fail(error)
            return True
        if isinstance(error, BaseExceptionGroup):
            group = cast("BaseExceptionGroup[BaseException]", error)
            failures, rest = group.split(Exception)
            if failures is not None:
                self._life.fail(failures)
            assert rest is not None, "else it would be an ExceptionGroup"
            raise rest from None
        return False


# -------------------------------------------------------------------- tasks


def move_in(ref: Ref, actor: Actor) -> None:
    """Let an actor that was just made live at `ref`."""
    ref.actor = actor
    ref.life = Life(actor)
    actor.ref, actor._life = ref, ref.life  # pyright: ignore[reportPrivateUsage]  # it is the runtime's, out of a subclass's way


def start(ref: Ref, nursery: trio.Nursery) -> None:
    """Start the task of the actor that lives at `ref`."""
    nursery.start_soon(run_leaf if isinstance(ref.actor, Leaf) else run, ref, name=ref.path)


async def run(ref: Ref) -> None:
    """The task of an actor that owns a nursery."""
    belong_to(ref, ref.lineage)
    try:
        again = True
        while again:
            await _live(ref, ref.life)
            again = await _begin_anew(ref)
    finally:
        finish(ref)


async def run_leaf(ref: Ref) -> None:
    """The task of a leaf. With no coroutine between it and its messages: there may be a hundred thousand of them."""
    belong_to(None if ref.actor.hosts else ref, ref.lineage)
    try:
        again = True
        while again:
            life = ref.life
            _started(ref)
            try:
                await life.handle()
            except Exception as error:
                life.fail(error)
            again = await _begin_anew(ref)
    finally:
        finish(ref)


async def _live(ref: Ref, life: Life) -> None:
    """One life between two restarts. Nothing beneath it is left afterwards."""
    try:
        async with trio.open_nursery() as nursery:
            life.nursery = nursery
            for child in (ref.children or {}).values():  # spawned before there was a nursery for them
                start(child, nursery)
            with trio.CancelScope() as life.scope, life.failing():
                if not life.over and ref.alive:
                    await life.actor.on_start()
                    _started(ref)
                    await life.handle()
            await end_all(ref)
            nursery.cancel_scope.cancel()
    finally:
        life.scope = life.nursery = None


async def end_all(ref: Ref) -> None:
    """Stop what is beneath `ref`, one after another, the newest first."""
    while ref.children:  # again for those that came meanwhile; one list for a hundred thousand, not one look-up each
        for child in reversed(list(ref.children.values())):
            child.stop_soon(reason=ref.reason or "stopped")
            await child.wait_ended()


async def carry_out(ref: Ref) -> None:
    """In the parent's nursery: the stop of an actor that is busy and so cannot see to its children itself."""
    await end_all(ref)
    life = ref.life
    if life.grace is not None:
        with life.grace:
            await ref.wait_ended()
    if life.scope is not None:
        life.scope.cancel()


def _started(ref: Ref) -> None:
    if ref.alive:
        ref.state = "running"
        ref.tree.announce_started(ref)


async def _begin_anew(ref: Ref) -> bool:
    """Put a new actor at the place of one that ended, if its rule says so. False: it ends for good."""
    supervision = ref.supervision
    while (rest := _rest(ref)) is not None and supervision is not None:
        ref.state = "restarting"
        ref.life.let_go("restarted")
        with trio.CancelScope() as supervision.pause:
            await trio.sleep(rest)
        supervision.pause = None
        if not ref.alive:
            return False
        try:
            move_in(ref, unused(supervision.factory()))
            return True
        except Exception as error:
            ref.life.failure = error
    return False


def _rest(ref: Ref) -> float | None:
    """The seconds before an actor that ended begins anew, or None. Says how it ended to whom it concerns.

    Apart from `_begin_anew`, since an error and a frame that called where it was raised would know each other.
    """
    supervision = ref.supervision
    failure, ref.life.failure = ref.life.failure, None
    wanted = supervision is not None and ref.alive and supervision.wants(failure is not None)
    rest = supervision.take_one(trio.current_time()) if supervision is not None and wanted else None
    if failure is not None:
        ref.tree.announce_failed(ref, failure, rest is not None)
    if rest is None and ref.alive:
        ref.reason = "ended" if failure is None else "failed"
    if rest is None and supervision is not None and wanted and ref.parent is not None:
        ref.parent.life.fail(supervision.exceeded(ref.path, failure))
    return rest


@enable_ki_protection
def finish(ref: Ref) -> None:
    """The end for good. Without a checkpoint: it also runs in a task that is being cancelled."""
    ref.mailbox.close()
    reason = ref.reason = ref.reason or "cancelled"
    life = ref.life
    life.let_go(reason)
    if life.failure is not None:  # nothing comes of it any more
        failure, life.failure = life.failure, None
        ref.tree.announce_failed(ref, failure, False)
    for reply in ref.mailbox.drain():
        reply.fail(_refusal(ref, reply.message, reason))
    ref.state = "ended"
    if ref.parent is not None and ref.parent.children is not None:
        del ref.parent.children[ref.path.rpartition("/")[2]]
        if not ref.parent.children:
            ref.parent.children = None
        if OPEN:
            left(ref)
    watchers, ref.watchers = ref.watchers, None
    if watchers:
        for watcher in watchers.values():
            as_nobody(_contained, watcher, ref, of=ref)
    for wait in list(ref.asked or ()):
        if type(wait) is Ending:
            wait.end()
    if ref.parent is not None:
        ref.tree.announce_ended(ref, reason)


def _refusal(ref: Ref, message: Message, reason: str) -> Exception:
    try:
        return ref.actor.refusal(message, reason)
    except Exception:
        logger.exception("%s raised where it should have said why it refuses", ref.path)
        return ref.stopped()


def _contained(function: Callable[..., object], *args: object, of: Ref) -> None:
    """Call what must not keep an actor from ending; what it raises is logged."""
    try:
        function(*args)
    except Exception:
        logger.exception("%s raised in %s while it was ending", of.path, getattr(function, "__qualname__", function))
