"""Expiry: one heap of deadlines and one task for a whole runtime.

It serves things that no task sleeps for (a parked form), so an expiry costs a heap entry and no cancel scope. Deadlines
on work that does run are trio's cancel scopes.
"""

from __future__ import annotations

import heapq
from math import inf, isnan
from typing import TYPE_CHECKING, Protocol, final

import trio
from trio.lowlevel import enable_ki_protection

from greenroom.protocol.errors import ActorError
from greenroom.runtime.context import belong_to
from greenroom.runtime.lineage import Lineage
from greenroom.runtime.messages import Request

if TYPE_CHECKING:
    from greenroom.runtime.ref import Ref

__all__ = ["Deadlines", "Due", "Expiring"]


class Expiring(Protocol):
    """Something that can be due. `armed` is 0, or the number under which `Deadlines.arm` last entered it."""

    armed: int


class Due(Request[None], frozen=True):
    """Asked of the keeper of something that is due, over the control lane."""

    what: Expiring


@final
class Deadlines:
    """Deadlines in order (due, armed), each asked of its keeper and waited for before the next one is taken.

    An entry is void once its thing was disarmed or armed again. Void entries are swept when they outnumber the live
    ones, which is constant time each on average and bounds the memory. An actor that ends disarms what it keeps.
    """

    __slots__ = ("_count", "_heap", "_scope", "_void")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Ref, Expiring]] = []
        self._scope: trio.CancelScope | None = None
        self._count = 0
        self._void = 0

    def __len__(self) -> int:
        return len(self._heap) - self._void

    @property
    def next_due(self) -> float | None:
        """The earliest live deadline, in trio's time."""
        while self._heap and self._heap[0][3].armed != self._heap[0][1]:
            heapq.heappop(self._heap)
            self._void -= 1
        return self._heap[0][0] if self._heap else None

    @enable_ki_protection
    def arm(self, due: float, keeper: Ref, what: Expiring) -> None:
        """Let `keeper` be asked `Due(what)` at trio time `due`. A thing has one deadline: arming it again moves it.

        Raises ValueError for NaN, which has no place in an order, and OverflowError for what is beyond a float; then
        nothing has changed.
        """
        if isnan(due):
            raise ValueError("A deadline is a time, and not NaN")
        if what.armed:
            self.disarm(what)
        self._count += 1
        what.armed = self._count
        heapq.heappush(self._heap, (due, self._count, keeper, what))
        if self._scope is not None and due < self._scope.deadline:
            self._scope.deadline = due

    @enable_ki_protection
    def disarm(self, what: Expiring) -> None:
        """Let nothing come of its deadline. Does nothing without one."""
        if not what.armed:
            return
        what.armed = 0
        self._void += 1
        if self._void > 64 and self._void * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[3].armed == entry[1]]
            heapq.heapify(self._heap)
            self._void = 0

    async def run(self) -> None:
        """Serve expiries until cancelled. What a keeper raises is its own failure, and the others are served."""
        belong_to(None, Lineage())
        while True:
            due = self.next_due
            if due is None or due > trio.current_time():
                with trio.CancelScope(deadline=inf if due is None else due) as self._scope:
                    await trio.sleep_forever()
                self._scope = None
                continue
            _, _, keeper, what = heapq.heappop(self._heap)
            what.armed = 0
            try:
                await keeper.ask(Due(what), urgent=True)
            except Exception as error:
                # A stopped keeper has ended what it kept. Any other that cannot see to it would leave somebody waiting.
                if not (isinstance(error, ActorError) and error.code == "STOPPED"):
                    keeper.life.fail(error)
