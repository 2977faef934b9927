"""Telling and asking: who is answered what, and who is told when an asker has gone."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, assert_type

import pytest
import trio
import trio.testing

from greenroom.protocol.errors import ActorError
from greenroom.runtime.actor import Actor, Leaf, handles
from greenroom.runtime.context import CURRENT, current_actor
from greenroom.runtime.messages import Request, Withdrawn
from greenroom.runtime.ref import Ref
from greenroom.runtime.reply import Reply
from greenroom.runtime.tree import ActorFailed, run_tree
from tests.cancelling import Doomed, at_every_step
from tests.kernel.cast import Call, Do, Echo, Keep, Note, Player, Prop, Run, Unknown, nothing_is_left, quiet, sleep

KINDS: list[type[Player] | type[Prop]] = [Player, Prop]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> type[Player] | type[Prop]:
    """Both sorts of actors: with a nursery, and without."""
    sort: type[Player] | type[Prop] = request.param
    return sort


async def tell(ref: Ref, message: Any) -> None:
    ref.tell(message)


WAYS: dict[str, Callable[[Ref, Any], Awaitable[Any]]] = {"tell": tell, "send": Ref.send, "ask": Ref.ask}


class Broken(Exception):
    pass


def broken(*_: Any) -> Any:
    raise Broken("by itself")


async def test_the_type_of_an_answer_is_the_requests(kind: type[Player] | type[Prop]) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(kind(), "a")
        answer = await ref.ask(Echo(3))
        assert_type(answer, int)
        assert answer == 3


async def test_told_messages_are_handled_in_order(kind: type[Player] | type[Prop]) -> None:
    async with run_tree() as tree:
        actor = kind()
        ref = tree.spawn(actor, "a")
        for text in "abc":
            ref.tell(Note(text))
        await ref.send(Note("d"))
        await ref.ask(Echo(0))
        assert actor.notes == ["a", "b", "c", "d"]


async def test_an_ask_comes_after_what_was_told_before(kind: type[Player] | type[Prop]) -> None:
    async with run_tree() as tree:
        actor = kind()
        ref = tree.spawn(actor, "a")
        await quiet()
        ref.tell(Note("before"))
        assert await ref.ask(Call(lambda me: list(me.notes))) == ["before"]


@pytest.mark.parametrize("started", [False, True])
async def test_asking_is_a_checkpoint(kind: type[Player] | type[Prop], started: bool) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(kind(), "a")
        if started:
            await quiet()
        with trio.testing.assert_checkpoints():
            await ref.ask(Echo(1))


async def test_one_that_is_cancelled_already_asks_nothing(kind: type[Player] | type[Prop]) -> None:
    async with run_tree() as tree:
        actor = kind()
        ref = tree.spawn(actor, "a")
        await quiet()
        with trio.CancelScope() as scope:
            scope.cancel()
            await ref.ask(Keep())
        assert scope.cancelled_caught
        await quiet()
        assert actor.kept == []
        assert nothing_is_left(ref)


async def test_one_message_is_handled_at_a_time(kind: type[Player] | type[Prop]) -> None:
    """A listener inside a handler that tells its own actor is served after it."""

    def busy(me: Any) -> list[str]:
        me.ref.tell(Note("from within"))
        return list(me.notes)

    async with run_tree() as tree:
        actor = kind()
        ref = tree.spawn(actor, "a")
        await quiet()
        assert await ref.ask(Call(busy)) == []
        await quiet()
        assert actor.notes == ["from within"]


async def test_an_async_handler_keeps_later_messages_waiting() -> None:
    async with run_tree() as tree:
        actor, gate = Player(), trio.Event()
        ref = tree.spawn(actor, "a")
        ref.tell(Run(lambda _: gate.wait()))
        ref.tell(Note("later"))
        await quiet()
        assert actor.notes == []
        gate.set()
        await quiet()
        assert actor.notes == ["later"]


async def test_a_full_mailbox_refuses_what_is_told_and_keeps_what_is_sent_in_line() -> None:
    async with run_tree() as tree:
        gate = trio.Event()
        actor = Player(lambda _: gate.wait())
        ref = tree.spawn(actor, "a", capacity=1)
        ref.tell(Note("1"))
        with pytest.raises(ActorError, match="holds 1 messages already") as refused:
            ref.tell(Note("2"))
        assert refused.value.code == "MAILBOX_FULL"
        assert refused.value.context == {"path": "/a", "capacity": 1}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ref.send, Note("3"))
            await quiet()
            nursery.start_soon(ref.ask, Echo(4))
            await quiet()
            assert ref.mailbox.depth == 3
            gate.set()
        await quiet()
        assert actor.notes == ["1", "3"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_message_without_a_handler_is_refused_naming_those_that_have_one(way: str) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(Prop(), "a")
        with pytest.raises(ActorError, match=r"no handler for Unknown.* Call, Echo, Keep, Note, Withdrawn") as refused:
            await WAYS[way](ref, Unknown())
        assert refused.value.code == "UNKNOWN"


@pytest.mark.parametrize("way", WAYS)
async def test_a_stopped_actor_is_named(way: str, kind: type[Player] | type[Prop]) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(kind(), "a")
        await ref.stop()
        with pytest.raises(ActorError, match="/a has stopped") as refused:
            await WAYS[way](ref, Echo(1))
        assert (refused.value.code, refused.value.context) == ("STOPPED", {"path": "/a"})


async def test_urgent_asks_overtake() -> None:
    async with run_tree() as tree:
        actor, order = Player(), list[int]()
        gate = trio.Event()
        ref = tree.spawn(actor, "a")
        ref.tell(Run(lambda _: gate.wait()))
        await quiet()

        async def ask(number: int, urgent: bool) -> None:
            await ref.ask(Call(lambda _: order.append(number)), urgent=urgent)

        async with trio.open_nursery() as nursery:
            for number, urgent in enumerate((False, True, True)):
                nursery.start_soon(ask, number, urgent)
                await quiet()
            gate.set()
        assert order == [1, 2, 0]


# -------------------------------------------------------------------- replies that are kept


async def test_a_kept_reply_is_answered_later_and_by_anybody(kind: type[Player] | type[Prop]) -> None:
    async with run_tree() as tree:
        actor = kind()
        ref = tree.spawn(actor, "a")
        answers: list[str] = []

        async def ask(text: str) -> None:
            answers.append(await ref.ask(Keep(text)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "1")
            await quiet()
            nursery.start_soon(ask, "2")
            await quiet()
            first, second = actor.kept
            assert not first.settled
            assert second.answer("two")
            assert second.settled
            assert not second.answer("again")
            assert not second.fail(Broken())
            await quiet()
            assert answers == ["two"]
            assert first.answer("one")
        assert answers == ["two", "one"]
        assert nothing_is_left(ref)


async def test_a_kept_reply_may_fail(kind: type[Player] | type[Prop]) -> None:
    async with run_tree() as tree:
        actor = kind()
        ref = tree.spawn(actor, "a")

        async def ask() -> None:
            with pytest.raises(Broken):
                await ref.ask(Keep())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await quiet()
            actor.kept[0].fail(Broken())


async def test_a_reply_can_be_taken_once_and_only_of_a_request(kind: type[Player] | type[Prop]) -> None:
    errors: list[ActorError] = []

    def take_twice(me: Any) -> None:
        me.take_reply().answer("taken")
        try:
            me.take_reply()
        except ActorError as error:
            errors.append(error)

    async with run_tree() as tree:
        ref = tree.spawn(kind(), "a")
        assert await ref.ask(Call(take_twice)) == "taken"
        assert errors[0].code == "UNKNOWN"
        with pytest.raises(ActorError, match="no reply in hand"):
            ref.actor.take_reply()


async def test_the_keeper_of_a_reply_is_told_when_its_asker_has_gone(kind: type[Player] | type[Prop]) -> None:
    async with run_tree() as tree:
        actor = kind()
        ref = tree.spawn(actor, "a")
        await quiet()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ref.ask, Keep())
            await quiet()
            nursery.cancel_scope.cancel()
        await quiet()
        assert actor.withdrawn == actor.kept
        assert actor.kept[0].withdrawn
        assert not actor.kept[0].answer("to nobody")
        assert nothing_is_left(ref)


async def test_a_request_withdrawn_in_hand_is_told_only_to_one_who_then_keeps_it() -> None:
    async with run_tree() as tree:
        actor, gate = Player(), trio.Event()

        async def late(keeps: bool) -> Any:
            await gate.wait()
            if keeps:
                assert actor.take_reply().withdrawn

        ref = tree.spawn(actor, "a")
        for keeps in (False, True):
            gate = trio.Event()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ref.ask, Do(lambda _, keeps=keeps: late(keeps)))  # type: ignore[misc]  # a default binds it
                await quiet()
                nursery.cancel_scope.cancel()
            gate.set()
            await quiet()
            assert len(actor.withdrawn) == keeps


async def test_an_actor_that_does_not_care_is_not_told() -> None:
    class Careless(Leaf):
        @handles(Keep)
        def keep(self, message: Keep) -> None:
            self.take_reply()

    async with run_tree() as tree:
        ref = tree.spawn(Careless(), "a")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ref.ask, Keep())
            await quiet()
            nursery.cancel_scope.cancel()
        assert nothing_is_left(ref)


async def test_a_withdrawn_request_leaves_the_mailbox_and_lets_the_next_in_line_in() -> None:
    async with run_tree() as tree:
        gate = trio.Event()
        actor = Player(lambda _: gate.wait())
        ref = tree.spawn(actor, "a", capacity=2)
        scopes = [trio.CancelScope() for _ in range(4)]

        async def ask(number: int) -> None:
            with scopes[number]:
                await ref.ask(Call(lambda _: actor.notes.append(str(number))))

        async with trio.open_nursery() as nursery:
            for number in range(4):  # two in the mailbox, two in line
                nursery.start_soon(ask, number)
                await quiet()
            nursery.start_soon(ref.send, Note("sent"))
            await quiet()
            assert ref.mailbox.depth == 5
            for number in (1, 2, 0):
                scopes[number].cancel()
            assert ref.mailbox.depth == 2
            assert not ref.mailbox.offer(Note("barging in"))
            gate.set()
        await quiet()
        assert actor.notes == ["3", "sent"]


async def test_an_urgent_request_may_be_withdrawn_too() -> None:
    async with run_tree() as tree:
        gate = trio.Event()
        ref = tree.spawn(Player(lambda _: gate.wait()), "a")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: ref.ask(Echo(1), urgent=True))
            await quiet()
            assert ref.mailbox.depth == 1
            nursery.cancel_scope.cancel()
        assert ref.mailbox.depth == 0
        gate.set()


async def test_a_reply_given_up_by_hand_wakes_its_waiter_with_an_error() -> None:
    async with run_tree() as tree:
        gate = trio.Event()
        ref = tree.spawn(Player(lambda _: gate.wait()), "a")
        reply: Reply[int] = Reply(Echo(1), ref, None, ref)
        ref.mailbox.queue(reply)

        async def wait() -> None:
            with pytest.raises(ActorError, match="Echo to /a was withdrawn") as error:
                await reply.wait()
            assert error.value.code == "WITHDRAWN"

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await quiet()
            with pytest.raises(trio.BusyResourceError):
                await reply.wait()
            reply.withdraw()
            reply.withdraw()
        assert nothing_is_left(ref)
        gate.set()


# -------------------------------------------------------------------- handlers that raise


async def test_a_raising_handler_of_a_request_fails_its_asker_only(kind: type[Player] | type[Prop]) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(kind(), "a")
        with pytest.raises(Broken, match="by itself"):
            await ref.ask(Call(broken))
        assert await ref.ask(Echo(1)) == 1
        assert nothing_is_left(ref)


async def test_an_async_handler_may_raise_a_group() -> None:
    async def group(_: Any) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 0)
            broken()

    async with run_tree() as tree:
        ref = tree.spawn(Player(), "a")
        with pytest.RaisesGroup(Broken):
            await ref.ask(Do(group))
        assert await ref.ask(Echo(1)) == 1


async def test_a_handler_that_raises_after_keeping_the_reply_fails_its_asker_only(
    kind: type[Player] | type[Prop],
) -> None:
    def keep_and_raise(me: Any) -> None:
        me.take_reply()
        broken()

    async with run_tree() as tree:
        ref = tree.spawn(kind(), "a")
        with pytest.raises(Broken):
            await ref.ask(Call(keep_and_raise))
        assert await ref.ask(Echo(1)) == 1


async def test_a_handler_that_raises_when_its_asker_has_gone_fails_nobody() -> None:
    async with run_tree() as tree:
        ref, gate = tree.spawn(Player(), "a"), trio.Event()

        async def late(_: Any) -> None:
            await gate.wait()
            broken()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ref.ask, Do(late))
            await quiet()
            nursery.cancel_scope.cancel()
        gate.set()
        assert await ref.ask(Echo(1)) == 1


async def test_a_handler_that_gives_its_request_up_and_raises_fails_nobody_else(
    kind: type[Player] | type[Prop],
) -> None:
    def give_up_and_raise(me: Any) -> None:
        me.take_reply().withdraw()
        broken()

    async with run_tree() as tree:
        ref = tree.spawn(kind(), "a")
        for _ in range(2):
            with pytest.raises(ActorError, match="was withdrawn"):
                await ref.ask(Call(give_up_and_raise))
            await quiet()
        assert await ref.ask(Echo(1)) == 1


@pytest.mark.parametrize("started", [False, True])
async def test_a_handler_that_raises_after_answering_fails_its_actor(
    kind: type[Player] | type[Prop], started: bool
) -> None:
    def answer_and_raise(me: Any) -> None:
        me.take_reply().answer("good")
        broken()

    async with run_tree() as tree:
        failed: list[ActorFailed] = []
        tree.bus.on("actor/failed", failed.append)
        ref = tree.spawn(kind(), "a")
        if started:
            await quiet()
        assert await ref.ask(Call(answer_and_raise)) == "good"
        assert await ref.join() == "failed"
        assert [(type(failure.error), failure.restarting) for failure in failed] == [(Broken, False)]


async def test_errors_leave_no_cycle_behind(kind: type[Player] | type[Prop], monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception knows the frames that it went through; none of them may go on knowing it."""
    monkeypatch.setattr(logging.getLogger("greenroom.tree"), "disabled", True)  # pytest keeps what is logged
    seen: list[weakref.ref[Any]] = []

    class Watched(Exception):
        pass

    def fail(_: Any) -> None:
        error = Watched()
        seen.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    async def wait_and_fail(me: Any) -> None:
        await trio.lowlevel.checkpoint()
        fail(me)

    async with run_tree() as tree:
        asked, told = tree.spawn(kind(), "asked"), tree.spawn(Player(), "told")
        await quiet()
        gc.collect()
        gc.disable()
        try:
            with pytest.raises(Watched) as raised:
                await asked.ask(Call(fail))
            del raised
            told.tell(Run(wait_and_fail))
            assert await told.join() == "failed"
            await quiet()
            assert [ref() for ref in seen] == [None, None]
        finally:
            gc.enable()


