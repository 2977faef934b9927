"""The terminals that one connection looks at."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from msgspec import UNSET

from greenroom.actors.gateway.access import Usage
from greenroom.actors.terminal import Notice, Terminal, TerminalManager
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

__all__ = ["Attachments", "encode_notice"]


@final
class Attachments:
    """Subscriptions by the name of the terminal, at most one each. `send` takes the frames, and must not wait."""

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
        return Attachment(
            terminal=terminal.name,
            pending=tuple(terminal.pending()),
            remaining={id: _milliseconds(span) for id, span in terminal.remaining().items()},
        )

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
        remaining = UNSET if notice.remaining is None else _milliseconds(notice.remaining)
        pending = FormPending(terminal=notice.to, form=notice.record, remaining=remaining)
        return frames.notification(FORM_PENDING.name, pending)
    if notice.kind == "answered":
        return frames.notification(FORM_ANSWERED.name, FormAnswered(terminal=notice.to, id=notice.id))
    if notice.kind == "withdrawn":
        return frames.notification(FORM_WITHDRAWN.name, FormWithdrawn(terminal=notice.to, id=notice.id))
    params = FormExpired(terminal=notice.to, id=notice.id, reason=notice.reason)
    return frames.notification(FORM_EXPIRED.name, params)


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
