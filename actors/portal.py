"""A runtime in a thread of its own, for programs that are not on trio: asyncio, threads, plain scripts.

::

    with greenroom.portal() as portal:  # in a plain script; `call` may be used from any thread
        portal.call(portal.runtime.terminals.add, "reviewer")
        values = portal.call(portal.runtime.ask, "reviewer", FORM, timeout=60)

    async with greenroom.portal() as portal:  # in asyncio
        values = await portal.run(portal.runtime.ask, "reviewer", FORM, timeout=60)

What belongs to the runtime is touched in its own thread only, so plain functions go through the portal too. Listeners
and tools are called in that thread: they must not block it, and hand over what another loop is to do (as with asyncio's
`loop.call_soon_threadsafe`).
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast, final, overload

import trio

from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.errors import ActorError

__all__ = ["Portal", "portal"]

P = ParamSpec("P")
T = TypeVar("T")


class _Call(Generic[T]):
    """One call, on its way into the runtime's thread and back."""

    __slots__ = ("ended", "function", "future", "scope")

    def __init__(self, function: Callable[[], Awaitable[T] | T]) -> None:
        self.function = function
        self.scope = trio.CancelScope()
        self.future: Future[T] = Future()
        """Its outcome. Whoever cancels it need not wait for the call."""
        self.ended: Future[None] = Future()
        """Done when nothing of it runs any more, also where it was cancelled."""

    async def carry_out(self) -> None:
        """In the runtime's thread. Whatever the function raises is its caller's alone."""
        try:
            with self.scope:
                result = self.function()
                value = await result if inspect.isawaitable(result) else result
                if self.future.set_running_or_notify_cancel():
                    self.future.set_result(cast("T", value))
        except StopIteration as error:  # no future of asyncio takes one
            raised = RuntimeError("The function raised StopIteration, which cannot be handed on.")
            raised.__cause__ = error
            self.fail(raised)
        except trio.Cancelled:
            raise
        except BaseExceptionGroup as group:  # of a nursery, perhaps with the cancellation of its tasks
            cancelled, failures = group.split(trio.Cancelled)
            if failures is not None:
                self.fail(failures)
            if cancelled is not None:
                raise cancelled from None
        except BaseException as error:  # SystemExit, say: no signal comes to this thread
            self.fail(error)
        finally:
            self.fail(_closed())

    def fail(self, error: BaseException) -> None:
        """It has ended, with this error if nothing else came of it."""
        if not self.future.done() and self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)
        if not self.ended.done():
            self.ended.set_result(None)


