"""Stopping: children first, whatever the caller does, and nothing left."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.protocol.errors import ActorDeadlock, ActorError
from greenroom.runtime.context import CURRENT
from greenroom.runtime.ref import Ref
from greenroom.runtime.reply import Reply
from greenroom.runtime.restart import Restart
from greenroom.runtime.tree import ActorEnded, Tree, run_tree
from tests.cancelling import Doomed, at_every_step
from tests.kernel.cast import Call, Do, Echo, Keep, Note, Player, Prop, Run, forever, nothing_is_left, quiet, sleep


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


def ends_of(tree: Tree) -> list[str]:
    """Filled with the paths of actors as they end."""
    ends: list[str] = []

    def ended(event: ActorEnded) -> None:
        ends.append(event.path)

    tree.bus.on("actor/ended", ended)
    return ends


async def family(tree: Tree, start: Callable[[Player], Awaitable[Any]] | None = None) -> Ref:
    """/a with the children x, y and z, of which y has the children 1 and 2."""
    top = tree.spawn(Player(start), "a")
    for name in "xyz":
        child = tree.spawn(Player(), name, parent=top)
        if name == "y":
            for number in "12":
                tree.spawn(Prop(), number, parent=child)
    await quiet()
    return top


ORDER = ["/a/z", "/a/y/2", "/a/y/1", "/a/y", "/a/x", "/a"]


async def test_children_stop_first_and_the_newest_of_them_first() -> None:
    async with run_tree() as tree:
        ends, before = ends_of(tree), tasks()
        top = await family(tree)
        await top.stop(reason="enough")
        assert ends == ORDER
        assert tasks() == before
        assert (top.state, top.reason) == ("ended", "enough")
        assert tree.snapshot().root.children == ()


async def test_an_actor_is_marked_and_closed_before_its_children_stop() -> None:
    async with run_tree() as tree:
        top = await family(tree)
        slow = tree.spawn(Player(), "slow", parent=top)
        slow.tell(Run(_shielded(1)))
        await quiet()
        top.stop_soon()
        await quiet()
        assert tree.snapshot().root.children[0].state == "stopping"
        for refused in (lambda: top.tell(Note("")), lambda: tree.spawn(Prop(), "new", parent=top)):
            with pytest.raises(ActorError, match="/a has stopped") as error:
                refused()
            assert error.value.code == "STOPPED"


def _shielded(seconds: float) -> Callable[[Any], Awaitable[None]]:
    async def hold(_: Any) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(seconds)

    return hold


async def test_the_message_in_hand_is_cancelled_after_the_children_have_stopped() -> None:
    async with run_tree() as tree:
        order: list[str] = []
        top = await family(tree)
        tree.bus.on("actor/ended", lambda event: order.append(event.path))

        async def handler(_: Player) -> None:
            try:
                await trio.sleep_forever()
            finally:
                order.append("handler")

        top.tell(Run(handler))
        await quiet()
        await top.stop()
        assert order == [*ORDER[:-1], "handler", "/a"]


async def test_grace_lets_the_message_in_hand_finish(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(Player(), "a")
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await ref.ask(Do(sleep(5))))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await quiet()
            await ref.stop(grace=60)
        assert trio.current_time() == 5.0
        assert answers == [None]


async def test_after_the_grace_it_is_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(Player(), "a")
        ref.tell(Run(forever))
        await quiet()
        await ref.stop(grace=60)
        assert trio.current_time() == 60.0


async def test_grace_counts_from_the_stop_not_from_the_end_of_the_children(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with run_tree() as tree:
        top = await family(tree)
        tree.find("/a/x").tell(Run(_shielded(6)))
        top.tell(Run(forever))
        await quiet()
        await top.stop(grace=10)
        assert trio.current_time() == 10.0


async def test_an_idle_actor_needs_no_grace(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        top = await family(tree)
        await top.stop(grace=60)
        assert trio.current_time() == 0.0


async def test_messages_that_are_queued_are_not_begun_within_the_grace(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        actor = Player()
        ref = tree.spawn(actor, "a")
        ref.tell(Run(sleep(5)))
        ref.tell(Note("queued"))
        await quiet()
        await ref.stop(grace=60)
        assert actor.notes == []


@pytest.mark.parametrize(("second", "ends"), [(0.0, 10.0), (5.0, 15.0), (100.0, 60.0)])
async def test_a_second_stop_only_shortens_the_grace(
    second: float, ends: float, autojump_clock: trio.testing.MockClock
) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(Player(), "a")
        ref.tell(Run(forever))
        await quiet()
        ref.stop_soon(grace=60, reason="first")
        await trio.sleep(10)
        await ref.stop(grace=second, reason="second")
        assert (trio.current_time(), ref.reason) == (ends, "first")


async def test_a_parent_that_stops_does_not_wait_for_a_childs_grace(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        top = await family(tree)
        child = tree.find("/a/x")
        child.tell(Run(forever))
        await quiet()
        child.stop_soon(grace=60)
        await trio.sleep(1)
        await top.stop()
        assert trio.current_time() == 1.0


async def test_stops_at_the_same_time_all_return_when_nothing_is_left() -> None:
    async with run_tree() as tree:
        ends = ends_of(tree)
        top = await family(tree)

        async def stop(ref: Ref) -> None:
            await ref.stop()
            assert ref.state == "ended"

        async with trio.open_nursery() as nursery:
            for ref in (top, tree.find("/a/y"), top, tree.find("/a/y/1"), top):
                nursery.start_soon(stop, ref)
        assert sorted(ends) == sorted(ORDER)
        await top.stop()
        assert len(ends) == len(ORDER), "stopping what has ended does nothing"


@pytest.mark.parametrize("busy", [False, True])
async def test_a_cancelled_caller_undoes_nothing(busy: bool) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with run_tree() as tree:
            before = tasks()
            top = await family(tree)
            if busy:
                top.tell(Run(forever))
                await quiet()
            ended = await doomed(top.stop)
            assert ended.cancelled or top.state == "ended"
            await top.wait_ended()
            await quiet()
            assert (top.state, top.reason) == ("ended", "stopped")
            assert tasks() == before
            assert nothing_is_left(top, tree)

    assert await at_every_step(scenario) > 3


async def test_a_cancelled_join_leaves_nothing(autojump_clock: trio.testing.MockClock) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with run_tree() as tree:
            ref, other = tree.spawn(Player(), "a"), tree.spawn(Player(), "other")

            async def join() -> str:
                CURRENT.set(other)
                return await ref.join()

            async def end() -> None:
                await trio.sleep(1)
                await ref.ask(Call(lambda me: me.end()))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(end)
                ended = await doomed(join)
                assert ended.cancelled or ended.value == "ended"
                assert nothing_is_left(other)
            await ref.wait_ended()
            assert nothing_is_left(ref, other)

    assert await at_every_step(scenario) > 2


@pytest.mark.parametrize("moment", ["not begun", "in its start"])
@pytest.mark.parametrize("kind", [Player, Prop])
async def test_an_actor_that_has_not_started_can_be_stopped(moment: str, kind: type[Player] | type[Prop]) -> None:
    async with run_tree() as tree:
        begun: list[str] = []

        async def start(_: Player) -> None:
            begun.append("begun")
            await trio.sleep_forever()

        actor = Player(start) if kind is Player else Prop()
        ref = tree.spawn(actor, "a")
        if moment == "in its start":
            await quiet()
        await ref.stop()
        assert ref.state == "ended"
        assert begun == (["begun"] if kind is Player and moment == "in its start" else [])
        assert actor.ends == ["stopped"]


@pytest.mark.parametrize("where", ["its own handler", "its own work", "its start", "a child's handler"])
async def test_a_caller_beneath_is_stopped_with_it_and_without_grace(
    where: str, autojump_clock: trio.testing.MockClock
) -> None:
    async with run_tree() as tree:
        cancelled: list[str] = []
        top: Ref

        async def stop(_: Any = None) -> None:
            try:
                await top.stop(grace=60)
            except trio.Cancelled:
                cancelled.append(where)
                raise

        async def begin_work(me: Player) -> None:
            me.start_soon(stop)

        top = tree.spawn(Player(stop if where == "its start" else None), "a")
        child = tree.spawn(Player(), "child", parent=top)
        if where == "its own handler":
            top.tell(Run(stop))
        elif where == "its own work":
            top.tell(Run(begin_work))
        elif where == "a child's handler":
            child.tell(Run(stop))
        await top.wait_ended()
        assert cancelled == [where]
        assert trio.current_time() == 0.0


async def test_a_plain_handler_may_begin_the_stop_of_its_own_actor() -> None:
    async with run_tree() as tree:
        for kind in (Player, Prop):
            ref = tree.spawn(kind(), "a")
            for _ in range(2):
                await quiet()
                answer = "not asked"
                if ref.alive:
                    answer = await ref.ask(Call(lambda me: me.ref.stop_soon(grace=5) or "answered"))
                    assert answer == "answered"
            await ref.wait_ended()


async def test_who_waits_for_an_answer_learns_that_it_has_stopped() -> None:
    async with run_tree() as tree:
        actor = Player()
        ref = tree.spawn(actor, "a", capacity=1)
        errors: list[tuple[str, str]] = []

        async def fails(what: Callable[[Any], Awaitable[Any]], message: Any) -> None:
            with pytest.raises(ActorError, match="/a has stopped") as error:
                await what(message)
            errors.append((type(message).__name__, error.value.code))

        async with trio.open_nursery() as nursery:
            for what, message in (
                (ref.ask, Keep()),
                (ref.ask, Do(forever)),
                (ref.ask, Echo(1)),
                (ref.ask, Echo(2)),
                (ref.send, Note("")),
            ):
                nursery.start_soon(fails, what, message)
                await quiet()
            await ref.stop()
            assert nothing_is_left(ref)
        assert sorted(errors) == [(name, "STOPPED") for name in ("Do", "Echo", "Echo", "Keep", "Note")]


async def test_the_request_in_hand_fails_whoever_is_waited_for_by_it() -> None:
    """An ask in whose wait another party is the target, as a terminal's is: it is found by being in hand."""
    async with run_tree() as tree:
        ref = tree.spawn(Player(), "a")
        await quiet()
        person = tree.waits.party("ops")
        reply: Reply[Any] = Reply(Do(forever), ref, None, person)
        ref.post(reply)
        await quiet()
        await ref.stop()
        with pytest.raises(ActorError, match="/a has stopped"):
            await reply.wait()
        assert person.asked is None


