"""Patience: deadlines on work whose clock stands still while a person is being asked.

::

    with patient_scope(60.0) as scope:
        draft = await write()
        verdict = await runtime.ask("reviewer", form(draft))   # may take days, and costs none of the sixty seconds
        await publish(draft, verdict)
    if scope.cancelled_caught:
        ...                                                     # the work itself took longer

A scope's clock stands still exactly while something beneath it waits, over whatever further waits, for a person: for a
terminal that nobody operates. Beneath it is what was begun in its block: by its task, by tasks that were started there,
and actors that were spawned there, with all beneath them in the tree. What those wait for counts as far as it waits
itself: an actor that is asked, while its handler waits; an actor that is joined, with all beneath it; an operated
terminal, while its operator waits for a person in turn. While the operator works, the clock runs.

Two scopes side by side in one actor know nothing of each other's asks; of nested ones both stand still. Deadlines
without patience run on, and so does the ask's own: what it ends with is raised, and the clock goes on from there.

The kernel calls `begun`, `moved` and `ended` for waits, `spawned` and `left` for actors, while there are open scopes.
With none, nothing is followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from contextvars import Token
from itertools import chain
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Final, final

import trio
from trio.lowlevel import enable_ki_protection

from greenroom.runtime.context import AROUND, CURRENT

if TYPE_CHECKING:
    from greenroom.runtime.ref import Ref
    from greenroom.runtime.waits import Node, Wait

__all__ = ["OPEN", "PatientScope", "begun", "ended", "left", "moved", "patient_scope", "spawned"]

OPEN: Final[set[PatientScope]] = set()
"""The scopes whose block is being run, of all runtimes in this process: the graphs of two never meet."""

_WITHIN: Final[dict[Wait | Ref, tuple[PatientScope, ...]]] = {}
"""The open scopes that each wait was begun in, and each actor spawned in. What is in none has no entry."""


def patient_scope(seconds: float) -> AbstractContextManager[trio.CancelScope]:
    """`trio.move_on_after(seconds)` for work that may ask people: its clock stands still while one is being asked.

    Gives the cancel scope. Its `deadline` is patience's own to move (infinite while the clock stands still);
    `cancel()`, `cancel_called` and `cancelled_caught` are used as ever. A deadline that is past by the time a person
    is asked cancels at once, and what is asked is withdrawn in the same step.

    Since it is called as trio's own is, work whose patience is a setting takes one of two::

        within = patient_scope if task.patience else trio.move_on_after
        with within(task.timeout / 1000) as scope: ...

    An actor's deadline belongs into its work, around all that it starts for it: `execute(..., patience=True)` of a run
    opens the scope in the run's task, before the run's tasks, its children, are spawned. Whoever awaits a run counts as
    waiting for what is beneath it if that wait leads to the run's work (`Ref.join`), not to its handler.

    Raises ValueError for seconds below zero and for NaN.
    """
    return PatientScope(seconds)


@final
class PatientScope:
    """One use of `patient_scope`."""

    __slots__ = ("_deadline", "_expired", "_token", "actors", "node", "open", "rest", "waits")

    def __init__(self, seconds: float) -> None:
        self._deadline = trio.move_on_after(seconds)
        self._expired = False
        self._token: Token[tuple[PatientScope, ...]]
        self.node: Node | None = None
        """Whose code opened it. None: outside the tree."""
        self.open = False
        self.rest: float | None = None
        """How many seconds are left once the clock goes on. None: it runs."""
        self.waits: dict[Wait, None] = {}
        """The waits that were begun in it and go on."""
        self.actors: dict[Ref, None] = {}
        """The actors that were spawned in it and live."""

    @enable_ki_protection
    def __enter__(self) -> trio.CancelScope:
        scope = self._deadline.__enter__()
        self.node = CURRENT.get()
        self._token = AROUND.set((*_around(), self))
        self.open = True
        OPEN.add(self)
        return scope

    @enable_ki_protection
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self.open = False
        OPEN.discard(self)
        AROUND.reset(self._token)
        goes_on: list[Wait | Ref] = [*self.waits, *self.actors]
        for thing in goes_on:
            around = tuple(scope for scope in _WITHIN.pop(thing) if scope is not self)
            if around:
                _WITHIN[thing] = around
        self.waits.clear()
        self.actors.clear()
        return self._deadline.__exit__(kind, error, traceback)

    @property
    def remaining(self) -> float:
        """How many seconds of its work are left."""
        return max(0.0, self._deadline.deadline - trio.current_time()) if self.rest is None else self.rest

    def expire(self) -> bool:
        """Cancel the work if its deadline is past, which trio may not have noticed yet; whether that was news."""
        if self._expired or self.rest is not None or self._deadline.deadline > trio.current_time():
            return False
        self._expired = True
        self._deadline.cancel()
        return True

    def stand_still(self) -> None:
        """Let the clock stand still, if it runs."""
        if self.rest is None and not self._deadline.cancel_called:
            self.rest = self._deadline.deadline - trio.current_time()
            self._deadline.deadline = inf

    def go_on(self) -> None:
        """Let the clock go on, if it stands still and nothing beneath waits for a person any more."""
        if self.rest is not None and not _lead_to_a_person(self._beneath()):
            self._deadline.deadline = trio.current_time() + self.rest
            self.rest = None

    def _beneath(self) -> Iterator[Node]:
        for wait in self.waits:
            yield from wait.goals()
        for actor in self.actors:
            yield from actor.nodes()


# -------------------------------------------------------------------- what the kernel tells


def begun(wait: Wait) -> None:
    """A wait is in the graph, and the running code has begun it."""
    around = _around()
    if around:
        _WITHIN[wait] = around
        for scope in around:
            scope.waits[wait] = None
    _stop_clocks(wait)


def moved(wait: Wait, start: Node) -> None:
    """A wait does not start at `start` any more, but elsewhere."""
    _stop_clocks(wait)
    _start_clocks((), (start,))


def ended(wait: Wait) -> None:
    """A wait is out of the graph. Runs in whoever ends it, trio's abort functions included: it cancels nothing."""
    around = _WITHIN.pop(wait, ())
    for scope in around:
        scope.waits.pop(wait, None)
    _start_clocks(around, wait.starts())


