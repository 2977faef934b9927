"""Cancel something at every moment at which it can be cancelled, one moment a run.

A scenario is an async function that sets its stage, awaits one thing through the `Doomed` it is given, and looks at
what is left. `at_every_step` runs it again and again: in the first run the thing is cancelled before its first step, in
the next one after the first step that any task makes, then after the second, and so on, until it ends before its
cancellation comes. Steps of all tasks count, so that it is cancelled while it is blocked and between the moment it was
woken and the moment it runs, and with whatever the others had done by then.

::

    async def test_a_cancelled_ask_leaves_nothing() -> None:
        async def scenario(doomed: Doomed) -> None:
            async with run_tree() as tree:
                counter = tree.spawn(Counter(), "counter")
                ended = await doomed(counter.ask, Add(1))
                assert ended.cancelled or ended.value == 1
                await trio.testing.wait_all_tasks_blocked()
                assert tree.snapshot().waits == ()

        await at_every_step(scenario)

trio runs the tasks of one batch in random order, so each moment is tried several times. A thing that hangs, cancelled
or not, fails with `trio.TooSlowError`; on a `MockClock` that jumps (`autojump_clock`) it does so at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar, TypeVarTuple

import trio

__all__ = ["Doomed", "Ended", "at_every_step"]

T = TypeVar("T")
Args = TypeVarTuple("Args")

TRIES: Final = 4
"""How often each moment is tried."""


class Ended(NamedTuple, Generic[T]):
    """How the awaited thing ended. Its exceptions, but for its cancellation, are raised where it is awaited."""

    cancelled: bool
    """The cancellation was raised in it. One that it did not notice any more is none."""
    result: T | None

    @property
    def value(self) -> T:
        """What it returned."""
        assert not self.cancelled, "it was cancelled, so it returned nothing"
        return self.result  # type: ignore[return-value]  # only a cancelled one has no result


class Doomed:
    """Awaits one thing and cancels it at one moment. Made by `at_every_step`."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        """After how many steps of the run, from the moment it is awaited, it is cancelled."""
        self.awaited = False
        self.fired = False
        """It was cancelled before it ended."""

    async def __call__(self, function: Callable[[*Args], Awaitable[T]], *args: *Args) -> Ended[T]:
        """`await function(*args)`, and how it ended."""
        assert not self.awaited, "a scenario awaits one thing through its Doomed, and once"
        self.awaited = True
        result: T | None = None
        with trio.CancelScope() as scope:
            clock = _Steps(self.steps, scope)
            trio.lowlevel.add_instrument(clock)
            try:
                result = await function(*args)
            finally:
                trio.lowlevel.remove_instrument(clock)
        self.fired = scope.cancel_called
        return Ended(scope.cancelled_caught, result)


async def at_every_step(scenario: Callable[[Doomed], Awaitable[None]], *, within: float = 1000.0) -> int:
    """Run the scenario once for each moment (each of them `TRIES` times) and return how many moments there were.

    `within` is how many seconds, on the clock of the run, one run of the scenario may take.
    """
    steps = 0
    while True:
        fired = False
        for _ in range(TRIES):
            doomed = Doomed(steps)
            with trio.fail_after(within):
                await scenario(doomed)
            assert doomed.awaited, "the scenario awaited nothing through its Doomed"
            fired = fired or doomed.fired
        if not fired:
            return steps
        steps += 1


class _Steps(trio.abc.Instrument):
    """Counts down the steps that the run's tasks make, and cancels then."""

    def __init__(self, steps: int, scope: trio.CancelScope) -> None:
        self.left = steps
        self.scope = scope
        if not steps:
            scope.cancel()

    def after_task_step(self, task: Any) -> None:
        self.left -= 1
        if self.left == 0:
            self.scope.cancel()
