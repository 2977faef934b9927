"""Adding, removing, stopping, saving: the terminals of a runtime by name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from greenroom.actors.system import open_runtime
from greenroom.actors.terminal import MemoryTerminalStore
from greenroom.protocol.errors import FormError, TerminalError
from greenroom.protocol.forms import FieldRule, Form, FormSchema, TextField
from greenroom.protocol.terminals import TerminalSnapshot
from tests.terminals.conftest import NEED_X, Room


@pytest.mark.case("terminals", 8)
async def test_stopping_tickets_tells_whether_all_were_there_and_releases_those_that_were(room: Room) -> None:
    room.mount("y")
    terminal = room.terminals.terminal("y")
    assert terminal is not None
    asked = [await room.ask("x", "y") for _ in range(4)]
    first, second, third, _ = (record.id for record in terminal.pending())
    assert await terminal.stop(first) is True
    assert await terminal.stop(first) is False
    assert await terminal.stop([second, "missing", third]) is False
    assert await terminal.stop([]) is True
    assert terminal.count == 1
    await terminal.stop()
    assert terminal.count == 0
    await trio.testing.wait_all_tasks_blocked()
    assert all(ask.error is not None and ask.error.context["reason"] == "stopped" for ask in asked)
    assert not (await room.ask("x", "y")).ended


@pytest.mark.case("terminals", 10)
async def test_over_its_cap_a_terminal_takes_nothing(room: Room) -> None:
    room.mount("one", cap=1)
    room.mount("none", cap=0)
    await room.ask("x", "one")
    room.events.clear()
    for name, cap in (("one", 1), ("none", 0)):
        asked = await room.ask("x", name)
        assert isinstance(asked.error, TerminalError)
        assert (asked.error.code, asked.error.context) == ("LIMIT", {"cap": cap})
        assert asked.form.status == "abandoned"
    assert room.events == []
    assert room.runtime.snapshot().deadlines == 1


@pytest.mark.case("terminals", 11)
async def test_a_destroyed_terminal_takes_nothing(room: Room) -> None:
    room.mount("y")
    terminal = room.terminals.terminal("y")
    assert terminal is not None
    before = await room.ask("x", "y")
    await terminal.destroy()
    await terminal.destroy()
    form = Form(NEED_X)
    with pytest.raises(TerminalError) as refused:
        await terminal.park(form)
    assert refused.value.code == "EXPIRE"
    assert form.status == "abandoned"
    asked = await room.ask("x", "y")
    assert isinstance(asked.error, TerminalError)
    assert asked.error.code == "EXPIRE"
    assert isinstance(before.error, FormError)
    assert terminal.pending() == []


@pytest.mark.case("terminals", 12)
async def test_a_record_shows_no_trace_of_a_custom_rule(room: Room) -> None:
    room.mount("y")
    schema = FormSchema(fields=(TextField(name="a", rule=FieldRule(minimum=1, custom=lambda value, values: None)),))
    await room.ask("x", "y", Form(schema))
    (record,) = room.terminals.pending("y")
    assert msgspec.json.decode(msgspec.json.encode(record))["schema"] == {
        "fields": [{"control": "text", "name": "a", "rule": {"minimum": 1}}]
    }


@pytest.mark.case("terminals", 19)
async def test_adding_what_is_there_changes_nothing(room: Room) -> None:
    room.mount("a")
    terminal = room.terminals.terminal("a")
    assert room.terminals.add("a", cap=1) is terminal
    assert terminal is not None
    assert terminal.cap is None


@pytest.mark.case("terminals", 20)
async def test_a_terminal_saves_its_own_timeout_and_never_the_default() -> None:
    store = MemoryTerminalStore()
    async with open_runtime(store=store, timeout=99) as runtime:
        runtime.terminals.add("own", timeout=0.02)
        runtime.terminals.add("default")
        assert await runtime.terminals.save("own")
        assert await runtime.terminals.save("default")
        assert not await runtime.terminals.save("nobody")
    assert await store.get("own") == TerminalSnapshot("own", 20)
    assert msgspec.to_builtins(await store.get("default")) == {"id": "default"}
    async with open_runtime(store=store, timeout=99) as runtime:
        own, default = await runtime.terminals.open("own"), await runtime.terminals.open("default")
        assert own is not None
        assert default is not None
        assert (own.timeout, default.timeout) == (0.02, 99)
        assert await runtime.terminals.open("own") is own
        assert await runtime.terminals.open("nobody") is None


@pytest.mark.case("terminals", 20)
@pytest.mark.parametrize(
    "row", [{}, {"id": ""}, {"id": 7}, {"id": "a", "timeout": "20"}, {"id": "a", "x": 1}, "a", None]
)
async def test_a_row_that_is_no_terminal_opens_as_none(row: Any) -> None:
    class Broken:
        async def get(self, id: str) -> Any:
            await trio.lowlevel.checkpoint()
            return row

        async def set(self, snapshot: TerminalSnapshot) -> None:
            raise NotImplementedError

        async def delete(self, id: str) -> None:
            raise NotImplementedError

    async with open_runtime(store=Broken()) as runtime:
        assert await runtime.terminals.open("a") is None


@pytest.mark.case("terminals", 21)
async def test_removing_tells_whether_any_was_there(room: Room) -> None:
    room.mount("a", "b")
    assert await room.terminals.remove(["a", "missing"]) is True
    assert await room.terminals.remove(["missing"]) is False
    assert await room.terminals.remove([]) is False
    assert room.terminals.terminals() == ["b"]
    room.mount("a")
    assert room.terminals.terminals() == ["b", "a"]
    await room.terminals.remove()
    assert room.terminals.count == 0


async def test_removal_expires_in_order_of_adding_then_of_parking(room: Room) -> None:
    room.mount("b", "a")
    for to in ("a", "b", "a"):
        await room.ask("x", to)
    ids = [record.id for record in room.terminals.pending()]
    room.events.clear()
    await room.terminals.remove({"a", "b"})
    assert room.events == [("expire", "b", ids[0]), ("expire", "a", ids[1]), ("expire", "a", ids[2])]


async def test_a_name_may_be_added_while_its_last_terminal_is_ending(room: Room) -> None:
    room.mount("a")
    room.nursery.start_soon(room.terminals.remove, "a")
    while room.terminals.count:
        await trio.lowlevel.checkpoint()
    room.mount("a")
    asked = await room.ask("x", "a")
    await room.answer("a", {"x": "v"})
    assert asked.values == {"x": "v"}


async def test_after_destroy_nothing_is_added_opened_or_asked(room: Room) -> None:
    room.mount("a")
    asked = await room.ask("x", "a")
    await room.terminals.destroy()
    await room.terminals.destroy()
    with pytest.raises(TerminalError, match="destroyed") as refused:
        room.terminals.add("b")
    assert refused.value.code == "DESTROYED"
    with pytest.raises(TerminalError, match="destroyed"):
        await room.terminals.open("b")
    late = await room.ask("x", "a")
    assert late.error is not None
    assert (late.error.code, late.error.context) == ("TARGET", {"to": "a", "known": []})
    assert asked.error is not None
    assert asked.error.context["reason"] == "removed"


@pytest.mark.parametrize("name", ["", "a/b", "a?x=1", "..", "50%", "{other}", "ü😀", "a#b", "%2F", "a" * 4000])
async def test_any_name_is_a_terminal_of_its_own(room: Room, name: str) -> None:
    room.mount(name, "a")
    asked = await room.ask("x", name)
    await room.answer(name, {"x": "v"})
    assert asked.values == {"x": "v"}
    assert room.terminals.terminals() == list(dict.fromkeys([name, "a"]))


NO_TIMEOUT: Any = [-1, float("nan"), 10**400, 1e300, "5", [1], True]
NO_CAP: Any = [-1, 1.5, "5", True]
NO_LIMITS: Any = [{"timeout": timeout} for timeout in NO_TIMEOUT] + [{"cap": cap} for cap in NO_CAP]


@pytest.mark.parametrize("options", NO_LIMITS)
async def test_limits_that_cannot_be_are_refused_and_nothing_is_added(room: Room, options: Any) -> None:
    with pytest.raises(TerminalError, match="of the terminal a is") as caught:
        room.terminals.add("a", **options)
    assert caught.value.code == "INVALID"
    assert room.terminals.count == 0
    assert room.runtime.snapshot().root.children[0].children == ()


@pytest.mark.parametrize("options", NO_LIMITS)
async def test_a_runtime_takes_no_limits_that_cannot_be(options: Any) -> None:
    with pytest.raises(TerminalError, match="of the terminals is"):
        async with open_runtime(**options):
            pass


@pytest.mark.parametrize("timeout", NO_TIMEOUT)
async def test_a_timeout_that_cannot_be_leaves_no_form_behind(room: Room, timeout: Any) -> None:
    room.mount("a")
    form = Form(NEED_X)
    terminal = room.terminals.terminal("a")
    assert terminal is not None
    for ask in (
        lambda: room.terminals.ask("x", "a", form, timeout=timeout),
        lambda: terminal.park(form, timeout=timeout),
    ):
        with pytest.raises(TerminalError, match="of this form is") as caught:
            await ask()
        assert caught.value.code == "INVALID"
    assert (form.status, room.terminals.pending(), room.events, room.edges()) == ("editing", [], [], 0)
    assert (await room.ask("x", "a", form)).error is None


async def test_a_subscription_hangs_on_the_name_and_costs_others_nothing(room: Room) -> None:
    seen: list[tuple[str, str]] = []
    unsubscribe = room.terminals.subscribe("a", lambda notice: seen.append((notice.kind, notice.to)))
    room.mount("a", "b")
    await room.ask("x", "b")
    await room.ask("x", "a")
    await room.terminals.remove("a")
    room.mount("a")
    await room.ask("x", "a")
    await room.answer("a", {"x": "v"})
    assert seen == [("pending", "a"), ("expired", "a"), ("pending", "a"), ("answered", "a")]
    unsubscribe()
    unsubscribe()
    assert room.terminals.subscriptions == 0
    await room.ask("x", "a")
    assert len(seen) == 4


async def test_leaving_the_runtime_ends_every_ask(autojump_clock: trio.testing.MockClock) -> None:
    ends: list[str] = []
    async with trio.open_nursery() as nursery:
        async with open_runtime() as runtime:
            runtime.terminals.add("a")

            async def ask() -> None:
                with pytest.raises(FormError) as ended:
                    await runtime.terminals.ask("x", "a", Form(NEED_X))
                ends.append(ended.value.context["reason"])

            for _ in range(3):
                nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
    assert ends == ["stopped"] * 3


@pytest.mark.parametrize("options", [{"operator": "agent"}, {"name": "\ud800"}, {"name": 5}, {"name": ["a"]}])
async def test_a_name_or_an_operator_that_cannot_be_is_refused(room: Room, options: Any) -> None:
    with pytest.raises(TerminalError) as caught:
        room.terminals.add(options.pop("name", "a"), **options)
    assert caught.value.code == "INVALID"
    assert room.terminals.count == 0


async def test_a_cancelled_destroy_destroys_all_the_same(room: Room) -> None:
    room.mount("a", "b", "c")
    asked = [await room.ask("x", name) for name in "abc"]
    room.terminals.subscribe("a", lambda _: None)
    with trio.CancelScope() as scope:
        scope.cancel()
        await room.terminals.destroy()
    await trio.testing.wait_all_tasks_blocked()
    assert (room.terminals.count, room.terminals.subscriptions, room.terminals.emitter.closed) == (0, 0, True)
    assert [each.error.context["reason"] for each in asked if each.error] == ["removed"] * 3
    assert [event[:2] for event in room.events if event[0] == "expire"] == [("expire", name) for name in "abc"]
    assert room.runtime.snapshot().root.children[0].children == ()


async def test_a_cancelled_destroy_of_one_terminal_silences_it_all_the_same(room: Room) -> None:
    room.mount("a")
    terminal = room.terminals.terminal("a")
    assert terminal is not None
    terminal.emitter.on("expire", lambda _: None)
    with trio.CancelScope() as scope:
        scope.cancel()
        await terminal.destroy()
    await trio.testing.wait_all_tasks_blocked()
    assert terminal.destroyed
    assert terminal.emitter.closed


async def test_a_terminal_of_the_same_name_has_nothing_of_the_removed_one(room: Room) -> None:
    """Not even in between: whoever asked the removed one waits for nothing any more."""
    room.mount("a", "x")
    asked = await room.ask("x", "a")
    with trio.CancelScope() as scope:
        scope.cancel()
        await room.terminals.remove("a")
    room.mount("a")
    assert room.edges() == 0
    again = await room.ask("a", "x")
    assert (asked.ended, again.ended) == (True, False)
