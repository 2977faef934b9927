"""The journal against a plain model of it: every unit, read, follower, cut and pruning, over any number of openings."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from greenroom.protocol.errors import JournalError
from greenroom.runtime.journal import Append, End, Event, Follower, Journal, Outcome, Statement, Step, StreamInfo
from tests.journal.stage import NOTES, attempted, opened
from tests.stress.driver import Driver, Spawned, StillWaiting

__all__ = ["JournalMachine"]

NAMES = ("a", "b")
names = st.sampled_from(NAMES)
cursors = st.none() | st.integers(-1, 12)


class Stream:
    """One life of a stream: everything it ever had, and from which number on it is kept."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.events: list[Event] = []
        self.first = 0
        self.ended: float | None = None

    def after(self, cursor: int | None) -> list[Event] | str:
        """What a read gives, or GAP."""
        start = self.first if cursor is None else cursor + 1
        return self.events[start:] if self.first <= start <= len(self.events) else "GAP"


class Watched:
    """A follower, and what it must have seen."""

    def __init__(self, follower: Follower, stream: Stream | None) -> None:
        self.follower = follower
        self.stream = stream
        """The life that it follows; None until one begins."""
        self.bound = False
        """It has looked for something in that life, and takes no other for it."""
        self.seen: list[Event] = []
        self.over = False


