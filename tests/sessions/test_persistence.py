"""Where sessions are kept: what each of the three does alike, and what a disk may do to a file of lines."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.session import JournalLogs, JsonlPersistence, MemoryPersistence, SessionManager
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.errors import SessionError
from greenroom.protocol.sessions.codec import encode, escaped, read_lines
from greenroom.runtime.journal import open_reader
from tests.sessions.writing import answer, ask, begin, code_of, log_of, start

Opener = Callable[[], AbstractAsyncContextManager[Runtime]]


@pytest.fixture(params=["journal", "jsonl"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens a runtime on what the last one has kept."""

    @asynccontextmanager
    async def opener() -> AsyncGenerator[Runtime]:
        kept = JsonlPersistence(tmp_path / "logs") if request.param == "jsonl" else None
        data = tmp_path / "work.db" if kept is None else None
        async with open_runtime(data=data, session_persistence=kept) as runtime:
            yield runtime

    return opener


HOSTILE = ["../../etc/passwd", "a/b", "..", ".", "~0041", "A", "a", "ü😀", "con", " ", "a\n", "-", "x" * 60]


async def test_a_session_is_there_again_in_the_next_process(reopen: Opener) -> None:
    async with reopen() as runtime:
        session = await runtime.sessions.open("planner", cwd="/work", agent_preset="plain")
        answer(session, "one")
        session.append("mine/note", {"by": ["ada", None, 1.5]}, ignorable=True)
        assert await runtime.sessions.flush(session)
        answer(session, "two")  # written when the runtime ends
    async with reopen() as runtime:
        assert [header.id for header in await runtime.sessions.list()] == ["planner"]
        again = await runtime.sessions.open("planner")
        assert again.header == session.header
        assert again.events() == session.events()
        assert again.history() == session.history()
        with pytest.raises(TypeError):
            again.event(6).data["by"].append("bob")


async def test_a_log_that_was_cut_off_in_a_turn_is_repaired_once_and_not_rewritten(reopen: Opener) -> None:
    async with reopen() as runtime:
        session = await runtime.sessions.open("a")
        batch = ask(begin(session), "1", "1", "1")
        start(session, batch, 0)
    stored = session.count
    async with reopen() as runtime:
        looked = await runtime.sessions.read("a")
        assert looked.count == stored + 5
        kept = await runtime.sessions.persistence.read("a")
        assert kept is not None
        assert len(kept.events) == stored
        again = await runtime.sessions.open("a")
        assert again.events()[:stored] == session.events()
        added = again.events()[stored:]
        assert log_of(added) == ["tool/result", "tool/result", "tool/result", "step/end", "turn/end"]
        codes = [event.data.error.code for event in added[:3]]
        assert codes == ["TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED", "TOOL_NOT_STARTED"]
    async with reopen() as runtime:
        assert (await runtime.sessions.open("a")).events() == again.events()


async def test_no_id_shares_a_log_with_another_or_leads_elsewhere(reopen: Opener, tmp_path: Path) -> None:
    async with reopen() as runtime:
        for id in HOSTILE:
            session = await runtime.sessions.open(id)
            session.append("user/message", {"content": id})
    async with reopen() as runtime:
        assert [header.id for header in await runtime.sessions.list()] == sorted(HOSTILE)
        for id in HOSTILE:
            (message,) = (await runtime.sessions.open(id)).history()
            assert message.content == id
    files = [Path(folder, name) for folder, _, names in os.walk(tmp_path) for name in names]
    assert {len(path.relative_to(tmp_path).parts) for path in files} <= {1, 4}


async def test_a_session_without_an_event_is_not_kept(reopen: Opener) -> None:
    async with reopen() as runtime:
        await runtime.sessions.open("a")
    async with reopen() as runtime:
        assert await runtime.sessions.list() == []


async def test_a_fork_is_kept_with_what_it_took_over(reopen: Opener) -> None:
    async with reopen() as runtime:
        session = await runtime.sessions.open("a")
        answer(session, "one")
        fork = await runtime.sessions.fork("a", session.last, id="b")
        answer(fork, "two")
    async with reopen() as runtime:
        again = await runtime.sessions.open("b")
        assert again.events() == fork.events()
        assert again.header.parent_session == "a"
        assert (await runtime.sessions.open("a")).count == session.count


@pytest.mark.parametrize("change", [{"version": 2}, {"type": "new/kind"}])
async def test_a_log_of_a_newer_program_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    persistence = JsonlPersistence(tmp_path)
    async with open_runtime(session_persistence=persistence) as runtime:
        answer(await runtime.sessions.open("a"), "one")
    file = persistence.path("a")
    lines = file.read_bytes().splitlines()
    at = 0 if "version" in change else 1
    lines[at] = msgspec.json.encode(msgspec.json.decode(lines[at]) | change)
    before = b"\n".join([*lines, b""])
    file.write_bytes(before)
    async with open_runtime(session_persistence=JsonlPersistence(tmp_path)) as runtime:
        for look in (runtime.sessions.open, runtime.sessions.read):
            with pytest.raises(SessionError) as refusal:
                await look("a")
            assert refusal.value.code == "UNSUPPORTED"
    assert file.read_bytes() == before


