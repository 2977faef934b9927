"""The streams that one connection has open: each a task that sends its items as fast as its client reads them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, final

import msgspec
import trio

from greenroom.actors.gateway.access import Usage
from greenroom.actors.gateway.handlers import LARGEST, Handlers, grants_of, too_large
from greenroom.actors.gateway.remote import find_stream, told
from greenroom.protocol import wire
from greenroom.protocol.errors import GreenroomError, RemoteError, RpcError
from greenroom.protocol.rpc import (
    CLOSE_STREAM,
    OPEN_STREAM,
    STREAM_END,
    STREAM_ERROR,
    STREAM_ITEM,
    CloseStream,
    ErrorData,
    Failure,
    OpenStream,
    RequestId,
    StreamClosed,
    StreamEnd,
    StreamError,
    StreamItem,
    StreamOpened,
    failure_of,
    frames,
)

if TYPE_CHECKING:
    from greenroom.actors.gateway.calls import Call
    from greenroom.actors.gateway.session import Session

__all__ = ["STREAM_HANDLERS", "Streams"]

STREAM_HANDLERS: Final = Handlers()
"""By the name of the method."""


@final
class Streams:
    """Those of one connection, by the ids of the requests that opened them.

    `most` is how many of its own it may have, and how many subscriptions the holders of its token together (None: any
    number); a stream counts as one. `patience` is how many seconds an item waits for a client that does not read.
    """

    def __init__(self, session: Session, usage: Usage, *, most: int, shared: int | None, patience: float) -> None:
        self._session = session
        self._usage = usage
        self._most = most
        self._shared = shared
        self._patience = patience
        self._open: dict[RequestId, trio.CancelScope] = {}

    def open(self, id: RequestId, name: str, items: AsyncGenerator[msgspec.Raw, None]) -> None:
        """Begin to send. Raises RpcError: BUSY, and REQUEST for an id that has a stream already."""
        if id in self._open:
            raise RpcError("REQUEST", "A stream of this id is still open; give each its own.", {"id": id})
        most = self._most
        if self._shared is not None and self._usage.subscriptions >= self._shared:
            most = self._shared
        elif len(self._open) < most:
            self._usage.subscriptions += 1
            self._open[id] = scope = trio.CancelScope()
            self._session.start_soon(self._carry, id, name, items, scope, name=f"{self._session.name} {name}")
            return
        raise RpcError("BUSY", f"There are {most} streams open, as many as may be. Close one first.", {"most": most})

    def close(self, id: RequestId) -> bool:
        """Send no more of that stream. False: there is none."""
        scope = self._open.pop(id, None)
        if scope is not None:
            scope.cancel()
        return scope is not None

    async def _carry(
        self, id: RequestId, name: str, items: AsyncGenerator[msgspec.Raw, None], scope: trio.CancelScope
    ) -> None:
        try:
            with scope:
                last = await self._send(id, name, items)
                if not scope.cancel_called:
                    self._session.say(last)
        finally:
            self._usage.subscriptions -= 1
            if self._open.get(id) is scope:
                del self._open[id]

    async def _send(self, id: RequestId, name: str, items: AsyncGenerator[msgspec.Raw, None]) -> bytes:
        """Send the items; the message that tells how they ended. Cancelled: the stream is closed where it stands."""
        try:
            async with aclosing(items):
                async for item in items:
                    if len(item) > LARGEST:
                        raise too_large(len(item))
                    frame = frames.notification(STREAM_ITEM.name, StreamItem(stream=id, value=item))
                    with trio.move_on_after(self._patience) as waiting:
                        await self._session.tell(frame)
                    if waiting.cancelled_caught:
                        raise _overflow(name, self._patience)
        except GreenroomError as error:
            failed = StreamError(stream=id, error=_data(failure_of(error, name)))
            return frames.notification(STREAM_ERROR.name, failed)
        return frames.notification(STREAM_END.name, StreamEnd(stream=id))


@STREAM_HANDLERS.serves(OPEN_STREAM)
async def _open(call: Call, params: OpenStream) -> StreamOpened:
    if call.id is None:
        raise RpcError("REQUEST", "Opening a stream needs an id: its items are told under that.")
    call.endpoint = told(params.name)
    endpoint = find_stream(call.session.services.remote, params.name, grants_of(call))
    arguments = endpoint.read(msgspec.Raw(wire.encode(params.args)), endpoint.contract.arguments)
    items = await endpoint.open(arguments)
    # Who cancels the call and closes the stream in one breath must not be left with an open one.
    await trio.lowlevel.checkpoint_if_cancelled()
    call.session.streams.open(call.id, endpoint.name, items)
    return StreamOpened(stream=call.id)


@STREAM_HANDLERS.serves(CLOSE_STREAM)
def _close(call: Call, params: CloseStream) -> StreamClosed:
    return StreamClosed(closed=call.session.streams.close(params.stream))


def _overflow(name: str, patience: float) -> RemoteError:
    return RemoteError(
        "stream/overflow",
        f"An item of {name} has waited {patience:g} s for its reader. Read faster, or open it again and ask for less.",
        {"patience": patience},
    )


def _data(failure: Failure) -> ErrorData:
    """What a program goes by; every error of ours has it."""
    return ErrorData(str(failure.code), failure.message) if failure.data is msgspec.UNSET else failure.data
