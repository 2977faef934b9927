"""How a command that goes on by itself ends: by whichever comes first, a signal among them."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

__all__ = ["CTRL_C", "race", "until_signalled"]

T = TypeVar("T")

CTRL_C: Final = 130
"""The exit code after Ctrl-C, as shells have it: 128 and the number of SIGINT."""


async def race(*tasks: Callable[[], Awaitable[T]]) -> T:
    """The result of the first task that ends; the others are cancelled, and waited for.

    If any of them has raised by then, that is raised as it is, the first of it, even after another one has ended.
    """
    results: list[T] = []
    errors: list[Exception] = []

    async def run(task: Callable[[], Awaitable[T]]) -> None:
        try:
            result = await task()
        except Exception as error:
            errors.append(error)
        else:
            results.append(result)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(run, task)
    if errors:
        raise errors[0]
    return results[0]


async def until_signalled() -> int:
    """Wait for SIGINT, SIGTERM or SIGHUP; the exit code for it.

    Whoever changes a terminal's mode has to change it back: a KeyboardInterrupt may come in the middle of that, and the
    other two end a process without.
    """
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for number in signals:
            return 128 + number
    raise AssertionError("signals do not end")
