"""A live trio run that synchronous code drives step by step, such as the rules of a Hypothesis state machine.

The run has a thread of its own but never moves on its own: between two calls it stands still inside a blocking `get`,
and during a call the caller waits. So only one of the two sides is ever active, and what happens is a function of the
calls alone. A call ends when nothing more can happen without a further call: every task is blocked and no worker
thread is busy. Time is a `MockClock` that only `advance` moves.

::

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.driver = Driver()

        @rule()
        def ask(self) -> None:
            self.pending = self.driver.spawn(self.runtime.ask, ...)     # may go on waiting

        @rule()
        def answer(self) -> None:
            self.driver.call(self.runtime.answer, ...)                  # must come back without the clock

        def teardown(self) -> None:
            self.driver.close()

A machine keeps what is open (a runtime, say) with `enter`, which leaves it again, innermost first, in `close`. Always
close, in `teardown` or in a `finally`: a run that is not closed keeps its thread.
"""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, TypeVarTuple

import outcome
import trio
import trio.testing

from tests.clock import advance, mock_clock, settle

__all__ = ["Driver", "Spawned", "StillWaiting"]

T = TypeVar("T")
Args = TypeVarTuple("Args")

# What a call may take by the wall clock. Nothing waits for real time here, so whatever reaches this spins.
_SECONDS = 30.0


class StillWaiting(Exception):
    """A `call` that cannot end without a further one: everything is blocked, and it has not returned."""


class Spawned(Generic[T]):
    """A call that runs on beside the others. It ends by itself or by `Driver.cancel`, and with the run."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._scope = trio.CancelScope()
        self._outcome: outcome.Outcome[T] | None = None
        self.cancelled = False

    @property
    def done(self) -> bool:
        """Has it returned, raised or been cancelled?"""
        return self.cancelled or self._outcome is not None

    def result(self) -> T:
        """What it returned; raises what it raised. It can be taken once.

        `StillWaiting` if the call runs on, `RuntimeError` if it was cancelled.
        """
        if self.cancelled:
            raise RuntimeError(f"{self._name} was cancelled")
        if self._outcome is None:
            raise StillWaiting(f"{self._name} has not ended")
        return self._outcome.unwrap()

    async def _run(self, fn: Callable[[*Args], Awaitable[T]], *args: *Args) -> None:
        with self._scope:
            try:
                self._outcome = outcome.Value(await fn(*args))
            except Exception as raised:
                self._outcome = outcome.Error(raised)
            except (trio.Cancelled, BaseExceptionGroup):  # a group of nothing but cancellations: it is no Exception
                self.cancelled = True
                raise


class Driver:
    """One trio run in lock-step with its caller. See the module for how it is used."""

    def __init__(self) -> None:
        self._commands: queue.SimpleQueue[Callable[[], Awaitable[Any]] | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[outcome.Outcome[Any]] = queue.SimpleQueue()
        self._ended: outcome.Outcome[None] | None = None
        self._nursery: trio.Nursery
        self._open = AsyncExitStack()
        self._thread = threading.Thread(target=self._run, name="driven trio run", daemon=True)
        self._thread.start()
        self.settle()

    def call(self, fn: Callable[[*Args], Awaitable[T]], *args: *Args) -> T:
        """Run `fn` to its end and settle. Returns or raises what it did.

        `StillWaiting` if it waits for a further call or for time; it is cancelled then.
        """
        spawned = self.spawn(fn, *args)
        if not spawned.done:
            self.cancel(spawned)
            raise StillWaiting(f"{_name_of(fn)} waits for something that only a further call can bring")
        return spawned.result()

    def spawn(self, fn: Callable[[*Args], Awaitable[T]], *args: *Args) -> Spawned[T]:
        """Start `fn` as a task of the run and settle. It may go on waiting."""
        spawned: Spawned[T] = Spawned(_name_of(fn))

        async def start() -> None:
            self._nursery.start_soon(spawned._run, fn, *args)  # pyright: ignore[reportPrivateUsage]  # one class in two

        self._step(start)
        return spawned

    def cancel(self, spawned: Spawned[Any]) -> None:
        """Cancel a spawned call, whether it has ended or not, and settle."""

        async def cancel() -> None:
            spawned._scope.cancel()  # pyright: ignore[reportPrivateUsage]  # one class in two

        self._step(cancel)

    def enter(self, manager: AbstractAsyncContextManager[T]) -> T:
        """Enter an async context manager, to be left when the driver is closed. It lives in the run's main task."""
        entered: list[T] = []

        async def enter() -> None:
            entered.append(await self._open.enter_async_context(manager))

        self._step(enter)
        return entered[0]

    def settle(self) -> None:
        """Let everything happen that can happen without the clock."""
        self._step(settle)

    def advance(self, seconds: float) -> None:
        """Move the clock from due time to due time, letting everything happen that comes due, and settle."""

        async def move() -> None:
            await advance(seconds * 1000)

        self._step(move)

    def now(self) -> float:
        """The run's time in seconds, which began at 0."""

        async def read() -> float:
            return trio.current_time()

        return self.call(read)

    def close(self) -> None:
        """Leave what was entered, cancel what then still runs, and wait for the end of the run.

        Raises what the run raised. Closing again does nothing.
        """
        if self._ended is None:
            self._commands.put(None)
            while self._ended is None:  # the reply to a step that its caller was interrupted in may come first
                self._reply()
            self._thread.join(_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _step(self, fn: Callable[[], Awaitable[None]]) -> None:
        if self._ended is not None:
            raise RuntimeError("the driven run has ended")
        self._commands.put(fn)
        self._reply()

    def _reply(self) -> None:
        try:
            reply = self._replies.get(timeout=_SECONDS)
        except queue.Empty:
            stuck = TimeoutError(f"the driven run did not come to rest within {_SECONDS:g} s")
            self._ended = outcome.Error(stuck)
            raise stuck from None
        reply.unwrap()

    def _run(self) -> None:
        """The thread: its last reply is how the run ended, so that a caller never waits for a run that is gone."""
        ended = outcome.capture(functools.partial(trio.run, self._main, clock=trio.testing.MockClock()))
        self._ended = ended
        self._replies.put(ended)

    async def _main(self) -> None:
        async with trio.open_nursery() as self._nursery:
            async with self._open:
                while (fn := self._commands.get()) is not None:  # blocks on purpose: the run stands still between calls
                    try:
                        await fn()
                        await settle()
                    except Exception as raised:
                        self._replies.put(outcome.Error(raised))
                    else:
                        self._replies.put(outcome.Value(None))
                mock_clock().autojump_threshold = 0  # leaving may take its time
            self._nursery.cancel_scope.cancel()


def _name_of(fn: Callable[..., object]) -> str:
    return str(getattr(fn, "__qualname__", fn))
