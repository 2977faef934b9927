"""Reads: committed data only, in order, with a cursor that never passes over anything, and no waiting for writers."""

# ruff: noqa: ASYNC240  # nothing else runs that looking at a file could hold up

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.protocol.errors import JournalError
from greenroom.runtime.journal import Append, End, StreamInfo, open_reader
from tests.journal.stage import NOTES, code_of, held, opened, payloads, shell


async def test_a_cursor_gives_what_follows_it() -> None:
    async with opened() as journal:
        for number in range(10):
            await journal.append("s", "said", number)
        assert [event.seq for event in await journal.read("s")] == list(range(10))
        assert [event.seq for event in await journal.read("s", after=-1, limit=3)] == [0, 1, 2]
        assert [event.seq for event in await journal.read("s", after=6, limit=3)] == [7, 8, 9]
        assert await journal.read("s", after=9) == []


@pytest.mark.parametrize("bounds", [{"after": 2**70}, {"after": -(2**70)}, {"limit": 2**70}, {"limit": "no"}])
async def test_bounds_beyond_what_can_be_stored_are_refused(bounds: Any) -> None:
    async with opened() as journal:
        await journal.append("s", "said", 1)
        with pytest.raises(JournalError) as refused:
            await journal.read("s", **bounds)
        assert code_of(refused) == "REFUSED"
        assert len(await journal.read("s")) == 1


async def test_a_stream_that_never_began_has_no_events() -> None:
    async with opened() as journal:
        assert await journal.read("s") == await journal.read("s", after=-1) == []


async def test_a_cursor_from_another_life_of_the_stream_is_refused() -> None:
    async with opened() as journal:
        await journal.append("s", "said", 1)
        for stream, last in (("s", 0), ("never", -1)):
            with pytest.raises(JournalError) as refused:
                await journal.read(stream, after=7)
            assert code_of(refused) == "GAP"
            assert refused.value.context == {"stream": stream, "after": 7, "first": 0, "last": last}
            assert "Start again without a cursor" in refused.value.message


async def test_streams_are_listed_by_name_and_in_pages() -> None:
    async with opened(wall_clock=lambda: 5.0) as journal:
        for name in ("runs/b", "runs/a", "agents/x", "runs%"):
            await journal.write(Append(name, "began", None), Append(name, "went on", None))
        await journal.write(End("runs/a"))
        runs = await journal.streams("runs/")
        assert runs == [StreamInfo("runs/a", 0, 1, 5.0, 5.0), StreamInfo("runs/b", 0, 1, 5.0, None)]
        assert [info.name for info in await journal.streams()] == ["agents/x", "runs%", "runs/a", "runs/b"]
        first = await journal.streams(limit=3)
        assert [info.name for info in await journal.streams(after=first[-1].name)] == ["runs/b"]


async def test_a_wrong_query_is_refused_and_the_next_one_is_answered() -> None:
    async with opened(":memory:", NOTES) as journal:
        with pytest.raises(JournalError) as refused:
            await journal.select("SELECT nothing FROM notes")
        assert code_of(refused) == "REFUSED"
        await journal.write(NOTES.insert(id="n", text="t"))
        assert await journal.select("SELECT text FROM notes WHERE id = ?", ("n",)) == [("t",)]
        assert await journal.select("SELECT text FROM notes WHERE id = :id", {"id": "n"}) == [("t",)]


async def test_a_query_cannot_write(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db", NOTES) as journal:
        with pytest.raises(JournalError) as refused:
            await journal.select("INSERT INTO notes VALUES ('n', 't', NULL)")
        assert code_of(refused) == "READONLY"
        assert await journal.select("SELECT * FROM notes") == []


async def test_reading_does_not_wait_for_a_commit_that_is_under_way(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db") as journal:
        await journal.append("s", "said", 1)
        async with trio.open_nursery() as nursery:
            with held(tmp_path / "j.db"):
                nursery.start_soon(journal.append, "s", "said", 2)
                await trio.testing.wait_all_tasks_blocked()
                assert payloads(await journal.read("s")) == [b"1"], "and it sees nothing that is not committed"
        assert payloads(await journal.read("s")) == [b"1", b"2"]


async def test_a_look_at_a_journal_that_is_being_written_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    async with opened(path) as journal:
        await journal.append("s", "said", 1)
        async with open_reader(path) as reader:
            assert payloads(await reader.read("s")) == [b"1"]
            await journal.append("s", "said", 2)
            assert payloads(await reader.read("s")) == [b"1", b"2"]
        await journal.append("s", "said", 3)
    assert [file.name for file in tmp_path.iterdir()] == ["j.db"], "a closed journal is one file"
    before = path.read_bytes()
    async with open_reader(path) as reader:
        assert len(await reader.read("s")) == 3
    assert path.read_bytes() == before


async def test_a_closed_reader_says_so() -> None:
    async with opened() as journal:
        pass
    with pytest.raises(JournalError) as refused:
        await journal.read("s")
    assert code_of(refused) == "CLOSED"


async def test_looking_at_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database at all, but long enough to be one" * 100)
    shell_made = tmp_path / "other.db"
    shell(shell_made, "CREATE TABLE t (a)")
    for path, code in ((tmp_path / "text", "CORRUPT"), (shell_made, "FOREIGN"), (tmp_path / "none", "IO")):
        with pytest.raises(JournalError) as refused:
            async with open_reader(path):
                pass
        assert code_of(refused) == code
        assert str(path) in refused.value.message
