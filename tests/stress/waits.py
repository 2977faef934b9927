"""Random wait-for graphs against a plain search, and live actors that wait for each other against a plain model."""

from __future__ import annotations

import logging
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, Literal

import trio
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from greenroom.protocol.errors import ActorDeadlock, ActorError
from greenroom.runtime import waits
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.messages import Message, Request, Withdrawn
from greenroom.runtime.ref import Ref
from greenroom.runtime.reply import Reply
from greenroom.runtime.restart import Restart
from greenroom.runtime.tree import run_tree
from greenroom.runtime.waits import Node, Party, Wait, find_circle
from tests.stress.driver import Driver, Spawned
from tests.stress.outcome import Failure, Outcome, machine

__all__ = ["SUITE", "Actors", "run"]

SUITE = 300
GRAPHS = 20
"""Graphs that are searched for each example that is played."""

Edge = tuple[tuple[Any, ...], tuple[Any, ...], str]
"""One wait, as plain search sees it: where it starts, where it leads, what it calls its target ("": by its name)."""


def plain_search(
    edges: Iterable[Edge], starts: tuple[Any, ...], goals: tuple[Any, ...], name: Callable[[Any], str], label: str = ""
) -> list[str] | None:
    """The circle by the book: breadth first, from the goals, over all waits there are, oldest first."""
    line: deque[tuple[Any, list[str]]] = deque((goal, [label or name(goal)]) for goal in goals)
    seen = set(goals)
    edges = list(edges)
    while line:
        node, path = line.popleft()
        if node in starts:
            whole = [name(node), *path[:-1], name(node)] if len(path) > 1 else [name(node), *path]
            merged = [step for step, before in zip(whole, [None, *whole[:-1]], strict=True) if step != before]
            return merged if len(merged) > 1 else merged * 2
        for froms, tos, called in edges:
            if node in froms:
                for to in tos:
                    if to not in seen:
                        seen.add(to)
                        line.append((to, [*path, called or name(to)]))
    return None


# -------------------------------------------------------------------- the graph by itself


def search_graphs(examples: int, seed: int) -> list[Failure]:
    """Waits come, go and move; each question gets the answer of the plain search, whichever end is searched first."""
    failures: list[Failure] = []
    before = waits.TURN
    for number in range(examples * GRAPHS):
        chance = random.Random(f"{seed} {number}")
        waits.TURN = chance.choice([1, 2, 3, before])
        steps: list[str] = []
        try:
            _search_one_graph(chance, steps)
        except AssertionError as failed:
            failures.append(Failure(seed, "\n".join([f"graph {number}", *steps, f"AssertionError: {failed}"])))
    waits.TURN = before
    return failures


def _search_one_graph(chance: random.Random, steps: list[str]) -> None:
    nodes = [Party(str(number)) for number in range(chance.randint(2, 14))]
    live: list[Wait] = []

    def some(most: int) -> tuple[Node, ...]:
        return tuple(chance.sample(nodes, chance.randint(1, min(most, len(nodes)))))

    def edges() -> list[Edge]:
        return [(wait.starts(), wait.goals(), wait.label or "") for wait in live]

    for _ in range(chance.randint(1, 60)):
        starts, goals, label = some(2), some(2), chance.choice([None, None, "desk"])
        expected = plain_search(edges(), starts, goals, lambda node: node.name, label or "")
        found = find_circle(starts, goals, label=label)
        steps.append(f"{starts} for {goals} ({label}): {found}")
        assert found == expected, f"the plain search finds {expected}"
        if found is None:
            second, other = (*starts, None)[1], (*goals, None)[1]
            live.append(Wait(starts[0], goals[0], second=second, other=other, label=label))
        if live and chance.random() < 0.3:
            gone = live.pop(chance.randrange(len(live)))
            steps.append(f"over: {gone.starts()} for {gone.goals()}")
            gone.release()
    for wait in live:
        wait.release()
    assert all(node.waiting is None and node.asked is None for node in nodes), "a wait is left"


# -------------------------------------------------------------------- live actors

NAMES = ["a", "b", "c", "d"]
CAPACITY = 2
REST = Restart("on_failure", intensity=1000, within=1.0, backoff=1.0, backoff_limit=1.0)
RESTARTABLE = ["c", "d"]

Part = Literal["handler", "work", "outside"]
PARTS: list[Part] = ["handler", "work", "outside"]


class Keep(Request[str], frozen=True):
    waiting: Waiting


class Note(Message, frozen=True):
    pass


class Begin(Message, frozen=True):
    waiting: Waiting


