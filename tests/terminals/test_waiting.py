"""Asking: who is refused at once, who waits, and how a wait ends."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from greenroom.actors.system import open_runtime
from greenroom.protocol.errors import FormError, TerminalDeadlock, TerminalError
from greenroom.protocol.forms import Form
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.context import current_node
from greenroom.runtime.messages import Message, Request
from tests.clock import advance
from tests.terminals.conftest import NEED_X, Room


def path(error: Any) -> list[str]:
    assert isinstance(error, TerminalDeadlock), error
    assert error.code == "DEADLOCK"
    for name in error.path:
        assert name in error.message
    return error.path


@pytest.mark.case("terminals", 13)
@pytest.mark.case("reports/asking", 1)
async def test_the_ask_that_closes_a_circle_is_refused_with_its_path_before_any_clock_moves(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("a", "b", "c")
    started = trio.current_time()
    first, second = await room.ask("a", "b"), await room.ask("b", "c")
    third = await room.ask("c", "a")
    assert trio.current_time() == started
    assert path(third.error) == ["c", "a", "b", "c"]
    assert third.error is not None
    assert third.error.context == {"from": "c", "to": "a", "path": ["c", "a", "b", "c"]}
    assert third.form.status == "editing"
    assert room.terminals.pending("a") == []
    await room.answer("c", {"x": "2"})
    await room.answer("b", {"x": "1"})
    assert (first.values, second.values) == ({"x": "1"}, {"x": "2"})


@pytest.mark.case("terminals", 13)
async def test_a_terminal_cannot_ask_itself_nor_whom_it_is_asked_by(room: Room) -> None:
    room.mount("a", "b")
    assert path((await room.ask("a", "a")).error) == ["a", "a"]
    await room.ask("a", "b")
    assert path((await room.ask("b", "a")).error) == ["b", "a", "b"]


@pytest.mark.case("terminals", 14)
async def test_an_unknown_terminal_is_refused_naming_the_known_ones(room: Room) -> None:
    room.mount("a", "b")
    asked = await room.ask("a", "nope")
    assert isinstance(asked.error, TerminalError)
    assert (asked.error.code, asked.error.context) == ("TARGET", {"to": "nope", "known": ["a", "b"]})
    assert asked.form.status == "editing"


@pytest.mark.case("terminals", 15)
async def test_a_wait_lasts_until_the_form_is_accepted_expires_or_its_terminal_goes(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("a", "b")
    await room.ask("a", "b")
    await room.answer("b", {})
    path((await room.ask("b", "a")).error)
    await room.answer("b", {"x": "v"})
    allowed = await room.ask("b", "a")
    assert not allowed.ended
    allowed.scope.cancel()
    await trio.testing.wait_all_tasks_blocked()

    await room.ask("a", "b", timeout=1)
    path((await room.ask("b", "a")).error)
    await advance(1000)
    allowed = await room.ask("b", "a")
    assert not allowed.ended
    allowed.scope.cancel()
    await trio.testing.wait_all_tasks_blocked()

    await room.ask("a", "b")
    await room.terminals.remove("b")
    assert not (await room.ask("b", "a")).ended


@pytest.mark.case("terminals", 16)
async def test_a_name_that_is_no_terminal_may_ask(room: Room) -> None:
    room.mount("a")
    ghost = await room.ask("ghost", "a")
    await room.answer("a", {"x": "boo"})
    assert ghost.values == {"x": "boo"}


@pytest.mark.case("terminals", 17)
async def test_what_a_removed_terminal_asked_stays_and_still_counts_when_it_is_back(room: Room) -> None:
    room.mount("a", "b")
    asked = await room.ask("a", "b")
    await room.terminals.remove("a")
    assert len(room.terminals.pending("b")) == 1
    room.mount("a")
    assert path((await room.ask("b", "a")).error) == ["b", "a", "b"]
    await room.answer("b", {"x": "v"})
    assert asked.values == {"x": "v"}


@pytest.mark.case("terminals", 18)
@pytest.mark.case("reports/asking", 2)
@pytest.mark.parametrize("inside", [False, True])
async def test_each_of_several_asks_gets_its_own_answer_and_no_edge_is_left(room: Room, inside: bool) -> None:
    room.mount("a", "b", "c")
    answers: list[Any] = []
    if inside:
        # A listener may not wait; another actor, told by it, answers.
        answerer = room.runtime.spawn(Answerer(room), "answerer")
        room.terminals.emitter.on("pending", lambda record: answerer.tell(Told(record.to, record.id)))
    one, two = await room.ask("a", "b"), await room.ask("a", "b")
    other = await room.ask("b", "c")
    if not inside:
        first, second = room.terminals.pending("b")
        answers.append(await room.terminals.answer("b", second.id, {"x": second.id}))
        answers.append(await room.terminals.answer("b", first.id, {"x": first.id}))
        await room.answer("c", {"x": "c"})
        assert one.values == {"x": first.id}
        assert two.values == {"x": second.id}
    assert one.ended
    assert two.ended
    assert other.ended
    assert room.edges() == 0


class Told(Message, frozen=True):
    to: str
    id: str


class Answerer(Actor):
    def __init__(self, room: Room) -> None:
        super().__init__()
        self.room = room

    @handles(Told)
    async def told(self, message: Told) -> None:
        await self.room.terminals.answer(message.to, message.id, {"x": message.id})


@pytest.mark.case("terminals", 9)
async def test_an_expiry_is_told_by_the_form_then_the_terminal_then_the_manager(
    room: Room, mock_clock: MockClock
) -> None:
    room.mount("y", timeout=2)
    terminal = room.terminals.terminal("y")
    assert terminal is not None
    order: list[str] = []
    form = Form(NEED_X, on={"abandon": lambda *_: order.append("form")})
    terminal.emitter.on("expire", lambda id: order.append("terminal"))
    room.terminals.emitter.on("expire", lambda to, id: order.append("manager"))
    asked = await room.ask("x", "y", form)
    await advance(1999)
    assert order == []
    await advance(1)
    assert order == ["form", "terminal", "manager"]
    assert isinstance(asked.error, FormError)
    assert (asked.error.code, asked.error.context) == ("ABANDONED", {"reason": "timeout"})


async def test_an_answer_is_told_by_the_form_then_the_terminal_then_the_manager(room: Room) -> None:
    room.mount("y")
    terminal = room.terminals.terminal("y")
    assert terminal is not None
    order: list[str] = []
    form = Form(NEED_X, on={"submit": lambda *_: order.append("form")})
    terminal.emitter.on("answer", lambda *_: order.append("terminal"))
    room.terminals.emitter.on("answer", lambda *_: order.append("manager"))
    await room.ask("x", "y", form)
    await room.answer("y", {"x": "v"})
    assert order == ["form", "terminal", "manager"]


@pytest.mark.case("reports/asking", 6)
async def test_time_stop_and_removal_are_different_ends_and_no_is_an_answer(room: Room, mock_clock: MockClock) -> None:
    room.mount("y", "z", timeout=77)
    confirm = {"fields": [{"control": "confirm", "name": "ok", "rule": {"required": True}}]}
    late = await room.ask("x", "y", confirm, timeout=0.5)
    asked = await room.ask("x", "y", confirm)
    endless = await room.ask("x", "y", confirm, timeout=None)
    own = await room.ask("x", "z", confirm)
    await advance(500)
    assert late.error is not None
    assert late.error.context["reason"] == "timeout"
    first = room.terminals.pending("y")[0].id
    await room.terminals.answer("y", first, {"ok": False})
    await trio.testing.wait_all_tasks_blocked()
    assert asked.values == {"ok": False}
    await advance(76_500)
    assert own.error is not None
    assert own.error.context["reason"] == "timeout"
    await advance(10 * 24 * 3600 * 1000)
    assert not endless.ended
    await room.answer("y", {"ok": True})
    assert endless.values == {"ok": True}
    stopped, removed = await room.ask("x", "y", confirm), await room.ask("x", "z", confirm)
    terminal = room.terminals.terminal("y")
    assert terminal is not None
    await terminal.stop()
    await room.terminals.remove("z")
    await trio.testing.wait_all_tasks_blocked()
    reasons = [asked.error.context["reason"] for asked in (stopped, removed) if asked.error is not None]
    assert reasons == ["stopped", "removed"]


@pytest.mark.case("terminals", 12)
async def test_an_accepted_answer_voids_the_deadline(room: Room, mock_clock: MockClock) -> None:
    room.mount("y", timeout=5)
    await room.ask("x", "y")
    assert room.runtime.snapshot().deadlines == 1
    await room.answer("y", {"x": "v"})
    assert room.runtime.snapshot().deadlines == 0
    room.events.clear()
    await advance(10_000)
    assert room.events == []


async def test_a_cancelled_ask_withdraws_its_form(room: Room) -> None:
    room.mount("y")
    notices: list[str] = []
    room.terminals.subscribe("y", lambda notice: notices.append(notice.kind))
    asked = await room.ask("x", "y")
    asked.scope.cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert asked.cancelled
    assert room.terminals.pending("y") == []
    assert asked.form.status == "abandoned"
    assert notices == ["pending", "withdrawn"]
    assert [event[0] for event in room.events] == ["pending", "withdraw"]
    assert room.runtime.snapshot().deadlines == 0
    assert room.edges() == 0


async def test_a_form_can_be_withdrawn_by_its_id(room: Room) -> None:
    room.mount("y")
    terminal = room.terminals.terminal("y")
    assert terminal is not None
    asked = await room.ask("x", "y")
    assert await terminal.withdraw(room.the_id("y"))
    assert not await terminal.withdraw("no such id")
    await trio.testing.wait_all_tasks_blocked()
    assert asked.error is not None
    assert asked.error.context["reason"] == "withdrawn"
    assert [event[0] for event in room.events] == ["pending", "withdraw"]


async def test_the_owner_may_end_the_form_and_the_ask_ends_with_it(room: Room) -> None:
    room.mount("y")
    asked = await room.ask("x", "y")
    asked.form.destroy()
    await trio.testing.wait_all_tasks_blocked()
    assert asked.error is not None
    assert asked.error.context["reason"] == "abandoned"
    assert room.edges() == 0


async def test_an_ended_form_cannot_be_asked(room: Room) -> None:
    room.mount("y")
    form = Form({"fields": []})
    form.submit()
    asked = await room.ask("x", "y", form)
    assert isinstance(asked.error, FormError)
    assert asked.error.code == "SETTLED"
    assert room.events == []


@pytest.mark.parametrize("timeout", [0, math.inf])
async def test_the_ends_of_the_time_scale(room: Room, mock_clock: MockClock, timeout: float) -> None:
    room.mount("y")
    asked = await room.ask("x", "y", timeout=timeout)
    await advance(1000)
    assert asked.ended == (timeout == 0)


class Consult(Request[dict[str, Any]], frozen=True):
    """Ask the terminal for an answer and pass it on."""

    to: str


class Consultant(Actor):
    """An actor that answers a request only after a terminal has answered it."""

    def __init__(self, room: Room, name: str) -> None:
        super().__init__()
        self.room = room
        self.name = name

    @handles(Consult)
    async def consult(self, message: Consult) -> dict[str, Any]:
        return await self.room.terminals.ask(self.name, message.to, Form(NEED_X))


async def test_a_circle_over_an_actor_and_the_terminal_that_it_operates_is_refused(room: Room) -> None:
    agent = room.runtime.spawn(Consultant(room, "planner"), "agent")
    room.mount("planner", operator=agent)
    room.mount("person")
    room.nursery.start_soon(agent.ask, Consult("person"))
    await trio.testing.wait_all_tasks_blocked()
    # the agent's handler waits for the person; whoever the person waits for must not wait for the agent
    assert path((await room.ask("person", "planner")).error) == ["person", "planner", "person"]
    await room.answer("person", {"x": "done"})
    assert not (await room.ask("person", "planner")).ended


async def test_a_circle_over_actors_and_terminals_mixed_names_each_of_them(room: Room) -> None:
    """An actor asks another, which asks a person, in whose name somebody wants to wait for the first."""
    inner = room.runtime.spawn(Consultant(room, "inner"), "inner")

    class Outer(Actor):
        @handles(Consult)
        async def consult(self, message: Consult) -> dict[str, Any]:
            return await inner.ask(message)

    outer = room.runtime.spawn(Outer(), "outer")
    room.mount("person")
    room.mount("boss", operator=outer)
    room.nursery.start_soon(outer.ask, Consult("person"))
    await trio.testing.wait_all_tasks_blocked()
    assert path((await room.ask("person", "boss")).error) == ["person", "boss", "/inner", "person"]


async def test_an_actor_whose_handler_is_free_is_not_refused_because_its_work_waits(room: Room) -> None:
    class Ping(Request[str], frozen=True):
        pass

    class Worker(Actor):
        async def on_start(self) -> None:
            self.start_soon(room.terminals.ask, "worker", "person", Form(NEED_X))

        @handles(Ping)
        def ping(self, _message: Ping) -> str:
            return "pong"

    worker = room.runtime.spawn(Worker(), "worker")
    room.mount("person")
    await trio.testing.wait_all_tasks_blocked()

    class Person(Actor):
        @handles(Ping)
        async def ping(self, message: Ping) -> str:
            return await worker.ask(message)

    person = room.runtime.spawn(Person(), "person-actor")
    assert await person.ask(Ping()) == "pong"


async def test_a_task_that_a_listener_starts_waits_for_itself_and_not_as_the_terminal(room: Room) -> None:
    """The terminal does not wait for it: its own forms may be answered there, and what it is asked may be asked on."""
    room.mount("y", "z")
    done: list[Any] = []

    async def answer(id: str) -> None:
        done.append(await room.terminals.ask(None, "z", Form(NEED_X)))
        done.append(await room.terminals.answer("y", id, {"x": "v"}))

    y = room.terminals.terminal("y")
    assert y is not None
    y.emitter.on("pending", lambda record: room.nursery.start_soon(answer, record.id))
    asked = await room.ask("x", "y")
    assert [wait.from_ for wait in room.runtime.snapshot().waits if wait.to == "z"] == [()]
    await room.answer("z", {"x": "first"})
    assert (asked.values, done[0]) == ({"x": "v"}, {"x": "first"})
    assert room.edges() == 0


async def test_what_a_forms_own_listeners_start_is_not_the_terminals_either(room: Room) -> None:
    room.mount("y")
    seen: list[Any] = []
    form = Form(NEED_X)

    async def look() -> None:
        seen.append((current_node(), await room.terminals.answer("y", "no", {})))

    form.emitter.on("submit", lambda *_: room.nursery.start_soon(look))
    form.on_end(lambda _: room.nursery.start_soon(look))
    await room.ask("x", "y", form)
    await room.answer("y", {"x": "v"})
    assert [node for node, _ in seen] == [None, None]


async def test_a_terminal_goes_when_its_operator_ends_for_good(room: Room) -> None:
    agent = room.runtime.spawn(Consultant(room, "planner"), "agent")
    room.mount("planner", operator=agent)
    asked = await room.ask("person", "planner")
    await agent.stop()
    await trio.testing.wait_all_tasks_blocked()
    assert room.terminals.terminals() == []
    assert asked.error is not None
    assert asked.error.context["reason"] == "removed"


async def test_an_operator_is_called_by_a_terminal_only_while_there_is_one(room: Room) -> None:
    agent = room.runtime.spawn(Consultant(room, "planner"), "agent")
    room.mount("planner", "planner too", operator=agent)
    await room.terminals.remove("planner")
    assert agent.label == "planner too"
    await room.terminals.remove("planner too")
    assert agent.label == "/agent"
    room.mount("planner", operator=agent)
    assert agent.label == "planner"


async def test_an_operator_keeps_nothing_of_a_terminal_that_was_removed(room: Room) -> None:
    agent = room.runtime.spawn(Consultant(room, "planner"), "agent")
    before = len(agent.watchers or {})
    for _ in range(3):
        room.mount("planner", operator=agent)
        assert await room.terminals.remove("planner")
    assert len(agent.watchers or {}) == before


async def test_asks_in_a_name_are_its_operators_once_it_has_one(room: Room) -> None:
    room.mount("person")
    asked = await room.ask("planner", "person")
    agent = room.runtime.spawn(Consultant(room, "planner"), "agent")
    room.mount("planner", operator=agent)
    assert path((await room.ask("person", "planner")).error) == ["person", "planner", "person"]
    await room.answer("person", {"x": "v"})
    assert asked.values == {"x": "v"}
    assert room.edges() == 0


@pytest.mark.parametrize("from_", [5, b"agent", ["agent"], "half \ud800", object()])
async def test_a_name_that_is_none_parks_nothing(from_: Any) -> None:
    async with open_runtime() as runtime:
        terminal = runtime.terminals.add("reviewer")
        with pytest.raises(TerminalError, match="name is text"):
            await runtime.ask("reviewer", {"fields": []}, from_=from_)
        with pytest.raises(TerminalError, match="name is text"):
            await terminal.park(Form({"fields": []}), from_=from_)
        with pytest.raises(TerminalError, match="name is text"):
            await terminal.park(Form({"fields": []}), to=from_)
        assert terminal.pending() == []
        assert runtime.snapshot().waits == ()