async def test_an_actor_may_say_otherwise_to_those_it_did_not_serve() -> None:
    class Polite(Player):
        def refusal(self, message: Any, reason: str) -> Exception:
            return LookupError(f"{message.value} comes too late: {reason}")

    async with run_tree() as tree:
        ref = tree.spawn(Polite(forever), "a")

        async def ask() -> None:
            with pytest.raises(LookupError, match="3 comes too late: closing time"):
                await ref.ask(Echo(3))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await quiet()
            await ref.stop(reason="closing time")


async def test_two_that_stop_each_other_both_end() -> None:
    async with run_tree() as tree:
        a, b, gate = tree.spawn(Player(), "a"), tree.spawn(Player(), "b"), trio.Event()

        async def stop(other: Ref) -> None:
            await gate.wait()
            await other.stop(grace=1000)

        a.tell(Run(lambda _: stop(b)))
        b.tell(Run(lambda _: stop(a)))
        await quiet()
        gate.set()
        await quiet()
        assert (a.state, b.state) == ("ended", "ended"), "one of the messages in hand could not finish"


async def test_a_message_in_hand_that_waits_for_the_stopper_has_no_grace() -> None:
    """It could not finish, and an infinite grace would never end."""
    async with run_tree() as tree:
        a, b = tree.spawn(Player(), "a"), tree.spawn(Player(), "b")

        async def ask(_: Player) -> int:
            return await a.ask(Echo(1))

        async def stop(_: Player) -> str:
            b.tell(Run(ask))
            await quiet()
            await b.stop(grace=math.inf)
            return b.state

        assert await a.ask(Do(stop)) == "ended"
        nothing_is_left(tree)


