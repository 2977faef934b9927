"""The wait-for graph: who waits for whom, and the refusal of a wait that would close a circle.

A `Node` is one party that can wait or be waited for; a `Wait` is one blocking wait, linked from the nodes at both of
its ends. There is no table of all waits, so waits that have nothing to do with each other cost each other nothing.

A wait may start at two nodes (the task that runs, and the name it asks as) and lead to two (an operated terminal is its
operator, whose mailbox and whose work both have to go on). It closes a circle if one of its starts can be reached from
one of its goals along the waits there are.

Nothing here waits, so a check and the insertion that it guards are one step for every other task.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Generator, Iterable
from typing import TYPE_CHECKING, ClassVar

from greenroom.runtime.patience import OPEN, begun, ended, moved

if TYPE_CHECKING:
    from greenroom.runtime.ref import Ref

__all__ = ["Node", "Party", "Wait", "WaitGraph", "find_circle"]

TURN = 32
"""How many waits one end of a search looks at before it is the other end's turn."""


class Node:
    """One party of the graph. Both sides of its adjacency live here and are absent until first used."""

    __slots__ = ("asked", "name", "waiting")

    person: ClassVar[bool] = False
    """Whoever waits for it waits for somebody outside, whose time is nobody's here to limit."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: dict[Wait, None] | None = None
        """What this party waits for, oldest first."""
        self.asked: dict[Wait, None] | None = None
        """The waits that lead here, also those that start outside the graph."""

    @property
    def label(self) -> str:
        """How a path names this party."""
        return self.name

    @property
    def place(self) -> Ref | None:
        """The place in the tree that this is a node of. None: it is only a name."""
        return None

    @property
    def above(self) -> Node | None:
        """The work that it is part of: that of the actor above it in the tree."""
        return None

    def beneath(self) -> Iterable[Node]:
        """Its parts: the parties that have to end for it to end, without a wait of its own."""
        return ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class Party(Node):
    """A node that is only a name: a person, a program outside, anybody in whose name something is asked."""

    __slots__ = ("held",)

    person = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.held = False
        """Somebody keeps it, such as the terminal of that name."""


class Wait:
    """One blocking wait, from the moment it begins until its answer is given or it is withdrawn.

    Several waits for one target are several entries, so nothing has to be counted, and ending one takes constant time.
    """

    __slots__ = ("label", "other", "second", "target", "waiter")

    def __init__(
        self,
        waiter: Node | None,
        target: Node,
        second: Node | None = None,
        other: Node | None = None,
        label: str | None = None,
    ) -> None:
        self.waiter = waiter
        """Who waits. None: somebody outside the graph, who cannot be part of a circle."""
        self.target = target
        self.second = second
        """Who else waits by it: the name that is asked as, where the running task is another party."""
        self.other = other
        """What else must go on for the wait to end: the work of the operator whose mailbox is `target`."""
        self.label = label
        """What a path calls the target, where that is not the target's own label."""
        self._link()

    def _link(self) -> None:
        target, waiter = self.target, self.waiter
        if target.asked is None:
            target.asked = {}
        target.asked[self] = None
        if waiter is not None:
            if waiter.waiting is None:
                waiter.waiting = {}
            waiter.waiting[self] = None
        if self.second is not None or self.other is not None:
            self._link_more()
        if OPEN:
            begun(self)

    def _link_more(self) -> None:
        if self.second is self.waiter:
            self.second = None
        if self.other is self.target:
            self.other = None
        if self.second is not None:
            if self.second.waiting is None:
                self.second.waiting = {}
            self.second.waiting[self] = None
        if self.other is not None:
            if self.other.asked is None:
                self.other.asked = {}
            self.other.asked[self] = None

    def release(self) -> None:
        """Take the wait out of the graph. Called once, by whoever ends it; the waiter need not have run again."""
        # The last wait of a node takes the dict with it: cheaper than taking it out, and an idle node is small.
        target = self.target
        asked = target.asked
        if asked is not None and len(asked) > 1:
            del asked[self]
        else:
            target.asked = None
        waiter = self.waiter
        if waiter is not None:
            waiting = waiter.waiting
            if waiting is not None and len(waiting) > 1:
                del waiting[self]
            else:
                waiter.waiting = None
        if self.second is not None or self.other is not None:
            self._release_more()
        if OPEN:
            ended(self)

    def _release_more(self) -> None:
        if self.second is not None and self.second.waiting is not None:
            del self.second.waiting[self]
            self.second.waiting = self.second.waiting or None
        if self.other is not None and self.other.asked is not None:
            del self.other.asked[self]
            self.other.asked = self.other.asked or None

    def move(self, start: Node, to: Node) -> None:
        """Let it start at `to` instead of `start`. The caller has checked that this closes no circle."""
        if start.waiting is not None:
            start.waiting.pop(self, None)
            start.waiting = start.waiting or None
        if self.waiter is start:
            self.waiter = to
        if self.second is start:
            self.second = to
        if self.waiter is self.second:
            self.second = None
        if to.waiting is None:
            to.waiting = {}
        to.waiting[self] = None
        if OPEN:
            moved(self, start)

    def starts(self) -> tuple[Node, ...]:
        """The nodes that wait by it, none if the waiter is outside the graph."""
        if self.waiter is None:
            return ()
        return (self.waiter,) if self.second is None else (self.waiter, self.second)

    def goals(self) -> tuple[Node, ...]:
        """The nodes that must go on for it to end."""
        return (self.target,) if self.other is None else (self.target, self.other)

    @property
    def kind(self) -> str:
        """What is waited with, in a word: the type of a request, `join`, or `send` for standing in line."""
        return "send"


