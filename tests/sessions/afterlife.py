"""What `tests.sessions.lives` has said of the calls in one file, and whether the log in it bears it out."""

from __future__ import annotations

from pathlib import Path

import trio

from greenroom.actors.session import JournalLogs
from greenroom.actors.system import open_runtime
from greenroom.protocol.errors import JournalError
from greenroom.protocol.sessions import SessionEvent, ToolResulted
from greenroom.protocol.sessions.codec import encode
from greenroom.runtime.journal import open_reader
from tests.sessions.lives import SESSION

__all__ = ["TurnsRecord"]


class TurnsRecord:
    """What was said of one file, over all lives."""

    def __init__(self) -> None:
        self.pressing: set[str] = set()
        self.pressed: set[str] = set()
        self.refused: set[str] = set()
        self.kept = 0

    def hear(self, line: str) -> None:
        """Take note of one line."""
        match line.split():
            case ["pressing", key]:
                assert key not in self.pressing, f"{key} ran twice"
                assert key not in self.refused, f"{key} ran, and was refused"
                self.pressing.add(key)
            case ["pressed", key]:
                self.pressed.add(key)
            case ["refused", key]:
                self.refused.add(key)
            case ["kept", number]:
                self.kept = max(self.kept, int(number))
            case ["dying", _]:
                pass
            case _:
                raise AssertionError(f"it said {line!r}")

    async def check(self, path: Path, last: bool) -> None:
        """Open the file as the next process does, and compare. Raises AssertionError."""
        if not await trio.Path(path).exists():
            assert not self.kept, "the file is gone"
            return
        try:
            async with open_reader(path) as reader:
                before = await JournalLogs(reader).read(SESSION)
        except JournalError:
            before = None  # it was killed while the file was made
        assert before is not None or not self.kept, "the log is gone"
        async with open_runtime(data=path) as runtime:
            session = await runtime.sessions.open(SESSION)
            events = session.events()
            stored = [] if before is None else before.events
            assert len(stored) >= self.kept, "what was acknowledged is gone"
            assert [encode(event) for event in events[: len(stored)]] == [encode(event) for event in stored]
            assert session.order.turn is None, "it is not repaired"
            self._compare(events)
            await runtime.sessions.dispose(session)
            again = await runtime.sessions.open(SESSION)
            assert again.events() == events, "a second opening adds something"
            self.kept = len(events)

    def _compare(self, events: tuple[SessionEvent, ...]) -> None:
        """Each call has one result, which says what has become of it."""
        answers = {event.seq: event.data.calls for event in events if event.type == "assistant/message"}
        results: dict[int, list[ToolResulted]] = {seq: [] for seq, calls in answers.items() if calls}
        for event in events:
            if event.type == "tool/result":
                (cited,) = event.source_event_seqs
                results[cited if cited in results else events[cited].source_event_seqs[0]].append(event.data)
        logged = {call.arguments["key"] for calls in answers.values() for call in calls}
        assert not self.pressing - logged, f"{self.pressing - logged} ran, and the log knows nothing of it"
        for seq, ended in results.items():
            calls = answers[seq]
            assert sorted(str(each.position) for each in ended) == [str(place) for place in range(len(calls))]
            for each in ended:
                assert each.position is not None
                key = calls[each.position].arguments["key"]
                self._settle(key, None if each.error is None else each.error.code)

    def _settle(self, key: str, code: str | None) -> None:
        match code:
            case None:
                assert key in self.pressed, f"{key} is said to have run, and has not"
            case "DENIED" | "TOOL_NOT_STARTED":
                assert key not in self.pressing, f"{key} is said not to have run, and has"
            case "TOOL_OUTCOME_UNKNOWN":
                pass
            case _:
                raise AssertionError(f"{key} ended as {code}")
