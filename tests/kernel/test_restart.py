"""Actors that begin anew: when, how often, after how long, and what is kept meanwhile."""

from __future__ import annotations

import gc
import logging
import math
import weakref
from collections.abc import Callable
from typing import Any, Literal, NoReturn, cast

import pytest
import trio
import trio.testing

from greenroom.protocol.errors import ActorError
from greenroom.runtime.actor import Actor, Leaf, handles
from greenroom.runtime.messages import Message
from greenroom.runtime.ref import Ref
from greenroom.runtime.restart import Restart
from greenroom.runtime.tree import ActorFailed, ActorStarted, run_tree
from tests.kernel.cast import Call, Do, Echo, Keep, Note, Player, Prop, Run, forever, nothing_is_left, quiet


class Broken(Exception):
    pass


async def breaks(*_: Any) -> None:
    raise Broken("again")


class Break(Message, frozen=True):
    pass


class Glass(Leaf):
    """A leaf that breaks when it is told to."""

    made = 0

    def __init__(self) -> None:
        Glass.made += 1
        self.number = Glass.made
        self.notes: list[str] = []

    @handles(Break)
    def break_(self, message: Break) -> None:
        raise Broken("again")

    @handles(Note)
    def note(self, message: Note) -> None:
        self.notes.append(message.text)

    @handles(Echo)
    def echo(self, message: Echo) -> int:
        return message.value

    @handles(Keep)
    def keep(self, message: Keep) -> None:
        self.take_reply()

    @handles(Call)
    def call(self, message: Call) -> Any:
        return message.action(self)


ON_FAILURE = Restart("on_failure", intensity=3, within=10.0, backoff=1.0, backoff_limit=3.0)
ALWAYS = Restart("always", intensity=3, within=10.0, backoff=1.0)


def break_(ref: Ref) -> None:
    ref.tell(Break() if Break in ref.actor.handlers else Run(breaks))


@pytest.fixture(params=[Glass, Player])
def kind(request: pytest.FixtureRequest) -> Callable[[], Any]:
    make: Callable[[], Any] = request.param
    return make


