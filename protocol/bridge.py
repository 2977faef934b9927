"""The wire between a bridge and its clients: what the event stream says, and how a posted body is read.

Clients refuse a record with a member more than they know, so nothing is ever added to one. What is new travels under a
new event name, which clients that do not know it pass over, in a `meta`, or in a header.
"""

from __future__ import annotations

import json
from math import inf
from typing import Annotated, Any, Final, Literal, final

import msgspec

from greenroom.protocol import wire
from greenroom.protocol.sse import write_event
from greenroom.protocol.terminals import PendingForm
from greenroom.protocol.text import utf16_length

__all__ = [
    "BUFFER",
    "SHUTDOWN",
    "TOKEN_HEADER",
    "Envelope",
    "fits",
    "id_event",
    "pending_event",
    "read_envelope",
    "read_id",
    "read_json",
]

TOKEN_HEADER: Final = "x-orkestrel-token"
"""Where a client presents its token."""

BUFFER: Final = 1_048_576
"""Characters (UTF-16 code units) that a client holds of an event stream while it waits for the end of an event."""

SHUTDOWN: Final = write_event("shutdown")
"""The terminal is gone for good. (Its data is empty and not missing: without any it would be no event.)"""

_ONE_READ: Final = 65_536
"""What a client may hold of other events in the piece that an event's last part comes in."""

_LONGEST: Final = 309
"""Digits of the largest integer that is a double; a longer one is infinity to a client."""


# -------------------------------------------------------------------- what the stream says


def pending_event(record: PendingForm, data: bytes | None = None) -> bytes:
    """A form is pending; `data` is its record as JSON, if that is not the usual one.

    That it is durable is left out: a client drops a record with a member that it does not know.
    """
    if data is None:
        known = msgspec.structs.replace(record, durable=False) if record.durable else record
        data = wire.encode(known, surrogates="replace")
    return write_event("pending", data, id=record.id)


def fits(frame: bytes) -> bool:
    """Whether clients can take it in. One that cannot would connect again, be sent it again, and so on for ever."""
    most = BUFFER - _ONE_READ
    return len(frame) <= most or utf16_length(frame.decode()) <= most


def id_event(event: str, id: str) -> bytes:
    """Something happened to the form of that id."""
    return write_event(event, wire.encode({"id": id}))


# -------------------------------------------------------------------- what is read of it


@final
class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A pending form as a client reads it: the schema is judged by itself, anything else has to be exact."""

    id: Annotated[str, msgspec.Meta(min_length=1)]
    schema: Any
    status: Literal["pending"]
    time: int | float
    from_: str | msgspec.UnsetType = msgspec.field(name="from", default=msgspec.UNSET)
    to: str | msgspec.UnsetType = msgspec.UNSET


class _Id(msgspec.Struct, frozen=True):
    id: Annotated[str, msgspec.Meta(min_length=1)]


def read_envelope(data: str) -> Envelope | None:
    """The pending form that an event's data spells, or None."""
    try:
        return msgspec.convert(read_json(data), Envelope)
    except (ValueError, msgspec.ValidationError):
        return None


def read_id(data: str) -> str | None:
    """The id that an event's data tells of, or None."""
    try:
        return msgspec.convert(read_json(data), _Id).id
    except (ValueError, msgspec.ValidationError):
        return None


# -------------------------------------------------------------------- JSON of any origin


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST + 1 else -inf if digits.startswith("-") else inf


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_integer)


def read_json(body: bytes | str) -> Any:
    """A JSON text as `JSON.parse` (ECMA-262, 25.5.1) reads it after UTF-8.

    One byte order mark is passed over, the last of several equal keys counts, a number beyond a double's range is
    infinity, and a lone surrogate comes through. Raises ValueError for anything else, bytes that are no UTF-8 and
    nesting too deep to follow included. (msgspec refuses the last three, so that the caller could not tell them from
    text that is no JSON.)
    """
    text = body.decode("utf-8-sig") if isinstance(body, bytes) else body
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply to be read") from None
