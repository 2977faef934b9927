"""The terminals that one connection looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, final

from msgspec import UNSET

from greenroom.actors.gateway.access import Usage
from greenroom.actors.terminal import Notice, Terminal, TerminalManager
from greenroom.protocol import wire
from greenroom.protocol.errors import RpcError
from greenroom.protocol.rpc import (
    FORM_ANSWERED,
    FORM_EXPIRED,
    FORM_PENDING,
    FORM_WITHDRAWN,
    Attachment,
    FormAnswered,
    FormExpired,
    FormPending,
    FormWithdrawn,
    frames,
)
from greenroom.protocol.terminals import PendingForm

__all__ = ["Attachments", "encode_notice"]

PIECE: Final = 4 << 20
"""About how many bytes of forms come in one message."""


@final
class Attachments:
    """Subscriptions by the name of the terminal, at most one each. `send` takes the frames, and must not wait."""

    __slots__ = ("_ends", "_most", "_send", "_terminals", "_usage")

    def __init__(
        self, terminals: TerminalManager, send: Callable[[bytes], object], usage: Usage, most: int | None
    ) -> None:
        self._terminals = terminals
        self._send = send
        self._usage = usage
        self._most = most
        """How many there may be in that usage; None: any number."""
        self._ends: dict[str, Callable[[], None]] = {}

    def attach(self, terminal: Terminal) -> Attachment:
        """What is pending there; from this very step on whatever happens there is sent. Raises RpcError BUSY."""
        if terminal.name not in self._ends:
            if self._most is not None and self._usage.subscriptions >= self._most:
                raise RpcError(
                    "BUSY",
                    f"This token is attached to {self._most} terminals already, as many as it may; detach from one.",
                    {"most": self._most},
                )
            self._usage.subscriptions += 1
            self._ends[terminal.name] = self._terminals.subscribe(terminal.name, self._notify)
        records = terminal.pending()
        first = tuple(_first_of(records))
        here, remaining = {record.id for record in first}, terminal.remaining()
        return Attachment(
            terminal=terminal.name,
            pending=first,
            remaining={id: _milliseconds(span) for id, span in remaining.items() if id in here},
            following=tuple(record.id for record in records[len(first) :]) or UNSET,
        )

    def show(self, name: str, id: str) -> None:
        """Send a form that was pending when that terminal was attached to, if both still are so."""
        terminal = self._terminals.terminal(name)
        record = None if terminal is None else terminal.pending(id)
        if terminal is not None and record is not None and name in self._ends:
            self._send(_pending_frame(name, record, terminal.remaining().get(id)))

    def detach(self, name: str) -> bool:
        """Send nothing of that terminal any more. False: nothing was sent before either."""
        end = self._ends.pop(name, None)
        if end is not None:
            self._usage.subscriptions -= 1
            end()
        return end is not None

    def close(self) -> None:
        """Detach from everything; idempotent."""
        for name in list(self._ends):
            self.detach(name)

    def _notify(self, notice: Notice) -> None:
        self._send(notice.frame(encode_notice))


def encode_notice(notice: Notice) -> bytes:
    """The frame that all attached connections are sent. An answer's values are not in it."""
    if notice.kind == "pending":
        return _pending_frame(notice.to, notice.record, notice.remaining)
    if notice.kind == "answered":
        return frames.notification(FORM_ANSWERED.name, FormAnswered(terminal=notice.to, id=notice.id))
    if notice.kind == "withdrawn":
        return frames.notification(FORM_WITHDRAWN.name, FormWithdrawn(terminal=notice.to, id=notice.id))
    params = FormExpired(terminal=notice.to, id=notice.id, reason=notice.reason)
    return frames.notification(FORM_EXPIRED.name, params)


def _pending_frame(terminal: str, record: PendingForm, remaining: float | None) -> bytes:
    left = UNSET if remaining is None else _milliseconds(remaining)
    return frames.notification(FORM_PENDING.name, FormPending(terminal=terminal, form=record, remaining=left))


def _first_of(records: Iterable[PendingForm]) -> Iterator[PendingForm]:
    """As many as one message is to hold; the first one in any case."""
    size = 0
    for record in records:
        if size >= PIECE:
            return
        size += len(wire.encode(record, surrogates="replace"))
        yield record


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
