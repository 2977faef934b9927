"""The pipeline of one runtime: its events, its guards, its approvals, and the way of a call through them.

| stage | what may be hooked in | what it may change |
| --- | --- | --- |
| 2 | `recorder.called` | nothing |
| 3 | `Handling.present_call` | how the call is shown |
| 4 | listeners to `tools/pre-execute` | the verdict: `Allow`, `Deny`, `Ask` |
| 5 | listeners to `approval/request`, for `Ask` alone | the verdict |
| 6 | guards | the verdict, to no |
| 7 | listeners to `tools/execute` | what comes back from around the tool |
| 8 | the tool | its value, texts for the next step |
| 9 | listeners to `tools/post-execute` | the outcome: `Accept`, `Block` |
| 10 | | what is no JSON becomes a failure |
| 11 | `Handling.finalize` | the text that the model is shown |
| 12 | listeners to `tools/result` | nothing |
| 13 | `recorder.ended` | nothing |
| 14 | | contexts go to the model's next step |
| 15 | `Handling.present_result` | how the result is shown |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from greenroom.runtime.bus import Bus
from greenroom.runtime.pipeline.approvals import Approvals
from greenroom.runtime.pipeline.guards import Guard, Guards
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.outcomes import Outcome
from greenroom.runtime.pipeline.recorder import Recorder
from greenroom.runtime.pipeline.verdicts import Review, Verdict
from greenroom.runtime.scopes import Scope

__all__ = ["Pipeline"]


@final
class Pipeline:
    """Where policies on tool calls are registered. While there are none, calls take no notice of it.

    Policies listen on the bus; see the table of this module. `decide`, `around`, `review` and `announce` dispatch: they
    are for whoever carries out calls.
    """

    def __init__(self, bus: Bus) -> None:
        self.pre_execute, self.decide = bus.declare(
            "tools/pre-execute", Invocation, mode="waterfall", result=Verdict, scoped=_of_call
        )
        self.execute, self.around = bus.declare(
            "tools/execute", Invocation, mode="waterfall", result=Outcome, scoped=_of_call
        )
        self.post_execute, self.review = bus.declare(
            "tools/post-execute", Settled, mode="waterfall", result=Review, scoped=_of_settled
        )
        self.result, self.announce = bus.declare("tools/result", Settled, scoped=_of_settled)
        self.approvals = Approvals(bus)
        self.guards = Guards()
        self.recorder: Recorder | None = None
        """Takes down what happens to calls. None: nobody does."""
        self._max_parallel = 10

    @property
    def max_parallel(self) -> int:
        """How many calls of a batch may run at a time, of those that may at all: 10, until it is set. 1: one after
        another. Raises ValueError for what is no number of at least one."""
        return self._max_parallel

    @max_parallel.setter
    def max_parallel(self, most: int) -> None:
        given: Any = most
        if not isinstance(given, int) or given < 1:
            raise ValueError(f"of a batch at least one call runs at a time, not {most}")
        self._max_parallel = most

    @property
    def idle(self) -> bool:
        """Nobody has a say in calls that are made here, or hears of them."""
        return not (
            self.pre_execute.listeners
            or self.execute.listeners
            or self.post_execute.listeners
            or self.result.listeners
            or self.guards
            or (self.recorder is not None and self.recorder.hears())
        )

    def guard(self, guard: Guard, *, scope: Scope | None = None) -> Callable[[], None]:
        """Ask `guard(call)` for a reason against each call, after all policies; see `Guards.add`."""
        return self.guards.add(guard, scope)


def _of_call(call: Invocation) -> Scope | None:
    return call.scope


def _of_settled(settled: Settled) -> Scope | None:
    return settled.call.scope
