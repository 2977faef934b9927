"""Streams: one call, and items for as long as it goes on."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from greenroom.protocol.rpc.failures import ErrorData
from greenroom.protocol.rpc.frames import RequestId
from greenroom.protocol.rpc.method import Method, Notification, Params, Result

__all__ = [
    "CLOSE_STREAM",
    "OPEN_STREAM",
    "STREAM_END",
    "STREAM_ERROR",
    "STREAM_ITEM",
    "CloseStream",
    "OpenStream",
    "StreamClosed",
    "StreamEnd",
    "StreamError",
    "StreamEvent",
    "StreamItem",
    "StreamOpened",
]


class OpenStream(Params, frozen=True):
    """Open a stream of a remote service: each item comes in a `stream/item`, and at last one `stream/end` or
    `stream/error`.

    It ends with its connection, and is not taken up on another one. Items wait for a client that reads slowly, a few
    seconds each; a stream whose client takes none for as long ends with `stream/overflow`. Refused as a call of a
    remote method is, with BUSY (`most`), and as a notification, which nobody could be told by.
    """

    name: Annotated[str, msgspec.Meta(min_length=1)]
    """`<namespace>/<name>`."""
    args: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """A member for each argument."""


class StreamOpened(Result, frozen=True):
    """The stream is open."""

    stream: RequestId
    """The id of the request that opened it, by which its items are known."""


class CloseStream(Params, frozen=True):
    """Close a stream; nothing of it comes after the answer. Usually sent as a notification."""

    stream: RequestId


class StreamClosed(Result, frozen=True):
    """Whether there was such a stream."""

    closed: bool


class StreamItem(Params, frozen=True):
    """The next item of a stream."""

    stream: RequestId
    value: Any


class StreamEnd(Params, frozen=True):
    """A stream has come to its end."""

    stream: RequestId


class StreamError(Params, frozen=True):
    """A stream has failed, or its client does not keep up (`stream/overflow`)."""

    stream: RequestId
    error: ErrorData


StreamEvent = StreamItem | StreamEnd | StreamError
"""What the client that opened a stream is told."""

OPEN_STREAM: Final[Method[OpenStream, StreamOpened]] = Method("stream/open", OpenStream, StreamOpened)
CLOSE_STREAM: Final[Method[CloseStream, StreamClosed]] = Method("stream/close", CloseStream, StreamClosed)
STREAM_ITEM: Final[Notification[StreamItem]] = Notification("stream/item", StreamItem)
STREAM_END: Final[Notification[StreamEnd]] = Notification("stream/end", StreamEnd)
STREAM_ERROR: Final[Notification[StreamError]] = Notification("stream/error", StreamError)
