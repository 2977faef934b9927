"""The wait-for graph: which waits are refused, by which path, and that no other is."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.protocol.errors import ActorDeadlock, ActorError, Deadlock
from greenroom.runtime.context import CURRENT
from greenroom.runtime.ref import Ref
from greenroom.runtime.tree import Tree, run_tree
from greenroom.runtime.waits import Node, Party, Wait, WaitGraph, find_circle
from tests.kernel.cast import Do, Echo, Keep, Note, Player, Run, nothing_is_left, quiet


class Stage:
    """Actors by name that wait for each other, each from its handler or from its work."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.players: dict[str, Player] = {}
        self.refused: list[list[str]] = []
        self.ended: list[str] = []

    def __getitem__(self, name: str) -> Ref:
        if name not in self.players:
            self.players[name] = Player()
            self.tree.spawn(self.players[name], name)
        return self.players[name].ref

    async def handler(self, name: str, wait: Callable[[], Awaitable[Any]]) -> None:
        """Let the actor wait in its handler."""
        self[name].tell(Run(lambda _: self._wait(f"{name} handler", wait)))
        await quiet()

    async def work(self, name: str, wait: Callable[[], Awaitable[Any]]) -> None:
        """Let the actor wait in its work."""
        actor = self[name].actor
        await quiet()
        actor.start_soon(self._wait, f"{name} work", wait)
        await quiet()

    async def _wait(self, who: str, wait: Callable[[], Awaitable[Any]]) -> None:
        try:
            await wait()
        except ActorDeadlock as error:
            self.refused.append(_path(error))
        self.ended.append(who)

    def asks(self, name: str) -> Callable[[], Awaitable[Any]]:
        """Asks what is never answered unless a test does."""
        return lambda: self[name].ask(Keep())


def _path(error: ActorDeadlock) -> list[str]:
    """Of a refusal that says what it has to."""
    assert error.code == "DEADLOCK"
    assert isinstance(error, Deadlock)
    assert error.path == error.context["path"]
    assert " -> ".join(error.path) in error.message
    return error.path


