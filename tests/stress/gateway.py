"""Clients that come, ask, answer, lose their connection and return at random, against plain lists."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any

import h11
import pytest
import trio
import trio.testing
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from greenroom.actors.client import AttachedTerminal, Client
from greenroom.actors.client.connecting import LIMITS
from greenroom.actors.client.handshake import dial
from greenroom.actors.client.socket import FrameSocket
from greenroom.actors.client.stream import GuardedStream
from greenroom.actors.gateway import Access, GatewayLimits, Services
from greenroom.actors.gateway.bridge import add_bridge
from greenroom.actors.gateway.connection import Connection, Front
from greenroom.actors.gateway.doorstep import Doorstep
from greenroom.actors.gateway.fence import Fence
from greenroom.actors.gateway.routes import Routes
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.errors import FormError, RpcError
from greenroom.protocol.rpc import FormPending
from greenroom.protocol.sse import SSEParser
from tests.stress.driver import Driver, Spawned
from tests.stress.outcome import machine

__all__ = ["SUITE", "Gateway", "run"]

SUITE = 60

NAMES = ["a", "b"]
SCHEMA = {"fields": [{"control": "text", "name": "x", "rule": {"required": True, "minimum": 2}}]}
GOOD: dict[str, Any] = {"x": "good"}
SHORT: dict[str, Any] = {"x": "s"}
GRACE = 30.0
PEOPLE = 4


class Door:
    """A gateway without a port: each connection is a pair of streams in memory."""

    def __init__(self, runtime: Runtime) -> None:
        routes, access = Routes(), Access()
        limits = GatewayLimits(grace=GRACE)
        add_bridge(routes, runtime.terminals, access, limits)
        services = Services(runtime.terminals, runtime.tools, runtime.workflows, runtime.snapshot, runtime.remote)
        self._front = Front(runtime.tree, services, Fence(), access, routes, limits, None, Doorstep(limits.waiting))
        self._runtime = runtime
        self._opened = 0

    def enter(self) -> trio.abc.Stream:
        ours, theirs = trio.testing.memory_stream_pair()
        self._opened += 1
        self._runtime.spawn(Connection(theirs, self._front), f"connection-{self._opened}")
        return ours


class View:
    """What one attachment has shown: every id that came, and every id that went."""

    def __init__(self, terminal: str) -> None:
        self.terminal = terminal
        self.came: list[str] = []
        self.went: list[str] = []

    async def follow(self, client: Client) -> None:
        async with client.attach(self.terminal) as attached:
            self.came += attached.pending
            async for event in attached:
                self._take(event, attached)

    def _take(self, event: Any, attached: AttachedTerminal) -> None:
        if isinstance(event, FormPending):
            self.came.append(event.form.id)
        else:
            self.went.append(event.id)
            assert event.id not in attached.pending

    def check(self, pending: list[str]) -> None:
        """Nothing came or went twice, and what is left is what is pending."""
        assert len(set(self.came)) == len(self.came), "a form was shown twice"
        assert len(set(self.went)) == len(self.went), "a form ended twice"
        assert [id for id in self.came if id not in self.went] == pending
        assert set(self.went) <= set(self.came), "the end of a form that was never shown"


class Person:
    """A program with a client, which comes back by itself as soon as there is a network."""

    def __init__(self, door: Door, number: int) -> None:
        self.name = f"person-{number}"
        self.views: list[tuple[View, Spawned[None]]] = []
        self.client: Client
        self.life: Spawned[None]
        self.network = trio.Event()
        self.network.set()
        self.away_since: float | None = None
        self._door = door
        self._stream: GuardedStream
        self._nursery: trio.Nursery

    @property
    def online(self) -> bool:
        return self.away_since is None

    async def live(self) -> None:
        async with trio.open_nursery() as self._nursery:
            self.client = Client(await self._dial(), self._dial)
            self._nursery.start_soon(self.client.run)
            await self.client.hello()

    async def _dial(self) -> FrameSocket:
        await self.network.wait()
        self._stream = GuardedStream(self._door.enter(), send_timeout=10)
        return await dial(self._nursery, self._stream, "localhost", "/rpc", LIMITS)

    async def cut(self) -> None:
        self.network = trio.Event()
        await self._stream.kill()

    async def back(self) -> None:
        self.network.set()

    async def leave(self) -> None:
        self.client.close()


class Page:
    """A browser's event stream."""

    def __init__(self, door: Door, terminal: str) -> None:
        self.view = View(terminal)
        self._stream = door.enter()

    async def follow(self) -> None:
        protocol, events = h11.Connection(h11.CLIENT), SSEParser()
        request = h11.Request(
            method="GET", target=f"/terminals/{self.view.terminal}?events=all", headers=[("Host", "localhost")]
        )
        await self._stream.send_all((protocol.send(request) or b"") + (protocol.send(h11.EndOfMessage()) or b""))
        while True:
            event = protocol.next_event()
            if event is h11.NEED_DATA:
                protocol.receive_data(bytes(await self._stream.receive_some()))
            elif isinstance(event, h11.Data):
                for said in events.parse(bytes(event.data).decode()):
                    self._take(said.event, json.loads(said.data)["id"])

    def _take(self, event: object, id: str) -> None:
        if event == "pending":
            self.view.came.append(id)
        elif id not in self.view.went:  # of a withdrawn form it is told twice, in two words
            self.view.went.append(id)

    async def vanish(self) -> None:
        await trio.aclose_forcefully(self._stream)


