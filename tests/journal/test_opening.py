"""Opening: one owner, and only what is a whole journal; whatever is refused stays as it was."""

# ruff: noqa: ASYNC240  # nothing else runs that looking at a file could hold up

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
import trio

from greenroom.protocol.errors import ActorError, JournalError
from greenroom.runtime.journal import Append, open_journal, open_reader
from greenroom.runtime.journal.file import APPLICATION
from greenroom.runtime.tree import run_tree
from tests.journal.stage import opened, payloads, shell

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534


async def refused(path: Path | str) -> JournalError:
    """What opening it raises."""
    with pytest.raises(JournalError) as raised:
        async with opened(path):
            pass
    assert raised.value.context["path"] in raised.value.message
    return raised.value


@pytest.fixture
async def whole(tmp_path: Path) -> Path:
    """A journal of some twenty pages, closed."""
    path = tmp_path / "j.db"
    async with opened(path) as journal:
        await journal.write(*(Append("s", "said", b"%02000d" % number) for number in range(40)))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# -------------------------------------------------------------------- what a journal is


async def test_a_closed_journal_is_one_file_that_says_whose_it_is(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db") as journal:
        assert journal.path == str(tmp_path / "j.db")
        await journal.append("s", "said", None)
    assert list(contents(tmp_path)) == ["j.db"]
    assert shell(tmp_path / "j.db", "PRAGMA application_id") == [(APPLICATION,)]
    assert shell(tmp_path / "j.db", "PRAGMA journal_mode") == [("wal",)]


async def test_a_journal_in_memory_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened() as journal:
        assert journal.path == ":memory:"
        await journal.append("s", "said", 1)
        async with opened() as other:
            assert await other.streams() == []
    assert contents(tmp_path) == {}


async def test_commits_wait_for_the_disk(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db") as journal:
        connection = journal._writer._file.writer
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_an_empty_file_becomes_a_journal(tmp_path: Path) -> None:
    (tmp_path / "j.db").touch(mode=0o600)
    async with opened(tmp_path / "j.db") as journal:
        await journal.append("s", "said", 1)
    async with opened(tmp_path / "j.db") as journal:
        assert payloads(await journal.read("s")) == [b"1"]
    assert (tmp_path / "j.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["with space.db", "100%.db", "what?.db", "#1.db", "ü.db"])
async def test_any_name_will_do(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path / name) as journal:
        await journal.append("s", "said", 1)
        async with open_reader(tmp_path / name) as reader:
            assert payloads(await reader.read("s")) == [b"1"]
    assert list(contents(tmp_path)) == [name]


# -------------------------------------------------------------------- one owner


async def test_a_second_process_is_refused_with_the_number_of_the_first_until_that_ends(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    command = [sys.executable, "-m", "tests.journal.child", str(path)]
    child = await trio.lowlevel.open_process(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert (await child.stdout.receive_some()).startswith(b"ready")
        error = await refused(path)
        assert error.code == "OWNED"
        assert error.context == {"path": str(path), "pid": child.pid}
        assert f"process {child.pid}" in error.message
        async with open_reader(path) as reader:
            assert [event.kind for event in await reader.read("child")] == ["began"]
    finally:
        child.kill()
        await child.wait()
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            await pipe.aclose()
    async with opened(path) as journal:
        assert await journal.append("child", "follows", None) == 1, "a killed owner holds nothing"
    assert list(contents(tmp_path)) == ["j.db"]


async def test_a_second_opening_in_one_process_is_refused_however_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "j.db")
    async with opened(tmp_path / "j.db") as journal:
        for name in ("j.db", "link.db"):
            error = await refused(tmp_path / name)
            assert error.code == "OWNED"
            assert error.context == {"path": str(tmp_path / "j.db"), "pid": os.getpid()}
            assert "in this process" in error.message
        assert await journal.append("s", "said", None) == 0
    async with opened(tmp_path / "link.db") as journal:
        assert await journal.append("s", "said", None) == 1


async def test_a_number_that_a_killed_owner_left_behind_means_nothing(tmp_path: Path) -> None:
    (tmp_path / "j.db-lock").write_text("1\n")
    async with opened(tmp_path / "j.db") as journal:
        await journal.append("s", "said", None)
        assert (tmp_path / "j.db-lock").read_text() == f"{os.getpid()}\n"


async def test_a_tree_has_one_journal(tmp_path: Path) -> None:
    async with run_tree() as tree:
        await open_journal(tree, tmp_path / "first.db")
        with pytest.raises(ActorError) as raised:
            await open_journal(tree, tmp_path / "second.db")
        assert raised.value.code == "EXISTS"
        async with opened(tmp_path / "second.db"):
            pass


# -------------------------------------------------------------------- what is refused


async def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("dear diary\n" * 1000)
    before = contents(tmp_path)
    error = await refused(tmp_path / "notes.txt")
    assert error.code == "FOREIGN"
    assert "name another file, or move it away" in error.message
    assert contents(tmp_path) == before


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "nope", tmp_path / "file"):
        error = await refused(folder / "j.db")
        assert error.code == "IO"
        assert f"there is no folder {folder}." in error.message


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("killed", [False, True])
async def test_a_database_of_another_program_is_refused(tmp_path: Path, mode: str, killed: bool) -> None:
    path, copy = tmp_path / "live" / "other.db", tmp_path / "found"
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE t (a)")
        if killed:  # its files as they are while it is at work
            connection.execute("PRAGMA cache_size = 1")
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO t VALUES (?)", [("x" * 1000,)] * 100)
            found = contents(path.parent)
        else:
            connection.close()
            found = contents(path.parent)
    copy.mkdir()
    for name, data in found.items():
        (copy / name).write_bytes(data)
    assert (await refused(copy / "other.db")).code == "FOREIGN"
    assert contents(copy) == found


@pytest.mark.parametrize("kept", [16, 50, 99, 100, 4095, 4096, 4097, 0.5, -4096, -1])
async def test_a_file_that_was_cut_off_is_refused(whole: Path, kept: float) -> None:
    size = whole.stat().st_size
    os.truncate(whole, int(size * kept if 0 < kept < 1 else kept % size))
    before = contents(whole.parent)
    error = await refused(whole)
    assert error.code == "CORRUPT"
    assert "Move it away together with its -wal file" in error.message
    assert contents(whole.parent)[whole.name] == before[whole.name]


@pytest.mark.parametrize("junk", [b"\0", b"\xff", b"x"])
async def test_a_file_with_junk_in_the_middle_is_refused(whole: Path, junk: bytes) -> None:
    data = whole.read_bytes()
    pages = len(data) // 4096
    assert pages > 10
    for page in range(1, pages):
        damaged = data[: page * 4096] + junk * 4096 + data[(page + 1) * 4096 :]
        whole.write_bytes(damaged)
        error = await refused(whole)
        assert error.code == "CORRUPT", page
        assert whole.read_bytes() == damaged
        assert not Path(f"{whole}-lock").exists()
    whole.write_bytes(data)
    async with opened(whole) as journal:
        assert len(await journal.read("s")) == 40


async def test_a_log_without_its_file_is_refused_rather_than_dropped(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    async with opened(path) as journal:
        await journal.append("s", "said", None)
        log = Path(f"{path}-wal").read_bytes()
    Path(f"{path}-wal").write_bytes(log)
    for lose in (path.unlink, path.touch):
        lose()
        error = await refused(path)
        assert error.code == "CORRUPT"
        assert "is empty, and its -wal file is not" in error.message
        assert Path(f"{path}-wal").read_bytes() == log


async def test_a_log_that_was_cut_off_loses_only_what_was_cut(tmp_path: Path) -> None:
    path, copy = tmp_path / "j.db", tmp_path / "copy.db"
    async with opened(path) as journal:
        for number in range(20):
            await journal.append("s", "said", number)
        for suffix in ("", "-wal"):
            Path(f"{copy}{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    log = Path(f"{copy}-wal")
    os.truncate(log, log.stat().st_size - 10_000)
    async with opened(copy) as journal:
        events = await journal.read("s")
        assert [event.seq for event in events] == list(range(len(events)))
        assert 10 < len(events) < 20
        assert await journal.append("s", "said", None) == len(events)


async def test_a_folder_that_is_not_there_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert (await refused(tmp_path / "none" / "j.db")).code == "IO"
    assert (await refused(tmp_path)).code == "IO"


@pytest.mark.parametrize("written", [False, True])
async def test_a_file_whose_making_was_cut_short_is_made_again(tmp_path: Path, written: bool) -> None:
    live, path = tmp_path / "live.db", tmp_path / "j.db"
    with closing(sqlite3.connect(live, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")  # what follows is too much for it, so that the -journal is written
        connection.execute("BEGIN")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute("CREATE TABLE filler (a)")
        connection.executemany("INSERT INTO filler VALUES (?)", [("x" * 1000,)] * 100)
        Path(f"{path}-journal").write_bytes(Path(f"{live}-journal").read_bytes())
        connection.execute("COMMIT")
    path.write_bytes(live.read_bytes() if written else b"")
    async with opened(path) as journal:
        assert await journal.append("s", "said", None) == 0
    assert shell(path, "SELECT name FROM sqlite_master WHERE name = 'filler'") == []
    assert sorted(contents(tmp_path)) == ["j.db", "live.db"]


# -------------------------------------------------------------------- where nothing can be written


@contextmanager
def unwritable(path: Path) -> Generator[None, None, None]:
    """Nothing that `path` names, file or folder, can be written by this process for the length of the block.

    Permissions do not bind root, who becomes nobody for so long.
    """
    with ExitStack() as restored:
        mode = path.stat().st_mode
        path.chmod(mode & ~0o222)
        restored.callback(path.chmod, mode)
        if os.geteuid() == 0:
            os.seteuid(NOBODY)
            restored.callback(os.seteuid, 0)
        yield


@pytest.fixture
def shared() -> Generator[Path, None, None]:
    """A folder that anybody may enter, as pytest's own ones are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


async def test_a_file_that_cannot_be_written_is_refused(shared: Path) -> None:
    path = shared / "j.db"
    async with opened(path) as journal:
        await journal.append("s", "said", 1)
    before = contents(shared)
    with unwritable(path):
        error = await refused(path)
        async with open_reader(path) as reader:
            assert payloads(await reader.read("s")) == [b"1"], "it can be looked at"
    assert error.code == "READONLY"
    assert "Make the file and its folder writable" in error.message
    assert contents(shared)["j.db"] == before["j.db"]


async def test_a_folder_that_cannot_be_written_is_refused(shared: Path) -> None:
    path = shared / "j.db"
    async with opened(path) as journal:
        await journal.append("s", "said", 1)
    before = contents(shared)
    with unwritable(shared):
        assert (await refused(path)).code == "READONLY"
        assert (await refused(shared / "new.db")).code == "READONLY"
        async with open_reader(path) as reader:
            assert payloads(await reader.read("s")) == [b"1"], "it can be looked at"
    assert contents(shared) == before
