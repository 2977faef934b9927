"""What the subscribers of a terminal are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from greenroom.actors.terminal.ticket import Ticket
from greenroom.protocol.terminals import PendingForm

__all__ = ["Notice", "NoticeKind", "Subscriber"]

NoticeKind: TypeAlias = Literal["pending", "answered", "expired", "withdrawn"]


class Notice(msgspec.Struct, eq=False):
    """Something happened to a form at a terminal.

    One notice goes to all subscribers, so that they can share its frames.
    """

    kind: NoticeKind
    to: str
    """The terminal, also where the form was parked directly and its record names none."""
    ticket: Ticket
    _frames: dict[object, bytes] | None = None

    @property
    def id(self) -> str:
        """The ticket's."""
        return self.ticket.id

    @property
    def record(self) -> PendingForm:
        """The parked form, with the status that this notice is about or a later one."""
        return self.ticket.record

    @property
    def remaining(self) -> float | None:
        """Seconds from now until the form expires; None if it never does."""
        return self.ticket.remaining

    @property
    def reason(self) -> str:
        """Why it expired: `timeout`, `stopped`, `removed`, `restarted`."""
        return self.ticket.reason

    def frame(self, encode: Callable[[Notice], bytes]) -> bytes:
        """`encode(self)`, called once for all subscribers that share the encoder."""
        if self._frames is None:
            self._frames = {}
        frame = self._frames.get(encode)
        if frame is None:
            frame = self._frames[encode] = encode(self)
        return frame


Subscriber: TypeAlias = Callable[[Notice], object]
"""Called within the terminal's own step, so it must neither wait nor be slow;

what it raises is reported and stops nobody.
"""
