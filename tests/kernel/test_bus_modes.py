"""Events that are awaited: wrapped, asked one by one, heard together; and where an event happens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from greenroom.protocol.errors import GreenroomError, InvariantError
from greenroom.runtime.bus import Bus, Mode, Next
from greenroom.runtime.scopes import Scope


def wraps(seen: list[str], name: str) -> Callable[[str, Next[str]], Awaitable[str]]:
    async def listener(payload: str, next: Next[str]) -> str:
        seen.append(f"{name} in")
        inner = await next()
        seen.append(f"{name} out")
        return f"{name}({inner})"

    return listener


# -------------------------------------------------------------------- waterfall


async def test_a_waterfall_is_an_onion_with_the_dispatchers_own_work_innermost() -> None:
    bus, seen = Bus(), list[str]()
    event, dispatch = bus.declare("a/b", str, mode="waterfall", result=str)

    async def innermost() -> str:
        seen.append("work")
        return "x"

    assert await dispatch("p", innermost) == "x"
    for name in ("a", "b"):
        bus.on(event, wraps(seen, name))
    bus.on(event, wraps(seen, "z"), prepend=True)
    assert await dispatch("p", innermost) == "z(a(b(x)))"
    assert seen == ["work", "z in", "a in", "b in", "work", "b out", "a out", "z out"]


@pytest.mark.case("pipeline", 3)
async def test_who_does_not_call_next_replaces_all_that_is_beneath() -> None:
    bus, seen = Bus(), list[str]()
    event, dispatch = bus.declare("a/b", str, mode="waterfall", result=str)

    async def decides(payload: str, next: Next[str]) -> str:
        return f"no {payload}"

    async def innermost() -> str:
        raise AssertionError("it was replaced")

    bus.on(event, decides)
    bus.on(event, wraps(seen, "never"))
    assert await dispatch("p", innermost) == "no p"
    assert seen == []


async def test_each_call_of_next_runs_all_beneath_anew() -> None:
    bus, seen, tries = Bus(), list[str](), list[int]()
    event, dispatch = bus.declare("a/b", str, mode="waterfall", result=str)

    async def retries(payload: str, next: Next[str]) -> str:
        for _again in range(2):
            try:
                return await next()
            except ValueError:
                pass
        return await next()

    async def third_time_lucky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ValueError
        return "x"

    bus.on(event, retries)
    bus.on(event, wraps(seen, "a"))
    assert await dispatch("p", third_time_lucky) == "a(x)"
    assert seen == ["a in"] * 3 + ["a out"]


async def test_a_raise_travels_outward_to_the_dispatcher() -> None:
    bus, seen = Bus(), list[str]()
    event, dispatch = bus.declare("a/b", str, mode="waterfall", result=str)
    error = LookupError()

    async def innermost() -> str:
        raise error

    bus.on(event, wraps(seen, "a"))
    with pytest.raises(LookupError) as raised:
        await dispatch("p", innermost)
    assert raised.value is error
    assert seen == ["a in"]


async def test_next_is_called_neither_twice_at_once_nor_late() -> None:
    bus, kept = Bus(), list[Next[str]]()
    event, dispatch = bus.declare("a/b", str, mode="waterfall", result=str)

    async def twice(_: str, next: Next[str]) -> str:
        kept.append(next)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(next)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(GreenroomError, match="twice at once") as misused:
                await next()
            assert misused.value.code == "NEXT_MISUSE"
            nursery.cancel_scope.cancel()
        return await next()

    stays = True

    async def innermost() -> str:
        nonlocal stays
        if stays:
            stays = False
            await trio.sleep_forever()
        return "x"

    bus.on(event, twice)
    assert await dispatch("p", innermost) == "x"
    with pytest.raises(GreenroomError, match="after its listener had returned"):
        await kept[0]()


async def test_cancelling_a_dispatch_cancels_its_listeners_and_its_work() -> None:
    bus, ended = Bus(), list[str]()
    event, dispatch = bus.declare("a/b", str, mode="waterfall", result=str)

    async def cleans(_: str, next: Next[str]) -> str:
        try:
            return await next()
        finally:
            ended.append("listener")

    bus.on(event, cleans)
    with trio.CancelScope() as scope:
        scope.cancel()
        await dispatch("p", trio.sleep_forever)
    assert scope.cancelled_caught
    assert ended == ["listener"]


@given(st.lists(st.sampled_from(["wrap", "decide", "raise", "closed"]), max_size=6))
def test_a_waterfall_is_function_composition(kinds: list[str]) -> None:
    """Against the same listeners composed by hand."""

    def model(position: int) -> str:
        if position == len(kinds):
            return "x"
        kind = kinds[position]
        if kind == "raise":
            return "raised"
        if kind == "closed":
            return model(position + 1)
        if kind == "decide":
            return str(position)
        inner = model(position + 1)
        return inner if inner == "raised" else f"{position}({inner})"

    async def main() -> str:
        bus = Bus()
        event, dispatch = bus.declare("a/b", str, mode="waterfall", result=str)
        for position, kind in enumerate(kinds):

            async def listener(_: str, next: Next[str], position: int = position, kind: str = kind) -> str:
                if kind == "raise":
                    raise ValueError
                return str(position) if kind == "decide" else f"{position}({await next()})"

            close = bus.on(event, listener)
            if kind == "closed":
                close()

        async def innermost() -> str:
            return "x"

        try:
            return await dispatch("p", innermost)
        except ValueError:
            return "raised"

    assert trio.run(main) == model(0)


# -------------------------------------------------------------------- serial and parallel


def answers(value: Any, seen: list[Any]) -> Callable[[int], Awaitable[Any]]:
    async def listener(_: int) -> Any:
        seen.append(value)
        if isinstance(value, Exception):
            raise value
        return value

    return listener


@pytest.mark.case("pipeline", 5)
async def test_the_first_value_ends_a_serial_event() -> None:
    bus, seen = Bus(), list[Any]()
    event, dispatch = bus.declare("a/b", int, mode="serial", result=object)
    assert await dispatch(1) is None
    for value in (None, False, 0, "later"):
        bus.on(event, answers(value, seen))
    assert await dispatch(1) == 0
    assert seen == [None, False, 0]


async def test_a_raise_ends_a_serial_event_at_once() -> None:
    bus, seen = Bus(), list[Any]()
    event, dispatch = bus.declare("a/b", int, mode="serial", result=str)
    for value in (None, ValueError("no"), "later"):
        bus.on(event, answers(value, seen))
    with pytest.raises(ValueError, match="no"):
        await dispatch(1)
    assert len(seen) == 2


@pytest.mark.case("pipeline", 6)
async def test_parallel_listeners_run_together_and_raise_together_in_their_order(autojump_clock: MockClock) -> None:
    bus, seen = Bus(), list[float]()
    event, dispatch = bus.declare("a/b", int, mode="parallel")
    await dispatch(0)

    def after(seconds: float, error: Exception | None) -> Callable[[int], Awaitable[object]]:
        async def listener(_: int) -> None:
            await trio.sleep(seconds)
            seen.append(seconds)
            if error is not None:
                raise error

        return listener

    late, early = ValueError("late"), LookupError("early")
    for seconds, error in ((3, late), (1, early), (2, None)):
        bus.on(event, after(seconds, error))
    with pytest.raises(ExceptionGroup) as raised:
        await dispatch(1)
    assert raised.value.exceptions == (late, early)
    assert seen == [1, 2, 3]
    assert trio.current_time() == 3


# -------------------------------------------------------------------- what is refused, what is raised


def plain(*_: Any) -> None: ...


async def waits(*_: Any) -> None: ...


@pytest.mark.parametrize("mode", ["waterfall", "serial", "parallel"])
def test_a_plain_listener_to_an_awaited_event_is_refused(mode: Mode) -> None:
    bus = Bus()
    declare: Any = bus.declare
    event = declare("a/b", int, mode=mode, result=str)[0]
    with pytest.raises(GreenroomError, match="async functions") as refused:
        bus.on(event, plain)
    assert refused.value.code == "WRONG_KIND"
    bus.on(event, waits)
    assert event.heard


def test_a_broken_invariant_is_raised_once_all_have_heard() -> None:
    bus, seen = Bus(), list[int]()
    event, dispatch = bus.declare("a/b", int)
    error = InvariantError("INVARIANT", "two results of one call", {})

    def breaks(_: int) -> None:
        raise error

    bus.on(event, breaks)
    bus.on(event, seen.append)
    with pytest.raises(InvariantError) as raised:
        dispatch(1)
    assert raised.value is error
    assert seen == [1]


def test_a_veto_ends_the_dispatch() -> None:
    bus, seen = Bus(), list[int]()
    event, dispatch = bus.declare("a/created", int, veto=True)

    def vetoes(_: int) -> None:
        raise ValueError("not here")

    bus.on(event, vetoes)
    bus.on(event, seen.append)
    with pytest.raises(ValueError, match="not here"):
        dispatch(1)
    assert seen == []


# -------------------------------------------------------------------- scopes


class Happening(NamedTuple):
    scope: Scope | None


@pytest.mark.case("pipeline", 7)
def test_who_listens_at_a_scope_hears_it_and_what_is_beneath() -> None:
    app = Scope("app")
    preset, other = Scope("preset", app), Scope("other", app)
    agent = Scope("agent", preset)
    bus, seen = Bus(), list[str]()
    event, dispatch = bus.declare("a/b", Happening, scoped=lambda payload: payload.scope)

    def hears(name: str) -> Callable[[Happening], None]:
        return lambda _: seen.append(name)

    for scope in (None, app, preset, agent, other):
        bus.on(event, hears(scope.name if scope is not None else "all"), scope=scope)

    for place, heard in (
        (agent, ["all", "app", "preset", "agent"]),
        (preset, ["all", "app", "preset"]),
        (other, ["all", "app", "other"]),
        (None, ["all"]),
    ):
        seen.clear()
        dispatch(Happening(place))
        assert seen == heard


def test_an_event_without_scopes_refuses_one() -> None:
    bus = Bus()
    event, _ = bus.declare("a/b", int)
    with pytest.raises(GreenroomError) as refused:
        bus.on(event, plain, scope=Scope("app"))
    assert refused.value.code == "NO_SCOPE"
