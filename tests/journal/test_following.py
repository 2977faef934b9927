"""Following a stream: replay, then live, without a gap or a repetition, however slow the follower is."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import trio
import trio.testing

from greenroom.protocol.errors import JournalError
from greenroom.runtime.journal import Append, End, Event, Journal
from greenroom.runtime.journal.follower import BYTES, EVENTS, Follower
from tests.journal.stage import code_of, opened


async def take(follower: Follower, count: int) -> list[int]:
    """The numbers of the next so many events."""
    return [(await anext(follower)).seq for _ in range(count)]


async def all_of(follower: Follower) -> list[Event]:
    """Everything until the stream ends."""
    return [event async for event in follower]


async def test_replay_runs_on_into_what_is_committed_next(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db") as journal:
        for number in range(3):
            await journal.append("s", "said", number)
        follower = journal.follow("s")
        assert await take(follower, 3) == [0, 1, 2]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(journal.append, "s", "said", 3)
            assert await take(follower, 1) == [3]
        assert follower.cursor == 3


async def test_a_follower_may_come_before_the_stream_begins() -> None:
    async with opened() as journal:
        async with trio.open_nursery() as nursery:

            async def follow() -> None:
                assert await take(journal.follow("s", after=-1), 2) == [0, 1]

            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked()
            await journal.append("other", "said", None)
            await journal.append("s", "said", None)
            await journal.append("s", "said", None)


@pytest.mark.parametrize("after", [None, -1, 0, 41, 99])
async def test_many_writers_and_followers_from_any_cursor_agree(tmp_path: Path, after: int | None) -> None:
    seen: list[list[Event]] = []

    async with opened(tmp_path / "j.db") as journal:
        for number in range(100):
            journal.post(Append("s", "before", number))
        await journal.append("s", "before", None)

        async def follow() -> None:
            seen.append(await all_of(journal.follow("s", after=after)))

        async def write() -> None:
            for number in range(30):
                await journal.append("s", "live", number)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(follow)
            async with trio.open_nursery() as writers:
                for _ in range(20):
                    writers.start_soon(write)
            await journal.write(End("s"))
        recorded = await journal.read("s", after=after)
    assert recorded[-1].seq == 700
    assert seen == [recorded] * 5


async def test_a_follower_ends_with_its_stream() -> None:
    async with opened() as journal:
        await journal.write(Append("s", "said", 1), End("s"))
        assert len(await all_of(journal.follow("s"))) == 1
        assert await all_of(journal.follow("s", after=0)) == []
        async with trio.open_nursery() as nursery:

            async def follow() -> None:
                assert len(await all_of(journal.follow("later"))) == 2

            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked()
            await journal.append("later", "said", 1)
            await journal.write(Append("later", "said", 2), End("later"))


async def test_a_slow_follower_loses_nothing_and_holds_little(tmp_path: Path) -> None:
    count = 3 * EVENTS
    async with opened(tmp_path / "j.db") as journal:
        follower = journal.follow("s", after=-1)
        await journal.append("s", "said", 0)
        assert await take(follower, 1) == [0]
        for number in range(1, count):
            journal.post(Append("s", "said", number))
        await journal.append("s", "said", count)
        numbers: list[int] = []
        for _ in range(count):
            numbers += await take(follower, 1)
            assert len(follower._page) < EVENTS
            assert len(follower._tail.events) <= EVENTS
        assert numbers == list(range(1, count + 1))


async def test_large_events_are_held_a_few_at_a_time(tmp_path: Path) -> None:
    large = b"x" * (BYTES // 2)
    async with opened(tmp_path / "j.db") as journal:
        follower = journal.follow("s")
        for _ in range(8):
            await journal.append("s", "large", large)
        assert len(follower._tail.events) == 2
        await journal.append("s", "larger", large * 5)
        assert len(follower._tail.events) == 1, "one that is too large is held alone"
        await journal.write(End("s"))
        held: set[int] = set()
        sizes: list[int] = []
        async for event in follower:
            sizes.append(len(event.payload))
            held.add(len(follower._page))
        assert sizes == [len(large)] * 8 + [5 * len(large)]
        assert max(held) == 1


async def test_a_cancelled_step_takes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db") as journal:
        follower = journal.follow("s", after=-1)
        for turn in range(3):
            with trio.CancelScope() as scope:
                scope.cancel()
                await anext(follower)
            assert scope.cancelled_caught
            await journal.append("s", "said", turn)
        assert await take(follower, 3) == [0, 1, 2]


async def test_a_dropped_follower_leaves_nothing() -> None:
    async with opened() as journal:
        follower = journal.follow("s")
        await journal.append("s", "said", None)
        await take(follower, 1)
        assert len(journal._tails._tails) == 1
        del follower
        gc.collect()
        assert len(journal._tails._tails) == 0
        await journal.append("s", "said", None)


async def test_a_follower_whose_next_event_was_deleted_is_told_where_to_go_on(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db") as journal:
        for number in range(10):
            await journal.append("s", "said", number)
        follower = journal.follow("s", after=2)
        assert await journal.cut("s", before=6) == 6
        with pytest.raises(JournalError) as refused:
            await anext(follower)
        assert code_of(refused) == "GAP"
        assert refused.value.context == {"stream": "s", "after": 2, "first": 6, "last": 9}
        assert await take(journal.follow("s", after=5), 4) == [6, 7, 8, 9]
        assert await take(journal.follow("s"), 1) == [6]


async def test_a_follower_of_a_stream_that_was_deleted_and_begun_anew_is_told() -> None:
    async with opened() as journal:
        behind, through = journal.follow("s"), journal.follow("s")
        for number in range(5):
            await journal.append("s", "said", number)
        assert await take(behind, 2) == [0, 1]
        await journal.write(End("s"))
        assert len(await all_of(through)) == 5
        assert await journal.prune(older_than=0) == ["s"]
        assert await journal.append("s", "anew", None) == 0
        assert await take(behind, 3) == [2, 3, 4], "it held them already"
        with pytest.raises(JournalError) as refused:
            await anext(behind)
        assert code_of(refused) == "GAP"
        assert await take(journal.follow("s"), 1) == [0]


@pytest.mark.parametrize("seen", [0, 2])
@pytest.mark.parametrize("behind", [False, True])
async def test_a_follower_takes_no_event_of_a_later_life_for_one_of_its_own(seen: int, behind: bool) -> None:
    count = EVENTS * 2 if behind else 3
    async with opened() as journal:
        follower = journal.follow("s", after=-1)
        for number in range(seen):
            await journal.append("s", "first life", number)
        assert await take(follower, seen) == list(range(seen))
        await journal.write(*[Append("s", "first life", None)] * (not seen), End("s"))
        assert await journal.prune(older_than=0) == ["s"]
        await journal.write(*[Append("s", "second life", None)] * count)
        if seen:
            with pytest.raises(JournalError) as refused:
                await anext(follower)
            assert code_of(refused) == "GAP"
            assert refused.value.context == {"stream": "s", "after": seen - 1, "first": 0, "last": count - 1}
        else:
            assert (await anext(follower)).kind == "second life", "it had seen nothing of the first"


async def test_followers_are_told_when_the_journal_closes() -> None:
    async def follow(journal: Journal) -> None:
        with pytest.raises(JournalError) as refused:
            await anext(journal.follow("s"))
        assert code_of(refused) == "CLOSED"

    async with trio.open_nursery() as nursery:
        async with opened() as journal:
            nursery.start_soon(follow, journal)
            await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(JournalError):
        await anext(journal.follow("s"))
