"""Executing units: many in one transaction, each of them whole or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import final

from greenroom.protocol.errors import JournalError
from greenroom.runtime.journal.faults import fault, refused, typed
from greenroom.runtime.journal.steps import SLICE, Append, Cut, End, Prune, Statement, Step

__all__ = ["Outcome", "Recorder", "Unit"]

Unit = Sequence[Step]
Outcome = tuple[int, ...] | JournalError
"""What became of a unit: one number a step, or why nothing of it was recorded."""

HEADS = 10_000
"""Of how many streams the next number is remembered."""

_INSERT = "INSERT INTO events (stream, seq, time, kind, payload) VALUES (?, ?, ?, ?, ?)"
_BEGIN = "INSERT INTO streams (id, name, first, began) VALUES (?, ?, 0, ?)"
_STREAM = "SELECT id, first, ended FROM streams WHERE name = ?"
_LAST = "SELECT max(seq) FROM events WHERE stream = ?"
_END = "UPDATE streams SET ended = ? WHERE name = ? AND ended IS NULL"
_DELETE = "DELETE FROM events WHERE stream = ? AND seq < ?"
_FIRST = "UPDATE streams SET first = ? WHERE id = ?"
_GONE = "DELETE FROM streams WHERE id = ?"


@final
class _Head:
    """Where a stream is appended to."""

    __slots__ = ("next", "stream")

    def __init__(self, stream: int, next_: int) -> None:
        self.stream = stream
        self.next = next_


@final
class Recorder:
    """The writing connection's work. Blocks; one call at a time, from whichever thread.

    The connection must be in autocommit mode, and nothing else may write the file.
    """

    __slots__ = ("_connection", "_heads", "_path", "_rows", "_streams")

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._heads: dict[str, _Head] = {}
        """As they will be when the transaction in hand is committed; forgotten whenever something is rolled back."""
        (self._streams,) = connection.execute("SELECT coalesce(max(id), 0) FROM streams").fetchone()
        """The number of the newest stream. No number is given twice: a follower knows by it that a stream began
        anew."""
        self._rows: list[tuple[int, int, float, str, bytes]] = []
        """Appends that are numbered but not yet executed: runs of them are executed together."""

    def record(self, units: Sequence[Unit], now: float) -> list[Outcome]:
        """Commit these units in one transaction, dated `now`, and tell what became of each.

        A unit that is wrong in itself fails alone. If the transaction fails, every unit fails, and the next call begins
        from what was recorded before.
        """
        try:
            try:
                return list(self._together(units, now))
            except (sqlite3.Error, JournalError) as error:
                self._roll_back()
                wrong = refused(error)
                if wrong is None:
                    raise
                if len(units) == 1:
                    return [wrong]
            # One of them is wrong, which is rare; only now is it worth a savepoint for each, to find out which.
            return self._apart(units, now)
        except sqlite3.Error as error:
            self._roll_back()
            return [fault(error, self._path) for _ in units]
        except BaseException:
            self._roll_back()
            raise

    def _together(self, units: Sequence[Unit], now: float) -> list[tuple[int, ...]]:
        self._begin()
        with typed():
            numbers = [self._execute(unit, now) for unit in units]
            self._flush()
        self._connection.execute("COMMIT")
        return numbers

    def _apart(self, units: Sequence[Unit], now: float) -> list[Outcome]:
        parting: dict[int, JournalError] = {}
        while (outcomes := self._one_by_one(units, now, parting)) is None:
            pass
        return outcomes

    def _one_by_one(self, units: Sequence[Unit], now: float, parting: dict[int, JournalError]) -> list[Outcome] | None:
        """What became of each, or None if one of them ended the transaction, as a trigger or a constraint of a table
        may. Then nothing is recorded, and that one is in `parting`, which are left out."""
        execute = self._connection.execute
        outcomes: list[Outcome] = []
        self._begin()
        for number, unit in enumerate(units):
            if number in parting:
                outcomes.append(parting[number])
                continue
            execute("SAVEPOINT unit")
            try:
                with typed():
                    numbers = self._execute(unit, now)
                    self._flush()
            except (sqlite3.Error, JournalError) as error:
                wrong = refused(error)
                if wrong is None:
                    raise
                self._forget()
                if not self._connection.in_transaction:
                    parting[number] = wrong
                    return None
                execute("ROLLBACK TO unit")
                outcomes.append(wrong)
            else:
                outcomes.append(numbers)
            execute("RELEASE unit")
        execute("COMMIT")
        return outcomes

    def _begin(self) -> None:
        if len(self._heads) > HEADS:
            self._heads.clear()
        self._connection.execute("BEGIN IMMEDIATE")

    def _roll_back(self) -> None:
        self._forget()
        if self._connection.in_transaction:  # after some errors SQLite has rolled back by itself
            self._connection.execute("ROLLBACK")

    def _forget(self) -> None:
        self._heads.clear()
        self._rows.clear()

    # ---------------------------------------------------------------- steps

    def _execute(self, unit: Unit, now: float) -> tuple[int, ...]:
        numbers: list[int] = []
        for step in unit:
            if type(step) is Append:
                head = self._heads.get(step.stream) or self._find(step.stream, now)
                number = head.next
                head.next = number + 1
                self._rows.append((head.stream, number, now, step.kind, step.payload))
            else:
                self._flush()
                number = self._step(step, now)
            numbers.append(number)
        return tuple(numbers)

    def _flush(self) -> None:
        if self._rows:
            self._connection.executemany(_INSERT, self._rows)
            self._rows.clear()

    def _step(self, step: Step, now: float) -> int:
        match step:
            case Statement():
                return self._state(step)
            case End():
                self._heads.pop(step.stream, None)
                return self._connection.execute(_END, (now, step.stream)).rowcount
            case Cut():
                return self._cut(step)
            case Prune():
                return self._prune(step)
            case _:
                raise TypeError(f"{type(step).__name__} is no step that a journal knows")

    def _find(self, stream: str, now: float) -> _Head:
        """The head of a stream that is not remembered; the stream begins if there is none."""
        row = self._connection.execute(_STREAM, (stream,)).fetchone()
        if row is None:
            self._streams += 1
            self._connection.execute(_BEGIN, (self._streams, stream, now))
            head = _Head(self._streams, 0)
        else:
            number, first, ended = row
            if ended is not None:
                raise _ended(stream)
            head = _Head(number, self._next(number, first))
        self._heads[stream] = head
        return head

    def _next(self, stream: int, first: int) -> int:
        (last,) = self._connection.execute(_LAST, (stream,)).fetchone()
        return first if last is None else last + 1

    def _state(self, statement: Statement) -> int:
        changed: int = self._connection.execute(statement.sql, statement.parameters).rowcount
        if statement.expect is not None and changed != statement.expect:
            raise _stale(changed, statement.expect)
        return changed

    def _cut(self, cut: Cut) -> int:
        row = self._connection.execute(_STREAM, (cut.stream,)).fetchone()
        if row is None:
            return 0
        stream, first, _ = row
        kept: int = max(first, min(cut.before, first + SLICE, self._next(stream, first)))
        self._connection.execute(_DELETE, (stream, kept))
        self._connection.execute(_FIRST, (kept, stream))
        return kept

    def _prune(self, prune: Prune) -> int:
        row = self._connection.execute(_STREAM, (prune.stream,)).fetchone()
        if row is None:
            return 0
        stream, first, ended = row
        if ended is None or ended > prune.ended_by:
            return 0
        self._connection.execute(_DELETE, (stream, first + SLICE))
        self._connection.execute(_FIRST, (first + SLICE, stream))
        if self._next(stream, 0):
            return 0
        self._connection.execute(_GONE, (stream,))
        return 1


def _ended(stream: str) -> JournalError:
    return JournalError(
        "ENDED",
        f"The stream {stream} has ended and takes no more events. Use another name, or prune it to begin anew.",
        {"stream": stream},
    )


def _stale(changed: int, expected: int) -> JournalError:
    return JournalError(
        "STALE",
        f"A statement changed {changed} rows where {expected} were expected, so that the unit was not recorded: "
        "somebody else was there before. Read what is recorded now, and decide again.",
        {"changed": changed, "expected": expected},
    )
