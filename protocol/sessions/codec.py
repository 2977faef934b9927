"""A session's header and events as JSON, and as the lines of a file, of which what was torn off does not count."""

from __future__ import annotations

from typing import Final, final

import msgspec
from msgspec import Struct

from greenroom.protocol.errors import SessionError
from greenroom.protocol.sessions.record import VERSION, SessionEvent, SessionHeader

__all__ = ["Lines", "decode_event", "decode_header", "encode", "escaped", "read_lines"]


class _Versioned(Struct):
    version: int


_encode: Final = msgspec.json.Encoder().encode
_event: Final = msgspec.json.Decoder(SessionEvent)
_header: Final = msgspec.json.Decoder(SessionHeader)
_versioned: Final = msgspec.json.Decoder(_Versioned)

PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def encode(record: SessionHeader | SessionEvent) -> bytes:
    """The record as JSON, without a line's end. Frozen data can always be encoded."""
    return _encode(record)


def decode_event(raw: bytes) -> SessionEvent:
    """The event that JSON spells; its data is the JSON as it stands, not yet read. Raises SessionError CORRUPT."""
    event = _read_event(raw)
    if event is None:
        raise _corrupt("an event is no JSON")
    return event


def _read_event(raw: bytes) -> SessionEvent | None:
    """The event; None for what is no JSON. Raises SessionError CORRUPT for other JSON."""
    try:
        return _event.decode(raw)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _corrupt(f"it holds what is no event: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def decode_header(raw: bytes, id: str | None = None) -> SessionHeader:
    """The header that JSON spells, of the session of that id if one is given. Raises SessionError CORRUPT,
    UNSUPPORTED."""
    try:
        version = _versioned.decode(raw).version
        if version != VERSION:
            raise SessionError(
                "UNSUPPORTED",
                f"This log is of version {version}, and this program knows version {VERSION}. Use the greenroom that "
                "wrote it.",
                {"session": id, "version": version, "known": VERSION},
            )
        header = _header.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _corrupt(f"its header cannot be read: {error}") from None
    if id is not None and header.id != id:
        raise _corrupt(f"it is the log of another session, {header.id}")
    return header


@final
class Lines(Struct, frozen=True):
    """What a file holds: the header, the events, and how many of its bytes these are. What follows was torn."""

    header: SessionHeader
    events: list[SessionEvent]
    sound: int


def read_lines(content: bytes, id: str) -> Lines:
    """Read a file of lines, the header first.

    Behind the last `turn/end` a process may have ended in the middle of a line: from the first line on that is no JSON,
    or has no end, nothing counts. Such a line before that, JSON that is no event, and a header that is none raise
    SessionError CORRUPT; another version or another session's id as `decode_header` has it.
    """
    end = content.find(b"\n")
    header = decode_header(content[: end if end >= 0 else len(content)], id)
    if end < 0:
        raise _corrupt("its header has no end")
    sound = at = end + 1
    events: list[SessionEvent] = []
    torn = False
    while at < len(content):
        end = content.find(b"\n", at)
        event = None if end < 0 else _read_event(content[at:end])
        at = len(content) if end < 0 else end + 1
        if event is None:
            torn = True
        elif not torn:
            events.append(event)
            sound = at
        elif event.type == "turn/end":
            raise _corrupt(f"what follows event {len(events) - 1} is no JSON, and a turn ends behind it")
    return Lines(header, events, sound)


def escaped(id: str) -> str:
    """An id as the name of one folder: no two ids share one, and none leads out of the folder above.

    Anything but letters and digits of ASCII, `-` and `_` is written as `~` and the four hexadecimal digits of each of
    its UTF-16 units.
    """
    return "".join(each if each in PLAIN else _units(each) for each in id)


def _units(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"~{units[at : at + 4]}" for at in range(0, len(units), 4))


def _corrupt(reason: str) -> SessionError:
    return SessionError(
        "CORRUPT",
        f"This log is damaged: {reason}. Nothing of it was changed; put a copy in its place, or open a session of "
        "another id.",
        {"reason": reason},
    )
