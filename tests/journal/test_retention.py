"""Forgetting: whole ended streams, or the oldest events of one, and nobody's number changes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio

from greenroom.protocol.errors import JournalError
from greenroom.runtime.journal import Append, End
from greenroom.runtime.journal.steps import SLICE
from tests.journal.stage import code_of, opened, shell


class Clock:
    """A wall clock that stands still until it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_only_what_ended_long_enough_ago_is_pruned() -> None:
    clock = Clock()
    async with opened(wall_clock=clock) as journal:
        for name, ended in (("old", 10.0), ("older", 5.0), ("young", 90.0)):
            clock.now = ended
            await journal.write(Append(name, "said", None), End(name))
        await journal.append("open", "said", None)
        clock.now = 100.0
        assert await journal.prune(older_than=90) == ["older", "old"]
        assert [info.name for info in await journal.streams()] == ["open", "young"]
        assert await journal.prune(older_than=90) == []
        assert await journal.prune(older_than=0, streams=["open", "none"]) == []
        assert await journal.prune(older_than=0, streams=["young"]) == ["young"]


async def test_a_pruned_name_begins_anew() -> None:
    async with opened() as journal:
        await journal.write(*(Append("s", "said", n) for n in range(3)), End("s"))
        assert await journal.prune(older_than=0) == ["s"]
        assert await journal.read("s") == []
        assert await journal.append("s", "said", "anew") == 0


@pytest.mark.parametrize("count", [0, 1, SLICE - 1, SLICE, SLICE + 1, 3 * SLICE])
async def test_a_long_stream_goes_slice_by_slice(tmp_path: Path, count: int) -> None:
    async with opened(tmp_path / "j.db") as journal:
        await journal.write(Append("keep", "said", None), *(Append("s", "said", None) for _ in range(count + 1)))
        assert await journal.cut("s", before=1) == 1
        await journal.write(End("s"))
        assert await journal.prune(older_than=0) == ["s"]
        assert [info.name for info in await journal.streams()] == ["keep"]
        assert shell(tmp_path / "j.db", "SELECT count(*) FROM events") == [(1,)]


@pytest.mark.parametrize(
    ("before", "kept"), [(-5, 0), (0, 0), (1, 1), (SLICE, SLICE), (SLICE + 1, SLICE + 1), (9 * SLICE, 2 * SLICE)]
)
async def test_a_cut_keeps_numbers_and_goes_on(before: int, kept: int) -> None:
    async with opened() as journal:
        await journal.write(*(Append("s", "said", None) for _ in range(2 * SLICE)))
        assert await journal.cut("s", before=before) == kept
        assert await journal.cut("s", before=before) == kept
        [info] = await journal.streams()
        assert (info.first, info.last) == (kept, 2 * SLICE - 1)
        assert await journal.append("s", "said", "next") == 2 * SLICE
        assert [event.seq for event in await journal.read("s", limit=1)] == [kept]


async def test_numbers_go_on_after_everything_was_cut_and_the_file_reopened(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db") as journal:
        await journal.write(*(Append("s", "said", None) for _ in range(5)))
        assert await journal.cut("s", before=100) == 5
    async with opened(tmp_path / "j.db") as journal:
        assert await journal.read("s") == await journal.read("s", after=4) == []
        with pytest.raises(JournalError) as refused:
            await journal.read("s", after=-1)
        assert code_of(refused) == "GAP"
        assert (refused.value.context["first"], refused.value.context["last"]) == (5, 4)
        assert await journal.append("s", "said", None) == 5
        assert [event.seq for event in await journal.read("s")] == [5]


async def test_cutting_a_stream_that_never_began_does_nothing() -> None:
    async with opened() as journal:
        assert await journal.cut("s", before=10) == 0
        assert await journal.streams() == []


async def test_others_write_between_the_slices(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db") as journal:
        await journal.write(*(Append("s", "said", None) for _ in range(20 * SLICE)), End("s"))
        pruned: list[str] = []
        written = 0
        async with trio.open_nursery() as nursery:

            async def prune() -> None:
                pruned.extend(await journal.prune(older_than=0))

            nursery.start_soon(prune)
            while not pruned:
                assert await journal.append("t", "said", None) == written
                written += 1
        assert pruned == ["s"]
        assert written > 5


async def test_a_cancelled_prune_leaves_a_shorter_stream_that_can_be_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("journal", "recorder"):  # so many slices that it is cancelled before the last one
        monkeypatch.setattr(f"greenroom.runtime.journal.{module}.SLICE", 20)
    async with opened(tmp_path / "j.db") as journal:
        await journal.write(*(Append("s", "said", None) for _ in range(5 * SLICE)), End("s"))
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(journal.prune, older_than=0))
                while (await journal.streams())[0].first == 0:
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        await journal.append("t", "said", None)  # what was handed over before is committed then
        [info] = await journal.streams("s")
        assert 0 < info.first <= info.last == 5 * SLICE - 1
        assert [event.seq for event in await journal.read("s", limit=1)] == [info.first]
        assert await journal.prune(older_than=0) == ["s"]
