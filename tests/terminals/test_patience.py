"""Patient deadlines: the clock stands still exactly while something beneath waits for a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from math import inf
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from greenroom.protocol.errors import FormError, GreenroomError, TerminalDeadlock
from greenroom.protocol.forms import Form
from greenroom.protocol.tree import PatienceSnapshot
from greenroom.runtime import life, patience, reply, tree, waits
from greenroom.runtime.patience import patient_scope
from tests.clock import advance
from tests.kernel.cast import Do, Echo, Player, Run, sleep
from tests.terminals.conftest import NEED_X, Room

DAYS = 10 * 24 * 3600 * 1000.0
"""Milliseconds for which nobody answers."""


class Work:
    """What runs in a patient scope, and how it came out."""

    def __init__(self, seconds: float, work: Callable[[], Awaitable[Any]]) -> None:
        self._seconds = seconds
        self._work = work
        self.outcome: Any = None
        """What the work returned or raised, or `timeout`. None: it goes on."""
        self.took: Any = None

    async def run(self, _: object = None) -> None:
        began = trio.current_time()
        with patient_scope(self._seconds) as scope:
            try:
                self.outcome = await self._work()
            except GreenroomError as error:
                self.outcome = error
        if scope.cancelled_caught:
            self.outcome = "timeout"
        self.took = trio.current_time() - began


@pytest.fixture(autouse=True)
def nothing_is_kept_of_a_scope() -> Iterator[None]:
    yield
    assert not patience.OPEN
    assert not patience._WITHIN


async def start(room: Room, seconds: float, work: Callable[[], Awaitable[Any]]) -> Work:
    """Let somebody outside the tree do it."""
    begun = Work(seconds, work)
    room.nursery.start_soon(begun.run)
    await trio.testing.wait_all_tasks_blocked()
    return begun


async def start_within(actor: Player, seconds: float, work: Callable[[], Awaitable[Any]]) -> Work:
    """Let an actor do it as its work."""
    await trio.testing.wait_all_tasks_blocked()
    begun = Work(seconds, work)
    actor.start_soon(begun.run)
    await trio.testing.wait_all_tasks_blocked()
    return begun


def asks(room: Room, to: str = "ann", from_: str | None = None, **options: Any) -> Callable[[], Awaitable[Any]]:
    options = {"timeout": None, **options}
    return lambda: room.terminals.ask(from_, to, Form(NEED_X), **options)


def in_turn(*steps: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    async def work() -> str:
        for step in steps:
            await step()
        return "done"

    return work


def works(seconds: float) -> Callable[[], Awaitable[Any]]:
    return lambda: sleep(seconds)(None)


def after_days(seconds: float) -> Any:
    return pytest.approx(DAYS / 1000 + seconds, abs=1e-6)


async def answer(room: Room, to: str = "ann") -> None:
    assert (await room.terminals.answer(to, room.terminals.pending(to)[0].id, {"x": "yes"})).success
    await trio.testing.wait_all_tasks_blocked()


# -------------------------------------------------------------------- one scope


async def test_the_clock_stands_still_while_a_person_is_asked_and_goes_on_with_the_rest(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("ann")
    work = await start(room, 1.0, in_turn(works(0.3), asks(room), works(0.6)))
    await advance(300)
    await advance(DAYS)
    assert work.outcome is None
    await answer(room)
    await advance(1000)
    assert work.outcome == "done"


async def test_what_was_worked_before_and_after_counts_together(room: Room, mock_clock: MockClock) -> None:
    room.mount("ann")
    work = await start(room, 1.0, in_turn(works(0.6), asks(room), works(0.6)))
    await advance(600)
    await advance(DAYS)
    await answer(room)
    await advance(1000)
    assert work.outcome == "timeout"
    assert work.took == after_days(1.0)


async def test_the_clock_goes_on_when_the_answer_is_given_not_when_the_asker_runs(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("ann")
    form = Form(NEED_X)
    with patient_scope(1.0) as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: room.terminals.ask(None, "ann", form))
            await trio.testing.wait_all_tasks_blocked()
            assert scope.deadline == inf
            form.fill({"x": "yes"})
            form.submit()
            assert scope.deadline == trio.current_time() + 1.0


async def test_several_asks_at_once_hold_the_clock_until_the_last_is_answered(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("ann", "bob")

    async def both() -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(asks(room, "ann"))
            nursery.start_soon(asks(room, "bob"))
        await trio.sleep(0.9)
        return "done"

    work = await start(room, 1.0, both)
    await answer(room, "bob")
    await advance(DAYS)
    await answer(room, "ann")
    await advance(1000)
    assert work.outcome == "done"


async def test_the_clock_goes_on_after_a_cancelled_ask(room: Room, mock_clock: MockClock) -> None:
    room.mount("ann")

    async def give_up_and_work_on() -> None:
        with trio.move_on_after(5.0):  # no patience: it runs while ann is asked
            await asks(room)()
        await trio.sleep(2.0)

    work = await start(room, 1.0, give_up_and_work_on)
    await advance(DAYS)
    assert (work.outcome, work.took) == ("timeout", 6.0)
    assert room.terminals.pending() == []


async def test_an_ask_expires_while_the_clock_of_its_work_stands_still(room: Room, mock_clock: MockClock) -> None:
    room.mount("ann")
    work = await start(room, 1.0, asks(room, timeout=5.0))
    await advance(5000)
    assert isinstance(work.outcome, FormError)
    assert work.outcome.context == {"reason": "timeout"}
    assert work.took == 5.0


async def test_the_clock_goes_on_when_the_terminal_is_removed(room: Room, mock_clock: MockClock) -> None:
    room.mount("ann")

    async def try_and_work_on() -> None:
        with pytest.raises(FormError):
            await asks(room)()
        await trio.sleep(2.0)

    work = await start(room, 1.0, try_and_work_on)
    await advance(DAYS)
    await room.terminals.remove("ann")
    await advance(2000)
    assert (work.outcome, work.took) == ("timeout", after_days(1.0))


async def test_a_refused_ask_does_not_touch_the_clock(room: Room, mock_clock: MockClock) -> None:
    room.mount("a", "b")
    first = await room.ask("a", "b", timeout=None)
    with patient_scope(1.0) as scope:
        due = scope.deadline
        with pytest.raises(TerminalDeadlock):
            await asks(room, "a", from_="b")()
        assert scope.deadline == due
    assert not first.ended


async def test_work_that_is_cancelled_from_outside_while_its_clock_stands_still_ends(
    room: Room, autojump_clock: MockClock
) -> None:
    room.mount("ann")
    with trio.move_on_after(2.0) as outside, patient_scope(1.0) as scope:
        await asks(room)()
    assert outside.cancelled_caught
    assert not scope.cancelled_caught
    assert room.terminals.pending() == []


# -------------------------------------------------------------------- deadlines that are due


async def test_a_deadline_of_zero_cancels_the_first_ask_and_withdraws_it(room: Room, mock_clock: MockClock) -> None:
    room.mount("ann")
    await trio.testing.wait_all_tasks_blocked()
    work = await start(room, 0.0, asks(room))
    assert (work.outcome, work.took) == ("timeout", 0.0)
    assert room.terminals.pending() == []
    assert [event[0] for event in room.events] == ["pending", "withdraw"]


async def test_a_deadline_that_is_past_when_a_person_is_asked_cancels_at_once(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("ann")
    with patient_scope(1.0) as scope:
        mock_clock.jump(1.5)  # worked so long without a checkpoint
        await asks(room)()
    assert scope.cancelled_caught
    assert trio.current_time() == 1.5


async def test_an_outer_deadline_that_is_past_cancels_what_the_inner_one_asked(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("ann")
    with patient_scope(1.0) as outer, patient_scope(9.0) as inner:
        mock_clock.jump(1.5)
        await asks(room)()
    assert outer.cancelled_caught
    assert not inner.cancelled_caught


def test_a_number_of_seconds_below_zero_is_refused() -> None:
    for seconds in (-1.0, float("nan")):
        with pytest.raises(ValueError, match=r"timeout|seconds|NaN|negative"):
            patient_scope(seconds)


# -------------------------------------------------------------------- several scopes


async def test_nested_clocks_stand_still_together_and_each_keeps_its_own_rest(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("ann")

    async def inner() -> str:
        await trio.sleep(0.5)
        with patient_scope(1.0) as scope:
            await asks(room)()
            await trio.sleep(2.0)
        assert scope.cancelled_caught
        await asks(room)()
        await trio.sleep(1.0)
        return "done"

    work = await start(room, 3.0, inner)
    await advance(500)
    await advance(DAYS)
    await answer(room)
    await advance(1000)
    await advance(DAYS)
    await answer(room)
    await advance(1000)
    assert work.outcome == "done"


async def test_of_two_scopes_side_by_side_in_one_actor_only_the_one_that_asks_stands_still(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("ann")
    player = Player()
    room.runtime.spawn(player, "player")
    asking = await start_within(player, 1.0, asks(room))
    hanging = await start_within(player, 1.0, trio.sleep_forever)
    await advance(DAYS)
    assert (asking.outcome, hanging.outcome, hanging.took) == (None, "timeout", 1.0)
    await answer(room)
    assert asking.outcome == {"x": "yes"}


async def test_a_hundred_clocks_stand_still_each_for_its_own_ask(room: Room, mock_clock: MockClock) -> None:
    names = [f"person-{number}" for number in range(100)]
    room.mount(*names)
    works_ = [await start(room, 1.0, in_turn(works(0.2), asks(room, name), works(0.7))) for name in names]
    await advance(200)
    for name in names:
        await advance(1000)
        await answer(room, name)
    await advance(1000)
    assert [work.outcome for work in works_] == ["done"] * 100
    assert works_[-1].took == pytest.approx(0.2 + 100 + 0.7)


async def test_what_goes_on_after_its_scope_has_ended_is_the_outer_scopes_alone(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("ann")
    with patient_scope(5.0) as outer:
        async with trio.open_nursery() as nursery:
            with patient_scope(1.0) as inner:
                nursery.start_soon(in_turn(asks(room), asks(room)))
                await trio.testing.wait_all_tasks_blocked()
                assert (outer.deadline, inner.deadline) == (inf, inf)
            await answer(room)  # it asks again, in a context whose innermost scope has ended
            assert (outer.deadline, inner.deadline) == (inf, inf)
            await answer(room)
            assert outer.deadline == 5.0


async def test_without_a_patient_scope_nothing_is_followed(
    room: Room, mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def followed(*_: object) -> None:
        raise AssertionError("nobody wants to know")

    for module, name in (
        (waits, "begun"),
        (waits, "ended"),
        (waits, "moved"),
        (reply, "begun"),
        (life, "left"),
        (tree, "spawned"),
    ):
        monkeypatch.setattr(module, name, followed)
    room.mount("ann")
    asked = await room.ask(None, "ann")
    await answer(room)
    assert asked.values == {"x": "yes"}
    with patient_scope(1.0), pytest.raises(AssertionError):
        await asks(room)()
    monkeypatch.undo()


# -------------------------------------------------------------------- over further waits


async def test_a_person_is_waited_for_through_a_chain_of_actors(room: Room, mock_clock: MockClock) -> None:
    room.mount("ann")
    first, second = Player(), Player()
    room.runtime.spawn(first, "first")
    room.runtime.spawn(second, "second")

    async def pass_on(_: Any) -> Any:
        await trio.sleep(0.3)
        return await second.ref.ask(Do(ask_ann))

    async def ask_ann(_: Any) -> Any:
        await trio.sleep(0.3)
        return await asks(room)()

    work = await start(room, 1.0, lambda: first.ref.ask(Do(pass_on)))
    await advance(600)
    await advance(DAYS)
    await answer(room)
    assert work.outcome == {"x": "yes"}
    slow = await start(room, 0.5, lambda: first.ref.ask(Do(pass_on)))
    await advance(DAYS)
    assert (slow.outcome, slow.took) == ("timeout", 0.5)


async def test_standing_in_line_behind_somebody_who_waits_for_a_person_counts(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("ann")
    busy = Player()
    room.runtime.spawn(busy, "busy")
    busy.ref.tell(Run(lambda _: asks(room)()))
    await trio.testing.wait_all_tasks_blocked()
    work = await start(room, 1.0, lambda: busy.ref.ask(Echo(1)))
    await advance(DAYS)
    await answer(room)
    assert work.outcome == 1


async def test_a_handler_that_just_works_does_not_count_though_its_actors_work_asks(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("ann")
    busy = Player()
    room.runtime.spawn(busy, "busy")
    await trio.testing.wait_all_tasks_blocked()
    busy.start_soon(asks(room))
    work = await start(room, 1.0, lambda: busy.ref.ask(Do(sleep(9.0))))
    await advance(DAYS)
    assert (work.outcome, work.took) == ("timeout", 1.0)


async def test_the_clock_runs_while_the_operator_of_a_terminal_works_and_stands_while_it_asks_a_person(
    room: Room, mock_clock: MockClock
) -> None:
    agent = Player()
    room.runtime.spawn(agent, "agent")
    room.mount("ann")
    room.mount("agent", operator=agent.ref)
    work = await start(room, 1.0, in_turn(asks(room, "agent"), works(0.1)))
    await advance(300)
    await trio.testing.wait_all_tasks_blocked()
    agent.start_soon(asks(room, from_="agent"))
    await advance(DAYS)
    assert work.outcome is None
    await answer(room, "ann")
    await advance(300)
    await answer(room, "agent")
    await advance(1000)
    assert work.outcome == "done"
    slow = await start(room, 1.0, asks(room, "agent"))
    await advance(DAYS)
    assert (slow.outcome, slow.took) == ("timeout", 1.0)


async def test_joined_work_counts_with_all_beneath_it(room: Room, mock_clock: MockClock) -> None:
    room.mount("ann")
    run, task = Player(), Player()
    room.runtime.spawn(run, "run")
    room.runtime.spawn(task, "task", parent=run.ref)
    await trio.testing.wait_all_tasks_blocked()
    work = await start(room, 1.0, run.ref.join)
    await advance(500)
    task.start_soon(asks(room))
    await advance(DAYS)
    await answer(room)
    await advance(400)
    assert work.outcome is None
    await task.ref.stop()
    await run.ref.stop()
    await trio.testing.wait_all_tasks_blocked()
    assert work.outcome == "stopped"


async def test_what_ends_beneath_joined_work_does_not_count_any_more(room: Room, mock_clock: MockClock) -> None:
    room.mount("ann")
    run, task = Player(), Player()
    room.runtime.spawn(run, "run")
    room.runtime.spawn(task, "task", parent=run.ref)
    room.mount("bot", operator=task.ref)
    work = await start(room, 1.0, run.ref.join)
    asked = await room.ask("bot", "ann", timeout=None)  # somebody outside, in its name
    await advance(DAYS)
    assert not work.outcome
    await task.ref.stop()
    await advance(1000)
    assert (work.outcome, work.took) == ("timeout", after_days(1.0))
    assert not asked.ended


async def test_an_ask_that_becomes_the_operators_counts_from_then_on(room: Room, mock_clock: MockClock) -> None:
    room.mount("ann")
    run = Player()
    room.runtime.spawn(run, "run")
    work = await start(room, 1.0, run.ref.join)
    await room.ask("bot", "ann", timeout=None)
    await advance(500)
    room.mount("bot", operator=run.ref)
    await advance(DAYS)
    assert work.outcome is None
    await answer(room)
    await advance(500)
    assert work.outcome == "timeout"


async def test_an_actor_that_was_spawned_in_the_block_counts_and_one_from_before_does_not(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("ann")
    run, before, within = Player(), Player(), Player()
    room.runtime.spawn(run, "run")
    room.runtime.spawn(before, "before", parent=run.ref)

    async def spawn_and_wait() -> None:
        run.spawn(within, "within")
        await trio.sleep_forever()

    work = await start_within(run, 1.0, spawn_and_wait)
    within.start_soon(asks(room))
    await advance(DAYS)
    await answer(room)
    before.start_soon(asks(room))
    await advance(DAYS)
    assert (work.outcome, work.took) == ("timeout", after_days(1.0))


async def test_an_actor_that_was_spawned_in_the_block_holds_the_clock_until_its_last_ask_is_answered(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("ann", "bob")
    run, within = Player(), Player()
    room.runtime.spawn(run, "run")

    async def spawn_and_wait() -> None:
        run.spawn(within, "within")
        await trio.sleep_forever()

    work = await start_within(run, 1.0, spawn_and_wait)
    within.start_soon(asks(room, "ann"))
    within.start_soon(asks(room, "bob"))
    await advance(DAYS)
    await answer(room, "ann")
    await advance(DAYS)
    assert not work.outcome
    await answer(room, "bob")
    await advance(1000)
    assert work.outcome == "timeout"


# -------------------------------------------------------------------- looking


async def test_a_snapshot_shows_the_scopes_with_their_rest_and_whether_they_stand_still(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("ann")
    player = Player()
    room.runtime.spawn(player, "player")
    await start_within(player, 1.0, in_turn(works(0.4), asks(room)))
    await advance(300)
    (running,) = room.runtime.snapshot().patient
    assert running == PatienceSnapshot("/player", running.remaining, still=False)
    assert running.remaining == pytest.approx(0.7)
    await advance(500)
    (still,) = room.runtime.snapshot().patient
    assert still == PatienceSnapshot("/player", still.remaining, still=True)
    assert still.remaining == pytest.approx(0.6)
