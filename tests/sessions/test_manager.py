"""Sessions of a runtime: opened, told of, forked, flushed and disposed of."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
import trio

from greenroom.actors.session import MemoryPersistence, SessionAppended, SessionManager, SessionOpened
from greenroom.actors.system import open_runtime
from greenroom.protocol.errors import SessionError
from greenroom.protocol.sessions import SessionEvent, SessionHeader
from greenroom.runtime.tree import run_tree
from tests.cancelling import Doomed, at_every_step
from tests.clock import advance
from tests.sessions.writing import answer, ask, begin, log_of, start


class Failing(MemoryPersistence):
    """A disk that fails while it is told to, and remembers what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: Exception | None = None
        self.written: list[int] = []
        self.gate: trio.Event | None = None

    async def append(self, header: SessionHeader, events: Sequence[SessionEvent]) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        await super().append(header, events)
        self.written.append(len(events))


async def test_the_session_of_an_id_is_one() -> None:
    async with open_runtime() as runtime:
        session = await runtime.sessions.open("a", cwd="/work", delegation_depth=2)
        assert await runtime.sessions.open("a") is session is runtime.sessions.get("a")
        assert (session.header.cwd, session.header.delegation_depth, session.header.version) == ("/work", 2, 1)
        session.append("user/message", {"content": "hi"})
        await runtime.sessions.dispose(session)
        await runtime.sessions.dispose(session)
        assert runtime.sessions.get("a") is None
        with pytest.raises(SessionError, match="open it again"):
            session.append("user/message", {"content": "late"})
        again = await runtime.sessions.open("a")
        assert again is not session
        assert again.events() == session.events()
        assert [header.id for header in await runtime.sessions.list()] == ["a"]
        await runtime.sessions.dispose(session)  # an old one takes nothing from its successor
        assert runtime.sessions.get("a") is again


@pytest.mark.parametrize("id", ["", "\ud800"])
async def test_an_id_that_is_no_text_is_refused(id: str) -> None:
    async with open_runtime() as runtime:
        with pytest.raises(SessionError, match="not empty"):
            await runtime.sessions.open(id)


@pytest.mark.case("pipeline", 2)
async def test_a_session_that_a_listener_refuses_is_none_and_is_told_of_as_disposed_of() -> None:
    async with open_runtime() as runtime:
        disposed: list[SessionOpened] = []

        def refuse(opened: SessionOpened) -> None:
            raise PermissionError("not here")

        close = runtime.bus.on("session/created", refuse)
        runtime.bus.on("session/disposed", disposed.append)
        with pytest.raises(PermissionError):
            await runtime.sessions.open("a")
        assert len(disposed) == 1
        assert runtime.sessions.get("a") is None
        assert await runtime.sessions.list() == []
        close()
        session = await runtime.sessions.open("a")
        assert session is not disposed[0].session


@pytest.mark.case("pipeline", 32)
async def test_a_listener_that_appends_to_the_session_it_is_told_of_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_runtime() as runtime:
        session, other = await runtime.sessions.open("a"), await runtime.sessions.open("b")
        told: list[SessionEvent] = []

        def append(appended: SessionAppended) -> None:
            if appended.session is session:
                other.append("user/message", {"content": "copied"})
                session.append("user/message", {"content": "never"})

        runtime.bus.on("session/event", append)
        runtime.bus.on("session/event", lambda appended: told.append(appended.event))
        with caplog.at_level(logging.ERROR, "greenroom.bus"):
            event = session.append("user/message", {"content": "once"})
        assert "REENTRANT" in caplog.text or "takes none meanwhile" in caplog.text
        assert session.events() == (event,)
        assert [event.data.content for event in told] == ["copied", "once"]
        session.append("todo/write", {"todos": []})
        assert session.count == 2, "afterwards it takes events again"