# -------------------------------------------------------------------- cancelled at every moment


@pytest.mark.parametrize("message", [Echo(1), Keep(), Call(broken)], ids=lambda message: type(message).__name__)
@pytest.mark.parametrize("started", [False, True])
async def test_a_cancelled_ask_leaves_nothing(
    kind: type[Player] | type[Prop], message: Request[Any], started: bool, autojump_clock: trio.testing.MockClock
) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with run_tree() as tree:
            actor = kind()
            ref, asker = tree.spawn(actor, "a"), tree.spawn(Player(), "asker")
            if started:
                await quiet()

            async def ask() -> Any:
                CURRENT.set(asker)
                if isinstance(message, Call):
                    with pytest.raises(Broken):
                        await ref.ask(message)
                else:
                    return await ref.ask(message)

            async def answer() -> None:
                while True:
                    await trio.sleep(1)
                    for reply in actor.kept:
                        reply.answer("kept")

            async with trio.open_nursery() as nursery:
                nursery.start_soon(answer)
                ended = await doomed(ask)
                await quiet()
                assert nothing_is_left(ref, asker)
                assert [reply.withdrawn for reply in actor.kept] == [ended.cancelled for _ in actor.kept]
                assert actor.withdrawn == [reply for reply in actor.kept if reply.withdrawn]
                nursery.cancel_scope.cancel()

    assert await at_every_step(scenario) >= 1


