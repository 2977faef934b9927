"""How a test moves a mocked clock."""

from __future__ import annotations

import math
import time

import pytest
import trio
import trio.testing

from tests.clock import advance, settle


async def test_timers_fire_in_order_of_due_time_each_at_its_own(mock_clock: trio.testing.MockClock) -> None:
    fired: list[tuple[str, float]] = []

    async def timer(name: str, seconds: float) -> None:
        await trio.sleep(seconds)
        fired.append((name, trio.current_time()))
        if name == "chained":
            nursery.start_soon(timer, "armed meanwhile", 0.1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(timer, "last", 0.5)
        nursery.start_soon(timer, "chained", 0.3)
        nursery.start_soon(timer, "first", 0.1)
        nursery.start_soon(timer, "beyond", 0.7)
        await advance(600)
        assert trio.current_time() == pytest.approx(0.6)
        nursery.cancel_scope.cancel()
    assert [name for name, _ in fired] == ["first", "chained", "armed meanwhile", "last"]
    assert [at for _, at in fired] == pytest.approx([0.1, 0.3, 0.4, 0.5])


async def test_what_is_due_at_the_very_end_fires_whatever_floats_add_up_to(
    mock_clock: trio.testing.MockClock,
) -> None:
    fired = 0

    async def timer(seconds: float) -> None:
        nonlocal fired
        await trio.sleep(seconds)
        fired += 1

    async with trio.open_nursery() as nursery:
        for step in range(1, 200):
            nursery.start_soon(timer, 0.1)
            await advance(100)
            assert fired == step
            assert trio.current_time() == pytest.approx(step / 10, abs=1e-6)


async def test_nothing_due_leaves_the_clock_where_it_was_told_to_stand(mock_clock: trio.testing.MockClock) -> None:
    await advance(0)
    assert trio.current_time() == 0
    await advance(86_400_000)
    assert trio.current_time() == 86_400


async def test_a_busy_thread_is_waited_for(mock_clock: trio.testing.MockClock) -> None:
    seen: list[float] = []

    async def work() -> None:
        await trio.to_thread.run_sync(time.sleep, 0.02)
        await trio.to_thread.run_sync(time.sleep, 0.02)
        seen.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        nursery.start_soon(trio.sleep, 1)
        await settle()
        assert seen == [0]
        nursery.start_soon(work)
        await advance(1000)
        assert seen == [0, 0]


async def test_only_a_mocked_clock_can_be_moved() -> None:
    with pytest.raises(TypeError, match="SystemClock"):
        await advance(1)
    assert math.isfinite(trio.current_time())
