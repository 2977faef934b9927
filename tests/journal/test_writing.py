"""Units: committed whole, acknowledged after the commit, many in one transaction, and each responsible for itself
alone."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast, overload

import msgspec
import pytest
import trio
import trio.testing

from greenroom.protocol.errors import JournalError
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.journal import Append, End, Event, Outcome, Statement, Step, open_journal
from greenroom.runtime.journal.writer import CAPACITY
from greenroom.runtime.messages import Message
from greenroom.runtime.tree import run_tree
from tests.journal.stage import NOTES, attempted, code_of, counting, held, opened, payloads, shell


class Said(msgspec.Struct):
    text: str


async def test_events_are_numbered_per_stream_from_zero_without_gaps(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db") as journal:
        assert [await journal.append("a", "said", n) for n in range(3)] == [0, 1, 2]
        assert await journal.append("b", "said", 0) == 0
        assert await journal.append("a", "said", 3) == 3
    async with opened(tmp_path / "j.db") as journal:
        assert await journal.append("a", "said", 4) == 4
        assert [event.seq for event in await journal.read("a")] == [0, 1, 2, 3, 4]


async def test_an_event_holds_what_was_handed_over_at_that_moment() -> None:
    async with opened(wall_clock=lambda: 1234.5) as journal:
        growing = ["a"]
        unit = Append("s", "list", growing)
        growing.append("b")
        await journal.write(
            unit, Append("s", "struct", Said("hello")), Append("s", "raw", bytearray(b"\x00\xff")), Append("s", "end")
        )
        events = await journal.read("s")
    assert payloads(events) == [b'["a"]', b'{"text":"hello"}', b"\x00\xff", b"null"]
    assert events[0] == Event("s", 0, 1234.5, "list", b'["a"]')


async def test_a_value_that_cannot_be_encoded_raises_where_it_is_handed_over() -> None:
    async with opened() as journal:
        with pytest.raises(TypeError):
            await journal.append("s", "said", object())
        assert await journal.read("s") == []


async def test_what_was_acknowledged_is_in_the_file_for_everyone_to_see(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db", NOTES) as journal:
        assert await journal.write(NOTES.insert(id="n", text="one"), Append("s", "said", 1)) == (1, 0)
        assert shell(tmp_path / "j.db", "SELECT id, text FROM notes") == [("n", "one")]
        assert shell(tmp_path / "j.db", "SELECT seq, payload FROM events") == [(0, b"1")]


async def test_a_hundred_writers_share_transactions_and_each_is_told_its_own_number(tmp_path: Path) -> None:
    numbers: dict[int, list[int]] = {writer: [] for writer in range(100)}

    async with opened(tmp_path / "j.db", wall_clock=counting()) as journal:

        async def write(writer: int) -> None:
            for _ in range(10):
                numbers[writer].append(await journal.append("shared", "said", writer))

        async with trio.open_nursery() as nursery:
            for writer in numbers:
                nursery.start_soon(write, writer)
        events = await journal.read("shared")
    assert [event.seq for event in events] == list(range(1000))
    assert {writer: [e.seq for e in events if e.payload == b"%d" % writer] for writer in numbers} == numbers
    transactions = {event.time for event in events}
    assert len(transactions) <= 12, "each round of a hundred is one transaction, but for the first"


async def test_one_after_the_other_each_has_a_transaction_of_its_own() -> None:
    async with opened(wall_clock=counting()) as journal:
        for _ in range(5):
            await journal.append("s", "said", None)
        assert [event.time for event in await journal.read("s")] == [1, 2, 3, 4, 5]


async def test_a_unit_is_recorded_whole_or_not_at_all() -> None:
    async with opened(":memory:", NOTES) as journal:
        await journal.write(NOTES.insert(id="taken", text="first"))
        with pytest.raises(JournalError) as refused:
            await journal.write(Append("s", "said", 1), NOTES.insert(id="taken", text="second"), Append("s", "said", 2))
        assert code_of(refused) == "REFUSED"
        assert await journal.streams() == []
        assert await journal.select("SELECT text FROM notes") == [("first",)]
        assert await journal.append("s", "said", 3) == 0, "the numbers of the refused unit were never given"


async def test_a_wrong_unit_fails_alone_in_a_transaction_that_it_shares() -> None:
    wrong: dict[str, tuple[Step, ...]] = {
        "a constraint": (NOTES.insert(id="taken", text="again"),),
        "a column that must be given": (NOTES.insert(id="null"),),
        "no such table": (Statement("DELETE FROM nothing"),),
        "no such syntax": (Statement("DELETE nothing"),),
        "two statements": (Statement("DELETE FROM notes; DELETE FROM notes"),),
        "too few parameters": (Statement("DELETE FROM notes WHERE id = ?"),),
        "a value that has no type": (Statement("DELETE FROM notes WHERE id = ?", (object(),)),),
        "an integer beyond 64 bits": (Statement("DELETE FROM notes WHERE id = ?", (2**63,)),),
        "a lone surrogate": (Append("\ud800", "said", None),),
        "an ended stream": (Append("over", "said", None),),
        "a stale condition": (Statement("UPDATE notes SET text = 'x' WHERE id = 'none'", expect=1),),
    }
    outcomes: dict[str, Outcome] = {}

    async with opened(":memory:", NOTES, wall_clock=counting()) as journal:
        await journal.write(NOTES.insert(id="taken", text="first"), Append("over", "said", None), End("over"))

        async def write(name: str, unit: tuple[Step, ...]) -> None:
            outcomes[name] = await attempted(journal.write(*unit))

        async with trio.open_nursery() as nursery:
            for number, (name, steps) in enumerate(wrong.items()):
                nursery.start_soon(write, name, (Append("s", "said", name), *steps))
                neighbour = (Append("s", "sound", None), NOTES.upsert(id="own", text=name))
                nursery.start_soon(write, f"sound {number}", neighbour)
        events = await journal.read("s")
    assert {name: code_of(outcomes[name]) for name in wrong} == {
        **dict.fromkeys(wrong, "REFUSED"),
        "an ended stream": "ENDED",
        "a stale condition": "STALE",
    }
    sound = sorted(outcome for outcome in outcomes.values() if not isinstance(outcome, JournalError))
    assert sound == [(number, 1) for number in range(len(wrong))]
    assert [event.kind for event in events] == ["sound"] * len(wrong)
    assert len({event.time for event in events}) == 1, "they did share a transaction"


async def test_whatever_a_unit_raises_fails_it_alone() -> None:
    class Fault(Exception):
        def __str__(self) -> str:
            raise LookupError

    class Parameter:
        def __init__(self, raised: Exception) -> None:
            self.raised = raised

        def __conform__(self, protocol: object) -> str:
            raise self.raised

    class Parameters(Sequence[Any]):
        def __len__(self) -> int:
            return 1

        @overload
        def __getitem__(self, index: int) -> Any: ...
        @overload
        def __getitem__(self, index: slice) -> Sequence[Any]: ...
        def __getitem__(self, index: int | slice) -> Any:
            raise ZeroDivisionError

    sql = "DELETE FROM notes WHERE id = ?"
    wrong = [
        Statement(sql, (Parameter(Fault()),)),
        Statement(sql, (Parameter(RecursionError()),)),
        Statement(sql, Parameters()),
        cast("Any", "no step"),
        cast("Any", Append(cast("Any", []), "said")),
    ]
    outcomes: list[Any] = []

    async def write(step: Any) -> None:
        outcomes.append(await attempted(journal.write(step)))

    async with opened(":memory:", NOTES) as journal:
        async with trio.open_nursery() as nursery:
            for step in wrong:
                nursery.start_soon(write, step)
            nursery.start_soon(write, Append("s", "sound"))
        assert sorted(code_of(outcome) for outcome in outcomes if outcome != (0,)) == ["REFUSED"] * len(wrong)
        assert len(outcomes) == len(wrong) + 1
        assert await journal.append("s", "said", None) == 1


async def test_a_unit_that_ends_the_transaction_of_all_fails_alone() -> None:
    """As a trigger may, or a constraint of a table that says ON CONFLICT ROLLBACK: no statement shows it."""

    async def write(text: str) -> None:
        outcomes[text] = await attempted(journal.write(Append("s", "said", text), NOTES.insert(id=text, text=text)))

    outcomes: dict[str, Any] = {}
    async with opened(":memory:", NOTES) as journal:
        journal._writer._file.writer.execute(
            "CREATE TRIGGER parting BEFORE INSERT ON notes WHEN new.text LIKE 'bad%' "
            "BEGIN SELECT RAISE(ROLLBACK, 'no'); END"
        )
        async with trio.open_nursery() as nursery:
            for text in ("good 1", "bad 1", "good 2", "bad 2", "good 3"):
                nursery.start_soon(write, text)
        assert {code_of(outcomes[text]) for text in ("bad 1", "bad 2")} == {"REFUSED"}
        assert sorted(outcomes[f"good {number}"][0] for number in (1, 2, 3)) == [0, 1, 2]
        assert await journal.select("SELECT id FROM notes ORDER BY id") == [("good 1",), ("good 2",), ("good 3",)]


@pytest.mark.parametrize("read", [lambda: 1 / 0, lambda: "soon", lambda: math.nan])
async def test_a_clock_that_fails_refuses_the_unit_and_the_next_one_is_tried(read: Callable[[], Any]) -> None:
    readings = [read]

    def clock() -> float:
        return readings.pop()() if readings else 5.0

    async with opened(wall_clock=clock) as journal:
        with trio.fail_after(5), pytest.raises(JournalError) as refused:
            await journal.append("s", "said", 1)
        assert code_of(refused) == "REFUSED"
        assert await journal.append("s", "said", 2) == 0
        assert [event.time for event in await journal.read("s")] == [5.0]


PARTING = [
    "INSERT OR  ROLLBACK INTO",
    "INSERT OR/**/ROLLBACK INTO",
    "insert or /* a * b */ -- c\n rollback into",
    "UPDATE OR\tROLLBACK notes",
]


@pytest.mark.parametrize(
    "sql",
    ["COMMIT", " begin", "SAVEPOINT unit", "PRAGMA synchronous = OFF", "DROP TABLE notes", *PARTING],
)
def test_a_statement_that_would_part_a_transaction_is_refused_at_once(sql: str) -> None:
    with pytest.raises(ValueError, match="statements that change rows"):
        Statement(sql)


async def test_a_condition_and_the_write_that_it_guards_are_one_thing() -> None:
    claim = "UPDATE notes SET owner = ? WHERE id = 'lease' AND owner IS NULL"
    outcomes: list[Outcome] = []

    async with opened(":memory:", NOTES) as journal:
        await journal.write(NOTES.insert(id="lease", text=""))

        async def take(owner: str) -> None:
            unit = (Append("log", "taken", owner), Statement(claim, (owner,), expect=1))
            outcomes.append(await attempted(journal.write(*unit)))

        async with trio.open_nursery() as nursery:
            for owner in ("a", "b", "c"):
                nursery.start_soon(take, owner)
        [event] = await journal.read("log")
        [(owner,)] = await journal.select("SELECT owner FROM notes")
    [taken] = [outcome for outcome in outcomes if not isinstance(outcome, JournalError)]
    assert taken == (0, 1)
    stale = [outcome for outcome in outcomes if isinstance(outcome, JournalError)]
    assert [(error.code, error.context) for error in stale] == [("STALE", {"changed": 0, "expected": 1})] * 2
    assert msgspec.json.decode(event.payload) == owner


async def test_an_ended_stream_takes_no_more_events() -> None:
    async with opened(wall_clock=lambda: 7.0) as journal:
        assert await journal.write(End("s")) == (0,), "it has not begun"
        assert await journal.write(Append("s", "said", 1), End("s"), End("s")) == (0, 1, 0)
        with pytest.raises(JournalError) as refused:
            await journal.append("s", "said", 2)
        assert code_of(refused) == "ENDED"
        [stream] = await journal.streams()
        assert (stream.last, stream.began, stream.ended) == (0, 7.0, 7.0)


async def test_more_streams_than_are_remembered_go_on_where_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenroom.runtime.journal.recorder.HEADS", 2)
    async with opened() as journal:
        for turn in range(3):
            for stream in "abcde":
                assert await journal.append(stream, "said", None) == turn


async def test_a_posted_unit_is_committed_before_its_poster_is_told(tmp_path: Path) -> None:
    told: list[tuple[Outcome, list[object]]] = []

    async with opened(tmp_path / "j.db", NOTES) as journal:

        def done(outcome: Outcome) -> None:
            told.append((outcome, shell(tmp_path / "j.db", "SELECT id FROM notes")))

        journal.post(NOTES.insert(id="n", text=""), Append("s", "said", None), done=done)
        assert told == [], "it does not wait, and is not told on the spot"
        await journal.append("s", "said", None)
        assert told == [((1, 0), [("n",)])]


async def test_a_poster_is_told_why_its_unit_was_refused() -> None:
    told: list[Outcome] = []
    async with opened(":memory:", NOTES) as journal:
        journal.post(NOTES.insert(id="n"), done=told.append)
        await journal.append("s", "said", None)
    assert [code_of(outcome) for outcome in told] == ["REFUSED"]


async def test_a_refused_unit_that_nobody_asks_after_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with opened(":memory:", NOTES) as journal:
        journal.post(NOTES.insert(id="secret"))
        journal.post(NOTES.insert(id="n", text=""))
        await journal.append("s", "said", None)
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert "NOT NULL constraint failed: notes.text" in record.message
    assert "secret" not in caplog.text


async def test_a_raising_callback_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def explode(outcome: Outcome) -> None:
        raise LookupError("mine")

    told: list[Outcome] = []
    async with opened() as journal:
        journal.post(Append("s", "said", 1), done=explode)
        journal.post(Append("s", "said", 2), done=told.append)
        assert await journal.append("s", "said", 3) == 2
    assert told == [(1,)]
    assert "mine" in caplog.text


async def test_units_are_recorded_in_the_order_in_which_they_are_handed_over() -> None:
    async with opened() as journal:
        for number in range(0, 100, 2):
            journal.post(Append("s", "posted", number))
            journal.post(Append("s", "posted", number + 1))
        await journal.append("s", "written", 100)
        assert payloads(await journal.read("s")) == [b"%d" % number for number in range(101)]


async def test_posting_has_a_bound_and_those_who_wait_are_not_refused_by_it() -> None:
    async with opened() as journal:
        for _ in range(CAPACITY):
            journal.post(Append("s", "posted", None))
        with pytest.raises(JournalError) as refused:
            journal.post(Append("s", "posted", None))
        assert code_of(refused) == "BUSY"
        assert await journal.append("s", "written", None) == CAPACITY
        journal.post(Append("s", "posted", None))


async def test_a_handler_goes_on_while_its_unit_is_committed() -> None:
    class Keep(Message, frozen=True):
        text: str

    class Kept(Message, frozen=True):
        outcome: Outcome

    class Keeper(Actor):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []
            self.both = trio.Event()

        @handles(Keep)
        def keep(self, message: Keep) -> None:
            self.seen.append(message.text)
            journal.post(Append("kept", "text", message.text), done=lambda outcome: self.ref.tell(Kept(outcome)))

        @handles(Kept)
        def kept(self, message: Kept) -> None:
            self.seen.append(f"kept {message.outcome}")
            if len(self.seen) == 4:
                self.both.set()

    async with opened() as journal:
        async with run_tree() as tree:
            keeper = Keeper()
            ref = tree.spawn(keeper, "keeper")
            ref.tell(Keep("a"))
            ref.tell(Keep("b"))
            await keeper.both.wait()
    assert keeper.seen == ["a", "b", "kept (0,)", "kept (1,)"]


async def test_who_waits_for_a_commit_is_seen_waiting_for_the_journal(tmp_path: Path) -> None:
    class Write(Message, frozen=True):
        pass

    class Author(Actor):
        @handles(Write)
        async def write(self, message: Write) -> None:
            await journal.append("s", "said", None)

    async with run_tree() as tree:
        journal = await open_journal(tree, tmp_path / "j.db")
        author = tree.spawn(Author(), "author")
        with held(tmp_path / "j.db") as release:
            author.tell(Write())
            await trio.testing.wait_all_tasks_blocked()
            [wait] = tree.snapshot().waits
            assert (wait.from_, wait.to, wait.message) == (("/author",), "/journal", "Commit")
            release()
        await journal.append("s", "said", None)
        assert tree.snapshot().waits == ()