@pytest.mark.parametrize("way", ["ask", "send"])
async def test_one_who_stands_in_line_and_is_cancelled_leaves_nothing(
    way: str, autojump_clock: trio.testing.MockClock
) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with run_tree() as tree:
            actor, asker = Player(sleep(1)), tree.spawn(Player(), "asker")
            ref = tree.spawn(actor, "a", capacity=1)
            ref.tell(Note("first"))

            async def stand() -> None:
                CURRENT.set(asker)
                if way == "send":
                    await ref.send(Note("mine"))
                else:
                    await ref.ask(Call(lambda me: me.notes.append("mine")))

            ended = await doomed(stand)
            await trio.sleep(2)
            assert nothing_is_left(ref, asker)
            if ended.cancelled and way == "send":
                assert actor.notes == ["first"]
            if not ended.cancelled:
                assert actor.notes == ["first", "mine"]

    assert await at_every_step(scenario) >= 2


async def test_a_cancelled_ask_that_returned_lost_no_answer(autojump_clock: trio.testing.MockClock) -> None:
    """Either the asker has the answer, or the actor can know that it has not."""

    async def scenario(doomed: Doomed) -> None:
        async with run_tree() as tree:
            actor = Player()
            ref = tree.spawn(actor, "a")
            given: list[bool] = []

            async def answer() -> None:
                while not actor.kept:
                    await trio.lowlevel.checkpoint()
                given.append(actor.kept[0].answer("it"))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(answer)
                ended = await doomed(ref.ask, Keep())
                if ended.cancelled:
                    assert not any(given)
                    nursery.cancel_scope.cancel()
                else:
                    assert ended.value == "it"

    assert await at_every_step(scenario) >= 2


