"""Events that are announced: who is called, in which order, and what a listener can and cannot do to others."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import trio

from greenroom.protocol.errors import GreenroomError
from greenroom.runtime.bus import Bus, Event
from greenroom.runtime.context import current_node
from greenroom.runtime.restart import Restart
from greenroom.runtime.tree import run_tree
from tests.kernel.cast import Call, Echo, Player, Prop, Run, quiet


def test_listeners_are_called_in_order_of_registration_and_prepended_ones_first() -> None:
    bus, seen = Bus(), list[str]()
    event, dispatch = bus.declare("a/b", str)
    bus.on(event, lambda payload: seen.append("1" + payload))
    bus.on(event, lambda payload: seen.append("2" + payload))
    bus.on("a/b", lambda payload: seen.append("0" + payload), prepend=True)
    bus.on(event, lambda payload: seen.append("-" + payload), prepend=True)
    dispatch("x")
    assert seen == ["-x", "0x", "1x", "2x"]


@pytest.mark.case("pipeline", 1)
def test_what_a_listener_returns_is_ignored_and_what_it_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    bus, seen = Bus(), list[int]()
    event, dispatch = bus.declare("a/b", int)

    def raises(_: int) -> bool:
        raise ValueError("listener")

    bus.on(event, lambda payload: bool(seen.append(payload)))  # type: ignore[func-returns-value]  # a return on purpose
    bus.on(event, raises)
    bus.on(event, seen.append)
    dispatch(1)
    assert seen == [1, 1]
    (record,) = caplog.records
    assert "raises to a/b raised" in record.getMessage()
    assert "ValueError: listener" in caplog.text


def test_an_event_is_declared_once_and_only_its_declarer_dispatches_it() -> None:
    bus = Bus()
    event, _dispatch = bus.declare("a/b", int)
    with pytest.raises(GreenroomError, match="a/b is declared already") as error:
        bus.declare("a/b", str)
    assert error.value.code == "DUPLICATE_EVENT"
    assert isinstance(event, Event)
    assert not callable(event)
    assert (event.name, event.mode, event.payload) == ("a/b", "emit", int)
    assert bus.event("a/b") is event


def test_an_unknown_event_is_refused_naming_the_known_ones() -> None:
    bus = Bus()
    bus.declare("b/c", int)
    bus.declare("a/b", int)
    assert [event.name for event in bus.events()] == ["a/b", "b/c"]
    with pytest.raises(GreenroomError, match="No event is called x; known are a/b, b/c") as error:
        bus.on("x", print)
    assert (error.value.code, error.value.context) == ("UNKNOWN_EVENT", {"event": "x", "known": ["a/b", "b/c"]})


async def waits(_: Any) -> None:
    """No plain function."""


class WaitsWhenCalled:
    async def __call__(self, _: Any) -> None:
        """No plain function either."""


@pytest.mark.case("pipeline", 8)
@pytest.mark.parametrize(
    "listener", [waits, functools.partial(waits), WaitsWhenCalled(), functools.partial(WaitsWhenCalled())]
)
def test_a_listener_that_waits_is_refused(listener: Any) -> None:
    bus = Bus()
    event, _ = bus.declare("a/b", int)
    with pytest.raises(GreenroomError, match="Let yours tell an actor") as error:
        bus.on(event, listener)
    assert error.value.code == "WRONG_KIND"
    assert not event.heard


def test_listeners_are_fixed_when_a_dispatch_starts() -> None:
    """One added meanwhile is not called; one closed meanwhile that has not begun is passed over."""
    bus, seen = Bus(), list[str]()
    event, dispatch = bus.declare("a/b", int)

    def first(_: int) -> None:
        seen.append("first")
        close_second()
        bus.on(event, lambda _: seen.append("added"))

    bus.on(event, first)
    close_second = bus.on(event, lambda _: seen.append("second"))
    bus.on(event, lambda _: seen.append("third"))
    dispatch(1)
    assert seen == ["first", "third"]


def test_closing_ends_one_registration_and_may_be_done_again() -> None:
    bus, seen = Bus(), list[int]()
    event, dispatch = bus.declare("a/b", int)
    closes = [bus.on(event, seen.append) for _ in range(3)]
    between = bus.on(event, lambda _: seen.append(0))
    bus.on(event, seen.append)
    for _ in range(2):
        closes[2]()
    dispatch(1)
    assert seen == [1, 1, 0, 1]
    for close in (*closes, between):
        close()
    assert event.heard
    seen.clear()
    dispatch(2)
    assert seen == [2]


def test_a_dispatch_from_within_a_listener_is_a_dispatch_of_its_own() -> None:
    bus, seen = Bus(), list[int]()
    event, dispatch = bus.declare("a/b", int)

    def twice(payload: int) -> None:
        seen.append(payload)
        if payload < 3:
            dispatch(payload + 1)

    bus.on(event, twice)
    dispatch(1)
    assert seen == [1, 2, 3]
    assert event.heard


async def test_a_listener_belongs_to_the_actor_that_registers_it_and_ends_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def raises(_: int) -> None:
        raise ValueError

    def listen(me: Any) -> None:
        me.tree.bus.on("x/y", raises)

    async with run_tree() as tree:
        event, dispatch = tree.bus.declare("x/y", int)
        for kind in (Player, Prop):
            ref = tree.spawn(kind(), "listens")
            await ref.ask(Call(listen))
            assert event.heard
            dispatch(1)
            await ref.stop()
            assert not event.heard
        assert caplog.text.count("The listener of /listens to x/y raised") == 2


async def test_a_restarted_actor_does_not_listen_twice(autojump_clock: Any) -> None:
    heard: list[int] = []

    async def start(me: Player) -> None:
        me.tree.bus.on("x/y", heard.append)

    async def breaks(_: Any) -> None:
        raise ValueError

    async with run_tree() as tree:
        event, dispatch = tree.bus.declare("x/y", int)
        ref = tree.spawn(lambda: Player(start), "a", restart=Restart("on_failure"))
        await quiet()
        ref.tell(Run(breaks))
        await quiet()
        dispatch(1)
        await ref.ask(Echo(1))
        dispatch(2)
        assert heard == [2]
        await ref.stop()
        assert not event.heard


async def test_an_actor_that_closes_its_listener_itself_keeps_nothing_of_it() -> None:
    def listen_a_while(me: Any) -> int:
        for _ in range(100):
            me.tree.bus.on("x/y", print)()
        return len(me._life._closing or ())

    async with run_tree() as tree:
        tree.bus.declare("x/y", int)
        assert await tree.spawn(Prop(), "a").ask(Call(listen_a_while)) == 0


async def test_a_task_that_a_listener_starts_is_not_the_dispatchers() -> None:
    seen: list[object] = []

    async def look(_: object) -> None:
        seen.append(current_node())
        await trio.lowlevel.checkpoint()

    async with run_tree() as tree, trio.open_nursery() as nursery:
        tree.bus.on("actor/started", lambda event: nursery.start_soon(look, event))
        tree.spawn(Player(), "a")
        await quiet()
    assert seen == [None]