@pytest.mark.parametrize(
    ("when", "failed", "again"),
    [
        ("never", True, False),
        ("never", False, False),
        ("on_failure", True, True),
        ("on_failure", False, False),
        ("always", True, True),
        ("always", False, True),
    ],
)
async def test_when_an_actor_begins_anew(
    kind: Callable[[], Any],
    when: Literal["never", "on_failure", "always"],
    failed: bool,
    again: bool,
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(kind, "a", restart=Restart(when))
        first = ref.actor
        await quiet()
        if failed:
            break_(ref)
        else:
            await ref.ask(Call(lambda me: me.end()))
        await trio.sleep(1)
        assert ref.alive is again
        if again:
            assert ref.actor is not first
            assert tree.find("/a") is ref
            assert await ref.ask(Echo(1)) == 1
            assert tree.snapshot().root.children[0].restarts == 1
        else:
            assert ref.reason == ("failed" if failed else "ended")


async def test_a_stopped_actor_never_begins_anew(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(Player, "a", restart=ALWAYS)
        await ref.stop()
        await trio.sleep(100)
        assert tree.snapshot().root.children == ()


async def test_it_waits_longer_each_time_up_to_a_limit(autojump_clock: trio.testing.MockClock) -> None:
    started: list[float] = []
    async with run_tree() as tree:
        tree.bus.on("actor/started", lambda _: started.append(trio.current_time()))
        rule = Restart("on_failure", intensity=5, within=100.0, backoff=1.0, backoff_limit=3.0)
        begun = trio.current_time()
        ref = tree.spawn(Glass, "a", restart=rule)
        for _ in range(4):
            break_(ref)
            await ref.ask(Echo(1))
        assert [now - begun for now in started] == [0.0, 1.0, 3.0, 6.0, 9.0]


async def test_a_row_of_restarts_is_forgotten_after_a_while(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(Glass, "a", restart=Restart("on_failure", intensity=1, within=5.0, backoff=1.0))
        for _ in range(10):
            before = trio.current_time()
            break_(ref)
            await ref.ask(Echo(1))
            assert trio.current_time() - before == 1.0
            await trio.sleep(4)


async def test_an_intensity_without_bound_overflows_nothing(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        rule = Restart("on_failure", intensity=5000, within=1e9, backoff=0.001, backoff_limit=0.5)
        ref = tree.spawn(Glass, "a", restart=rule)
        for _ in range(1500):
            break_(ref)
            await ref.ask(Echo(1))
        assert tree.snapshot().root.children[0].restarts == 1500


@pytest.mark.parametrize(
    "wrong",
    [
        {"intensity": -1},
        {"intensity": 1.5},
        {"intensity": True},
        {"within": 0},
        {"within": math.nan},
        {"within": math.inf},
        {"within": "5"},
        {"backoff": -1},
        {"backoff": math.nan},
        {"backoff": math.inf, "backoff_limit": math.inf},
        {"backoff": 10, "backoff_limit": 1},
        {"backoff_limit": math.nan},
        {"when": "sometimes"},
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="restart rule needs"):
        Restart(**wrong)


async def test_a_function_that_makes_no_actor_is_refused_and_the_place_stays_free() -> None:
    async with run_tree() as tree:
        with pytest.raises(TypeError, match="str is no Actor"):
            tree.spawn(cast("Any", lambda: "no actor"), "a", restart=ON_FAILURE)
        assert tree.snapshot().root.children == ()


async def test_a_function_that_makes_no_actor_the_second_time_fails_as_the_actor_does(
    autojump_clock: trio.testing.MockClock,
) -> None:
    makes: list[Any] = [Glass, lambda: "no actor", Glass]
    async with run_tree() as tree:
        failed: list[ActorFailed] = []
        tree.bus.on("actor/failed", failed.append)
        ref = tree.spawn(lambda: makes.pop(0)(), "a", restart=ON_FAILURE)
        break_(ref)
        assert await ref.ask(Echo(1)) == 1
        assert [type(event.error) for event in failed] == [Broken, TypeError]


async def test_queued_messages_stay_and_those_in_hand_are_lost(
    kind: Callable[[], Any], autojump_clock: trio.testing.MockClock
) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(kind, "a", restart=ON_FAILURE, capacity=3)
        answers: list[int] = []

        async def ask() -> None:
            answers.append(await ref.ask(Echo(7)))

        async with trio.open_nursery() as nursery:
            break_(ref)
            ref.tell(Note("queued"))
            nursery.start_soon(ask)
            await quiet()
            ref.tell(Note("told while it rests"))
            nursery.start_soon(ref.send, Note("in line"))
        assert answers == [7]
        assert await ref.ask(Call(lambda me: list(me.notes))) == ["queued", "told while it rests", "in line"]


async def test_the_request_in_hand_and_the_kept_replies_fail_at_once(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(Player, "a", restart=ON_FAILURE)
        errors: list[tuple[float, str, str]] = []

        async def ask(message: Any) -> None:
            with pytest.raises(ActorError) as error:
                await ref.ask(message)
            errors.append((trio.current_time(), error.value.code, error.value.context["path"]))

        def begin(me: Player) -> None:
            me.start_soon(fail_later)

        async def fail_later() -> None:
            await trio.sleep(5)
            await breaks()

        async with trio.open_nursery() as nursery:
            await ref.ask(Call(begin))
            nursery.start_soon(ask, Keep())
            await quiet()
            nursery.start_soon(ask, Do(forever))
        assert errors == [(5.0, "STOPPED", "/a")] * 2
        assert await ref.ask(Echo(1)) == 1
        assert nothing_is_left(ref)


async def test_a_new_one_is_not_told_of_replies_that_it_never_kept(autojump_clock: trio.testing.MockClock) -> None:
    """The actor's own work asked it, so that the failure withdraws what the failed one kept."""
    made: list[Player] = []

    def make() -> Player:
        made.append(Player())
        return made[-1]

    async def asks_itself() -> None:
        await ref.ask(Keep())

    async with run_tree() as tree:
        ref = tree.spawn(make, "a", restart=ON_FAILURE)
        await ref.ask(Call(lambda me: me.start_soon(asks_itself)))
        await quiet()
        assert len(made[0].kept) == 1
        break_(ref)
        await ref.ask(Echo(1))
        assert made[1].withdrawn == []
        assert ref.mailbox.depth == 0


async def test_the_old_one_hears_that_it_is_restarted_and_only_once(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        made: list[Player] = []

        def make() -> Player:
            made.append(Player())
            return made[-1]

        ref = tree.spawn(make, "a", restart=ON_FAILURE)
        break_(ref)
        await ref.ask(Echo(1))
        break_(ref)
        await quiet()
        await ref.stop()
        assert [actor.ends for actor in made] == [["restarted"], ["restarted"]]


async def test_it_starts_anew_and_its_children_with_it(autojump_clock: trio.testing.MockClock) -> None:
    children: list[Ref] = []

    async def start(me: Player) -> None:
        children.append(me.spawn(Prop(), "child"))

    async with run_tree() as tree:
        ref = tree.spawn(lambda: Player(start), "a", restart=ON_FAILURE)
        await quiet()
        break_(ref)
        await quiet()
        assert tree.snapshot().root.children[0].state == "restarting"
        assert (children[0].state, ref.children) == ("ended", None)
        with pytest.raises(ActorError) as refused:
            tree.spawn(Prop(), "other", parent=ref)
        assert refused.value.code == "STOPPED"
        assert await ref.ask(Echo(1)) == 1
        await quiet()
        assert [child.path for child in children] == ["/a/child", "/a/child"]
        assert children[1].state == "running"


async def test_one_that_was_let_go_cannot_end_its_successor(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(Player, "a", restart=ON_FAILURE)
        old = ref.actor
        break_(ref)
        await ref.ask(Echo(1))
        old.fail(Broken("late"))
        old.end()
        with pytest.raises(ActorError):
            old.start_soon(trio.sleep_forever)
        assert await ref.ask(Echo(1)) == 1


async def test_one_restart_too_many_fails_the_parent(autojump_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        failed: list[ActorFailed] = []
        tree.bus.on("actor/failed", failed.append)
        parent = tree.spawn(Player(), "a")
        sibling = tree.spawn(Prop(), "sibling")
        rule = Restart("on_failure", intensity=2, within=10.0, backoff=0.1)
        child: Ref = await parent.ask(Call(lambda me: me.spawn(Glass, "child", restart=rule)))
        for _ in range(3):
            break_(child)
            await trio.sleep(1)
        assert (child.reason, parent.reason) == ("failed", "failed")
        assert [(event.path, event.restarting) for event in failed] == [
            ("/a/child", True),
            ("/a/child", True),
            ("/a/child", False),
            ("/a", False),
        ]
        error = failed[-1].error
        assert isinstance(error, ActorError)
        assert error.code == "RESTARTS"
        assert "/a/child ended more than 2 times within 10 s, at last by Broken: again" in error.message
        assert error.context == {"path": "/a/child", "intensity": 2, "within": 10.0}
        assert isinstance(error.__cause__, Broken)
        assert await sibling.ask(Echo(1)) == 1


async def test_a_parent_that_is_restarted_for_its_child_starts_with_a_clean_slate(
    autojump_clock: trio.testing.MockClock,
) -> None:
    def child() -> Player:
        return Player(breaks)

    async def start(me: Player) -> None:
        me.spawn(child, "child", restart=Restart("on_failure", intensity=1, backoff=0.1))

    async with run_tree() as tree:
        started: list[ActorStarted] = []
        tree.bus.on("actor/started", started.append)
        ref = tree.spawn(lambda: Player(start), "a", restart=Restart("on_failure", intensity=3, within=60.0))
        await trio.sleep(0.4)
        assert [event.restarts for event in started if event.path == "/a"] == [0, 1, 2]
        await ref.stop()


async def test_at_the_top_it_ends_the_block(autojump_clock: trio.testing.MockClock) -> None:
    seen: list[str] = []

    async def block() -> None:
        async with run_tree() as tree:
            break_(tree.spawn(Glass, "a", restart=Restart("on_failure", intensity=0)))
            try:
                await trio.sleep_forever()
            finally:
                seen.append("the block was cancelled")

    with pytest.raises(ActorError, match="/a ended more than 0 times") as error:
        await block()
    assert error.value.code == "RESTARTS"
    assert seen == ["the block was cancelled"]


@pytest.mark.parametrize("moment", ["waits", "starts", "fails"])
async def test_a_stop_ends_the_rest_before_a_restart(
    kind: Callable[[], Any], moment: str, autojump_clock: trio.testing.MockClock
) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(kind, "a", restart=Restart("on_failure", backoff=10.0, backoff_limit=10.0))
        await quiet()
        break_(ref)
        if moment != "fails":
            await quiet()
            assert ref.state == "restarting"
        if moment == "starts":
            await trio.sleep(10)
        before = trio.current_time()
        errors: list[str] = []

        async def ask() -> None:
            with pytest.raises(ActorError) as error:
                await ref.ask(Echo(1))
            errors.append(error.value.code)

        async with trio.open_nursery() as nursery:
            if moment == "waits":
                nursery.start_soon(ask)
                await quiet()
            await ref.stop(grace=100)
        assert trio.current_time() == before
        assert errors == (["STOPPED"] if moment == "waits" else [])
        assert ref.state == "ended"


async def test_a_factory_that_raises_or_gives_the_old_one_has_failed(autojump_clock: trio.testing.MockClock) -> None:
    same = Glass()
    makes: list[Any] = [Glass, lambda: same, ZeroDivisionError, lambda: same, Glass]
    async with run_tree() as tree:
        failed: list[ActorFailed] = []
        tree.bus.on("actor/failed", failed.append)

        def make() -> Actor:
            made = makes.pop(0)()
            if isinstance(made, Exception):
                raise made
            actor: Actor = made
            return actor

        ref = tree.spawn(make, "a", restart=Restart("on_failure", intensity=10))
        break_(ref)
        assert await ref.ask(Echo(1)) == 1
        break_(ref)
        assert await ref.ask(Echo(1)) == 1
        assert [type(event.error) for event in failed] == [Broken, Broken, ZeroDivisionError, ValueError]


async def test_only_a_function_can_make_it_anew() -> None:
    async with run_tree() as tree:
        with pytest.raises(TypeError, match="needs a function that makes it"):
            tree.spawn(Prop(), "a", restart=ALWAYS)
        assert tree.snapshot().root.children == ()
        await tree.spawn(Prop(), "a", restart=Restart("never")).ask(Echo(1))


async def test_a_restart_leaves_no_cycle_behind(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception knows the frames that it went through; none of them may go on knowing it."""
    monkeypatch.setattr(logging.getLogger("greenroom.tree"), "disabled", True)  # pytest keeps what is logged
    seen: list[weakref.ref[Exception]] = []

    def fail_now() -> NoReturn:
        error = Broken()
        seen.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    async def fail(*_: Any) -> None:
        fail_now()

    async def fail_by_work(me: Player) -> None:
        me.start_soon(fail)

    def make() -> Player:
        if len(seen) == 2:
            fail_now()
        return Player()

    async with run_tree() as tree:
        ref = tree.spawn(make, "a", restart=ON_FAILURE)
        await quiet()
        gc.collect()
        gc.disable()
        try:
            for action in (fail, fail_by_work):
                ref.tell(Run(action))
                await quiet()
                await ref.ask(Echo(1))
            assert [error() for error in seen] == [None, None, None]
        finally:
            gc.enable()
