"""Any waits in any tree, against a plain model: a patient clock stands still exactly while a way to a person exists.

The model knows which waits there are, who is beneath whom, and how much time each scope has left. Whether a clock
stands still it works out afresh, after every step and at every deadline, by trying all ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from greenroom.actors.system import open_runtime
from greenroom.protocol.errors import Deadlock, GreenroomError
from greenroom.protocol.forms import Form
from greenroom.runtime import patience
from greenroom.runtime.patience import PatientScope
from greenroom.runtime.ref import Ref
from tests.kernel.cast import Keep, Player, Run
from tests.stress.driver import Driver

ACTORS = ["a", "b", "c", "d"]
PERSONS = ["ann", "bob"]
EMPTY: dict[str, Any] = {"fields": [{"control": "confirm", "name": "ok"}]}
ROUNDING = 1e-6

Kind = Literal["person", "desk", "keep", "join"]
Node = tuple[str, str]
"""An actor's name, or `person`, and which part of it."""


class Scope:
    """A patient scope, in the model and in the run."""

    def __init__(self, host: str | None, seconds: float, outer: Scope | None) -> None:
        self.host = host
        """In whose work it is. None: outside of the tree."""
        self.rest = seconds
        self.around: tuple[Scope, ...] = (self,) if outer is None else (*outer.around, self)
        self.real = PatientScope(seconds)
        self.nursery: trio.Nursery | None = None
        self.begin, self._begun = trio.open_memory_channel[Any](1)

    async def live(self) -> None:
        with self.real:
            async with trio.open_nursery() as self.nursery:
                async for function in self._begun:
                    self.nursery.start_soon(function)


class Waiting:
    """A wait, in the model and in the run."""

    def __init__(self, kind: Kind, host: str | None, part: str, around: tuple[Scope, ...]) -> None:
        self.kind = kind
        self.host = host
        self.part = part
        self.around = around
        self.starts: list[Node] = [] if host is None else [(host, part)]
        self.goals: list[Node] = []
        self.form = Form(EMPTY)
        self.scope = trio.CancelScope()
        self.outcome: str | None = None

    async def run(self, wait: Any) -> None:
        with self.scope:
            try:
                await wait()
                self.outcome = "answered"
            except Deadlock:
                self.outcome = "refused"
            except GreenroomError as error:
                self.outcome = error.code
            except trio.Cancelled:
                self.outcome = "cancelled"
                raise