async def test_within_a_grace_a_message_in_hand_cannot_begin_to_wait_for_the_stopper() -> None:
    refused: list[list[str]] = []
    async with run_tree() as tree:
        a, b, gate = tree.spawn(Player(), "a"), tree.spawn(Player(), "b"), trio.Event()

        async def ask(_: Player) -> None:
            await gate.wait()
            try:
                await a.ask(Echo(1))
            except ActorDeadlock as error:
                refused.append(error.path)

        async def stop(_: Player) -> None:
            await b.stop(grace=math.inf)

        b.tell(Run(ask))
        await quiet()
        a.tell(Run(stop))
        await quiet()
        gate.set()
        await b.wait_ended()
        assert refused == [["/b", "/a", "/b"]]


async def test_a_grace_that_is_no_number_is_refused_and_stops_nothing() -> None:
    async with run_tree() as tree:
        ref = tree.spawn(Player(), "a")
        with pytest.raises(ValueError, match="grace"):
            await ref.stop(grace=math.nan)
        assert await ref.ask(Echo(1)) == 1


async def test_an_idle_leaf_lets_go_of_what_it_keeps_in_the_step_in_which_it_is_stopped() -> None:
    async with run_tree() as tree, trio.open_nursery() as nursery:
        ref = tree.spawn(Prop(), "a")

        async def ask() -> None:
            with pytest.raises(ActorError):
                await ref.ask(Keep())

        nursery.start_soon(ask)
        await quiet()
        assert ref.asked
        ref.stop_soon()
        assert not ref.asked
        await ref.wait_ended()