class WaitGraph:
    """The parties that are only names, by name."""

    __slots__ = ("_parties", "_sweep_at")

    def __init__(self) -> None:
        self._parties: dict[str, Party] = {}
        self._sweep_at = 64

    def party(self, name: str) -> Party:
        """The node of that name. It stays the same one while it is `held` or a wait mentions it.

        A wait that is to mention it begins in the same step, before the next call: one that nobody holds and no wait
        mentions may be forgotten then.
        """
        found = self._parties.get(name)
        if found is None:
            if len(self._parties) >= self._sweep_at:  # now and then, so that a name costs constant time on average
                self._parties = {party.name: party for party in self.parties()}
                self._sweep_at = 64 + 2 * len(self._parties)
            found = self._parties[name] = Party(name)
        return found

    def parties(self) -> list[Party]:
        """Every name that is held or that a wait mentions, in no promised order."""
        return [party for party in self._parties.values() if party.held or party.waiting or party.asked]


def find_circle(
    starts: tuple[Node, ...],
    goals: tuple[Node, ...],
    names: tuple[str, ...] = (),
    label: str | None = None,
) -> list[str] | None:
    """The path `[start, goal, ..., start]` that a wait of `starts` for `goals` would close, or None.

    It is the shortest one, and of those the first that a breadth-first search from the goals meets in the order of the
    waits. A party that shows twice in a row (its mailbox, then its work) is one entry.

    `names` are the words by which the path calls the starts (default: their labels), `label` the word for the goals.

    Two searches take turns: what the goals wait for, and who waits for the starts. Whichever ends first decides, so the
    cost is about twice the cheaper end's waits.
    """
    came: dict[Node, Node | None] = dict.fromkeys(goals)
    found = next((goal for goal in goals if goal in starts), None)
    if found is None:
        if not any(start.asked for start in starts) or not any(goal.waiting for goal in goals):
            return None
        found = _search(starts, came)
        if found is None:
            return None
    start = (names or tuple(node.label for node in starts))[starts.index(found)]
    return _path(start, found, came, label)


def _search(starts: tuple[Node, ...], came: dict[Node, Node | None]) -> Node | None:
    """The start that is met first, with `came` leading back from it; None if there is none to be met."""
    ahead, back = _ahead(starts, came), _back(starts, came)
    for _ in ahead:
        for reachable in back:
            if reachable is False:
                return None
            break  # it is the other's turn, or it is known by now that there is a circle
    return next((start for start in starts if start in came), None)


def _ahead(starts: tuple[Node, ...], came: dict[Node, Node | None]) -> Generator[None]:
    """Walk along the waits, from the nodes in `came`, until a start is met; notes there where each node was met from.

    Steps aside every TURN waits.
    """
    line, turn = deque(came), TURN
    while line:
        node = line.popleft()
        for wait in node.waiting or ():
            turn -= 1
            if not turn:
                turn = TURN
                yield
            for met in wait.goals():
                if met not in came:
                    came[met] = node
                    if met in starts:
                        return
                    if met.waiting:
                        line.append(met)


def _back(starts: tuple[Node, ...], came: Container[Node]) -> Generator[bool | None]:
    """Walk against the waits, from the starts, until something is met that the goals wait for.

    Gives None every TURN waits, at last the result.
    """
    seen = set(starts)
    line, turn = deque(starts), TURN
    while line:
        for wait in line.popleft().asked or ():
            turn -= 1
            if not turn:
                turn = TURN
                yield None
            for met in wait.starts():
                if met not in seen:
                    if met in came:
                        yield True
                        return
                    seen.add(met)
                    if met.asked:
                        line.append(met)
    yield False


def _path(start: str, found: Node, came: dict[Node, Node | None], label: str | None) -> list[str]:
    """Backwards from the start that was met to the goal that it was met from, and then turned."""
    path = [start]
    node = came[found]
    if node is None:  # the start is itself a goal
        return [start, label or found.label]
    while node is not None:
        before = came[node]
        name = (label or node.label) if before is None else _called(before, node)
        if name != path[-1]:
            path.append(name)
        node = before
    if path[-1] != start or len(path) == 1:
        path.append(start)
    return path[::-1]


def _called(waiter: Node, target: Node) -> str:
    """What the first wait between them calls the target."""
    for wait in waiter.waiting or ():
        if wait.target is target or wait.other is target:
            return wait.label or target.label
    raise LookupError(f"{waiter} does not wait for {target}")