async def test_what_was_stored_is_not_told_again() -> None:
    async with open_runtime() as runtime:
        session = await runtime.sessions.open("a")
        start(begin(session), ask(session, "1"), 0)
        await runtime.sessions.dispose(session)
        told: list[Any] = []
        runtime.bus.on("session/event", told.append)
        again = await runtime.sessions.open("a")
        assert log_of(again.events())[-3:] == ["tool/result", "step/end", "turn/end"]
        assert told == []
        count = again.count
        await runtime.sessions.dispose(again)
        assert (await runtime.sessions.open("a")).count == count, "it was repaired once"


async def test_looking_at_a_log_repairs_the_copy_alone() -> None:
    async with open_runtime() as runtime:
        session = await runtime.sessions.open("a")
        begin(session)
        stored = session.count
        await runtime.sessions.dispose(session)
        assert (await runtime.sessions.read("a")).count == stored + 2
        kept = await runtime.sessions.persistence.read("a")
        assert kept is not None
        assert len(kept.events) == stored
        with pytest.raises(SessionError, match="known are a") as refusal:
            await runtime.sessions.read("b")
        assert refusal.value.code == "SESSION_NOT_FOUND"


# -------------------------------------------------------------------- forks


@pytest.mark.case("pipeline", 31)
async def test_a_fork_begins_with_what_stands_up_to_its_boundary() -> None:
    async with open_runtime() as runtime:
        sessions = runtime.sessions
        session = await sessions.open("a", cwd="/work")
        answer(session, "one")
        boundary = session.last
        answer(session, "two")

        async def code(source: str, at: int, id: str = "b") -> str:
            with pytest.raises(SessionError) as refusal:
                await sessions.fork(source, at, id=id)
            return refusal.value.code

        assert await code("a", boundary - 1) == "OPEN_TURN"
        assert await code("a", -1) == await code("a", session.count) == "INVALID_BOUNDARY"
        assert await code("nobody", 0) == "SESSION_NOT_FOUND"
        assert await code("a", boundary, "a") == "SESSION_ALREADY_EXISTS"
        assert sessions.get("b") is None
        told: list[SessionAppended] = []
        runtime.bus.on("session/event", told.append)
        fork = await sessions.fork("a", boundary, id="b")
        assert told == []
        assert fork.events()[:-1] == session.events()[: boundary + 1]
        assert fork.event(fork.last).type == "session/end-seed"
        header = fork.header
        assert (header.parent_session, header.seed_length, header.cwd) == ("a", boundary + 1, "/work")
        assert fork.live_events() == ()
        answer(fork, "another")
        assert session.count == 2 * (boundary + 1)
        await sessions.dispose(fork)
        assert await code("b", 0, "c") == "SESSION_NOT_LIVE"
        assert await code("a", boundary) == "SESSION_ALREADY_EXISTS"
        again = await sessions.open("b")
        assert [message.content for message in again.history()] == ["go", "one", "go", "another"]
        of_fork = await sessions.fork("b", again.last, id="c")
        assert log_of(of_fork.events()).count("session/end-seed") == 2


# -------------------------------------------------------------------- writing behind


@pytest.fixture
def disk() -> Failing:
    return Failing()


async def test_what_is_appended_is_written_within_the_window_together(
    disk: Failing, mock_clock: trio.testing.MockClock
) -> None:
    async with run_tree() as tree:
        sessions = SessionManager(tree, persistence=disk)
        session = await sessions.open("a")
        for number in range(3):
            session.append("user/message", {"content": str(number)})
        await advance(199)
        assert disk.written == []
        await advance(1)
        assert disk.written == [3]
        session.append("user/message", {"content": "later"})
        await advance(200)
        assert disk.written == [3, 1]


async def test_a_flush_waits_for_no_window(disk: Failing, mock_clock: trio.testing.MockClock) -> None:
    async with run_tree() as tree:
        sessions = SessionManager(tree, persistence=disk)
        session = await sessions.open("a")
        assert not await sessions.flush(session), "nobody keeps anything"
        session.append("user/message", {"content": "x"})
        before = trio.current_time()
        await sessions.flush(session)
        assert (disk.written, trio.current_time()) == ([1], before)
        heard: list[Any] = []

        async def listener(flushed: Any) -> None:
            heard.append(flushed.session)

        tree.bus.on(sessions.flushing, listener)
        assert await sessions.flush(session)
        assert heard == [session]