@final
class Portal:
    """The way into a runtime that lives in a thread of its own: `with` or, in asyncio, `async with`. Made by `portal`.

    Leaving the block cancels the calls that are still under way, stops the runtime, and waits until it has ended. A
    process that is forked within the block has no runtime: calls raise there, and leaving the block does nothing.
    """

    def __init__(self, open: Callable[[], AbstractAsyncContextManager[Runtime]]) -> None:
        self._open = open
        self._runtime: Runtime | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._nursery: trio.Nursery | None = None
        """Of the calls. Theirs is the runtime's thread alone; None where they come too early or too late."""
        self._closing: trio.Event | None = None
        self._ready: Future[None] = Future()
        self._ended: Future[None] = Future()
        self._lock = threading.Lock()
        self._calls: set[_Call[Any]] = set()
        self._process: int | None = None
        """Where the thread lives: a process that is forked has no copy of it, and nobody answers there."""
        self._thread = threading.Thread(target=self._main, name="greenroom", daemon=True)

    @property
    def runtime(self) -> Runtime:
        """The runtime. Its functions are for `call`, `run` and `submit`; nothing of it is called directly.

        Raises ActorError STOPPED before the block was entered.
        """
        if self._runtime is None:
            raise _closed()
        return self._runtime

    # ---------------------------------------------------------------- calling

    @overload
    def call(self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def call(self, function: Callable[P, Awaitable[T] | T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call an async or a plain function in the runtime's thread, and wait for what it returns or raises.

        It blocks the thread that it is called from, so in asyncio it is for what does not wait; `run` is for the rest.
        Interrupted (Ctrl-C), it cancels the call, waits until nothing of it is left, and raises KeyboardInterrupt.
        Raises ActorError STOPPED if the runtime has ended or ends before the call does.
        """
        call = self._begin(lambda: function(*args, **kwargs))
        try:
            return call.future.result()
        finally:
            if call.future.cancel():  # not yet done: an interrupt
                call.ended.result()

    @overload
    async def run(self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def run(self, function: Callable[P, Awaitable[T] | T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """`call` for asyncio: the loop goes on meanwhile.

        Cancelled, it cancels the call and waits until nothing of it is left; a second cancellation ends that waiting.
        """
        call = self._begin(lambda: function(*args, **kwargs))
        try:
            return await asyncio.wrap_future(call.future)
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.wrap_future(call.ended))
            raise

    @overload
    def submit(self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]: ...
    @overload
    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]: ...
    def submit(self, function: Callable[P, Awaitable[T] | T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Begin a call and return at once. Cancelling the future cancels the call, without waiting for its end."""
        return self._begin(lambda: function(*args, **kwargs)).future

    def _begin(self, function: Callable[[], Awaitable[T] | T]) -> _Call[T]:
        if threading.current_thread() is self._thread:
            raise RuntimeError("This is the runtime's own thread: call or await the function directly.")
        if not self._here:
            raise _closed()
        call = _Call(function)
        with self._lock:
            if self._token is None or self._ended.done():
                raise _closed()
            try:
                self._token.run_sync_soon(self._start, call)
            except trio.RunFinishedError:
                raise _closed() from None
            # While the lock is held the thread ends nothing, and what is in here it will end.
            self._calls.add(call)
        call.future.add_done_callback(lambda future: self._withdraw(call) if future.cancelled() else None)
        return call

    def _withdraw(self, call: _Call[Any]) -> None:
        if self._token is not None and self._here:
            with suppress(trio.RunFinishedError):  # then it has ended, too
                self._token.run_sync_soon(call.scope.cancel)

    # ---------------------------------------------------------------- in the runtime's thread

    def _start(self, call: _Call[Any]) -> None:
        if self._nursery is None:
            call.fail(_closed())
            self._forget(call)
        else:
            self._nursery.start_soon(self._carry_out, call)

    async def _carry_out(self, call: _Call[Any]) -> None:
        try:
            await call.carry_out()
        finally:
            self._forget(call)

    def _forget(self, call: _Call[Any]) -> None:
        with self._lock:
            self._calls.discard(call)

    def _main(self) -> None:
        error: BaseException | None = None
        try:
            trio.run(self._serve)
        except BaseException as raised:  # it is the user's, who waits in another thread
            error = raised
        with self._lock:
            calls, self._calls = self._calls, set()
            if error is None:
                self._ended.set_result(None)
            else:
                self._ended.set_exception(error)
        for call in calls:
            call.fail(_closed())
        if not self._ready.done() and self._ready.set_running_or_notify_cancel():
            self._ready.set_exception(error or _closed())

    async def _serve(self) -> None:
        async with self._open() as runtime, trio.open_nursery() as nursery:
            self._runtime = runtime
            self._closing = trio.Event()
            self._token = trio.lowlevel.current_trio_token()
            self._nursery = nursery
            if self._ready.set_running_or_notify_cancel():  # else whoever opens it has given up
                self._ready.set_result(None)
                await self._closing.wait()
            self._nursery = None
            nursery.cancel_scope.cancel()

    # ---------------------------------------------------------------- opening and closing

    @property
    def _here(self) -> bool:
        """The runtime's thread is one of this process, or was."""
        return self._process == os.getpid()

    def _begin_thread(self) -> None:
        self._process = os.getpid()
        self._thread.start()

    def _give_up(self) -> None:
        """Whoever opens it has been interrupted: nobody will leave the block."""
        if not self._ready.cancel():
            self._close()

    def _close(self) -> None:
        if self._token is not None and self._closing is not None:
            with suppress(trio.RunFinishedError):  # it has ended by itself
                self._token.run_sync_soon(self._closing.set)

    def __enter__(self) -> Self:
        self._begin_thread()
        try:
            self._ready.result()
        except BaseException:
            self._give_up()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._here:
            self._close()
            self._ended.result()

    async def __aenter__(self) -> Self:
        self._begin_thread()
        try:
            await asyncio.wrap_future(self._ready)
        except BaseException:
            self._give_up()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._here:
            self._close()
            await asyncio.shield(asyncio.wrap_future(self._ended))


def _portal_of(open: Callable[P, AbstractAsyncContextManager[Runtime]]) -> Callable[P, Portal]:
    def portal(*args: P.args, **kwargs: P.kwargs) -> Portal:
        """A runtime in a thread of its own, with the options of `open_runtime`: `with portal() as p`, or `async with`.

        What opening the runtime raises is raised there; what ends the runtime early is raised at the block's end.
        """
        return Portal(lambda: open(*args, **kwargs))

    return portal


portal = _portal_of(open_runtime)


def _closed() -> ActorError:
    return ActorError("STOPPED", "The runtime of this portal does not run (any more); open another portal.", {})