# -------------------------------------------------------------------- classes


async def test_a_handler_may_be_overridden_without_a_new_mark() -> None:
    class Louder(Prop):
        def note(self, message: Note) -> None:
            self.notes.append(message.text.upper())

    async with run_tree() as tree:
        actor = Louder()
        ref = tree.spawn(actor, "a")
        ref.tell(Note("quiet"))
        await ref.ask(Echo(1))
        assert actor.notes == ["QUIET"]


async def test_handlers_come_from_every_base() -> None:
    class Numbers:
        @handles(Echo)
        def echo(self, message: Echo) -> int:
            return message.value + 1

    class Both(Numbers, Leaf):
        @handles(Call)
        def call(self, message: Call) -> Any:
            return message.action(self)

    async with run_tree() as tree:
        ref = tree.spawn(Both(), "a")
        assert await ref.ask(Echo(1)) == 2
        assert await ref.ask(Call(lambda me: isinstance(me, Both)))


async def test_an_override_with_another_mark_handles_only_that() -> None:
    class Other(Prop):
        @handles(Unknown)
        def echo(self, message: Unknown) -> None:  # type: ignore[override]  # another message on purpose
            """Handled."""

    async with run_tree() as tree:
        ref = tree.spawn(Other(), "a")
        await ref.ask(Unknown())
        with pytest.raises(ActorError, match="no handler for Echo"):
            await ref.ask(Echo(1))


