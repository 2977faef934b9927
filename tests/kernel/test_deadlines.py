"""Expiries: in order, one after the other, and with nothing left of those that are void."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from greenroom.runtime.actor import Actor, Leaf, handles
from greenroom.runtime.deadlines import Deadlines, Due
from greenroom.runtime.reply import Reply
from greenroom.runtime.tree import run_tree
from tests.kernel.cast import Do, Echo, Player, quiet, sleep


class Thing:
    def __init__(self, name: str = "") -> None:
        self.name = name
        self.armed = 0


class Keeper(Leaf):
    """Writes down what is due, and when. `also` is called with each."""

    def __init__(self, also: Callable[[Thing], Any] = lambda _: None) -> None:
        self.also = also
        self.seen: list[tuple[float, str]] = []
        self.askers: list[Any] = []

    @handles(Due)
    def due(self, message: Due) -> None:
        thing = message.what
        assert isinstance(thing, Thing)
        self.seen.append((trio.current_time(), thing.name))
        self.askers.extend(wait.waiter for wait in self.ref.asked or () if isinstance(wait, Reply))
        self.also(thing)

    @handles(Echo)
    def echo(self, message: Echo) -> int:
        return message.value


async def test_the_earlier_comes_first_and_of_two_at_a_time_the_one_armed_first(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with run_tree() as tree:
        keeper = Keeper()
        ref = tree.spawn(keeper, "keeper")
        await quiet()
        for due, name in ((2, "c"), (1, "a"), (2, "d"), (1, "b"), (3, "e")):
            tree.deadlines.arm(due, ref, Thing(name))
        assert (len(tree.deadlines), tree.deadlines.next_due) == (5, 1)
        await trio.sleep(10)
        assert keeper.seen == [(1, "a"), (1, "b"), (2, "c"), (2, "d"), (3, "e")]
        assert (len(tree.deadlines), tree.deadlines.next_due) == (0, None)


async def test_an_earlier_one_moves_the_alarm(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        keeper = Keeper()
        ref = tree.spawn(keeper, "keeper")
        tree.deadlines.arm(100, ref, Thing("late"))
        await trio.sleep(1)
        tree.deadlines.arm(2, ref, Thing("early"))
        tree.deadlines.arm(trio.current_time() - 5, ref, Thing("past"))
        await trio.sleep(10)
        assert keeper.seen == [(1, "past"), (2, "early")]


async def test_arming_again_moves_it_behind_those_of_the_same_time(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        keeper, moved = Keeper(), Thing("moved")
        ref = tree.spawn(keeper, "keeper")
        tree.deadlines.arm(1, ref, moved)
        tree.deadlines.arm(5, ref, Thing("other"))
        tree.deadlines.arm(5, ref, moved)
        assert len(tree.deadlines) == 2
        await trio.sleep(10)
        assert keeper.seen == [(5, "other"), (5, "moved")]


async def test_what_is_disarmed_never_comes_and_wakes_nobody(mock_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        keeper, thing = Keeper(), Thing()
        ref = tree.spawn(keeper, "keeper")
        tree.deadlines.arm(1, ref, thing)
        tree.deadlines.disarm(thing)
        tree.deadlines.disarm(thing)
        assert (len(tree.deadlines), tree.deadlines.next_due, thing.armed) == (0, None, 0)
        await quiet()
        assert trio.lowlevel.current_statistics().seconds_to_next_deadline == float("inf")
        mock_clock.jump(10)
        await quiet()
        assert keeper.seen == []


async def test_void_entries_do_not_pile_up(autojump_clock: trio.testing.MockClock) -> None:
    """What is answered in time is disarmed long before it is due: the heap must not keep it until then."""
    async with run_tree() as tree:
        ref = tree.spawn(Keeper(), "keeper")
        kept = [Thing() for _ in range(100)]
        for thing in kept:
            tree.deadlines.arm(1000, ref, thing)
        largest = 0
        for _ in range(10_000):
            thing = Thing()
            tree.deadlines.arm(500, ref, thing)
            tree.deadlines.disarm(thing)
            largest = max(largest, len(tree.deadlines._heap))  # pyright: ignore[reportPrivateUsage]
        assert largest <= 300
        assert len(tree.deadlines) == 100


async def test_each_is_waited_for_before_the_next(autojump_clock: trio.testing.MockClock) -> None:
    class Slow(Actor):
        @handles(Due)
        async def due(self, message: Due) -> None:
            seen.append("slow begins")
            await trio.sleep(5)
            seen.append("slow ends")

    seen: list[str] = []
    async with run_tree() as tree:
        slow = tree.spawn(Slow(), "slow")
        quick = tree.spawn(Keeper(lambda thing: seen.append(thing.name)), "quick")
        tree.deadlines.arm(1, slow, Thing())
        tree.deadlines.arm(1, quick, Thing("quick"))
        tree.deadlines.arm(2, quick, Thing("quicker"))
        await trio.sleep(5.5)
        assert seen == ["slow begins"]
        await trio.sleep(5)
        assert seen == ["slow begins", "slow ends", "quick", "quicker"]


async def test_it_overtakes_what_is_queued(autojump_clock: trio.testing.MockClock) -> None:
    class Busy(Player):
        @handles(Due)
        def due(self, message: Due) -> None:
            self.notes.append("due")

    async with run_tree() as tree:
        actor = Busy()
        ref = tree.spawn(actor, "busy")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ref.ask, Do(sleep(5)))
            await quiet()
            nursery.start_soon(ref.ask, Do(_note("queued")))
            tree.deadlines.arm(1, ref, Thing())
        assert actor.notes == ["due", "queued"]


def _note(text: str) -> Callable[[Any], Any]:
    async def note(me: Player) -> None:
        me.notes.append(text)

    return note


async def test_what_is_due_may_be_armed_again_and_others_with_it(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:

        def again(thing: Thing) -> None:
            if trio.current_time() < 3:
                tree.deadlines.arm(trio.current_time() + 1, ref, thing)
            if thing.name == "first":
                tree.deadlines.arm(trio.current_time(), ref, Thing("at once"))
                tree.deadlines.disarm(never)

        keeper, never = Keeper(again), Thing("never")
        ref = tree.spawn(keeper, "keeper")
        tree.deadlines.arm(2, ref, Thing("first"))
        tree.deadlines.arm(2, ref, never)
        await trio.sleep(10)
        assert keeper.seen == [(2, "first"), (2, "at once"), *[(3, "first"), (3, "at once"), (3, "at once")]]


async def test_a_keeper_that_has_stopped_has_seen_to_it(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        gone, keeper = tree.spawn(Keeper(), "gone"), Keeper()
        ref = tree.spawn(keeper, "keeper")
        tree.deadlines.arm(1, gone, Thing("void"))
        tree.deadlines.arm(1, ref, Thing("next"))
        await gone.stop()
        await trio.sleep(5)
        assert keeper.seen == [(1, "next")]


async def test_a_keeper_that_stops_while_it_is_asked_holds_nobody_up(autojump_clock: trio.testing.MockClock) -> None:
    class Stuck(Actor):
        @handles(Due)
        async def due(self, message: Due) -> None:
            await trio.sleep_forever()

    async with run_tree() as tree:
        stuck, keeper = tree.spawn(Stuck(), "stuck"), Keeper()
        ref = tree.spawn(keeper, "keeper")
        tree.deadlines.arm(1, stuck, Thing())
        tree.deadlines.arm(1, ref, Thing("next"))
        await trio.sleep(3)
        await stuck.stop()
        await quiet()
        assert keeper.seen == [(3, "next")]


@pytest.mark.parametrize("fault", ["raises", "has no handler"])
async def test_a_keeper_that_cannot_see_to_it_fails_and_the_others_are_served(
    fault: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Nobody else would ever end what was due, and somebody may be waiting for it."""

    def raises(_: Thing) -> None:
        raise ValueError(fault)

    async with run_tree() as tree:
        failed: list[str] = []
        tree.bus.on("actor/failed", lambda event: failed.append(f"{event.path} {type(event.error).__name__}"))
        bad, keeper = tree.spawn(Keeper(raises) if fault == "raises" else Player(), "bad"), Keeper()
        ref = tree.spawn(keeper, "keeper")
        tree.deadlines.arm(1, bad, Thing())
        tree.deadlines.arm(2, ref, Thing("next"))
        await trio.sleep(5)
        assert failed == [f"/bad {'ValueError' if fault == 'raises' else 'ActorError'}"]
        assert bad.reason == "failed"
        assert keeper.seen == [(2, "next")]


