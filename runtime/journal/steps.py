"""What can be written: the steps that a unit is made of. A unit is committed whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

__all__ = ["SLICE", "Append", "Cut", "End", "Prune", "Statement", "Step"]

SLICE = 1_000
"""How many events one retention step deletes at most, so that deleting a long stream holds nobody up for long."""

_encode = msgspec.json.Encoder().encode

_CHANGE = re.compile(r"\s*(?:INSERT|REPLACE|UPDATE|DELETE|WITH)\b", re.IGNORECASE)
_PARTING = re.compile(r"\bOR(?:\s|(?>/\*[\s\S]*?\*/)|--[^\n]*\n)++ROLLBACK\b", re.IGNORECASE)
"""A conflict clause that ends the whole transaction, with all units in it, whatever white space and comments it has.
(What a trigger or a constraint of the table does to a transaction shows only when it is done: see `Recorder`.)"""


class Append(msgspec.Struct, frozen=True):
    """One more event at the end of a stream, which begins with its first. Comes to the event's number.

    `payload` is bytes, which are kept as they are, or anything that msgspec encodes as JSON: it is encoded here and
    now, so that what the value does later changes nothing, and a value that cannot be encoded raises (as msgspec does)
    where it is handed over. Refused with ENDED if the stream has ended.
    """

    stream: str
    kind: str
    payload: Any = b"null"

    def __post_init__(self) -> None:
        if type(self.payload) is not bytes:
            raw = isinstance(self.payload, bytes | bytearray | memoryview)
            msgspec.structs.force_setattr(self, "payload", bytes(self.payload) if raw else _encode(self.payload))


class End(msgspec.Struct, frozen=True):
    """The end of a stream: its followers stop after its last event, and it may be pruned. Comes to 1; to 0, having done
    nothing, if there is no such stream or it has ended before."""

    stream: str


class Statement(msgspec.Struct, frozen=True):
    """One parameterized INSERT, REPLACE, UPDATE or DELETE on a registered table, perhaps after a WITH; a ValueError for
    anything else, such as a COMMIT, which would part the units of a transaction. Comes to the number of rows it
    changed.

    `expect`, if given, is that number: any other refuses the unit with STALE, which makes a check of a version or an
    owner and the write that it guards one thing.
    """

    sql: str
    parameters: Sequence[Any] | Mapping[str, Any] = ()
    expect: int | None = None

    def __post_init__(self) -> None:
        if not _CHANGE.match(self.sql) or _PARTING.search(self.sql):
            raise ValueError(f"a journal executes statements that change rows, and not: {self.sql}")


class Cut(msgspec.Struct, frozen=True):
    """Delete the oldest `SLICE` events of a stream, as far as their numbers are below `before`. Comes to the first
    number that is kept."""

    stream: str
    before: int


class Prune(msgspec.Struct, frozen=True):
    """Delete the oldest `SLICE` events of a stream that ended at `ended_by` (seconds since 1970) or earlier, and the
    stream with its last ones. Comes to 1 once the stream is gone, else to 0."""

    stream: str
    ended_by: float


Step = Append | End | Statement | Cut | Prune
