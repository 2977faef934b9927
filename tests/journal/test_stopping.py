"""The end: what was handed over before is committed, everything later is refused, and nothing is left open."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from greenroom.protocol.errors import JournalError
from greenroom.runtime.actor import Actor, Leaf, handles
from greenroom.runtime.journal import Append, Outcome, open_journal
from greenroom.runtime.messages import Message
from greenroom.runtime.tree import run_tree
from tests.cancelling import Doomed, at_every_step
from tests.journal.stage import NOTES, code_of, held, opened, payloads


def beside(folder: Path) -> list[str]:
    """The files that are only there while a journal is open: its lock, and SQLite's own beside the last connection."""
    return [file.name for file in folder.iterdir() if file.suffix != ".db"]


async def test_what_was_handed_over_is_committed_before_the_writer_ends(tmp_path: Path) -> None:
    told: list[Outcome] = []
    async with opened(tmp_path / "j.db") as journal:
        await journal.append("s", "said", None)
        for _ in range(3_000):
            journal.post(Append("s", "said", None), done=told.append)
        assert sorted(beside(tmp_path)) == ["j.db-lock", "j.db-shm", "j.db-wal"]
        await journal.close()
        assert told == [(number,) for number in range(1, 3_001)]
        assert beside(tmp_path) == []
    async with opened(tmp_path / "j.db") as journal:
        assert len(await journal.read("s", limit=5_000)) == 3_001


async def test_a_stop_during_a_commit_waits_for_it_and_for_those_behind_it(tmp_path: Path) -> None:
    path, numbers = tmp_path / "j.db", set[int]()

    async with opened(path) as journal:

        async def write() -> None:
            numbers.add(await journal.append("s", "said", None))

        async with trio.open_nursery() as nursery:
            with held(path) as release:
                nursery.start_soon(write)
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(write)
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(journal.close)
                await trio.testing.wait_all_tasks_blocked()
                assert numbers == set()
                with pytest.raises(JournalError) as refused:
                    journal.post(Append("s", "late", None))
                assert code_of(refused) == "CLOSED"
                release()
    assert numbers == {0, 1}


async def test_the_tree_stops_it_after_those_who_write_to_it(tmp_path: Path) -> None:
    class Note(Message, frozen=True):
        text: str

    class Author(Leaf):
        @handles(Note)
        def note(self, message: Note) -> None:
            journal.post(Append("s", "said", message.text))

        def on_end(self, reason: str) -> None:
            journal.post(Append("s", "said", reason))

    async with run_tree() as tree:
        journal = await open_journal(tree, tmp_path / "j.db")
        author = tree.spawn(Author(), "author")
        author.tell(Note("one"))
        await trio.testing.wait_all_tasks_blocked()
    async with opened(tmp_path / "j.db") as journal:
        assert payloads(await journal.read("s")) == [b'"one"', b'"stopped"']


async def test_after_the_end_everything_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db") as journal:
        await journal.close()
        await journal.close()
        for attempt in (
            journal.append("s", "said", None),
            journal.read("s"),
            journal.select("SELECT 1"),
            journal.register(NOTES),
            journal.prune(older_than=0),
            journal.cut("s", before=1),
            anext(journal.follow("s")),
        ):
            with pytest.raises(JournalError) as refused:
                await attempt
            assert code_of(refused) == "CLOSED"
            assert str(tmp_path / "j.db") in refused.value.message


async def test_one_that_is_stopped_before_it_has_begun_lets_go_of_its_file(tmp_path: Path) -> None:
    async with run_tree() as tree:
        journal = await open_journal(tree, tmp_path / "j.db")
        told: list[Outcome] = []
        journal.post(Append("s", "said", None), done=told.append)
        tree.find("/journal").stop_soon()
    assert [code_of(outcome) for outcome in told] == ["CLOSED"]
    assert beside(tmp_path) == []
    async with opened(tmp_path / "j.db") as journal:
        assert await journal.streams() == []


async def test_a_cancelled_tree_commits_what_was_handed_over(tmp_path: Path) -> None:
    with trio.CancelScope() as scope:
        async with run_tree() as tree:
            journal = await open_journal(tree, tmp_path / "j.db")
            await journal.append("s", "said", 0)
            for number in range(1, 100):
                journal.post(Append("s", "said", number))
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert beside(tmp_path) == []
    async with opened(tmp_path / "j.db") as journal:
        assert len(await journal.read("s")) == 100


async def test_a_cancelled_write_is_recorded_whole_or_not_at_all(tmp_path: Path) -> None:
    rounds = recorded = 0

    async def scenario(doomed: Doomed) -> None:
        nonlocal rounds, recorded
        rounds += 1
        path = tmp_path / f"{rounds}.db"
        async with opened(path, NOTES) as journal:
            await journal.append("s", "before", None)
            unit = (Append("s", "doomed", 1), NOTES.insert(id="n", text=""), Append("s", "doomed", 2))
            ended = await doomed(journal.write, *unit)
            after = await journal.append("s", "after", None)
            kinds = [event.kind for event in await journal.read("s")]
            rows = await journal.select("SELECT id FROM notes")
            assert kinds in (["before", "doomed", "doomed", "after"], ["before", "after"])
            assert len(rows) == (len(kinds) == 4)
            assert after == len(kinds) - 1
            if not ended.cancelled:
                assert ended.value == (1, 1, 2)
                assert rows
            recorded += ended.cancelled and len(rows)

    moments = await at_every_step(scenario)
    assert moments > 3
    assert recorded, "some moment was after the transaction began"


async def test_a_cancelled_opening_leaves_nothing_open(tmp_path: Path) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with run_tree() as tree:
            ended = await doomed(open_journal, tree, tmp_path / "j.db")
            if not ended.cancelled:
                assert await ended.value.append("s", "said", None) >= 0
        assert beside(tmp_path) == []

    assert await at_every_step(scenario) > 0


async def test_a_write_from_an_actor_that_stops_is_given_up_before_its_transaction(tmp_path: Path) -> None:
    class Write(Message, frozen=True):
        pass

    class Author(Actor):
        @handles(Write)
        async def write(self, message: Write) -> None:
            await journal.append("s", "given up", None)

    async with run_tree() as tree:
        journal = await open_journal(tree, tmp_path / "j.db")
        author = tree.spawn(Author(), "author")
        async with trio.open_nursery() as nursery:
            with held(tmp_path / "j.db"):
                nursery.start_soon(journal.append, "s", "first", None)
                await trio.testing.wait_all_tasks_blocked()
                author.tell(Write())
                await trio.testing.wait_all_tasks_blocked()
                await author.stop()
        await journal.append("s", "last", None)
        assert [event.kind for event in await journal.read("s")] == ["first", "last"]
        assert tree.snapshot().waits == ()