async def test_expiries_are_asked_by_nobody_wherever_their_tree_was_opened(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Else an actor that runs a tree within itself would wait, in the graph, for what its keepers do."""

    async def inner(me: Player) -> list[Any]:
        async with run_tree() as tree:
            keeper = Keeper()
            tree.deadlines.arm(trio.current_time() + 1, tree.spawn(keeper, "keeper"), Thing())
            await trio.sleep(2)
            return keeper.askers

    async with run_tree() as tree:
        assert await tree.spawn(Player(), "outer").ask(Do(inner)) == [None]


@pytest.mark.parametrize("due", [float("nan"), 10**400, "5"])
def test_a_time_that_is_none_is_refused_and_nothing_is_armed(due: Any) -> None:
    deadlines, keeper, thing = Deadlines(), cast("Any", None), Thing()
    deadlines.arm(3, keeper, thing)
    with pytest.raises((ValueError, OverflowError, TypeError)):
        deadlines.arm(due, keeper, thing)
    with pytest.raises((ValueError, OverflowError, TypeError)):
        deadlines.arm(due, keeper, Thing())
    deadlines.arm(1, keeper, Thing())
    deadlines.arm(2, keeper, Thing())
    assert (len(deadlines), deadlines.next_due) == (3, 1)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8)), max_size=40))
def test_armed_and_disarmed_in_any_order_the_earliest_live_one_is_next(steps: list[tuple[int, int]]) -> None:
    """Against a plain dictionary: thing -> (due, number)."""
    deadlines, things, model = Deadlines(), [Thing(str(number)) for number in range(6)], dict[int, tuple[int, int]]()
    keeper: Any = None
    for number, (which, due) in enumerate(steps):
        if due == 0:
            deadlines.disarm(things[which])
            model.pop(which, None)
        else:
            deadlines.arm(due, keeper, things[which])
            model[which] = due, number
        assert len(deadlines) == len(model)
        assert deadlines.next_due == (min(model.values())[0] if model else None)