async def test_a_leaf_that_is_stopped_in_its_own_handler_finishes_that_first() -> None:
    async with run_tree() as tree:
        prop = Prop()
        ref = tree.spawn(prop, "a")
        await quiet()
        assert await ref.ask(Call(lambda me: me.ref.stop_soon() or list(me.ends))) == []
        await ref.wait_ended()
        assert prop.ends == ["stopped"]


async def test_a_stop_is_not_held_up_by_what_the_actor_waits_for() -> None:
    async with run_tree() as tree:
        top = await family(tree)
        child = tree.find("/a/x")
        child.tell(Run(lambda _: top.ask(Keep())))
        top.tell(Run(lambda _: child.ask(Echo(1))))
        await quiet()
        await top.stop()
        assert nothing_is_left(top, child)


@pytest.mark.parametrize("where", ["handler", "work", "outside"])
async def test_an_actor_may_end_by_itself(where: str) -> None:
    async with run_tree() as tree:
        ends = ends_of(tree)
        top = await family(tree)
        after: list[str] = []

        async def end() -> None:
            top.actor.end()
            after.append("still in this step")
            await trio.lowlevel.checkpoint()
            after.append("no further")

        if where == "handler":
            await top.ask(Call(lambda me: me.end()))
        elif where == "work":
            await top.ask(Call(lambda me: me.start_soon(end)))
        else:
            top.actor.end()
        assert await top.join() == "ended"
        assert ends == ORDER
        if where == "work":
            assert after[0] == "still in this step"


async def test_messages_after_its_end_fail_as_stopped() -> None:
    async with run_tree() as tree:
        actor = Player()
        ref = tree.spawn(actor, "a")

        async def ask() -> None:
            with pytest.raises(ActorError) as error:
                await ref.ask(Echo(1))
            assert error.value.code == "STOPPED"

        async with trio.open_nursery() as nursery:
            ref.tell(Run(lambda me: _end(me, gate)))
            gate = trio.Event()
            nursery.start_soon(ask)
            ref.tell(Note("never"))
            await quiet()
            gate.set()
        assert actor.notes == []


async def _end(me: Player, gate: trio.Event) -> None:
    await gate.wait()
    me.end()


async def test_one_who_watches_is_called_once_when_nothing_is_left() -> None:
    async with run_tree() as tree:
        top = await family(tree)
        seen: list[tuple[str, str | None, int]] = []

        def watch(ref: Ref) -> None:
            seen.append((ref.path, ref.reason, len(ref.children or ())))

        top.watch(watch)
        await top.stop(reason="why")
        assert seen == [("/a", "why", 0)]
        top.watch(watch)()
        assert seen == [("/a", "why", 0)] * 2


async def test_a_watch_may_be_closed_and_may_close_another() -> None:
    async with run_tree() as tree:
        ref = tree.spawn(Prop(), "a")
        seen: list[str] = []

        def first(_: Ref) -> None:
            seen.append(f"first, as {CURRENT.get()}")
            for close in closes:
                close()

        closes = [ref.watch(first)]
        closes.append(ref.watch(lambda _: seen.append("second")))
        ref.watch(lambda _: seen.append("closed"))()
        await ref.stop()
        assert seen == ["first, as None", "second"], "all that watched when it ended are told"


