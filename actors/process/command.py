"""Commands: a process that runs to its end, or is ended with all that it has started."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import inf
from typing import Final, TypeVar

import trio
from trio.lowlevel import enable_ki_protection

from greenroom.actors.process.capture import Capture
from greenroom.actors.process.family import MARK, Family
from greenroom.actors.process.guard import Guard
from greenroom.protocol.errors import ProcessError
from greenroom.protocol.processes import CommandResult
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.policies.spill_files import LocalSpill

__all__ = ["GRACE", "run_command"]

T = TypeVar("T")

logger = logging.getLogger("greenroom.processes")

GRACE: Final = 3.0
"""Seconds between the request to end (SIGTERM) and the end (SIGKILL)."""

_KILLED: Final = 5.0
"""Seconds that the system takes at most to end what was killed; what then still is there hangs in a driver."""

_DRAIN: Final = 1.0
"""Seconds for the rest of the output once nobody is left who could write more."""

_SOON: Final = 0.005
_LATER: Final = 0.05
"""Seconds between two looks whether anybody is left: the first pause, and the longest."""


@enable_ki_protection
async def run_command(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    abort: Cancel | None = None,
    grace: float = GRACE,
    spill: LocalSpill | None = None,
    owner: str = "",
    heard: Callable[[str], object] | None = None,
) -> CommandResult:
    """Run a program with these arguments, in a session and a process group of its own, with nothing to read.

    It is over when the program is: whatever it has started and left behind is ended then. It is ended after `timeout`
    seconds (None: no deadline), and when `abort` is set; either shows in the result. To end is to get SIGTERM and,
    `grace` seconds later, SIGKILL, with all descendants (`Family`). When this returns or raises none of them is left,
    also if it is cancelled, which waits for their end.

    Of each stream the last 64,000 bytes are in the result, and if there were more, all of them in a file of `spill`
    for `owner` (see `Capture`). `heard(text)` is called with what either of them brings, as it comes; it is plain and
    must not raise. If this process is killed, the command is killed too (`Guard`).

    Raises ProcessError SPAWN if the system does not start it. Cancelled: no file is left.
    """
    captures = [Capture(name, spill=spill, owner=owner, heard=heard) for name in ("stdout", "stderr")]
    mark = secrets.token_hex(16)
    timed_out = aborted = False
    try:
        guard = await _started(command, Guard.begin(mark))
        try:
            process = await _started(command, _open(command, cwd, {**env, MARK: mark}))
            try:
                guard.watch(process.pid)
                async with trio.open_nursery() as nursery:
                    for stream, capture in zip((process.stdout, process.stderr), captures, strict=True):
                        nursery.start_soon(_pump, stream, capture)
                    try:
                        timed_out, aborted = await _exit(process.pid, timeout, abort)
                    finally:
                        await _end(Family(process.pid, mark), grace)
                    nursery.cancel_scope.deadline = trio.current_time() + _DRAIN
            finally:
                await _reap(process)
        finally:
            await guard.end()
        stdout, stderr = [await capture.finish() for capture in captures]
    except BaseException:
        for capture in captures:
            capture.discard()
        raise
    code = process.returncode
    return CommandResult(
        exit_code=code if code is not None and code >= 0 else None,
        signal=_name(-code) if code is not None and code < 0 else None,
        timed_out=timed_out,
        aborted=aborted,
        timeout_ms=None if timeout is None else round(timeout * 1000),
        stdout=stdout,
        stderr=stderr,
    )


async def _started(command: Sequence[str], starting: Awaitable[T]) -> T:
    try:
        return await starting
    except (OSError, ValueError) as error:  # the latter for text that no argument of a program can hold
        raise ProcessError(
            "SPAWN",
            f"{command[0]} was not started: {error}. Nothing has run: mend what it says, and try again.",
            {"program": command[0], "reason": str(error)},
        ) from error


async def _open(command: Sequence[str], cwd: str | os.PathLike[str] | None, env: Mapping[str, str]) -> trio.Process:
    return await trio.lowlevel.open_process(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=cwd,
        env=env,
    )


async def _pump(stream: trio.abc.ReceiveStream | None, capture: Capture) -> None:
    assert stream is not None, "it was asked for"
    async for data in stream:
        await capture.take(bytes(data))


async def _exit(leader: int, timeout: float | None, abort: Cancel | None) -> tuple[bool, bool]:
    """Wait for the program to end, or for a reason to end it; whether its time was over, and whether it was aborted."""
    with trio.move_on_after(inf if timeout is None else timeout) as within, trio.CancelScope() as aborting:
        unheard = None if abort is None else abort.listen(aborting.cancel)
        try:
            await _exited(leader)
            return False, False
        finally:
            if unheard is not None:
                unheard()
    return within.cancelled_caught, aborting.cancelled_caught


async def _exited(leader: int) -> None:
    """Wait, without a deadline, until it has ended. It is not reaped, so that its number stays its own."""
    if sys.platform == "linux":
        try:
            descriptor = os.pidfd_open(leader)
        except OSError:  # too many files are open
            pass
        else:
            try:
                await trio.lowlevel.wait_readable(descriptor)
            finally:
                os.close(descriptor)
            return
    while not _has_exited(leader):  # noqa: ASYNC110  # nothing else tells of it
        await trio.sleep(_LATER)


def _has_exited(leader: int) -> bool:
    return os.waitid(os.P_PID, leader, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


async def _end(family: Family, grace: float) -> None:
    """End all of a family, gently first, and see that nobody is left. A cancelled caller waits as well."""
    with trio.CancelScope(shield=True):
        if not await trio.to_thread.run_sync(family.signal, signal.SIGTERM):
            return
        with trio.move_on_after(grace):
            pause = _SOON
            while await trio.to_thread.run_sync(family.living):
                await trio.sleep(pause)
                pause = min(2 * pause, _LATER)
            return
        with trio.move_on_after(_KILLED):
            while await trio.to_thread.run_sync(family.signal, signal.SIGKILL):  # noqa: ASYNC110  # it does something
                await trio.sleep(_SOON)
            return
        left = await trio.to_thread.run_sync(family.living)
        logger.error("The processes %s were killed and have not ended", ", ".join(map(str, sorted(left))))


async def _reap(process: trio.Process) -> None:
    """Let go of a process that has ended, and of its pipes. A cancelled caller waits as well."""
    with trio.CancelScope(shield=True):
        with trio.move_on_after(_KILLED):  # it has ended, unless the system could not end it
            await process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                await stream.aclose()


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"SIG{number}"
