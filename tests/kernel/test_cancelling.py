"""The instrument that cancels: it must miss no moment, and hide nothing."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.cancelling import TRIES, Doomed, at_every_step


async def steps(count: int, seen: list[int]) -> str:
    seen.append(0)
    for number in range(1, count + 1):
        await trio.lowlevel.checkpoint()
        seen.append(number)
    return "whole"


async def test_it_cancels_before_the_first_step_and_after_each() -> None:
    reached: list[int] = []

    async def scenario(doomed: Doomed) -> None:
        seen: list[int] = []
        ended = await doomed(steps, 3, seen)
        assert ended.cancelled == (len(seen) < 4)
        if not ended.cancelled:
            assert ended.value == "whole"
        reached.append(len(seen))

    assert await at_every_step(scenario) == 4
    assert reached == [moment for moment in (1, 1, 2, 3, 4) for _ in range(TRIES)]


async def test_it_cancels_one_that_sleeps_while_others_go_on() -> None:
    others: set[int] = set()

    async def scenario(doomed: Doomed) -> None:
        woken, seen = trio.Event(), list[int]()

        async def other() -> None:
            await steps(5, seen)
            woken.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            await doomed(woken.wait)
            others.add(len(seen))

    await at_every_step(scenario)
    assert others >= {0, 1, 2, 3, 4, 5, 6}


async def test_what_does_not_notice_is_not_cancelled() -> None:
    async def deaf() -> int:
        with trio.CancelScope(shield=True):
            await trio.lowlevel.checkpoint()
        return 1

    async def scenario(doomed: Doomed) -> None:
        assert (await doomed(deaf)).value == 1

    assert await at_every_step(scenario) == 2


async def test_what_is_raised_comes_through() -> None:
    async def raises() -> None:
        raise LookupError

    async def scenario(doomed: Doomed) -> None:
        await doomed(raises)

    with pytest.raises(LookupError):
        await at_every_step(scenario)


async def test_a_hang_fails(autojump_clock: trio.testing.MockClock) -> None:
    async def scenario(doomed: Doomed) -> None:
        await doomed(trio.lowlevel.checkpoint)
        await trio.sleep_forever()

    with pytest.raises(trio.TooSlowError):
        await at_every_step(scenario)


@pytest.mark.parametrize("count", [0, 2])
async def test_a_scenario_awaits_one_thing_through_it(count: int) -> None:
    async def scenario(doomed: Doomed) -> None:
        for _ in range(count):
            await doomed(trio.lowlevel.checkpoint)

    with pytest.raises(AssertionError, match="through its Doomed"):
        await at_every_step(scenario)
