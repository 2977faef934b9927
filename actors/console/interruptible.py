"""Running a prompt_toolkit application beside trio, in a thread that can be told to stop at any moment."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast, final

import trio
from prompt_toolkit.application import Application

__all__ = ["InputEnded", "Interrupted", "run_application"]

T = TypeVar("T")


class Interrupted(Exception):
    """Ctrl-C was pressed."""


class InputEnded(Exception):
    """The terminal has hung up."""


async def run_application(build: Callable[[], Application[T]]) -> T:
    """Build an application in a worker thread, run it there, and return its result.

    Waits without a deadline. Raises Interrupted, InputEnded, and what the application raises. Cancelled: the
    application ends at once and leaves the terminal as it was; only then this returns.
    """
    run = _Run(build)

    async def stop_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            run.stop()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stop_when_cancelled)
        await trio.to_thread.run_sync(run.main)
        nursery.cancel_scope.cancel()
    return run.result()


@final
class _Run(Generic[T]):
    """One application, its event loop, and what other threads may do to it."""

    def __init__(self, build: Callable[[], Application[T]]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._value: T | None = None
        self._failure: Exception | None = None

    def main(self) -> None:
        """Run it to its end. Called in the thread; raises nothing."""
        asyncio.run(self._serve())

    def result(self) -> T:
        if self._failure is not None:
            raise self._failure
        return cast("T", self._value)  # it ended by itself, and did not fail

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._fail)
        with self._lock:
            if self._stopped:
                return
            self._loop, self._task = loop, asyncio.current_task()
        try:
            self._value = await self._build().run_async(set_exception_handler=False)
        except asyncio.CancelledError:
            pass  # by `stop`, whose caller wants no result, or by `_fail`, which has kept the failure
        except KeyboardInterrupt:
            self._failure = Interrupted()
        except EOFError:
            self._failure = InputEnded()
        except OSError as error:  # EIO: nothing can be drawn any more
            self._failure = InputEnded() if error.errno == errno.EIO else error
        except Exception as error:
            self._failure = error
        finally:
            with self._lock:
                self._loop = None

    def _fail(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A callback of the application raised: end it, rather than leave a prompt that does not react."""
        error = context.get("exception")
        self._failure = error if isinstance(error, Exception) else RuntimeError(context.get("message"))
        if self._task is not None:
            self._task.cancel()

    def stop(self) -> None:
        """End it, from any thread and at any time."""
        with self._lock:
            self._stopped = True
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
