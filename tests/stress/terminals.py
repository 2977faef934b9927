"""Random asks, answers, cancellations, expiries, removals and stops of terminals, against plain dictionaries."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from greenroom.actors.system import open_runtime
from greenroom.protocol.errors import FormError, GreenroomError, TerminalDeadlock, TerminalError
from greenroom.protocol.forms import Form
from greenroom.protocol.terminals import AnswerFailure
from tests.stress.driver import Driver, Spawned
from tests.stress.outcome import machine

__all__ = ["SUITE", "Terminals", "run"]

SUITE = 300

NAMES = ["a", "b", "c", "d", "e"]
SCHEMA = {"fields": [{"control": "text", "name": "x", "rule": {"required": True, "minimum": 2}}]}
GOOD: dict[str, Any] = {"x": "good"}
SHORT: dict[str, Any] = {"x": "s"}
ABSENT: dict[str, Any] = {}
WRONG: dict[str, Any] = {"x": 5}
FOREIGN: dict[str, Any] = {"zz": "good"}
CAP = 3


class Ticket:
    """What the model knows of one ask."""

    def __init__(self, ask: Spawned[dict[str, Any]], from_: str, to: str, due: float | None) -> None:
        self.ask = ask
        self.from_ = from_
        self.to = to
        self.due = due
        self.id = ""


class Terminals(RuleBasedStateMachine):
    """One runtime of at most five terminals; every ask is in some name, mounted or not."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.runtime = self.driver.enter(open_runtime(timeout=7.0))
        self.terminals = self.runtime.terminals
        self.mounted: dict[str, int | None] = {}
        """Its cap, by name, in order of adding."""
        self.tickets: list[Ticket] = []
        """The open ones, in order of parking."""
        self.now = 0.0
        self.events: list[tuple[str, str]] = []
        emitter = self.terminals.emitter
        emitter.on("pending", lambda record: self.events.append(("pending", record.id)))
        emitter.on("answer", lambda to, id, values: self.events.append(("answer", id)))
        emitter.on("expire", lambda to, id: self.events.append(("expire", id)))
        emitter.on("withdraw", lambda to, id: self.events.append(("withdraw", id)))

    def teardown(self) -> None:
        try:
            for ticket in self.tickets:
                self.driver.cancel(ticket.ask)
            self.driver.settle()
            snapshot = self.runtime.snapshot()
            assert (snapshot.waits, snapshot.deadlines) == ((), 0)
        finally:
            self.driver.close()

    # ---------------------------------------------------------------- the model

    def at(self, name: str) -> list[Ticket]:
        return [ticket for ticket in self.tickets if ticket.to == name]

    def circle(self, from_: str, to: str) -> list[str] | None:
        """The shortest path over the oldest waits, as a plain search finds it."""
        if from_ == to:
            return [from_, to]
        came: dict[str, str] = {to: ""}
        line = deque([to])
        while line:
            name = line.popleft()
            if name == from_:
                steps = []
                while name:
                    name = came[name]
                    steps.append(name)
                return [from_, *reversed(steps[:-1]), from_]
            for ticket in self.tickets:
                if ticket.from_ == name and ticket.to not in came:
                    came[ticket.to] = name
                    line.append(ticket.to)
        return None

    def ends(self, ticket: Ticket, event: str, reason: str) -> None:
        """The ticket has just ended without an answer."""
        self.tickets.remove(ticket)
        assert ticket.ask.done, "an asker was not woken"
        with pytest.raises(FormError) as ended:
            ticket.ask.result()
        assert (ended.value.code, ended.value.context["reason"]) == ("ABANDONED", reason)
        assert self.events.pop(0) == (event, ticket.id)

    # ---------------------------------------------------------------- rules

    @rule(name=st.sampled_from(NAMES), cap=st.sampled_from([None, CAP]))
    def add(self, name: str, cap: int | None) -> None:
        async def add() -> None:
            self.terminals.add(name, cap=cap)

        self.driver.call(add)
        self.mounted.setdefault(name, cap)

    @rule(
        from_=st.sampled_from([*NAMES, "ghost"]),
        to=st.sampled_from(NAMES),
        timeout=st.sampled_from([0.5, 1.0, 2.5, None, msgspec.UNSET]),
    )
    def ask(self, from_: str, to: str, timeout: float | msgspec.UnsetType | None) -> None:
        form = Form(SCHEMA)

        async def ask() -> dict[str, Any]:
            return await self.terminals.ask(from_, to, form, timeout=timeout)

        before = self.now
        asked = self.driver.spawn(ask)
        assert self.driver.now() == before
        refusal: GreenroomError | None = None
        if asked.done:
            try:
                asked.result()
            except GreenroomError as error:
                refusal = error
        path = self.circle(from_, to)
        if to not in self.mounted:
            assert isinstance(refusal, TerminalError)
            assert (refusal.code, refusal.context["known"]) == ("TARGET", list(self.mounted))
        elif path is not None:
            assert isinstance(refusal, TerminalDeadlock), f"an unseen circle: {path}"
            assert refusal.path == path
            assert form.status == "editing"
        elif (cap := self.mounted[to]) is not None and len(self.at(to)) >= cap:
            assert isinstance(refusal, TerminalError)
            assert (refusal.code, refusal.context) == ("LIMIT", {"cap": cap})
        else:
            assert refusal is None, f"refused without reason: {refusal}"
            seconds = 7.0 if timeout is msgspec.UNSET else timeout
            ticket = Ticket(asked, from_, to, None if seconds is None else self.now + seconds)
            ticket.id = self.terminals.pending(to)[-1].id
            self.tickets.append(ticket)
            assert self.events.pop(0) == ("pending", ticket.id)

    def some(self, index: int) -> Ticket:
        return self.tickets[index % len(self.tickets)]

    @precondition(lambda self: self.tickets)
    @rule(index=st.integers(0, 50), whole=st.booleans(), values=st.sampled_from([GOOD, SHORT, ABSENT, WRONG, FOREIGN]))
    def answer(self, index: int, whole: bool, values: dict[str, Any]) -> None:
        ticket = self.some(index)
        held = ticket.ask.done
        result = self.driver.call(self._answer, ticket, values, whole)
        assert not held
        if values is GOOD:
            assert result.success
            self._answered(ticket)
        else:
            assert isinstance(result, AnswerFailure)
            assert result.error.reason == "rejected"
            if not whole and values is not ABSENT:
                # what it filled stays: a later piecemeal answer without x may then be about that value
                assert not ticket.ask.done

    async def _answer(self, ticket: Ticket, values: dict[str, Any], whole: bool) -> Any:
        return await self.terminals.answer(ticket.to, ticket.id, values, whole=whole)

    def _answered(self, ticket: Ticket) -> None:
        self.tickets.remove(ticket)
        assert ticket.ask.done, "an asker was not woken"
        assert ticket.ask.result() == GOOD
        assert self.events.pop(0) == ("answer", ticket.id)

    @rule(to=st.sampled_from(NAMES), id=st.sampled_from(["", "missing"]))
    def answer_what_is_not_there(self, to: str, id: str) -> None:
        result = self.driver.call(lambda: self.terminals.answer(to, id, GOOD))
        assert isinstance(result, AnswerFailure)
        assert result.error.reason == ("unknown" if to in self.mounted else "target")

    @precondition(lambda self: self.tickets)
    @rule(index=st.integers(0, 50))
    def cancel(self, index: int) -> None:
        ticket = self.some(index)
        self.driver.cancel(ticket.ask)
        assert ticket.ask.cancelled
        self.tickets.remove(ticket)
        assert self.events.pop(0) == ("withdraw", ticket.id)

    @precondition(lambda self: self.tickets)
    @rule(index=st.integers(0, 50), cancelling=st.booleans())
    def race(self, index: int, cancelling: bool) -> None:
        """Two good answers, and perhaps the asker's cancellation, within one tick: one of them counts, and only one."""
        ticket = self.some(index)
        results: list[Any] = []

        async def answer() -> None:
            results.append(await self._answer(ticket, GOOD, whole=True))

        async def both() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(answer)
                nursery.start_soon(answer)
                if cancelling:
                    ticket.ask._scope.cancel()  # pyright: ignore[reportPrivateUsage]  # in the very tick, not after it

        self.driver.call(both)
        successes = sum(result.success for result in results)
        assert successes <= 1, "two answers counted"
        assert {result.error.reason for result in results if isinstance(result, AnswerFailure)} <= {"unknown"}
        if successes:
            self._answered(ticket)
        else:
            assert cancelling
            assert ticket.ask.cancelled, "a lost wake-up"
            self.tickets.remove(ticket)
            assert self.events.pop(0) == ("withdraw", ticket.id)

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 3.0]))
    def advance(self, seconds: float) -> None:
        self.driver.advance(seconds)
        self.now = self.driver.now()
        for ticket in self._due():
            self.ends(ticket, "expire", "timeout")

    def _due(self) -> Iterator[Ticket]:
        due = [ticket for ticket in self.tickets if ticket.due is not None and ticket.due <= self.now + 1e-9]
        yield from sorted(due, key=lambda ticket: ticket.due or 0.0)

    @precondition(lambda self: self.mounted)
    @rule(index=st.integers(0, 50), picks=st.sets(st.integers(0, 5), max_size=3), all_=st.booleans())
    def stop(self, index: int, picks: set[int], all_: bool) -> None:
        name = list(self.mounted)[index % len(self.mounted)]
        here = self.at(name)
        chosen = here if all_ else [here[pick] for pick in sorted(picks) if pick < len(here)]
        terminal = self.terminals.terminal(name)
        assert terminal is not None
        ids = [ticket.id for ticket in chosen]
        self.driver.call(lambda: terminal.stop() if all_ else terminal.stop(ids))
        for ticket in chosen:
            self.ends(ticket, "expire", "stopped")

    @rule(names=st.sets(st.sampled_from(NAMES), max_size=3))
    def remove(self, names: set[str]) -> None:
        removed = self.driver.call(lambda: self.terminals.remove(names))
        gone = [name for name in self.mounted if name in names]
        assert removed == bool(gone)
        for name in gone:
            del self.mounted[name]
            for ticket in self.at(name):
                self.ends(ticket, "expire", "removed")

    @rule(name=st.sampled_from(NAMES))
    def destroy(self, name: str) -> None:
        """A terminal that is destroyed but still listed takes nothing; remove it, so that the model stays plain."""
        terminal = self.terminals.terminal(name)
        if terminal is not None:
            self.driver.call(terminal.destroy)
            for ticket in self.at(name):
                self.ends(ticket, "expire", "stopped")
            refused = self.driver.spawn(lambda: self.terminals.ask("ghost", name, Form(SCHEMA)))
            assert refused.done
            self.driver.call(lambda: self.terminals.remove(name))
            del self.mounted[name]

    # ---------------------------------------------------------------- what always holds

    @invariant()
    def the_lists_are_those_of_the_model(self) -> None:
        assert self.terminals.terminals() == list(self.mounted)
        pending = [record.id for record in self.terminals.pending()]
        assert pending == [ticket.id for name in self.mounted for ticket in self.at(name)]
        assert self.events == [], "an event that nothing explains"
        assert not any(ticket.ask.done for ticket in self.tickets)

    @invariant()
    def the_graph_holds_the_open_asks_and_nothing_else(self) -> None:
        snapshot = self.runtime.snapshot()
        waits = sorted((wait.from_, wait.to) for wait in snapshot.waits)
        assert waits == sorted(((ticket.from_,), ticket.to) for ticket in self.tickets)
        assert snapshot.deadlines == sum(ticket.due is not None for ticket in self.tickets)


run = machine(Terminals)