async def post(door: Door, terminal: str, id: str, values: dict[str, Any]) -> bool:
    """Answer over HTTP. Whether it counted."""
    stream = door.enter()
    body = json.dumps({"id": id, "values": values}).encode()
    await stream.send_all(
        f"POST /terminals/{terminal} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    response = b""
    while piece := await stream.receive_some():
        response += piece
    await trio.aclose_forcefully(stream)
    assert response.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 422 ")), response
    return response.startswith(b"HTTP/1.1 200 ")


class Asked:
    """What the model knows of one ask."""

    def __init__(self, ask: Spawned[dict[str, Any]], person: Person, to: str, timeout: float | None) -> None:
        self.ask = ask
        self.person = person
        self.to = to
        self.timeout = timeout
        self.id = ""
        """Empty until its form is parked."""
        self.due: float | None = None
        self.outcome: str | None = None
        """How its form has ended, for an asker that has still to hear of it."""


class Gateway(RuleBasedStateMachine):
    """One runtime of two terminals; at most four people, and pages."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.runtime = self.driver.enter(open_runtime(timeout=None))
        self.door = self.driver.call(self._open)
        self.tasks = self.living()
        self.now = 0.0
        self.came = 0
        self.people: list[Person] = []
        self.gone: list[tuple[Person, float]] = []
        """Those who will not come back, each with when the server gives it up."""
        self.pages: list[tuple[Page, Spawned[None]]] = []
        self.open: list[Asked] = []
        """Those whose forms are parked, in that order."""
        self.waiting: list[Asked] = []
        """Those whose asker has no connection: it has still to send them, or to hear how they ended."""

    async def _open(self) -> Door:
        for name in NAMES:
            self.runtime.terminals.add(name)
        return Door(self.runtime)

    def living(self) -> int:
        async def count() -> int:
            return trio.lowlevel.current_statistics().tasks_living

        return self.driver.call(count)

    def teardown(self) -> None:
        try:
            for person in list(self.people):
                self._part(person, politely=person.online)
            for page, reading in self.pages:
                self.driver.cancel(reading)
                self.driver.call(page.vanish)
            self.pages.clear()
            self.move(2 * GRACE)
            self.nothing_is_left()
        finally:
            self.driver.close()

    def nothing_is_left(self) -> None:
        snapshot = self.runtime.snapshot()
        assert (snapshot.waits, snapshot.deadlines, self.runtime.terminals.subscriptions) == ((), 0, 0)
        assert self.runtime.terminals.pending() == []
        places = {child.path: len(child.children) for child in snapshot.root.children if child.kind != "terminal"}
        assert not places.get("/clients"), "a client that is never forgotten"
        assert not any(path.startswith("/connection-") for path in places), "a connection that never ends"
        # The place of the clients is an actor, which stays.
        assert self.living() <= self.tasks + 1, "a task that never ends"

    # ---------------------------------------------------------------- the model

    def at(self, name: str) -> list[str]:
        return [asked.id for asked in self.open if asked.to == name]

    def park(self, asked: Asked) -> None:
        """Its form has just been parked, as the next of its terminal that the model does not know."""
        known = {each.id for each in self.open}
        new = [record.id for record in self.runtime.terminals.pending(asked.to) if record.id not in known]
        assert new, "an ask was not parked"
        asked.id = new[0]
        asked.due = None if asked.timeout is None else self.now + asked.timeout
        self.open.append(asked)

    def ends(self, asked: Asked, outcome: str) -> None:
        """Its form has ended: the asker knows, or will be told when it is back."""
        self.open.remove(asked)
        asked.outcome = outcome
        if asked.person not in self.people:
            return  # nobody is there to be told
        if asked.person.online:
            self.told(asked)
        else:
            assert not asked.ask.done or asked.ask.cancelled
            self.waiting.append(asked)

    def told(self, asked: Asked) -> None:
        """The asker has been told, once, how it ended."""
        if asked.ask.cancelled:
            return
        assert asked.ask.done, f"an asker was not told: {asked.outcome}"
        if asked.outcome == "answered":
            assert asked.ask.result() == GOOD
        elif asked.outcome == "timeout":
            with pytest.raises(FormError) as abandoned:
                asked.ask.result()
            assert abandoned.value.context["reason"] == "timeout"
        else:
            with pytest.raises(RpcError) as lost:
                asked.ask.result()
            assert lost.value.code == asked.outcome

    def _part(self, person: Person, *, politely: bool) -> None:
        """It goes for good: politely it says so, and what it asked is withdrawn at once."""
        since = self.now if person.away_since is None else person.away_since
        if politely:
            self.driver.call(person.leave)
        else:
            self.driver.call(person.cut)
        for _, watching in person.views:
            self.driver.cancel(watching)
        person.away_since = since
        theirs = [asked for asked in (*self.open, *self.waiting) if asked.person is person]
        for asked in theirs:
            if politely and not asked.ask.cancelled:
                with pytest.raises(RpcError, match="ended"):
                    asked.ask.result()
            self.driver.cancel(asked.ask)
        self.driver.cancel(person.life)
        self.waiting = [asked for asked in self.waiting if asked.person is not person]
        self.people.remove(person)
        if politely:
            for asked in [asked for asked in self.open if asked.person is person]:
                self.ends(asked, "withdrawn")
        self.gone.append((person, since if politely else since + GRACE))

    def one(self, index: int, *, online: bool) -> Person:
        people = [person for person in self.people if person.online == online]
        return people[index % len(people)]

    # ---------------------------------------------------------------- rules

    @precondition(lambda self: len(self.people) < PEOPLE)
    @rule()
    def come(self) -> None:
        self.came += 1

        async def person() -> Person:
            return Person(self.door, self.came)

        new = self.driver.call(person)
        new.life = self.driver.spawn(new.live)
        self.people.append(new)

    @precondition(lambda self: any(person.online for person in self.people))
    @rule(index=st.integers(0, 9), name=st.sampled_from(NAMES))
    def attach(self, index: int, name: str) -> None:
        person, view = self.one(index, online=True), View(name)
        person.views.append((view, self.driver.spawn(view.follow, person.client)))

    @precondition(lambda self: any(person.views for person in self.people))
    @rule(index=st.integers(0, 9))
    def detach(self, index: int) -> None:
        people = [person for person in self.people if person.views]
        _, watching = people[index % len(people)].views.pop(0)
        self.driver.cancel(watching)

    @precondition(lambda self: self.people)
    @rule(index=st.integers(0, 9), name=st.sampled_from(NAMES), timeout=st.sampled_from([None, 8.0]))
    def ask(self, index: int, name: str, timeout: float | None) -> None:
        person = self.people[index % len(self.people)]
        ask: Callable[[], Awaitable[dict[str, Any]]] = functools.partial(
            person.client.ask, name, SCHEMA, from_=person.name, timeout=timeout
        )
        asked = Asked(self.driver.spawn(ask), person, name, timeout)
        assert not asked.ask.done
        if person.online:
            self.park(asked)
        else:
            self.waiting.append(asked)

    @precondition(lambda self: self.open)
    @rule(index=st.integers(0, 50), by=st.integers(0, 9), values=st.sampled_from([GOOD, SHORT]))
    def answer(self, index: int, by: int, values: dict[str, Any]) -> None:
        """By somebody who has a connection, or over HTTP."""
        asked = self.open[index % len(self.open)]
        people = [person for person in self.people if person.online]
        if by < len(people):
            counted = self.driver.call(people[by].client.answer, asked.to, asked.id, values).success
        else:
            counted = self.driver.call(post, self.door, asked.to, asked.id, values)
        assert counted == (values is GOOD)
        if counted:
            self.ends(asked, "answered")

    @precondition(lambda self: self.open)
    @rule(index=st.integers(0, 50))
    def race(self, index: int) -> None:
        """Everybody answers at once, and one answer counts."""
        asked = self.open[index % len(self.open)]
        counted: list[bool] = []

        async def one(person: Person) -> None:
            counted.append((await person.client.answer(asked.to, asked.id, GOOD)).success)

        async def over_http() -> None:
            counted.append(await post(self.door, asked.to, asked.id, GOOD))

        async def all_() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(over_http)
                for person in self.people:
                    if person.online:
                        nursery.start_soon(one, person)

        self.driver.call(all_)
        assert sum(counted) == 1, "not one answer counted"
        self.ends(asked, "answered")

    @precondition(lambda self: self.open)
    @rule(index=st.integers(0, 50))
    def cancel(self, index: int) -> None:
        asked = self.open[index % len(self.open)]
        self.driver.cancel(asked.ask)
        if asked.person.online:
            self.ends(asked, "withdrawn")

    @precondition(lambda self: any(person.online for person in self.people))
    @rule(index=st.integers(0, 9))
    def cut(self, index: int) -> None:
        person = self.one(index, online=True)
        self.driver.call(person.cut)
        person.away_since = self.now
        assert not person.client.connected

    @precondition(lambda self: any(not person.online for person in self.people))
    @rule(index=st.integers(0, 9))
    def back(self, index: int) -> None:
        person = self.one(index, online=False)
        assert person.away_since is not None
        forgotten = person.away_since + GRACE <= self.now
        self.driver.call(person.back)
        assert person.client.connected
        person.away_since = None
        mine = [asked for asked in self.waiting if asked.person is person]
        self.waiting = [asked for asked in self.waiting if asked.person is not person]
        for asked in mine:
            if asked.outcome is not None:
                asked.outcome = "OUTCOME" if forgotten else asked.outcome
                self.told(asked)
            elif not asked.ask.cancelled:
                self.park(asked)
        for asked in [asked for asked in self.open if asked.person is person and asked.ask.cancelled]:
            self.ends(asked, "withdrawn")

    @precondition(lambda self: self.people)
    @rule(index=st.integers(0, 9), politely=st.booleans())
    def part(self, index: int, politely: bool) -> None:
        person = self.people[index % len(self.people)]
        self._part(person, politely=politely and person.online)

    @precondition(lambda self: len(self.pages) < 2)
    @rule(name=st.sampled_from(NAMES))
    def open_page(self, name: str) -> None:
        async def page() -> Page:
            return Page(self.door, name)

        opened = self.driver.call(page)
        self.pages.append((opened, self.driver.spawn(opened.follow)))

    @precondition(lambda self: self.pages)
    @rule()
    def close_page(self) -> None:
        page, reading = self.pages.pop(0)
        self.driver.cancel(reading)
        self.driver.call(page.vanish)

    @rule(seconds=st.sampled_from([0.7, 5.3, 17.1, 31.9]))
    def move(self, seconds: float) -> None:
        self.driver.advance(seconds)
        self.now = self.driver.now()
        for asked in list(self.open):
            given_up = self._given_up(asked.person)
            if asked.due is not None and asked.due <= self.now and asked.due <= given_up:
                self.ends(asked, "timeout")
            elif given_up <= self.now:
                self.ends(asked, "OUTCOME")
        self.gone = [(person, due) for person, due in self.gone if due > self.now]
        self.waiting = [asked for asked in self.waiting if asked.person in self.people]

    def _given_up(self, person: Person) -> float:
        return float("inf") if person.away_since is None else person.away_since + GRACE

    # ---------------------------------------------------------------- what always holds

    @invariant()
    def the_server_has_what_the_model_has(self) -> None:
        for name in NAMES:
            assert [record.id for record in self.runtime.terminals.pending(name)] == self.at(name)
        snapshot = self.runtime.snapshot()
        assert len(snapshot.waits) == len(self.open)
        connections = [child for child in snapshot.root.children if child.path.startswith("/connection-")]
        online = [person for person in self.people if person.online]
        assert len(connections) == len(online) + len(self.pages)
        attached = sum(len({view.terminal for view, _ in person.views}) for person in online)
        assert self.runtime.terminals.subscriptions == attached + len(self.pages)

    @invariant()
    def everybody_has_seen_every_form_once(self) -> None:
        for person in self.people:
            for view, watching in person.views:
                assert not watching.done, "an attachment has ended"
                if person.online:
                    view.check(self.at(view.terminal))
        for page, reading in self.pages:
            if reading.done:
                reading.result()
            assert not reading.done, "a stream has ended"
            page.view.check(self.at(page.view.terminal))

    @invariant()
    def nobody_is_told_early(self) -> None:
        there = [asked for asked in self.open if asked.person in self.people and not asked.ask.cancelled]
        assert not any(asked.ask.done for asked in there)


run = machine(Gateway, steps=40)