async def test_the_ask_that_closes_a_circle_is_refused_at_once_and_the_others_go_on(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        await stage.handler("a", stage.asks("b"))
        await stage.handler("b", stage.asks("c"))
        # b is in its handler, so what it is asked stays queued; c is asked by b and asks a, which waits for b
        await stage.handler("c", stage.asks("a"))
        assert stage.refused == [["/c", "/a", "/b", "/c"]]
        assert stage.ended == ["c handler"]
        assert trio.current_time() == 0.0
        assert stage["a"].mailbox.depth == 0, "nothing was sent"
        stage.players["c"].kept[0].answer("c")
        await quiet()
        stage.players["b"].kept[0].answer("b")
        await quiet()
        assert stage.ended == ["c handler", "b handler", "a handler"]
        assert nothing_is_left(*(player.ref for player in stage.players.values()))


async def test_an_actor_that_asks_itself_is_refused() -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        await stage.handler("a", stage.asks("a"))
        assert stage.refused == [["/a", "/a"]]


async def test_work_may_ask_its_own_actor() -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        await stage.work("a", lambda: stage["a"].ask(Echo(1)))
        assert (stage.refused, stage.ended) == ([], ["a work"])


async def test_work_that_its_own_handler_waits_for_may_not_ask_it() -> None:
    """Through another: the handler waits for b, which waits for the end of c, which waits for the handler."""
    async with run_tree() as tree:
        stage = Stage(tree)
        await stage.handler("a", stage.asks("b"))
        await stage.handler("b", stage["c"].join)
        await stage.work("c", stage.asks("a"))
        assert stage.refused == [["/c", "/a", "/b", "/c"]]


async def test_an_actor_whose_handler_is_free_is_not_refused_because_its_work_waits() -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        await stage.work("a", stage.asks("b"))
        await stage.handler("b", lambda: stage["a"].ask(Echo(1)))
        assert (stage.refused, stage.ended) == ([], ["b handler"])
        stage.players["b"].kept[0].answer("")


async def test_nobody_is_refused_for_waits_that_share_an_end_but_no_circle() -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        for name in "xyz":
            await stage.handler(name, stage.asks("b"))
        await stage.handler("a", stage.asks("b"))
        await stage.work("b", stage.asks("a"))
        await stage.work("b", stage.asks("c"))
        await stage.handler("c", stage.asks("d"))
        await stage.handler("x2", stage.asks("c"))
        assert stage.refused == []


async def test_standing_in_line_is_a_wait(mock_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        gate = trio.Event()
        full = tree.spawn(Player(lambda _: gate.wait()), "full", capacity=1)
        full.tell(Note("in it"))
        await stage.handler("a", lambda: full.send(Note("a's")))
        await stage.handler("b", stage.asks("a"))
        assert [wait.message for wait in tree.snapshot().waits] == ["send", "Keep"]
        CURRENT.set(full)
        for way in (stage.asks("b"), stage["b"].join):
            with pytest.raises(ActorDeadlock) as error:
                await way()
            assert error.value.path == ["/full", "/b", "/a", "/full"]
        CURRENT.set(None)
        gate.set()
        await quiet()
        assert [wait.message for wait in tree.snapshot().waits] == ["Keep"]


async def test_a_send_that_would_have_to_stand_in_line_is_refused_if_that_closed_a_circle() -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        gate = trio.Event()
        full = tree.spawn(Player(lambda _: gate.wait()), "full", capacity=1)
        full.tell(Note("in it"))
        await stage.handler("b", stage.asks("a"))
        waiting = Wait(full, stage["b"])
        await stage.handler("c", lambda: full.send(Note("may wait")))
        await stage.work("a", lambda: full.send(Note("may wait")))
        assert stage.refused == []
        CURRENT.set(stage["a"])
        with pytest.raises(ActorDeadlock) as error:
            await full.send(Note("may not"))
        assert error.value.path == ["/a", "/full", "/b", "/a"]
        waiting.release()
        CURRENT.set(None)
        gate.set()
        await quiet()


async def test_a_send_for_which_there_is_room_is_no_wait() -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        await stage.handler("a", stage.asks("b"))
        await stage.handler("b", lambda: stage["a"].send(Note("")))
        assert (stage.refused, stage.ended) == ([], ["b handler"])


async def test_a_join_waits_for_the_work_and_for_the_message_in_hand() -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        await stage.work("worker", stage.asks("a"))
        await stage.handler("handler", stage.asks("a"))
        for name in ("worker", "handler"):
            await stage.handler("a", stage[name].join)
        await stage.handler("a", stage["a"].join)
        assert stage.refused == [["/a", "/worker", "/a"], ["/a", "/handler", "/a"], ["/a", "/a"]]


async def test_waiting_for_an_end_without_being_a_party_is_never_refused() -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        await stage.work("b", stage.asks("a"))
        await stage.handler("a", stage["b"].wait_ended)
        assert stage.refused == []


async def test_the_wait_is_over_when_the_answer_is_given_and_not_when_its_waiter_runs() -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        await stage.handler("a", stage.asks("b"))
        keeper = stage.players["b"]
        CURRENT.set(stage["b"])
        assert find_circle((stage["b"],), (stage["a"],)) == ["/b", "/a", "/b"]
        keeper.kept[0].answer("given")  # a has not run since
        assert find_circle((stage["b"],), (stage["a"],)) is None
        assert await stage["a"].ask(Echo(1)) == 1
        assert stage.refused == []


@pytest.mark.parametrize("how", ["answer", "fail", "withdraw", "stop"])
async def test_however_a_wait_ends_it_is_gone(how: str) -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        await quiet()
        asker = tree.spawn(Player(), "asker")
        asker.tell(Run(lambda _: _ignoring_errors(stage.asks("b"))))
        await quiet()
        assert tree.snapshot().waits != ()
        (reply,) = stage.players["b"].kept
        if how == "answer":
            reply.answer("")
        elif how == "fail":
            reply.fail(ValueError())
        elif how == "withdraw":
            await asker.stop()
        else:
            await stage["b"].stop()
        assert tree.snapshot().waits == ()
        assert nothing_is_left(asker, stage.players["b"].ref)


async def _ignoring_errors(wait: Callable[[], Awaitable[Any]]) -> None:
    with contextlib.suppress(ValueError, ActorError):
        await wait()


async def test_who_is_outside_of_the_tree_closes_no_circle() -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        await stage.handler("a", stage.asks("b"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage["a"].ask, Keep())
            nursery.start_soon(stage["b"].ask, Keep())
            await quiet()
            assert stage.refused == []
            nursery.cancel_scope.cancel()


async def test_an_operator_is_called_by_its_terminals_name() -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        stage["a"].alias = "desk"
        await stage.handler("a", stage.asks("b"))
        await stage.handler("b", stage.asks("a"))
        assert stage.refused == [["/b", "desk", "/b"]]
        assert stage["a"].work.label == "desk"


async def test_a_long_circle_is_shortened_in_the_message_and_whole_in_the_context() -> None:
    async with run_tree() as tree:
        stage = Stage(tree)
        names = [f"n{number}" for number in range(20)]
        waits = [Wait(stage[one], stage[next_]) for one, next_ in pairwise(names)]
        CURRENT.set(stage["n19"])
        with pytest.raises(ActorDeadlock, match=r"/n19 -> /n0 .*11 more.* -> /n18 -> /n19") as error:
            await stage["n0"].ask(Echo(1))
        CURRENT.set(None)
        assert error.value.path == ["/n19", *(f"/{name}" for name in names)]
        for wait in waits:
            wait.release()


async def test_a_handler_that_was_refused_may_go_on() -> None:
    async with run_tree() as tree:
        stage = Stage(tree)

        async def tries(_: Player) -> str:
            with pytest.raises(ActorDeadlock):
                await stage["b"].ask(Keep())
            return "went on"

        stage["a"]
        await stage.handler("b", lambda: stage["a"].ask(Do(tries)))
        assert stage.ended == ["b handler"]


# -------------------------------------------------------------------- the graph by itself


def nodes(*names: str) -> list[Node]:
    return [Party(name) for name in names]


def test_the_path_is_the_first_of_the_shortest_breadth_first_in_the_order_of_the_waits() -> None:
    start, goal, far, left, right = nodes("start", "goal", "far", "left", "right")
    for one, other in ((goal, far), (far, start), (goal, right), (goal, left), (left, start), (right, start)):
        Wait(one, other)
    assert find_circle((start,), (goal,)) == ["start", "goal", "far", "start"]
    short = Wait(goal, start)
    assert find_circle((start,), (goal,)) == ["start", "goal", "start"]
    short.release()
    assert find_circle((left,), (far,)) is None


def test_the_order_of_waits_decides_and_not_that_of_names() -> None:
    start, goal, a, b = nodes("start", "goal", "a", "b")
    first = Wait(goal, b)
    Wait(goal, a)
    Wait(a, start)
    Wait(b, start)
    assert find_circle((start,), (goal,)) == ["start", "goal", "b", "start"]
    first.release()
    assert find_circle((start,), (goal,)) == ["start", "goal", "a", "start"]


def test_several_waits_between_two_are_several() -> None:
    a, b = nodes("a", "b")
    waits = [Wait(a, b) for _ in range(3)]
    waits[1].release()
    waits[0].release()
    assert find_circle((b,), (a,)) == ["b", "a", "b"]
    waits[2].release()
    assert find_circle((b,), (a,)) is None
    assert (a.waiting, b.asked) == (None, None)


def test_reaching_any_of_two_starts_is_a_circle_named_by_that_start() -> None:
    me, name, goal = nodes("me", "name", "goal")
    wait = Wait(goal, name)
    assert find_circle((me, name), (goal,)) == ["name", "goal", "name"]
    assert find_circle((me, name), (goal,), ("I", "called")) == ["called", "goal", "called"]
    wait.release()
    Wait(goal, me)
    assert find_circle((me, name), (goal,), ("I", "called")) == ["I", "goal", "I"]


def test_a_wait_may_start_at_two_nodes_and_lead_to_two() -> None:
    me, name, handler, work, other = nodes("me", "name", "handler", "work", "other")
    wait = Wait(me, handler, second=name, other=work, label="desk")
    for start in (me, name):
        for goal in (handler, work):
            assert find_circle((goal,), (start,)) == [goal.name, start.name, goal.name]
    assert find_circle((other,), (me,)) is None
    assert (wait.starts(), wait.goals()) == ((me, name), (handler, work))
    wait.release()
    assert [(node.waiting, node.asked) for node in (me, name, handler, work)] == [(None, None)] * 4


def test_a_party_that_shows_twice_in_a_row_is_one_entry() -> None:
    """A terminal and its operator: its mailbox and its work are one name."""
    start, handler, work = nodes("start", "desk", "desk")
    Wait(handler, work)
    Wait(work, start)
    assert find_circle((start,), (handler,)) == ["start", "desk", "start"]
    assert find_circle((start,), (handler, work), label="desk") == ["start", "desk", "start"]
    assert find_circle((work,), (handler,)) == ["desk", "desk"]
    beyond, own = nodes("beyond", "desk")
    Wait(beyond, handler)
    assert find_circle((work,), (beyond,)) == ["desk", "beyond", "desk"]
    Wait(own, beyond)
    assert find_circle((work,), (own,)) == ["desk", "beyond", "desk"]


def test_the_label_of_a_wait_is_what_a_path_calls_its_target() -> None:
    start, goal, operator = nodes("start", "goal", "operator")
    Wait(goal, operator, label="desk")
    Wait(operator, start)
    assert find_circle((start,), (goal,)) == ["start", "goal", "desk", "start"]
    assert find_circle((start,), (goal,), label="counter") == ["start", "counter", "desk", "start"]


def test_a_wait_for_oneself_by_another_name() -> None:
    a, b = nodes("a", "b")
    assert find_circle((a,), (a,)) == ["a", "a"]
    assert find_circle((a, b), (b,), ("me", "called")) == ["called", "b"]


def test_a_start_or_goal_given_twice_is_linked_once() -> None:
    a, b = nodes("a", "b")
    wait = Wait(a, b, second=a, other=b)
    assert (wait.second, wait.other) == (None, None)
    wait.release()
    assert (a.waiting, b.asked) == (None, None)


def test_a_wait_moves_to_who_answers_for_its_start_from_now_on() -> None:
    name, me, operator, goal = nodes("name", "me", "operator", "goal")
    first, second, both = Wait(name, goal), Wait(me, goal, second=name), Wait(operator, goal, second=name)
    for wait in (first, second, both):
        wait.move(name, operator)
    assert name.waiting is None
    assert [wait.starts() for wait in (first, second, both)] == [(operator,), (me, operator), (operator,)]
    assert find_circle((goal,), (operator,)) == ["goal", "operator", "goal"]
    for wait in (both, first, second):
        wait.release()
    assert [(node.waiting, node.asked) for node in (name, me, operator, goal)] == [(None, None)] * 4


def test_a_name_is_the_same_party_while_it_is_held_or_waits() -> None:
    graph = WaitGraph()
    held, waits, asked = (graph.party(name) for name in ("held", "waits", "asked"))
    held.held = True
    wait = Wait(waits, asked)
    for number in range(1000):
        graph.party(f"passing {number}")
    assert [graph.party(name) for name in ("held", "waits", "asked")] == [held, waits, asked]
    assert set(graph.parties()) == {held, waits, asked}
    wait.release()
    assert graph.parties() == [held]
    for number in range(1000):
        graph.party(f"passing {number}")
    assert graph.party("waits") is not waits
    assert len(graph._parties) < 200  # pyright: ignore[reportPrivateUsage]  # names that nobody uses do not pile up


def test_the_cost_is_that_of_the_cheaper_end() -> None:
    """A long chain is no concern of one for whom nobody waits, nor of one for whom only a few do."""
    looks = 0
    slot: Any = vars(Node)["waiting"]

    def look(node: Node) -> Any:
        nonlocal looks
        looks += 1
        return slot.__get__(node)

    seen: Any = type("Seen", (Party,), {"waiting": property(look, slot.__set__)})
    chain = [seen(str(number)) for number in range(5000)]
    for one, other in pairwise(chain):
        Wait(one, other)
    asker, waits_for_it = nodes("asker", "waits for it")
    for most in (2, 100):
        looks = 0
        assert find_circle((asker,), (chain[0],)) is None
        assert looks <= most
        Wait(waits_for_it, asker)
    looks = 0
    free = Party("free")
    assert find_circle((chain[-1],), (free,)) is None
    Wait(free, Party("another"))
    assert find_circle((chain[-1],), (free,)) is None
    assert looks == 0