class JournalMachine(RuleBasedStateMachine):
    """See the module. The wall clock counts the transactions."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.driver = Driver()
        self.clock = 0.0
        self.streams: dict[str, Stream] = {}
        self.notes: dict[str, str] = {}
        self.eager: list[tuple[Watched, Spawned[str]]] = []
        self.slow: list[Watched] = []
        self.number = 0
        self.journal: Journal

    def teardown(self) -> None:
        self.driver.close()
        shutil.rmtree(self.folder)

    def tick(self) -> float:
        self.clock += 1
        return self.clock

    @initialize(memory=st.booleans())
    def open(self, memory: bool) -> None:
        self.path = ":memory:" if memory else str(Path(self.folder, "j.db"))
        self.journal = self.driver.enter(opened(self.path, NOTES, wall_clock=self.tick))

    # ---------------------------------------------------------------- writing

    def apply(self, steps: tuple[Step, ...], now: float) -> Outcome | str:
        """What a unit comes to, and the model as it is afterwards."""
        notes = dict(self.notes)
        added: list[tuple[str, Event]] = []
        ended: list[str] = []
        numbers: list[int] = []
        for step in steps:
            if isinstance(step, Append):
                stream = self.streams.get(step.stream)
                if step.stream in ended or (stream and stream.ended is not None):
                    return "ENDED"
                number = len(stream.events if stream else ()) + sum(name == step.stream for name, _ in added)
                added.append((step.stream, Event(step.stream, number, now, step.kind, step.payload)))
                numbers.append(number)
            elif isinstance(step, End):
                stream = self.streams.get(step.stream)
                exists = stream is not None or any(name == step.stream for name, _ in added)
                fresh = exists and step.stream not in ended and (stream is None or stream.ended is None)
                ended += [step.stream] * fresh
                numbers.append(int(fresh))
            else:
                assert isinstance(step, Statement)
                key, text = step.parameters
                if text is None or (key in notes and "CONFLICT" not in step.sql):
                    return "REFUSED"
                notes[key] = text
                numbers.append(1)
        self.notes = notes
        for name, event in added:
            self.streams.setdefault(name, Stream(now)).events.append(event)
        for name in ended:
            self.streams[name].ended = now
        return tuple(numbers)

    steps = st.lists(
        st.builds(lambda name, size: Append(name, "said", b"x" * size), names, st.integers(0, 9))
        | st.builds(End, names)
        | st.builds(lambda key, text: NOTES.upsert(id=key, text=text), names, st.text(max_size=3))
        | st.builds(lambda key, text: NOTES.insert(id=key, text=text), names, st.none() | st.just("new")),
        max_size=4,
    ).map(tuple)

    @rule(units=st.lists(steps, min_size=1, max_size=5))
    def write(self, units: list[tuple[Step, ...]]) -> None:
        """Units that are handed over together share a transaction, whichever of them are wrong."""
        outcomes: list[Outcome] = []

        async def post() -> None:
            for unit in units:
                self.journal.post(*unit, done=outcomes.append)

        self.driver.call(post)
        expected = [self.apply(unit, self.clock) for unit in units]
        assert [outcome.code if isinstance(outcome, JournalError) else outcome for outcome in outcomes] == expected

    @rule(name=names, count=st.integers(1, 5))
    def append(self, name: str, count: int) -> None:
        """One after the other, each in a transaction of its own."""
        for _ in range(count):
            self.number += 1
            unit = Append(name, "numbered", self.number)
            self.write([(unit,)])

    # ---------------------------------------------------------------- reading

    @rule(name=names, after=cursors, limit=st.integers(1, 20))
    def read(self, name: str, after: int | None, limit: int) -> None:
        expected = self.streams.get(name, Stream(0)).after(after)
        outcome = self.driver.call(lambda: attempted(self.journal.read(name, after=after, limit=limit)))
        events = outcome.code if isinstance(outcome, JournalError) else outcome
        assert events == (expected if isinstance(expected, str) else expected[:limit])

    @invariant()
    def the_same_is_recorded(self) -> None:
        if not hasattr(self, "journal"):
            return
        infos = self.driver.call(self.journal.streams)
        assert infos == [
            StreamInfo(name, stream.first, len(stream.events) - 1, stream.began, stream.ended)
            for name, stream in sorted(self.streams.items())
        ]
        assert dict(self.driver.call(self.journal.select, "SELECT id, text FROM notes")) == self.notes

    # ---------------------------------------------------------------- following

    @rule(name=names, after=cursors, eager=st.booleans())
    def follow(self, name: str, after: int | None, eager: bool) -> None:
        follower = self.driver.call(self.make_follower, name, after)
        watched = Watched(follower, self.streams.get(name))
        if eager:
            self.eager.append((watched, self.driver.spawn(self.take_all, watched)))
        else:
            self.slow.append(watched)

    async def make_follower(self, name: str, after: int | None) -> Follower:
        return self.journal.follow(name, after=after)

    async def take_all(self, watched: Watched) -> str:
        try:
            async for event in watched.follower:
                watched.seen.append(event)
        except JournalError as error:
            return error.code
        return "ended"

    @invariant()
    def an_eager_follower_has_seen_everything(self) -> None:
        for watched, task in list(self.eager):
            stream = watched.stream = watched.stream or self.streams.get(watched.follower.stream)
            if stream is None:
                assert watched.seen == []
                assert not task.done or task.result() == "GAP"
            elif task.done and task.result() == "GAP":
                assert watched.seen == [], "one that keeps up meets no gap"
            else:
                first = watched.seen[0].seq if watched.seen else len(stream.events)
                assert watched.seen == stream.events[first:]
                assert task.done == (stream.ended is not None)
            if task.done:
                self.eager.remove((watched, task))

    @precondition(lambda self: self.slow)
    @rule(data=st.data(), count=st.integers(1, 4))
    def step(self, data: st.DataObject, count: int) -> None:
        """A slow follower takes some events: the next ones, or it is told that they are gone."""
        watched = data.draw(st.sampled_from(self.slow))
        while count and not watched.over:
            self.take_one(watched)
            count -= 1

    def take_one(self, watched: Watched) -> None:
        follower = watched.follower
        present = self.streams.get(follower.stream)
        if watched.stream is None or not watched.bound:
            watched.stream = present
        stream, cursor = watched.stream, follower.cursor
        following = (stream or Stream(0)).after(cursor)
        try:
            outcome: Event | str = self.driver.call(self.next_of, follower)
        except StillWaiting:
            outcome = "waiting"
        if isinstance(outcome, Event):
            assert stream is not None
            assert outcome == stream.events[stream.first if cursor is None else cursor + 1]
            watched.seen.append(outcome)
        elif outcome == "GAP":
            assert following == "GAP" or stream is not present
            watched.over = True
        else:
            assert stream is present
            assert following == []
            assert outcome == ("ended" if stream is not None and stream.ended is not None else "waiting")
            watched.over = outcome == "ended"
        watched.bound = stream is not None

    async def next_of(self, follower: Follower) -> Event | str:
        try:
            return await anext(follower)
        except StopAsyncIteration:
            return "ended"
        except JournalError as error:
            return error.code

    # ---------------------------------------------------------------- forgetting

    @rule(name=names, before=st.integers(-1, 15))
    def cut(self, name: str, before: int) -> None:
        kept = self.driver.call(lambda: self.journal.cut(name, before=before))
        stream = self.streams.get(name)
        if stream is not None:
            stream.first = max(stream.first, min(before, len(stream.events)))
        assert kept == (stream.first if stream else 0)

    @rule(older_than=st.integers(0, 5), among=st.none() | st.lists(names))
    def prune(self, older_than: int, among: list[str] | None) -> None:
        by = self.clock + 1 - older_than
        pruned = self.driver.call(lambda: self.journal.prune(older_than=older_than, streams=among))
        due = {
            name
            for name, stream in self.streams.items()
            if stream.ended is not None and stream.ended <= by and (among is None or name in among)
        }
        assert sorted(pruned) == sorted(due)
        for name in due:
            del self.streams[name]

    @rule(name=names, count=st.integers(1, 9))
    def begin_anew(self, name: str, count: int) -> None:
        """What no follower of the earlier life may take for its own."""
        self.write([(End(name),)])
        self.prune(0, [name])
        self.append(name, count)
        for watched in self.slow:
            if watched.follower.stream == name and not watched.over:
                self.take_one(watched)

    # ---------------------------------------------------------------- opening again

    @precondition(lambda self: self.path != ":memory:")
    @rule()
    def reopen(self) -> None:
        self.driver.call(self.journal.close)
        for _, task in self.eager:
            assert task.result() == "CLOSED"
        self.eager, self.slow = [], []
        self.journal = self.driver.enter(opened(self.path, NOTES, wall_clock=self.tick))
