"""A disk that is full, a file that cannot be written, damage found late: typed errors, nothing recorded is harmed, and
the next write is tried again."""

# ruff: noqa: ASYNC240  # nothing else runs that looking at a file could hold up

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
import trio

from greenroom.protocol.errors import JournalError
from greenroom.runtime.journal import Append, Journal, Outcome, open_journal, open_reader
from greenroom.runtime.journal import file as journal_file
from greenroom.runtime.tree import run_tree
from tests.journal.stage import NOTES, attempted, code_of, held, opened, payloads

LARGE = b"x" * 20_000


class Disk(NamedTuple):
    """A disk of about a megabyte."""

    folder: Path
    enlarge: Callable[[Journal], None]
    """Gives it more room."""


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Disk, None, None]:
    """A real one where this process may mount one, else SQLite's own bound on the size of a database."""

    def mount(*options: str) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "none", str(tmp_path)]
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            return False

    if mount("size=1m"):
        yield Disk(tmp_path, lambda journal: None if mount("remount", "size=8m") else pytest.fail("no larger disk"))
        subprocess.run(["umount", str(tmp_path)], check=True)
        return

    def small(target: str) -> sqlite3.Connection:
        connection = connect(target)
        connection.execute("PRAGMA max_page_count = 100")
        return connection

    def enlarge(journal: Journal) -> None:
        journal._writer._file.writer.execute("PRAGMA max_page_count = 100000")

    connect = journal_file._connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_file, "_connect", small)
        yield Disk(tmp_path, enlarge)


async def fill(journal: Journal) -> int:
    """Append large events until there is no room for one more; how many there are."""
    count = 0
    while not isinstance(outcome := await attempted(journal.append("s", "large", LARGE)), JournalError):
        assert outcome == count
        count += 1
    assert code_of(outcome) == "FULL"
    assert "make room, and later writes will succeed" in outcome.message
    assert outcome.context["path"] == journal.path
    return count


async def test_a_full_disk_fails_what_has_no_room_and_harms_nothing(disk: Disk) -> None:
    path = disk.folder / "j.db"
    async with opened(path, NOTES) as journal:
        count = await fill(journal)
        assert count > 3
        with pytest.raises(JournalError) as refused:
            await journal.write(NOTES.insert(id="n", text=""), Append("s", "large", LARGE))
        assert code_of(refused) == "FULL"
        assert [event.seq for event in await journal.read("s")] == list(range(count))
        assert await journal.select("SELECT * FROM notes") == []
        disk.enlarge(journal)
        assert await journal.append("s", "large", LARGE) == count, "the lost ones have taken no number"
    async with opened(path, NOTES) as journal:
        assert payloads(await journal.read("s")) == [LARGE] * (count + 1)


async def test_a_full_disk_fails_every_unit_of_the_transaction_and_only_those(disk: Disk) -> None:
    outcomes: list[Outcome] = []
    async with opened(disk.folder / "j.db") as journal:
        count = await fill(journal)
        for _ in range(5):
            journal.post(Append("s", "large", LARGE), Append("t", "small", None), done=outcomes.append)
        with pytest.raises(JournalError):
            await journal.append("s", "large", LARGE)
        assert [code_of(outcome) for outcome in outcomes] == ["FULL"] * 5
        disk.enlarge(journal)
        assert await journal.write(Append("s", "large", LARGE), Append("t", "small", None)) == (count, 0)


async def test_a_journal_that_has_no_room_is_refused_at_opening(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    async with opened(path) as journal:
        await journal.append("s", "said", None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("greenroom.runtime.journal.ownership.os.write", no_room)
        with pytest.raises(JournalError) as refused:
            async with opened(path):
                pass
    assert code_of(refused) == "FULL"
    async with opened(path) as journal:
        assert await journal.append("s", "said", None) == 1


def no_room(descriptor: int, data: bytes) -> int:
    """What `os.write` does on a full disk."""
    raise OSError(28, os.strerror(28))


async def test_an_error_of_the_file_system_is_told_and_the_next_write_is_tried(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    async with opened(path) as journal:
        await journal.append("s", "said", LARGE)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        log = Path(f"{path}-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (log + 6_000, hard))  # the system refuses to let a file grow beyond
        try:
            for _ in range(2):
                with pytest.raises(JournalError) as refused:
                    await journal.append("s", "said", LARGE)
                assert code_of(refused) == "IO"
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert await journal.append("s", "said", LARGE) == 1
    async with opened(path) as journal:
        assert payloads(await journal.read("s")) == [LARGE, LARGE]


async def test_a_file_that_cannot_be_written_any_more_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db", NOTES) as journal:
        await journal.append("s", "said", 1)
        journal._writer._file.writer.execute("PRAGMA query_only = 1")  # an open file stays writable by all other means
        with pytest.raises(JournalError) as refused:
            await journal.write(Append("s", "said", 2), NOTES.insert(id="n", text=""))
        assert code_of(refused) == "READONLY"
        assert payloads(await journal.read("s")) == [b"1"]
        journal._writer._file.writer.execute("PRAGMA query_only = 0")
        assert await journal.append("s", "said", 3) == 1


async def test_another_program_that_holds_the_file_for_long_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.runtime.journal.file.PATIENCE", 0.01)
    async with opened(tmp_path / "j.db") as journal:
        with held(tmp_path / "j.db"), pytest.raises(JournalError) as refused:
            await journal.append("s", "said", None)
        assert code_of(refused) == "BUSY"
        assert "another program holds it locked" in refused.value.message
        assert await journal.append("s", "said", None) == 0


async def test_damage_that_is_found_late_is_told_and_the_rest_stays_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j.db"
    async with opened(path) as journal:
        for stream in "abcdef":
            await journal.write(*(Append(stream, "said", b"%02000d" % number) for number in range(20)))
    data = bytearray(path.read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        pages = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf' ORDER BY path"
        ).fetchall()
    (page,) = pages[len(pages) // 2]
    data[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(data)
    monkeypatch.setattr("greenroom.runtime.journal.file.CHECKED", 0)  # as it is for a file of many megabytes
    async with opened(path) as journal:
        outcomes = [await attempted(journal.read(stream)) for stream in "abcdef"]
        [error] = [outcome for outcome in outcomes if isinstance(outcome, JournalError)]
        assert code_of(error) == "CORRUPT"
        assert "`sqlite3 FILE .recover`" in error.message
        assert len(await journal.read("a")) == 20
        assert len(await journal.read("f")) == 20
    async with open_reader(path) as reader:
        assert len(await reader.read("a")) == 20


async def test_a_failure_that_nobody_foresaw_ends_the_writer_and_nobody_waits_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Outcome] = []

    def explode(*args: object) -> None:
        raise LookupError("a fault of the recorder")

    async with run_tree() as tree:
        journal = await open_journal(tree, tmp_path / "j.db")
        await journal.append("s", "said", 1)
        with monkeypatch.context() as patch:
            patch.setattr("greenroom.runtime.journal.recorder.Recorder._begin", explode)
            journal.post(Append("s", "said", 2), done=told.append)
            with pytest.raises(JournalError) as refused:
                await journal.append("s", "said", 3)
        assert code_of(refused) == "CLOSED"
        assert [code_of(outcome) for outcome in told] == ["CLOSED"]
        with trio.fail_after(5):
            await journal.close()
        assert "a fault of the recorder" in caplog.text
        with pytest.raises(JournalError):
            await journal.append("s", "said", 4)
    async with opened(tmp_path / "j.db") as journal:
        assert payloads(await journal.read("s")) == [b"1"]
