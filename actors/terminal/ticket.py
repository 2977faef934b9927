"""A ticket: one form that is parked at a terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import Form, Outcome, Settled
from greenroom.protocol.terminals import PendingForm, TicketStatus
from greenroom.runtime.reply import Reply

if TYPE_CHECKING:
    from greenroom.actors.terminal.durable import DurableAsk

__all__ = ["Ticket", "abandonment"]

_WHY = {
    "timeout": "Nobody answered the form at {to} in time.",
    "stopped": "The form was taken from {to} before anybody answered it.",
    "removed": "The terminal {to} was removed before anybody answered the form.",
    "restarted": "The terminal {to} began anew and lost the form; ask again.",
    "withdrawn": "The form was withdrawn from {to} before anybody answered it.",
    "abandoned": "The form at {to} was destroyed by its owner before anybody answered it.",
}


class Ticket(msgspec.Struct, eq=False):
    """A parked form. Its record is built when somebody first looks. (A struct, because that is the fastest to make.)"""

    id: str
    form: Form
    reply: Reply[Any] | None
    """Who waits for it. None: it was parked directly."""
    from_: str | None
    to: str | None
    time: float
    """When it was parked, in seconds since 1970."""
    status: TicketStatus = "pending"
    armed: int = 0
    """The number of its deadline, 0 without one."""
    due: float = inf
    """When it expires, in trio's time."""
    opened: Mapping[str, Any] | None = None
    """The values before the first answer that was filled in piece by piece."""
    reason: str = "abandoned"
    """Why the form was destroyed, if it is."""
    durable: DurableAsk | None = None
    """The row that it stands for. Who waits for the answer is told by it, not by `reply`."""
    shown: bool = True
    """A durable one is not while its row says something else."""
    _record: PendingForm | None = None

    @property
    def listed(self) -> bool:
        """It is shown as pending: the asker has not gone."""
        return self.shown and (self.reply is None or not self.reply.withdrawn)

    @property
    def record(self) -> PendingForm:
        """What readers get, with the status of now."""
        record = self._record
        if record is None or record.status != self.status:
            record = self._record = PendingForm(
                id=self.id,
                schema=self.form.published,
                status=self.status,
                time=int(self.time * 1000),
                from_=msgspec.UNSET if self.from_ is None else self.from_,
                to=msgspec.UNSET if self.to is None else self.to,
                durable=self.durable is not None,
            )
        return record

    @property
    def remaining(self) -> float | None:
        """Seconds until it expires; None if it never does."""
        return None if self.due == inf else max(0.0, self.due - trio.current_time())

    def on_form_end(self, outcome: Outcome) -> None:
        """Whoever ended the form, its asker gets the outcome: the form decides, not the terminal."""
        reply = self.reply
        if reply is None:
            return
        if isinstance(outcome, Settled):
            reply.answer(outcome.values)
        else:
            reply.fail(abandonment(self.reason, self.to))


def abandonment(reason: str, to: str | None, kept: bool = False) -> FormError:
    """What an asker gets whose form ended unanswered. `kept`: its row is there, and with it the ask."""
    why = _WHY.get(reason, "The form at {to} ended unanswered: " + reason + ".").format(to=to)
    if kept:
        why += " It is recorded: whoever asks with the same key waits on, or gets the answer."
    return FormError("ABANDONED", why, {"reason": reason})


_ids: list[str] = []
"""The next ids: making each by itself would be a tenth of what an ask costs."""

os.register_at_fork(after_in_child=_ids.clear)  # a copy of this process must not issue the same ids

_VERSION = bytes(0x40 | byte & 0x0F for byte in range(256))
_VARIANT = bytes(0x80 | byte & 0x3F for byte in range(256))
_GROUPS = re.compile("(.{8})(.{4})(.{4})(.{4})(.{12})")


def uuid4() -> str:
    """A random UUID (RFC 9562, version 4)."""
    if not _ids:
        octets = bytearray(os.urandom(256 * 16))
        octets[6::16] = octets[6::16].translate(_VERSION)  # sections 4.1 and 4.2: these two are not random
        octets[8::16] = octets[8::16].translate(_VARIANT)
        _ids.extend(_GROUPS.sub(r"\1-\2-\3-\4-\5 ", octets.hex()).split())
    return _ids.pop()
