"""Random trees of agents and runs of workflows, which delegate, ask, stop and fail, against a plain model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from greenroom.actors.system import open_runtime
from greenroom.protocol.agents import AgentResult, ProviderResult
from greenroom.protocol.errors import ActorError
from greenroom.protocol.tools import ToolCall
from greenroom.protocol.tree import ActorSnapshot
from greenroom.runtime.lineage import Lineage
from tests.stress.driver import Driver, Spawned
from tests.stress.outcome import machine
from tests.stress.puppets import Stage, fields

__all__ = ["SUITE", "Trees", "run"]

SUITE = 300

ROOTS = ["r0", "r1", "r2"]
BELOW = ["r0", "a", "b", "c", "d"]
"""Providers that can be delegated to. One is called as an agent at the top is."""
WORKFLOWS = ["v", "w", "x", "y"]
TERMINALS = ["person", "r0", "r1", "r2", "nobody"]
MAX_DELEGATIONS = 3
MAX_CHAIN = 2
TIMEOUT = 300.0

Kind = Literal["ask", "agent", "workflow"]
Target = tuple[Kind, str]
ASKS: list[Target] = [("ask", name) for name in TERMINALS]
DELEGATIONS: list[Target] = [*(("agent", name) for name in BELOW), *(("workflow", name) for name in WORKFLOWS)]


def batch(targets: list[Target], most: int) -> st.SearchStrategy[list[Target]]:
    return st.lists(st.sampled_from(targets), min_size=1, max_size=most, unique=True)


class Action:
    """One call that a party makes, until something comes of it."""

    def __init__(self, party: Party, kind: Kind, target: str, number: int) -> None:
        self.party = party
        self.kind = kind
        self.target = target
        self.label = f"ask {number}"
        """What its form is called."""
        self.child: Party | None = None
        self.outcome: str | None = None
        """A part of what the party is told then."""

    @property
    def open(self) -> bool:
        return self.outcome is None


class Party:
    """An agent that runs, or a task."""

    def __init__(self, path: str, tag: str, parent: Party | None = None) -> None:
        self.path = path
        self.parent = parent
        self.tags: tuple[str, ...] = (*(() if parent is None else parent.tags), tag)
        self.actions: list[Action] = []
        """The calls that it was told to make the last time."""

    @property
    def is_agent(self) -> bool:
        return self.tags[-1].startswith("agent:")

    @property
    def ready(self) -> bool:
        return not any(action.open for action in self.actions)

    @property
    def run_path(self) -> str:
        """The path of the run that it is a task of."""
        return self.path.rpartition("/")[0]

    def all(self) -> Iterator[Party]:
        """Itself and all beneath it."""
        yield self
        for action in self.actions:
            if action.open and action.child is not None:
                yield from action.child.all()


class Trees(RuleBasedStateMachine):
    """Whoever runs is told what to do: it calls tools, comes to an end or fails; and it may be stopped at any time."""

    bounds: ClassVar = Lineage(max_chain=MAX_CHAIN, max_delegations=MAX_DELEGATIONS)

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.runtime = self.driver.enter(open_runtime(timeout=TIMEOUT))
        self.numbers = iter(range(1_000_000))
        self.living: list[str] = []
        """The agents at the top."""
        self.roots: dict[str, Party] = {}
        """Those of them that run."""
        self.runs: dict[str, Spawned[AgentResult]] = {}

        async def prepare() -> Stage:
            self.runtime.terminals.add("person")
            return Stage(self.runtime, BELOW, self.bounds)

        self.stage = self.driver.call(prepare)
        for name in ROOTS:
            self.add(name)

    def teardown(self) -> None:
        try:
            for name in list(self.living):
                self.remove(name)
            self.looks_the_same()
            snapshot = self.runtime.snapshot()
            assert snapshot.waits == ()
            assert snapshot.deadlines == 0
            assert (self.stage.ready, self.stage.in_flight) == ({}, 0)
        finally:
            self.driver.close()

    # ---------------------------------------------------------------- the model

    def parties(self) -> list[Party]:
        return [party for root in self.roots.values() for party in root.all()]

    def actions(self) -> list[Action]:
        """The calls of which nothing has come yet."""
        return [action for party in self.parties() for action in party.actions if action.open]

    def asks(self) -> list[Action]:
        return [action for action in self.actions() if action.kind == "ask"]

    def reaches(self, start: Party | None, goal: Party, seen: set[str]) -> bool:
        """Whether one party waits, over whatever steps, for another."""
        if start is None or start.path in seen:
            return False
        seen.add(start.path)
        if start is goal:
            return True
        ahead = [
            action.child if action.kind != "ask" else self.roots.get(action.target)
            for action in start.actions
            if action.open
        ]
        return any(self.reaches(party, goal, seen) for party in ahead)

    def refusal(self, action: Action) -> str | None:
        """What the call is refused with, if it is."""
        tags, target = action.party.tags, action.target
        if action.kind == "ask":
            if target != "person" and target not in self.living:
                return f"no terminal {target}"
            circle = self.reaches(self.roots.get(target), action.party, set())
            return "a circle of waiting, " if circle else None
        depth = sum(tag.startswith("agent:") for tag in tags[1:])
        chain = sum(tag.startswith("workflow:") for tag in tags) - 1
        if action.kind == "agent":
            if depth + 1 > MAX_DELEGATIONS:
                return f"agent {depth + 1} in a row of delegations, and {MAX_DELEGATIONS} are allowed"
            return "would be a cycle" if f"agent:{target}" in tags else None
        if f"workflow:{target}" in tags:
            return "is at work already above"
        return "workflows deep" if chain + 1 > MAX_CHAIN else None

    def over(self, action: Action, outcome: str) -> None:
        """Something came of a call. If it was the last, its party was told of all of them."""
        action.outcome = outcome
        action.child = None
        self.heard(action.party)

    def heard(self, party: Party) -> None:
        if not party.ready:
            return
        puppet = self.stage.ready[party.path]
        assert len(puppet.outcomes) == len(party.actions)
        for action, told in zip(party.actions, puppet.outcomes, strict=True):
            assert action.outcome is not None
            assert action.outcome in told, f"{action.kind} {action.target}: {told!r}, and not {action.outcome!r}"
        party.actions = []

    def ended(self, party: Party, outcome: str) -> None:
        """A party that is not at the top has come to its end."""
        assert party.parent is not None
        (action,) = (each for each in party.parent.actions if each.child is party)
        self.over(action, outcome)

    def tell(self, party: Party, said: ProviderResult | Exception) -> None:
        async def tell() -> None:
            self.stage.ready[party.path].tell(said)

        self.driver.call(tell)

    def some(self, data: st.DataObject, parties: list[Party]) -> Party:
        return data.draw(st.sampled_from(parties), label="party")

    def ready(self) -> list[Party]:
        return [party for party in self.parties() if party.ready]

    # ---------------------------------------------------------------- agents at the top

    def add(self, name: str) -> None:
        async def add() -> None:
            self.stage.add(name)

        self.driver.call(add)
        self.living.append(name)

    @precondition(lambda self: len(self.living) < len(ROOTS))
    @rule()
    def add_again(self) -> None:
        self.add(next(name for name in ROOTS if name not in self.living))

    @precondition(lambda self: len(self.roots) < len(self.living))
    @rule()
    def begin(self) -> None:
        name = next(name for name in self.living if name not in self.roots)
        self.runs[name] = self.driver.spawn(self.stage.run, name)
        self.roots[name] = Party(f"/agents/{name}", f"agent:{name}")

    # ---------------------------------------------------------------- what parties do

    @precondition(lambda self: self.ready())
    @rule(data=st.data(), wanted=batch(ASKS + DELEGATIONS, 3))
    def call(self, data: st.DataObject, wanted: list[Target]) -> None:
        self.calls(self.some(data, self.ready()), wanted)

    @precondition(lambda self: self.ready())
    @rule(wanted=batch(DELEGATIONS, 2))
    def delegate_further(self, wanted: list[Target]) -> None:
        """Who is deepest does."""
        self.calls(max(self.ready(), key=lambda party: len(party.tags)), wanted)

    @precondition(lambda self: self.ready())
    @rule(data=st.data(), wanted=batch(ASKS, 2))
    def ask(self, data: st.DataObject, wanted: list[Target]) -> None:
        self.calls(self.some(data, self.ready()), wanted)

    def calls(self, party: Party, wanted: list[Target]) -> None:
        party.actions = [Action(party, kind, target, next(self.numbers)) for kind, target in wanted]
        for action in party.actions:
            action.outcome = self.refusal(action)
        calls = tuple(
            ToolCall(str(number), action.kind, self.arguments(action)) for number, action in enumerate(party.actions)
        )
        self.tell(party, ProviderResult("", tools=calls))
        for action in party.actions:
            if action.open and action.kind != "ask":
                action.child = Party(self.place_of(action), f"{action.kind}:{action.target}", party)
        self.heard(party)

    def arguments(self, action: Action) -> dict[str, Any]:
        if action.kind == "ask":
            return {"to": action.target, "schema": {"label": action.label, "fields": fields()}}
        if action.kind == "agent":
            return {"task": "go", "provider": action.target}
        return {"name": action.target, "steps": [{"name": "work"}]}

    def place_of(self, action: Action) -> str:
        """Where the new party lives."""
        if action.kind == "workflow":
            return f"{action.party.path}/{action.target}/phase-0-task-0"
        known = {party.path for party in self.parties()}
        (path,) = (
            path
            for path, puppet in self.stage.ready.items()
            if path not in known
            and path.rpartition("/")[0] == f"{action.party.path}/delegations"
            and puppet.name == action.target
        )
        return path

    @precondition(lambda self: self.ready())
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        party = self.some(data, self.ready())
        text = f"text {next(self.numbers)}"
        self.tell(party, ProviderResult(text))
        if party.parent is None:
            assert self.over_at_the_top(party).result() == AgentResult(content=text, partial=False)
        else:
            self.ended(party, f'"{text}"' if party.is_agent else '"status":"completed"')

    @precondition(lambda self: self.ready())
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        party = self.some(data, self.ready())
        text = f"failure {next(self.numbers)}"
        self.tell(party, LookupError(text))
        if party.parent is None:
            self.raises(party, LookupError, text)
        else:
            self.ended(party, text if party.is_agent else '"failed":1')

    def over_at_the_top(self, party: Party) -> Spawned[AgentResult]:
        name = party.path.rpartition("/")[2]
        del self.roots[name]
        return self.runs.pop(name)

    def raises(self, party: Party, kind: type[Exception], text: str) -> None:
        error = _failure(self.over_at_the_top(party))
        assert isinstance(error, kind)
        assert text in str(error)

    # ---------------------------------------------------------------- what happens to asks

    @precondition(lambda self: self.asks())
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        action = data.draw(st.sampled_from(self.asks()))
        (id,) = (form.id for form in self.runtime.terminals.pending(action.target) if form.schema.label == action.label)
        text = f"answer {next(self.numbers)}"
        assert self.driver.call(self.runtime.terminals.answer, action.target, id, {"v": text}).success
        self.over(action, text)

    @precondition(lambda self: self.asks())
    @rule()
    def expire(self) -> None:
        self.driver.advance(TIMEOUT + 1)
        asks = self.asks()
        for action in asks:
            action.outcome = "in time"
        for party in dict.fromkeys(action.party for action in asks):
            self.heard(party)

    # ---------------------------------------------------------------- what is stopped

    @precondition(lambda self: self.roots)
    @rule(data=st.data(), how=st.sampled_from(["one beneath", "one beneath", "abort", "cancel", "remove"]))
    def stop(self, data: st.DataObject, how: str) -> None:
        beneath = [party for party in self.parties() if party.parent is not None]
        if how == "one beneath" and beneath:
            self.stop_one_beneath(self.some(data, beneath))
        elif how == "remove":
            self.remove(data.draw(st.sampled_from(self.living)))
        else:
            self.stop_a_run(data.draw(st.sampled_from(list(self.roots))), how)

    def stop_a_run(self, name: str, how: str) -> None:
        if how != "cancel":

            async def abort() -> None:
                agent = self.runtime.agents.agent(name)
                assert agent is not None
                agent.abort()

            self.driver.call(abort)
        else:
            self.driver.cancel(self.runs[name])
        run = self.over_at_the_top(self.roots[name])
        assert run.cancelled if how == "cancel" else run.result().partial

    def stop_one_beneath(self, party: Party) -> None:
        path = party.path if party.is_agent else party.run_path
        self.driver.call(self.runtime.tree.find(path).stop)
        self.ended(party, f"{path} has stopped" if party.is_agent else '"status":"stopped"')

    def remove(self, name: str) -> None:
        """An agent at the top ends, and with it its terminal, so that who asks there asks in vain."""
        ended = self.driver.call(self.runtime.agents.remove, name)
        assert ended[-1] == f"/agents/{name}"
        self.living.remove(name)
        if name in self.roots:
            gone = self.roots[name]
            assert {party.path for party in gone.all()} <= set(ended)
            self.raises(gone, ActorError, "has stopped")
        asks = [action for action in self.asks() if action.target == name]
        for action in asks:
            action.outcome = "removed"
        for party in dict.fromkeys(action.party for action in asks):
            self.heard(party)

    # ---------------------------------------------------------------- what must hold after each step

    @invariant()
    def looks_the_same(self) -> None:
        """Nobody is there, waits or is asked who is not in the model, and the other way round."""
        parties = self.parties()
        ready = {party.path for party in parties if party.ready}
        assert set(self.stage.ready) == ready
        assert self.stage.in_flight == sum(party.is_agent and party.ready for party in parties)
        for party in parties:
            assert sum(tag.startswith("agent:") for tag in party.tags[1:]) <= MAX_DELEGATIONS
            assert sum(tag.startswith("workflow:") for tag in party.tags) - 1 <= MAX_CHAIN
        snapshot = self.runtime.snapshot()
        tasks = [party for party in parties if not party.is_agent]
        live = {kind: sorted(_paths(snapshot.root, kind)) for kind in ("agent", "task", "run")}
        idle = {f"/agents/{name}" for name in self.living} - {party.path for party in parties}
        assert live["agent"] == sorted([*idle, *(party.path for party in parties if party.is_agent)])
        assert live["task"] == sorted(party.path for party in tasks)
        assert live["run"] == sorted(party.run_path for party in tasks)
        pending = self.runtime.terminals.pending
        for name in ("person", *self.living):
            labels = sorted(str(form.schema.label) for form in pending(name))
            assert labels == sorted(action.label for action in self.asks() if action.target == name)
        # A run of an agent is one wait, a task is that for its run and that of the run for it.
        assert len(snapshot.waits) == len(parties) + len(tasks) + len(self.asks())


def _failure(run: Spawned[AgentResult]) -> Exception | None:
    try:
        run.result()
    except Exception as error:
        return error
    return None


def _paths(actor: ActorSnapshot, kind: str) -> Iterator[str]:
    if actor.kind == kind:
        yield actor.path
    for child in actor.children:
        yield from _paths(child, kind)


run: Callable[..., Any] = machine(Trees, steps=30)