class Waiting:
    """One wait of the model, and what became of it in the live run."""

    def __init__(self, who: str | None, part: Part, kind: Literal["ask", "send", "join"], to: str) -> None:
        self.who = who
        """None: outside of the tree."""
        self.part = part
        self.kind = kind
        self.to = to
        self.scope = trio.CancelScope()
        self.outcome: str | list[str] | None = None
        """What it returned, the code of its error, `cancelled`, or the path of its refusal; None while it waits."""
        self.spawned: Spawned[None] | None = None

    def __repr__(self) -> str:
        return f"<{self.kind} of {self.to} by {self.who} {self.part}: {self.outcome}>"

    @property
    def starts(self) -> tuple[tuple[str, str], ...]:
        return () if self.who is None else ((self.who, self.part),)

    @property
    def goals(self) -> tuple[tuple[str, str], ...]:
        handler = (self.to, "handler")
        return ((self.to, "work"), handler) if self.kind == "join" else (handler,)

    async def wait(self, ref: Ref) -> None:
        with self.scope:
            try:
                if self.kind == "ask":
                    self.outcome = await ref.ask(Keep(self))
                elif self.kind == "join":
                    self.outcome = await ref.join()
                else:
                    await ref.send(Note())
                    self.outcome = "sent"
            except ActorDeadlock as refused:
                self.outcome = refused.path
            except ActorError as error:
                self.outcome = error.code
            except trio.Cancelled:
                self.outcome = "cancelled"
                raise


class Waiter(Actor):
    """Waits for whom it is told to, and keeps what it is asked."""

    def __init__(self, refs: dict[str, Ref]) -> None:
        self.refs = refs
        self.kept: list[Reply[str]] = []

    @handles(Keep)
    def keep(self, message: Keep) -> None:
        self.kept.append(self.take_reply())

    @handles(Withdrawn)
    def forget(self, message: Withdrawn) -> None:
        self.kept.remove(message.reply)

    @handles(Note)
    def note(self, message: Note) -> None:
        """Taken."""

    @handles(Begin)
    async def begin(self, message: Begin) -> None:
        await message.waiting.wait(self.refs[message.waiting.to])


class Model:
    """What is known of one actor."""

    def __init__(self) -> None:
        self.resting = False
        """It failed, and begins anew when the clock says so."""
        self.handling: Waiting | None = None
        self.kept: list[Waiting] = []
        self.untold: list[Waiting] = []
        """Withdrawn from what it kept while it was busy: it hears of them when it is free again."""
        self.mail: list[Waiting | None] = []
        """What waits to be handled, those in line included; None is a message that nobody waits for."""

    @property
    def busy(self) -> bool:
        return self.resting or self.handling is not None