def test_a_leaf_never_waits() -> None:
    @handles(Echo)
    async def wait_in_a_handler(self: Leaf, message: Echo) -> int:
        return 1

    with pytest.raises(TypeError, match=r"never waits.*wait_in_a_handler"):
        type("Waits", (Leaf,), {"wait_in_a_handler": wait_in_a_handler})
    with pytest.raises(TypeError, match="on_start"):
        type("Starts", (Leaf,), {"on_start": Player.on_start})


async def test_an_actor_need_not_call_the_constructor_of_its_base() -> None:
    class Own(Actor):
        def __init__(self, value: int) -> None:
            self.value = value

        @handles(Echo)
        def echo(self, message: Echo) -> int:
            return self.value

    async with run_tree() as tree:
        assert await tree.spawn(Own(7), "a").ask(Echo(1)) == 7


# -------------------------------------------------------------------- context


async def test_a_handler_runs_as_its_actor_and_work_as_its_work(kind: type[Player] | type[Prop]) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(kind(), "a")
        for _ in range(2):  # queued before it has started, and at once when it is idle
            assert await ref.ask(Call(lambda me: (CURRENT.get(), current_actor()))) == (ref, ref.actor)
            await quiet()
        assert CURRENT.get() is None
        assert current_actor() is None


async def test_what_work_starts_is_work_and_what_a_handler_starts_is_the_handler() -> None:
    seen: dict[str, Any] = {}

    async def see(where: str) -> None:
        seen[where] = CURRENT.get(), current_actor()

    async def work() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(see, "work's child")
        await see("work")

    async def handler(me: Player) -> None:
        me.start_soon(work)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(see, "handler's child")

    async with run_tree() as tree:
        actor = Player()
        ref = tree.spawn(actor, "a")
        await ref.ask(Do(handler))
        await quiet()
        assert seen["handler's child"] == (ref, actor)
        assert seen["work"] == seen["work's child"] == (ref.work, actor)


