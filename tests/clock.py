"""How a test moves a mocked clock: from due time to due time, and never past something that is still under way.

`trio.testing.MockClock.jump` crosses a whole window at once, so that everything due within it fires together, at the
end. `advance` stops at each deadline on the way, lets everything run that it sets off (which may arm new deadlines
within the window), and only then goes on. Both functions use the `MockClock` of the current run and need one that
moves in no other way (`rate=0`, no autojump).
"""

from __future__ import annotations

import time

import trio
import trio.testing

__all__ = ["advance", "mock_clock", "settle"]

# A deadline is reached by adding floats, which may fall short of it, or of the window's end, by a rounding error.
_ROUNDING = 1e-9
_THREAD_PAUSE = 0.0005


async def advance(milliseconds: float) -> None:
    """Move the clock on, stopping at every deadline in between in order of due time.

    Returns when the clock stands `milliseconds` later and every task is blocked. A cancelled `advance` leaves the
    clock at the due time that it had reached.
    """
    clock = mock_clock()
    end = clock.current_time() + milliseconds / 1000
    while True:
        await settle()
        due = trio.lowlevel.current_statistics().seconds_to_next_deadline
        if due > end - clock.current_time() + _ROUNDING:
            break
        clock.jump(max(due, _ROUNDING))
    clock.jump(max(0.0, end - clock.current_time()))
    await settle()


async def settle() -> None:
    """Wait until nothing can happen any more without the clock: all tasks are blocked and no worker thread is busy.

    trio calls a task that awaits a thread blocked, though it will go on by itself; a clock moved at that moment would
    overtake, say, a database.
    """
    await trio.testing.wait_all_tasks_blocked()
    while _a_thread_is_awaited():
        await trio.to_thread.run_sync(time.sleep, _THREAD_PAUSE)
        await trio.testing.wait_all_tasks_blocked()


def mock_clock() -> trio.testing.MockClock:
    """The `MockClock` of the current run; a `TypeError` if it has another kind of clock."""
    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, trio.testing.MockClock):
        raise TypeError(f"only a trio.testing.MockClock can be moved; this run has a {type(clock).__name__}")
    return clock


def _a_thread_is_awaited() -> bool:
    root = trio.lowlevel.current_root_task()
    assert root is not None, "a run that executes this has a root task"
    tasks = [root]
    while tasks:
        task = tasks.pop()
        if any(frame.f_globals.get("__name__") == "trio._threads" for frame, _ in task.iter_await_frames()):
            return True
        for nursery in task.child_nurseries:
            tasks.extend(nursery.child_tasks)
    return False