# -------------------------------------------------------------------- files of lines


async def _written(tmp_path: Path, *contents: str) -> Path:
    persistence = JsonlPersistence(tmp_path)
    async with open_runtime(session_persistence=persistence) as runtime:
        session = await runtime.sessions.open("a")
        for content in contents:
            answer(session, content)
        session.append("user/message", {"content": "more"})
    return persistence.path("a")


async def _reopened(tmp_path: Path) -> list[str]:
    async with open_runtime(session_persistence=JsonlPersistence(tmp_path)) as runtime:
        return log_of((await runtime.sessions.open("a")).events())


@pytest.mark.case("pipeline", 30)
@pytest.mark.parametrize("foreign", ["pipe", "device", "folder"])
async def test_what_stands_in_the_place_of_a_log_and_is_no_file_is_refused_and_keeps_nobody_waiting(
    tmp_path: Path, foreign: str
) -> None:
    kept = JsonlPersistence(tmp_path)
    place = kept.path("planner")
    place.parent.mkdir(parents=True)
    if foreign == "pipe":
        os.mkfifo(place)
    elif foreign == "device":
        place.symlink_to("/dev/zero")
    else:
        place.mkdir()
    async with open_runtime(session_persistence=kept) as runtime:
        for look in (runtime.sessions.read, runtime.sessions.open):
            with pytest.raises(SessionError, match=r"cannot be used") as refused:
                await look("planner")
            assert refused.value.code == "IO"
        assert await runtime.sessions.list() == []


async def test_half_a_last_line_is_cut_and_damage_before_the_last_end_of_a_turn_is_refused(tmp_path: Path) -> None:
    file = await _written(tmp_path, "one")
    whole = file.read_bytes()
    types = await _reopened(tmp_path)
    for torn in (whole[:-1], whole[:-20], whole + b'{"type":"user/mess', whole + b"\0" * 50):
        file.write_bytes(torn)
        kept = types if torn.startswith(whole) else types[:-1]
        assert await _reopened(tmp_path) == kept
        assert file.read_bytes() == whole[: len(whole) if torn.startswith(whole) else whole.rindex(b"\n", 0, -1) + 1]
    lines = whole.splitlines(keepends=True)
    for damaged in ([*lines[:3], b"garbage\n", *lines[3:]], [lines[0], lines[1][:10] + b"\n", *lines[2:]]):
        file.write_bytes(b"".join(damaged))
        with pytest.raises(SessionError, match="put a copy in its place") as refusal:
            await _reopened(tmp_path)
        assert refusal.value.code == "CORRUPT"
        assert file.read_bytes() == b"".join(damaged)


@pytest.mark.parametrize("wrong", ["swapped", "missing", "twice", "other id", "no header", "empty", "no event", "seed"])
async def test_a_file_whose_lines_are_no_log_is_refused_and_left_alone(tmp_path: Path, wrong: str) -> None:
    file = await _written(tmp_path, "one")
    lines = file.read_bytes().splitlines(keepends=True)
    match wrong:
        case "swapped":
            lines[2], lines[3] = lines[3], lines[2]
        case "missing":
            del lines[2]
        case "twice":
            lines.append(lines[-1])
        case "other id":
            lines[0] = lines[0].replace(b'"a"', b'"b"')
        case "no event":
            lines.append(b'{"type":"user/message","seq":"6"}\n')
        case "seed":
            lines[0] = lines[0].replace(b'"createdAt"', b'"seedLength":50,"createdAt"')
        case "no header":
            del lines[0]
        case _:
            lines = []
    file.write_bytes(b"".join(lines))
    with pytest.raises(SessionError) as refusal:
        await _reopened(tmp_path)
    assert refusal.value.code == "CORRUPT"
    assert file.read_bytes() == b"".join(lines)


@given(st.binary(max_size=60), st.integers(0, 400))
def test_whatever_follows_the_header_is_read_or_refused(garbage: bytes, at: int) -> None:
    header = b'{"version":1,"id":"a","createdAt":0}\n'
    event = b'{"type":"turn/end","seq":0,"time":0,"data":{"reason":"completed"}}\n'
    content = header + event * 3
    torn = content[: len(header) + at] + garbage
    if code_of(read_lines, torn, "a") == "none":
        lines = read_lines(torn, "a")
        assert torn[: lines.sound].endswith(b"\n")
        assert torn[: lines.sound].count(b"\n") == len(lines.events) + 1
        assert read_lines(torn[: lines.sound], "a").events == lines.events
    else:
        assert code_of(read_lines, torn, "a") == "CORRUPT"


