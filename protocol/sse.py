"""Server-sent events as text: written frame by frame, and read from pieces of any size.

Reading follows the HTML standard, section 9.2.6 ("Interpreting an event stream"), with two differences: an event tells
its `id` and `retry` only if it brought them, and `flush` gives an event that its stream ended within.
"""

from __future__ import annotations

import math
import re
from typing import Final, final

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.protocol.errors import BridgeError
from greenroom.protocol.text import utf16_length

__all__ = ["COMMENT", "SSEEvent", "SSEParser", "write_event"]

COMMENT: Final = b": \n\n"
"""A frame that says nothing: it keeps a connection from looking idle."""

_LINE_END: Final = re.compile("\r\n|\r|\n")
"""What ends a line, and nothing else does: not U+2028, U+0085 or a form feed, at which `str.splitlines` would cut."""
_DIGITS: Final = re.compile("[0-9]+")


def write_event(event: str = "", data: str | bytes = "", *, id: str = "", retry: int | None = None) -> bytes:
    """One frame, its lines in the order event, id, retry, data. `retry` is in milliseconds, as the wire has it.

    Bytes are taken as a single line, unseen; text goes into one `data` line for each of its own. Raises ValueError for
    a name or an id that would end its line.
    """
    for text in (event, id):
        if _LINE_END.search(text) or "\0" in text:
            raise ValueError(f"the name or the id of an event cannot hold {text!r}: that would end its line")
    head = f"event: {event}\n" if event else ""
    head += f"id: {id}\n" if id else ""
    head += f"retry: {retry}\n" if retry is not None else ""
    if isinstance(data, bytes):
        return b"%bdata: %b\n\n" % (head.encode(), data)
    lines = "".join(f"data: {line}\n" for line in _LINE_END.split(data))
    return f"{head}{lines}\n".encode(errors="replace")


@final
class SSEEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event as it was received. `event`, `id` and `retry` are absent if the event did not name them."""

    data: str
    event: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    retry: int | UnsetType = UNSET
    """Milliseconds to wait before connecting again."""


@final
class SSEParser:
    """Events from pieces of text, however the stream was cut.

    `limit` is how many characters (UTF-16 code units) may be held of what is unfinished; None for any number.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self.id: str | None = None
        """The last id that an event brought. It outlives `reset`, as a reader that connects again sends it."""
        self.retry: int | None = None
        """The last waiting time that the stream told, in milliseconds; it outlives `reset` too."""
        self.reset()

    def reset(self) -> None:
        """Forget what is unfinished, and begin with another stream."""
        self._begun = False
        self._after_cr = False
        self._line: list[str] = []
        self._line_size = 0
        self._data: list[str] = []
        self._data_size = 0
        self._event: str | UnsetType = UNSET
        self._id: str | UnsetType = UNSET
        self._retry: int | UnsetType = UNSET

    def parse(self, chunk: str) -> list[SSEEvent]:
        """The events that are finished with this piece.

        Raises BridgeError OVERFLOW (`limit`, `size`) if more would have to be held than the limit; the piece is not
        taken then, and what is held stays.
        """
        if not chunk:
            return []
        self._refuse_overflow(utf16_length(chunk))
        *ended, rest = self._lines(chunk)
        events: list[SSEEvent] = []
        for line in ended:
            self._take_line(self._whole(line), events)
        if rest:
            self._line.append(rest)
            self._line_size += utf16_length(rest)
        return events

    def flush(self) -> list[SSEEvent]:
        """The stream has ended: the event that it ended within, if that has data."""
        events: list[SSEEvent] = []
        if self._line:
            self._take_line(self._whole(""), events)
        self._finish(events)
        return events

    def _refuse_overflow(self, size: int) -> None:
        if self._limit is None:
            return
        # Lines that are read count by themselves: many short ones must not add up to any size either.
        size = max(self._line_size + size, self._data_size)
        if size > self._limit:
            raise BridgeError(
                "OVERFLOW",
                f"An event of the stream has more than {self._limit} characters, as many as are held; read it with a "
                "larger limit, or have the server send less at once.",
                {"limit": self._limit, "size": size},
            )

    def _lines(self, chunk: str) -> list[str]:
        """The piece cut at its line ends; the last part is unfinished."""
        if not self._begun:
            self._begun = True
            chunk = chunk.removeprefix("\ufeff")
        if self._after_cr:
            chunk = chunk.removeprefix("\n")
        self._after_cr = chunk.endswith("\r")
        return _LINE_END.split(chunk)

    def _whole(self, end: str) -> str:
        if not self._line:
            return end
        line = "".join((*self._line, end))
        self._line.clear()
        self._line_size = 0
        return line

    def _take_line(self, line: str, events: list[SSEEvent]) -> None:
        if not line:
            self._finish(events)
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._data_size += utf16_length(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and _DIGITS.fullmatch(value) and math.isfinite(milliseconds := float(value)):
            self.retry = self._retry = int(milliseconds)

    def _finish(self, events: list[SSEEvent]) -> None:
        """A blank line: what came since the last one is an event if there is data in it."""
        if self._id is not UNSET:
            self.id = self._id
        if self._data:
            events.append(SSEEvent("\n".join(self._data), self._event, self._id, self._retry))
        self._data.clear()
        self._data_size = 0
        self._event = self._id = self._retry = UNSET