@pytest.mark.parametrize("how", ["stop", "end", "cancel", "fail"])
async def test_join_gives_the_reason(how: str) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(Player(), "a")
        reasons: list[str] = []

        async def join() -> None:
            reasons.append(await ref.join())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(join)
            await quiet()
            if how == "stop":
                await ref.stop(reason="because")
            elif how == "end":
                ref.actor.end()
            elif how == "fail":
                ref.actor.fail(ValueError())
            else:
                assert tree.root.life.nursery is not None
                tree.root.life.nursery.cancel_scope.cancel()
        assert reasons == [{"stop": "because", "end": "ended", "fail": "failed", "cancel": "cancelled"}[how]]
        with trio.testing.assert_checkpoints():
            assert await ref.join() == reasons[0]


async def test_work_may_not_be_started_where_nothing_runs() -> None:
    class Late(Player):
        def on_end(self, reason: str) -> None:
            for begin in (lambda: self.start_soon(trio.sleep, 0), lambda: self.spawn(Prop(), "late")):
                try:
                    begin()
                except ActorError as error:
                    codes.append(error.code)

    codes: list[str] = []
    async with run_tree() as tree:
        await tree.spawn(Late(), "stopped").stop()
        tree.spawn(Late(), "cancelled")
        await quiet()
        assert tree.root.life.nursery is not None
        tree.root.life.nursery.cancel_scope.cancel()
    assert codes == ["STOPPED"] * 4


async def test_the_root_cannot_be_stopped() -> None:
    async with run_tree() as tree:
        with pytest.raises(ActorError, match="ends with its block"):
            await tree.root.stop()


# -------------------------------------------------------------------- everything is cancelled at once


async def test_when_all_is_cancelled_cells_fail_without_a_checkpoint_and_nothing_is_left() -> None:
    """The askers are outside of what is cancelled: they learn of it in the same step in which the actor ends."""
    ends: list[str] = []
    steps: list[str] = []

    class Watched(Player):
        def on_end(self, reason: str) -> None:
            super().on_end(reason)
            for reply in self.kept:
                assert not reply.settled
            self.ref.watch(lambda _: steps.append(f"{len(self.kept)} settled: {[r.settled for r in self.kept]}"))

    async def ask(ref: Ref, message: Any) -> None:
        with pytest.raises(ActorError) as error:
            await ref.ask(message)
        ends.append(error.value.code)

    before = tasks()
    keeper = Watched()
    async with trio.open_nursery() as askers:
        with trio.CancelScope() as scope:
            async with run_tree() as tree:
                top = await family(tree)
                ref = tree.spawn(keeper, "keeper", parent=top, restart=None, capacity=1)
                askers.start_soon(ask, ref, Keep())
                await quiet()
                for message in (Do(forever), Echo(1), Echo(2)):
                    askers.start_soon(ask, ref, message)
                    await quiet()
                scope.cancel()
                await trio.sleep_forever()
        assert scope.cancelled_caught
        assert keeper.ref.parent is not None
        assert nothing_is_left(keeper.ref, keeper.ref.parent)
        assert (keeper.ref.reason, keeper.ends) == ("cancelled", ["cancelled"])
        assert steps == ["1 settled: [True]"]
    assert ends == ["STOPPED"] * 4
    assert tasks() == before


@pytest.mark.parametrize("restart", [None, Restart("on_failure", intensity=100)])
async def test_a_tree_that_is_cancelled_at_any_moment_leaves_nothing(
    restart: Restart | None, autojump_clock: trio.testing.MockClock
) -> None:
    async def scenario(doomed: Doomed) -> None:
        before = tasks()
        refs: list[Ref] = []

        async def start(me: Player) -> None:
            await trio.lowlevel.checkpoint()
            refs.append(me.spawn(Prop(), "child"))

        async def live() -> None:
            async with run_tree() as tree:
                ref = tree.spawn(lambda: Player(start), "a", restart=restart)
                other = tree.spawn(Player(), "b")
                refs.extend((ref, other))
                other.tell(Run(lambda _: ref.ask(Keep())))
                await ref.ask(Echo(1))
                if restart is not None:
                    ref.tell(Run(_breaks))
                    await ref.ask(Echo(2))
                await ref.stop()

        await doomed(live)
        await quiet()
        assert tasks() == before
        assert all(ref.state == "ended" for ref in refs)
        assert nothing_is_left(*refs)

    assert await at_every_step(scenario) > 10


async def _breaks(_: Any) -> None:
    raise ValueError