def spawned(actor: Ref) -> None:
    """An actor is in the tree, and the running code has spawned it."""
    around = _around()
    if around:
        _WITHIN[actor] = around
        for scope in around:
            scope.actors[actor] = None


def left(actor: Ref) -> None:
    """An actor is out of the tree."""
    around = _WITHIN.pop(actor, ())
    for scope in around:
        scope.actors.pop(actor, None)
    _start_clocks(around, (actor,))


def _around() -> tuple[PatientScope, ...]:
    return tuple(scope for scope in AROUND.get() if scope.open)


def _stop_clocks(wait: Wait) -> None:
    """If the wait leads to a person, let all clocks above it stand still."""
    while _lead_to_a_person(wait.goals()):
        scopes = _above(_WITHIN.get(wait, ()), wait.starts())
        if any(scope.expire() for scope in scopes):
            continue  # what was cancelled may have been on the way from a scope, or to the person
        for scope in scopes:
            scope.stand_still()
        return


def _start_clocks(around: Iterable[PatientScope], starts: Iterable[Node]) -> None:
    """Let the clocks above go on that have no reason any more to stand still."""
    for scope in _above(around, starts):
        scope.go_on()


def _lead_to_a_person(goals: Iterable[Node]) -> bool:
    """Whether a person is among the goals or waited for by one, over any number of waits.

    One goal after another is followed to its end, so that where many wait for people the first tells.
    """
    seen: set[Node] = set()
    ways = [iter(goals)]
    while ways:
        node = next(ways[-1], None)
        if node is None:
            ways.pop()
        elif node.person:
            return True
        elif node not in seen:
            seen.add(node)
            ways.append(chain((goal for wait in node.waiting or () for goal in wait.goals()), node.beneath()))
    return False


def _above(around: Iterable[PatientScope], starts: Iterable[Node]) -> list[PatientScope]:
    """The scopes `around`, and those that the starts are beneath, over any number of waits."""
    scopes = dict.fromkeys(around)
    line = list(starts)
    seen = set(line)
    while line:
        node = line.pop()
        met: list[Node] = []
        if node.place is not None:
            scopes.update(dict.fromkeys(_WITHIN.get(node.place, ())))
        if node.above is not None:
            met.append(node.above)
        for wait in node.asked or ():
            scopes.update(dict.fromkeys(_WITHIN.get(wait, ())))
            met.extend(wait.starts())
        for other in met:
            if other not in seen:
                seen.add(other)
                line.append(other)
    return list(scopes)
