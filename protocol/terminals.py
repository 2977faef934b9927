"""Terminals as others see them: a parked form, the outcome of an answer, a terminal's own settings."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from greenroom.protocol.forms import FieldError, FormSchema

__all__ = [
    "AnswerFailure",
    "AnswerRefusal",
    "AnswerResult",
    "AnswerSuccess",
    "PendingForm",
    "TerminalSnapshot",
    "TicketStatus",
]

TicketStatus: TypeAlias = Literal["pending", "answered", "expired", "withdrawn"]


class PendingForm(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One form that is parked at a terminal, as its readers get it."""

    id: str
    schema: FormSchema
    status: TicketStatus
    time: int
    """When it was parked: milliseconds since 1970, by the wall clock."""
    from_: str | msgspec.UnsetType = msgspec.field(name="from", default=msgspec.UNSET)
    """In whose name it is asked, if in any."""
    to: str | msgspec.UnsetType = msgspec.UNSET
    """The terminal it was asked of. Absent for a form parked directly, in nobody's name."""
    durable: bool = False
    """It is recorded: it is here again, under the same id, after the server was stopped or killed."""


class AnswerSuccess(msgspec.Struct, frozen=True, kw_only=True):
    """The answer was accepted: what was submitted, with defaults in and disabled fields out."""

    success: Literal[True] = True
    value: dict[str, Any]


class AnswerRefusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an answer was not accepted."""

    reason: Literal["unknown", "rejected", "target"]
    """`unknown`:

    no such form is pending here (any more). `rejected`: see `errors`; the form stays. `target`: no such terminal.
    """
    errors: tuple[FieldError, ...] | msgspec.UnsetType = msgspec.UNSET


class AnswerFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The answer was not accepted, and the form is as open as before."""

    success: Literal[False] = False
    error: AnswerRefusal


AnswerResult: TypeAlias = AnswerSuccess | AnswerFailure


class TerminalSnapshot(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a store keeps of a terminal: its own settings, never its parked forms."""

    id: str
    timeout: int | msgspec.UnsetType = msgspec.UNSET
    """Milliseconds; absent if the terminal has no timeout of its own."""