async def test_an_actor_does_not_run_as_whoever_spawned_it() -> None:
    def spawn(me: Player) -> Ref:
        return me.spawn(Prop(), "child")

    async with run_tree() as tree:
        parent = tree.spawn(Player(), "a")
        child: Ref = await parent.ask(Call(spawn))
        assert await child.ask(Call(lambda _: CURRENT.get())) is child


async def test_a_handler_runs_in_its_actors_context_whoever_asks(kind: type[Player] | type[Prop]) -> None:
    """What one handler sets the next one sees, and the asker does not."""
    mark: ContextVar[str] = ContextVar("mark", default="unset")
    async with run_tree() as tree:
        ref = tree.spawn(kind(), "a")
        await quiet()
        mark.set("the asker's")
        assert await ref.ask(Call(lambda _: mark.get())) == "unset"
        await ref.ask(Call(lambda _: mark.set("the actor's") and None))
        assert await ref.ask(Call(lambda _: mark.get())) == "the actor's"
        ref.tell(Call(lambda me: me.notes.append(mark.get())))
        assert await ref.ask(Call(lambda me: list(me.notes))) == ["the actor's"]
        assert mark.get() == "the asker's"


async def test_an_interrupt_strikes_a_handler_and_never_the_kernels_own_steps() -> None:
    """Nothing is left of an ask whose handler it ends in the asker's step."""

    def interrupted(_: Any) -> None:
        protected.append(trio.lowlevel.currently_ki_protected())
        raise KeyboardInterrupt

    class Looks(Prop):
        def on_end(self, reason: str) -> None:
            protected.append(trio.lowlevel.currently_ki_protected())

    protected: list[bool] = []
    async with run_tree() as tree:
        ref = tree.spawn(Looks(), "a")
        await quiet()
        with pytest.raises(KeyboardInterrupt):
            await ref.ask(Call(interrupted))
        assert nothing_is_left(ref)
        assert await ref.ask(Echo(1)) == 1
        await ref.stop()
    assert protected == [False, True]


async def test_an_idle_actor_holds_nothing_of_its_last_message(kind: type[Player] | type[Prop]) -> None:
    class Heavy:
        def __call__(self, _: Any) -> None:
            """Do nothing, with much in hand."""

    async with run_tree() as tree:
        ref = tree.spawn(kind(), "a")
        for _ in range(2):  # queued before it has started, and at once when it is idle
            heavy = Heavy()
            seen = weakref.ref(heavy)
            await ref.ask(Call(heavy))
            await quiet()
            del heavy
            assert seen() is None


def test_withdrawn_is_a_message_like_any_other() -> None:
    assert Withdrawn in Player.handlers