@given(st.text(), st.text())
def test_two_ids_have_two_folders(one: str, other: str) -> None:
    assert (escaped(one) == escaped(other)) == (one == other)
    assert "/" not in escaped(one)
    assert not escaped(one).startswith(".")


async def test_a_file_is_its_owners_alone_and_has_one_writer(tmp_path: Path) -> None:
    persistence = JsonlPersistence(tmp_path)
    async with open_runtime(session_persistence=persistence) as runtime:
        session = await runtime.sessions.open("a")
        session.append("user/message", {"content": "x"})
        await runtime.sessions.flush(session)
        file = persistence.path("a")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        async with open_runtime(session_persistence=JsonlPersistence(tmp_path)) as second:
            with pytest.raises(SessionError, match=f"process {os.getpid()}|this process") as refusal:
                await second.sessions.open("a")
            assert refusal.value.code == "OWNED"
            assert (await second.sessions.read("a")).count == 1
        await runtime.sessions.dispose(session)
        assert [path.name for path in file.parent.iterdir()] == ["session.jsonl"]


async def test_a_new_file_never_takes_the_place_of_another(tmp_path: Path) -> None:
    first, second = JsonlPersistence(tmp_path), JsonlPersistence(tmp_path)
    async with open_runtime(session_persistence=first) as one, open_runtime(session_persistence=second) as other:
        mine, theirs = await one.sessions.open("a"), await other.sessions.open("a")
        mine.append("user/message", {"content": "mine"})
        await one.sessions.flush(mine)
        await one.sessions.dispose(mine)
        theirs.append("user/message", {"content": "theirs"})
        with pytest.raises(SessionError) as refusal:
            await other.sessions.flush(theirs)
        assert refusal.value.code == "SESSION_ALREADY_EXISTS"
        (kept,) = (await one.sessions.read("a")).history()
        assert kept.content == "mine"


async def test_a_write_that_fails_is_cut_off_again_and_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    persistence = JsonlPersistence(tmp_path)
    async with open_runtime(session_persistence=persistence) as runtime:
        session = await runtime.sessions.open("a")
        answer(session, "one")
        await runtime.sessions.flush(session)
        before = persistence.path("a").read_bytes()
        written = os.pwrite

        def full(descriptor: int, content: Any, at: int) -> int:
            if at > len(before):
                raise OSError(28, "No space left on device")
            return written(descriptor, content[:10], at)

        monkeypatch.setattr(os, "pwrite", full)
        session.append("user/message", {"content": "more"})
        with pytest.raises(SessionError, match="No space left") as refusal:
            await runtime.sessions.flush(session)
        assert refusal.value.code == "IO"
        assert persistence.path("a").read_bytes() == before
        monkeypatch.setattr(os, "pwrite", written)
        session.append("user/message", {"content": "and more"})
        await runtime.sessions.flush(session)
    async with open_runtime(session_persistence=JsonlPersistence(tmp_path)) as runtime:
        assert (await runtime.sessions.open("a")).events() == session.events()


async def test_a_first_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    persistence = JsonlPersistence(tmp_path)
    async with open_runtime(session_persistence=persistence) as runtime:
        session = await runtime.sessions.open("a")
        session.append("user/message", {"content": "x"})
        synced = os.fsync

        def broken(descriptor: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "fsync", broken)
        with pytest.raises(SessionError, match="Input/output error"):
            await runtime.sessions.flush(session)
        assert os.listdir(persistence.path("a").parent) == []
        monkeypatch.setattr(os, "fsync", synced)
        await runtime.sessions.flush(session)
        assert (await persistence.read("a")) is not None


async def test_what_is_exported_is_a_file_that_can_be_opened(tmp_path: Path) -> None:
    async with open_runtime(data=tmp_path / "work.db") as runtime:
        session = await runtime.sessions.open("a")
        answer(session, "one")
        await runtime.sessions.flush(session)
        async with open_reader(tmp_path / "work.db") as reader:
            stored = await JournalLogs(reader).read("a")
    assert stored is not None
    target = JsonlPersistence(tmp_path / "logs")
    target.path("a").parent.mkdir(parents=True)
    lines = [encode(stored.header), *map(encode, stored.events), b""]
    target.path("a").write_bytes(b"\n".join(lines))
    async with open_runtime(session_persistence=target) as runtime:
        assert (await runtime.sessions.open("a")).events() == session.events()


async def test_the_journal_keeps_what_memory_keeps_for_the_length_of_a_block() -> None:
    async with open_runtime(data=":memory:") as runtime:
        session = await runtime.sessions.open("a")
        answer(session, "one")
        await runtime.sessions.dispose(session)
        assert (await runtime.sessions.open("a")).count == session.count
        assert not session.durable


async def test_a_manager_without_persistence_keeps_sessions_in_memory() -> None:
    async with open_runtime() as runtime:
        assert isinstance(runtime.sessions.persistence, MemoryPersistence)
        assert isinstance(runtime.sessions, SessionManager)