async def test_a_flush_raises_the_first_failure_after_all_have_ended_and_nothing_is_lost(disk: Failing) -> None:
    async with run_tree() as tree:
        sessions = SessionManager(tree, persistence=disk)
        session = await sessions.open("a")
        heard: list[str] = []

        async def listener(flushed: Any) -> None:
            await trio.lowlevel.checkpoint()
            heard.append("flushed")
            raise LookupError("the listener's")

        tree.bus.on(sessions.flushing, listener)
        session.append("user/message", {"content": "x"})
        disk.failure = OSError("no space")
        with pytest.raises(OSError, match="no space"):
            await sessions.flush(session)
        with pytest.raises(OSError, match="no space"):
            await sessions.dispose(session)
        assert sessions.get("a") is session, "nothing was lost"
        disk.failure = None
        with pytest.raises(LookupError):
            await sessions.flush(session)
        assert heard == ["flushed"] * 3
        assert disk.written == [1]


async def test_a_listener_that_would_wait_for_what_waits_for_it_is_refused(disk: Failing) -> None:
    async with run_tree() as tree:
        sessions = SessionManager(tree, persistence=disk)
        session = await sessions.open("a")

        async def dispose(flushed: Any) -> None:
            await sessions.open("b")  # another one is no circle
            await sessions.dispose(session)

        close = tree.bus.on(sessions.flushing, dispose)
        with pytest.raises(SessionError, match="waits for this listener") as refusal:
            await sessions.dispose(session)
        assert refusal.value.code == "REENTRANT"
        close()
        assert sessions.get("a") is session
        await sessions.dispose(session)
        assert sessions.get("a") is None


async def test_what_is_appended_while_a_write_is_under_way_comes_after_it(disk: Failing) -> None:
    async with run_tree() as tree:
        sessions = SessionManager(tree, persistence=disk)
        session = await sessions.open("a")
        disk.gate = trio.Event()
        session.append("user/message", {"content": "1"})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sessions.flush, session)
            await trio.testing.wait_all_tasks_blocked()
            session.append("user/message", {"content": "2"})
            nursery.start_soon(sessions.flush, session)
            await trio.testing.wait_all_tasks_blocked()
            disk.gate.set()
        assert disk.written == [1, 1]
        kept = await disk.read("a")
        assert kept is not None
        assert [event.seq for event in kept.events] == [0, 1]


async def test_a_runtime_that_ends_writes_what_there_is_and_tells_of_it(disk: Failing) -> None:
    told: list[str] = []
    async with run_tree() as tree:
        sessions = SessionManager(tree, persistence=disk)
        tree.bus.on(sessions.disposed, lambda opened: told.append(opened.session.id))
        session = await sessions.open("a")
        session.append("user/message", {"content": "x"})
    assert (disk.written, told, session.disposed) == ([1], ["a"], True)


async def test_a_cancelled_flush_writes_all_the_same(autojump_clock: trio.testing.MockClock) -> None:
    async def scenario(doomed: Doomed) -> None:
        disk = Failing()
        async with run_tree() as tree:
            sessions = SessionManager(tree, persistence=disk)
            session = await sessions.open("a")
            session.append("user/message", {"content": "x"})
            await doomed(sessions.flush, session)
            session.append("user/message", {"content": "y"})
            await sessions.flush(session)
            kept = await disk.read("a")
            assert kept is not None
            assert [event.seq for event in kept.events] == [0, 1]

    await at_every_step(scenario)


async def test_a_cancelled_open_fork_or_dispose_leaves_a_session_that_can_be_opened(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with run_tree() as tree:
            sessions = SessionManager(tree)
            session = await sessions.open("a")
            answer(session, "one")

            async def live() -> None:
                await sessions.fork("a", session.last, id="b")
                await sessions.dispose(session)
                await sessions.open("a")

            await doomed(live)
            assert (await sessions.open("a")).count == 6
            if sessions.get("b") is None:
                await sessions.fork("a", 5, id="b")

    await at_every_step(scenario)