class Actors(RuleBasedStateMachine):
    """Four actors that ask, send to and join each other from their handlers and their work, and somebody outside."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.tree = self.driver.enter(run_tree())
        self.refs: dict[str, Ref] = {}
        self.models: dict[str, Model] = {}
        self.waits: list[Waiting] = []
        """Oldest first."""

    def teardown(self) -> None:
        try:
            for name in list(self.models):
                self.stop(name)
            self.looks_the_same()
            assert self.waits == []
            snapshot = self.tree.snapshot()
            assert (snapshot.waits, snapshot.root.children) == ((), ())
        finally:
            self.driver.close()

    # ---------------------------------------------------------------- the model

    def over(self, waiting: Waiting, outcome: str | list[str]) -> None:
        """A wait ends in the model: it must have ended in the live run, in this way."""
        assert waiting.outcome is not None, f"a lost wake-up: {waiting}"
        assert waiting.outcome == outcome, waiting
        self.waits.remove(waiting)
        target = self.models.get(waiting.to)
        if target is not None and waiting.kind == "ask":
            if waiting in target.kept:
                target.kept.remove(waiting)
                if outcome == "cancelled" and target.busy and not target.resting:
                    target.untold.append(waiting)
            elif waiting in target.mail:
                self.leaves(target, waiting)
        elif target is not None and waiting in target.mail:
            if outcome == "sent":
                target.mail[target.mail.index(waiting)] = None
            else:
                self.leaves(target, waiting)
        if waiting.who is not None and waiting.part == "handler" and waiting.who in self.models:
            owner = self.models[waiting.who]
            if owner.handling is waiting:
                owner.handling = None
                self.handles_mail(owner)

    def leaves(self, target: Model, waiting: Waiting) -> None:
        """Its message leaves the mailbox or the line; somebody in line may be let in."""
        target.mail.remove(waiting)
        self.lets_in(target)

    def lets_in(self, target: Model) -> None:
        for waiting in list(target.mail[:CAPACITY]):
            if waiting is not None and waiting.kind == "send":
                self.over(waiting, "sent")

    def handles_mail(self, model: Model) -> None:
        """An actor is free again: everything that waits for it is taken."""
        if not model.busy:
            model.untold.clear()
        while model.mail and not model.busy:
            waiting = model.mail.pop(0)
            if waiting is not None and waiting.kind == "ask":
                model.kept.append(waiting)
            elif waiting is not None:
                self.over(waiting, "sent")
            self.lets_in(model)

    def ends(self, name: str, reason: str) -> None:
        """An actor ends, or fails and rests: what it waited for, and what was waited for from it."""
        model = self.models[name]
        model.handling = None
        model.untold.clear()
        again = reason == "failed" and name in RESTARTABLE
        model.resting = again
        if not again:
            del self.models[name]
        for waiting in list(self.waits):
            if waiting not in self.waits:
                continue
            if waiting.who == name:
                in_its_own_line = reason == "stopped" and waiting.kind == "send" and waiting.to == name
                self.over(waiting, "STOPPED" if in_its_own_line else "cancelled")  # the mailbox closes first
            elif waiting in model.kept:
                model.kept.remove(waiting)
                self.over(waiting, "STOPPED")
            elif waiting.to == name and not again:
                self.over(waiting, reason if waiting.kind == "join" else "STOPPED")

    # ---------------------------------------------------------------- rules

    @rule(name=st.sampled_from(NAMES))
    def spawn(self, name: str) -> None:
        if name in self.models:
            return

        async def spawn() -> None:
            restart = REST if name in RESTARTABLE else None
            self.refs[name] = self.tree.spawn(lambda: Waiter(self.refs), name, restart=restart, capacity=CAPACITY)

        self.driver.call(spawn)
        self.models[name] = Model()

    @precondition(lambda self: self.models)
    @rule(
        data=st.data(),
        part=st.sampled_from(PARTS),
        kind=st.sampled_from(["ask", "ask", "send", "join"]),
    )
    def wait(self, data: st.DataObject, part: Part, kind: Literal["ask", "send", "join"]) -> None:
        free = [name for name, model in self.models.items() if not (model.busy if part == "handler" else model.resting)]
        if part != "outside" and not free:
            return
        who = None if part == "outside" else data.draw(st.sampled_from(free), label="who")
        to = data.draw(st.sampled_from(list(self.models)), label="to")
        waiting = Waiting(who, part, kind, to)
        edges: list[Edge] = [(other.starts, other.goals, "") for other in self.waits]
        target = self.models[to]
        path = plain_search(edges, waiting.starts, waiting.goals, lambda node: f"/{node[0]}")
        waits_at_all = kind != "send" or (len(target.mail) >= CAPACITY and (target.busy or to == who))
        if who is not None and part == "handler":
            self.models[who].handling = waiting  # so that what it tells itself is not handled meanwhile
        if kind == "send" and not waits_at_all:
            target.mail.append(None)
            path = None
        before = self.driver.now()
        self.begin(waiting)
        assert self.driver.now() == before
        self.waits.append(waiting)
        if path is not None:
            assert waiting.outcome is not None, f"an unseen circle: {path}"
            self.over(waiting, path)
        elif not waits_at_all:
            self.over(waiting, "sent")
        else:
            assert waiting.outcome is None, f"a phantom circle: {waiting.outcome}"
            if kind != "join":
                target.mail.append(waiting)
        self.handles_mail(target)

    def begin(self, waiting: Waiting) -> None:
        ref = self.refs[waiting.to]
        if waiting.who is None:
            waiting.spawned = self.driver.spawn(waiting.wait, ref)
            return
        own = self.refs[waiting.who]

        async def begin() -> None:
            if waiting.part == "handler":
                own.tell(Begin(waiting))
            else:
                own.actor.start_soon(waiting.wait, ref)

        self.driver.call(begin)

    @precondition(lambda self: any(model.kept for model in self.models.values()))
    @rule(data=st.data(), fails=st.booleans())
    def answer(self, data: st.DataObject, fails: bool) -> None:
        keepers = [name for name, model in self.models.items() if model.kept]
        name = data.draw(st.sampled_from(keepers), label="keeper")
        waiting = data.draw(st.sampled_from(self.models[name].kept), label="answered")
        actor = self.refs[name].actor
        assert isinstance(actor, Waiter)
        (reply,) = [
            reply for reply in actor.kept if isinstance(reply.message, Keep) and reply.message.waiting is waiting
        ]

        async def answer() -> None:
            actor.kept.remove(reply)
            settled = reply.fail(ActorError("OTHER", "fails")) if fails else reply.answer("answer")
            assert settled
            assert not reply.answer("again")
            # The wait is over now, and not when its waiter runs: no phantom circle is seen in between.
            assert waiting.outcome is None
            edges: list[Edge] = [(other.starts, other.goals, "") for other in self.waits if other is not waiting]
            for start, goal in (((name, "handler"), handler) for handler in waiting.starts):
                expected = plain_search(edges, (start,), (goal,), lambda node: f"/{node[0]}")
                assert find_circle((self.node(start),), (self.node(goal),)) == expected

        self.driver.call(answer)
        self.over(waiting, "OTHER" if fails else "answer")

    def node(self, node: tuple[str, str]) -> Node:
        ref = self.refs[node[0]]
        return ref if node[1] == "handler" else ref.work

    @precondition(lambda self: self.waits)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        waiting = data.draw(st.sampled_from(self.waits), label="cancelled")

        async def cancel() -> None:
            waiting.scope.cancel()

        self.driver.call(cancel)
        self.over(waiting, "cancelled")

    @precondition(lambda self: self.waits)
    @rule(data=st.data())
    def answer_and_cancel(self, data: st.DataObject) -> None:
        """In one step: the answer was first, so it is not lost, and the asker is not cancelled before it has it."""
        kept = [waiting for waiting in self.waits if any(waiting in model.kept for model in self.models.values())]
        if not kept:
            return
        waiting = data.draw(st.sampled_from(kept), label="answered and cancelled")
        actor = self.refs[waiting.to].actor
        assert isinstance(actor, Waiter)

        async def both() -> None:
            for reply in list(actor.kept):
                if isinstance(reply.message, Keep) and reply.message.waiting is waiting:
                    actor.kept.remove(reply)
                    reply.answer("in time")
            waiting.scope.cancel()

        self.driver.call(both)
        self.over(waiting, "in time")

    @precondition(lambda self: self.models)
    @rule(data=st.data())
    def stop_one(self, data: st.DataObject) -> None:
        self.stop(data.draw(st.sampled_from(list(self.models)), label="stopped"))

    def stop(self, name: str) -> None:
        self.driver.call(self.refs[name].stop)
        self.ends(name, "stopped")

    @precondition(lambda self: any(not model.resting for model in self.models.values()))
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        name = data.draw(
            st.sampled_from([name for name, model in self.models.items() if not model.resting]), label="failed"
        )

        async def fail() -> None:
            self.refs[name].actor.fail(ValueError("on purpose"))

        self.driver.call(fail)
        self.ends(name, "failed")

    @rule()
    def rest(self) -> None:
        self.driver.advance(1.5)
        for model in list(self.models.values()):
            if model.resting:
                model.resting = False
                self.handles_mail(model)

    # ---------------------------------------------------------------- what always holds

    @invariant()
    def looks_the_same(self) -> None:
        self.driver.settle()
        snapshot = self.tree.snapshot()
        states = {child.path: (child.state, child.mailbox) for child in snapshot.root.children}
        assert states == {
            f"/{name}": ("restarting" if model.resting else "running", len(model.mail) + len(model.untold))
            for name, model in self.models.items()
        }
        seen = Counter((wait.from_, wait.to, wait.message) for wait in snapshot.waits)
        kinds = {"ask": "Keep", "send": "send", "join": "join"}
        assert seen == Counter(
            (() if waiting.who is None else (f"/{waiting.who}",), f"/{waiting.to}", kinds[waiting.kind])
            for waiting in self.waits
        )
        for waiting in self.waits:
            assert waiting.outcome is None
        for name, model in self.models.items():
            actor = self.refs[name].actor
            if model.resting:  # it is still the one that failed
                continue
            assert isinstance(actor, Waiter)
            kept = [(reply.withdrawn, reply.message) for reply in actor.kept]
            assert [said.waiting for gone, said in kept if isinstance(said, Keep) and not gone] == model.kept
            assert sum(gone for gone, _ in kept) == len(model.untold)


_play = machine(Actors, steps=40)


def run(examples: int, seed: int) -> Outcome:
    """So many runs of the live actors, and twenty times as many graphs."""
    log = logging.getLogger("greenroom.tree")
    log.disabled = True  # the actors fail on purpose
    try:
        played, failures = _play(examples, seed)
    finally:
        log.disabled = False
    return Outcome(played, [*failures, *search_graphs(examples, seed)])