class Clocks(RuleBasedStateMachine):
    """Four actors, two persons, somebody outside, and scopes wherever there is work."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.runtime = self.driver.enter(open_runtime(timeout=None))
        self.refs: dict[str, Ref] = {}
        self.parents: dict[str, str | None] = {}
        self.spawned_in: dict[str, tuple[Scope, ...]] = {}
        self.scopes: list[Scope] = []
        self.waits: list[Waiting] = []

        async def add() -> None:
            for name in PERSONS:
                self.runtime.terminals.add(name)

        self.driver.call(add)

    def teardown(self) -> None:
        try:
            while self.scopes:
                self.close(self.scopes[0])
            assert not patience.OPEN
            assert not patience._WITHIN
        finally:
            self.driver.close()

    # ---------------------------------------------------------------- the model

    def beneath(self, name: str) -> Iterator[str]:
        yield name
        for child, parent in self.parents.items():
            if parent == name:
                yield from self.beneath(child)

    def meets_a_person(self, nodes: list[Node], seen: set[Node]) -> bool:
        for node in nodes:
            if node[0] == "person":
                return True
            if node in seen:
                continue
            seen.add(node)
            onward = [goal for wait in self.waits if node in wait.starts for goal in wait.goals]
            if node[1] == "work":
                onward += [(name, part) for name in self.beneath(node[0]) for part in ("handler", "work")]
            if self.meets_a_person(onward, seen):
                return True
        return False

    def still(self, scope: Scope) -> bool:
        nodes = [goal for wait in self.waits if scope in wait.around for goal in wait.goals]
        spawned = [name for name, around in self.spawned_in.items() if scope in around]
        return self.meets_a_person([*nodes, *((name, part) for name in spawned for part in ("handler", "work"))], set())

    def over(self, scope: Scope) -> None:
        """The scope has ended, with the scopes and the waits in it."""
        self.scopes = [each for each in self.scopes if scope not in each.around]
        self.waits = [wait for wait in self.waits if scope not in wait.around]

    def expire(self) -> None:
        for scope in [each for each in self.scopes if each.rest < ROUNDING and not self.still(each)]:
            self.over(scope)

    def close(self, scope: Scope) -> None:
        async def cancel() -> None:
            assert scope.nursery is not None
            scope.nursery.cancel_scope.cancel()

        self.driver.call(cancel)
        self.over(scope)

    # ---------------------------------------------------------------- rules

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """A small family, of which one was spawned in a scope outside: mostly there is something to wait for."""
        self.open(data, 9.0)
        for name, parent, scope in (("a", None, None), ("b", "a", None), ("c", "b", self.scopes[0])):
            self.begin_actor(name, parent, scope)

    @rule(data=st.data(), name=st.sampled_from(ACTORS))
    def spawn(self, data: st.DataObject, name: str) -> None:
        """An actor, anywhere in the tree, from anywhere."""
        if name not in self.refs:
            parent = data.draw(st.sampled_from([None, *self.refs]))
            self.begin_actor(name, parent, data.draw(st.sampled_from([None, *self.scopes])))

    def begin_actor(self, name: str, parent: str | None, scope: Scope | None) -> None:
        """Each operates a terminal of its own."""

        async def spawn() -> None:
            place = None if parent is None else self.refs[parent]
            self.refs[name] = self.runtime.spawn(Player(), name, parent=place)

        async def add() -> None:
            self.runtime.terminals.add(f"desk-{name}", operator=self.refs[name])

        self.run_in(scope, spawn)
        self.driver.call(add)
        self.parents[name] = parent
        self.spawned_in[name] = () if scope is None else scope.around

    @precondition(lambda self: len(self.refs) > 2)
    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(self.refs)))
        self.driver.call(self.refs[name].stop)
        gone = list(self.beneath(name))
        for scope in [scope for scope in self.scopes if scope.host in gone]:
            self.over(scope)
        self.waits = [
            wait for wait in self.waits if wait.host not in gone and not any(goal[0] in gone for goal in wait.goals)
        ]
        for each in gone:
            del self.refs[each], self.parents[each], self.spawned_in[each]
        for wait in self.waits:  # whoever asked in its name goes on, as nobody who is waited for
            wait.starts = [start for start in wait.starts if start[0] not in gone]

    @rule(data=st.data(), seconds=st.sampled_from([0.0, 1.0, 5.0, 9.0]))
    def open(self, data: st.DataObject, seconds: float) -> None:
        place = data.draw(st.sampled_from([None, *self.refs, *self.scopes]))
        outer = place if isinstance(place, Scope) else None
        host = place.host if isinstance(place, Scope) else place
        scope = Scope(host, seconds, outer)
        if outer is not None:
            self.run_in(outer, scope.live)
        elif host is not None:
            self.start_work(host, scope.live)
        else:
            self.driver.spawn(scope.live)
        self.scopes.append(scope)
        self.expire()

    @precondition(lambda self: self.scopes)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.close(data.draw(st.sampled_from(self.scopes)))

    @precondition(lambda self: self.scopes)
    @rule(data=st.data(), kind=st.sampled_from(["person", "desk", "keep", "join", "join"]))
    def wait_in_a_scope(self, data: st.DataObject, kind: Kind) -> None:
        self.wait(data, kind, data.draw(st.sampled_from(self.scopes)))

    @precondition(lambda self: self.refs)
    @rule(
        data=st.data(),
        kind=st.sampled_from(["person", "person", "desk", "keep", "join"]),
        part=st.sampled_from(["handler", "work"]),
    )
    def wait_as_an_actor(self, data: st.DataObject, kind: Kind, part: str) -> None:
        self.wait(data, kind, (data.draw(st.sampled_from(list(self.refs))), part))

    @rule(data=st.data())
    def ask_in_the_name_of_an_actor_that_is_yet_to_come(self, data: st.DataObject) -> None:
        """Somebody outside asks as a name, which is a terminal's later, perhaps."""
        waiting = Waiting("person", None, "work", ())
        name, to = data.draw(st.sampled_from(ACTORS)), data.draw(st.sampled_from(PERSONS))
        waiting.goals, waiting.starts = [("person", to)], [(name, "work")]
        self.driver.spawn(waiting.run, self.waiting_for(waiting, to, f"desk-{name}"))
        if waiting.outcome != "refused":
            self.waits.append(waiting)

    @precondition(lambda self: any(scope.host is None for scope in self.scopes) and any(self.parents.values()))
    @rule(data=st.data(), join_first=st.booleans())
    def join_somebody_above_one_who_asks(self, data: st.DataObject, join_first: bool) -> None:
        scope = next(scope for scope in self.scopes if scope.host is None)
        child, parent = data.draw(st.sampled_from([(child, over) for child, over in self.parents.items() if over]))
        waits: list[tuple[Kind, Any, str]] = [("join", scope, str(parent)), ("person", (child, "work"), "ann")]
        for kind, place, to in waits if join_first else reversed(waits):
            self.wait(data, kind, place, to)

    def wait(self, data: st.DataObject, kind: Kind, place: Any, to: str | None = None) -> None:
        """Begin a wait there; in somebody's name, perhaps."""
        if kind != "person" and not self.refs:
            return
        host, part, around = (place.host, "work", place.around) if isinstance(place, Scope) else (*place, ())
        if part == "handler" and any((wait.host, wait.part) == (host, "handler") for wait in self.waits):
            return
        waiting = Waiting(kind, host, part, around)
        if to is None:
            to = data.draw(st.sampled_from(PERSONS if kind == "person" else list(self.refs)))
        assert to is not None
        waiting.goals = {"person": [("person", to)], "keep": [(to, "handler")]}.get(
            kind, [(to, "handler"), (to, "work")]
        )
        from_: str | None = None
        if kind in ("person", "desk"):
            name = data.draw(st.sampled_from([None, *self.refs]))
            if name is not None:
                from_ = f"desk-{name}"
                waiting.starts.append((name, "work"))

        async def run(_: object = None) -> None:
            await waiting.run(self.waiting_for(waiting, to, from_))

        if isinstance(place, Scope):
            self.run_in(place, run)
        elif part == "work":
            self.start_work(place[0], run)
        else:
            self.driver.call(self.tell, self.refs[place[0]], Run(run))
        if waiting.outcome != "refused":
            self.waits.append(waiting)
        self.expire()

    @precondition(lambda self: self.waits)
    @rule(data=st.data(), cancel=st.booleans())
    def end(self, data: st.DataObject, cancel: bool) -> None:
        """A wait is answered, or whoever waits gives up."""
        waiting = data.draw(st.sampled_from(self.waits))

        async def end() -> None:
            if cancel:
                waiting.scope.cancel()
            elif waiting.kind in ("person", "desk"):
                waiting.form.submit()
            else:
                for ref in self.refs.values():
                    for reply in ref.actor.kept:  # type: ignore[attr-defined]  # they are all players
                        if reply.message.text == str(id(waiting)):
                            reply.answer("yes")

        self.driver.call(end)
        if waiting.outcome is not None:  # else it is one that is not in hand yet, or an end that has not come
            self.waits.remove(waiting)
        else:
            assert not cancel
            assert waiting.kind in ("keep", "join")

    @rule(seconds=st.sampled_from([0.25, 0.5, 1.0, 3.0]))
    def advance(self, seconds: float) -> None:
        self.driver.advance(seconds)
        while seconds > ROUNDING:
            running = [scope for scope in self.scopes if not self.still(scope)]
            step = min([seconds, *(scope.rest for scope in running)])
            for scope in running:
                scope.rest -= step
            seconds -= step
            self.expire()

    # ---------------------------------------------------------------- what must hold

    @invariant()
    def clocks_stand_still_exactly_while_a_person_is_waited_for(self) -> None:
        self.driver.call(self.compare)

    async def compare(self) -> None:
        assert {scope.real for scope in self.scopes} == patience.OPEN
        for scope in self.scopes:
            assert (scope.real.rest is not None) == self.still(scope)
            assert scope.real.remaining == pytest.approx(scope.rest, abs=ROUNDING)
        assert [wait for wait in self.waits if wait.outcome is not None] == []

    # ---------------------------------------------------------------- how it is done

    def waiting_for(self, waiting: Waiting, to: str, from_: str | None) -> Any:
        match waiting.kind:
            case "person":
                return lambda: self.runtime.terminals.ask(from_, to, waiting.form)
            case "desk":
                return lambda: self.runtime.terminals.ask(from_, f"desk-{to}", waiting.form)
            case "keep":
                return lambda: self.refs[to].ask(Keep(str(id(waiting))))
            case _:
                return self.refs[to].join

    def run_in(self, scope: Scope | None, function: Any) -> None:
        if scope is None:
            self.driver.call(function)
        else:
            self.driver.call(scope.begin.send, function)

    def start_work(self, name: str, function: Any) -> None:
        async def start() -> None:
            self.refs[name].actor.start_soon(function)

        self.driver.call(start)

    @staticmethod
    async def tell(ref: Ref, message: Run) -> None:
        ref.tell(message)


TestClocks = Clocks.TestCase
TestClocks.settings = settings(max_examples=150, stateful_step_count=25)
