"""One end of a WebSocket: text frames in and out, one writer, a heartbeat, and an end that comes in time.

trio-websocket keeps the protocol. What it leaves to its users is here: it never gives up on a peer that is silent or
does not read, a cancelled send leaves half a frame on the wire, and closing waits for a peer as long as that likes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from typing import Final, final

import msgspec
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection
from wsproto.frame_protocol import FrameProtocol

from greenroom.actors.client.stream import GuardedStream

__all__ = [
    "ABNORMAL",
    "GOING_AWAY",
    "NORMAL",
    "POLICY_VIOLATION",
    "PROTOCOL_ERROR",
    "TOO_BIG",
    "TRY_AGAIN",
    "UNWELCOME",
    "FrameSocket",
    "SocketLimits",
]

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
PROTOCOL_ERROR: Final = 1002
ABNORMAL: Final = 1006
"""Never sent: what an end without a close frame is called (RFC 6455, section 7.4)."""
POLICY_VIOLATION: Final = 1008
TOO_BIG: Final = 1009
UNWELCOME: Final = 4000
"""Close code, of those that programs give a meaning (RFC 6455, 7.4.2), of a client whose hello was refused."""
TRY_AGAIN: Final = 1013

_UNTOLD: Final = (PROTOCOL_ERROR, 1007)
"""Closes that trio-websocket decides on by itself, for what a peer's frames are, without telling the peer."""


class SocketLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a connection may take. All times are in seconds."""

    ping_interval: float = 20.0
    ping_timeout: float = 20.0
    """A peer that has not answered a ping by then is gone."""
    send_timeout: float = 10.0
    """A peer that has not taken a frame by then is gone."""
    close_timeout: float = 0.75
    """How long an end may take, from the decision to the last byte."""
    handshake_timeout: float = 10.0
    message_size: int = 1 << 20
    """The most bytes of a message that comes in; a longer one closes the connection with code 1009."""
    fragments: int = 1024
    """The most frames of a message that comes in; one more, and the connection is closed with code 1008."""
    idle_frames: float = 200.0
    """How many frames a second may complete no message: pings, pongs, and all but the last one of a message. Ten times
    as many may come at once; one more closes the connection with code 1008."""
    queued_frames: int = 1024
    queued_bytes: int = 16 << 20
    """What may wait to be sent; a first frame always fits. One more, and the connection is closed with code 1013."""


@final
class FrameSocket:
    """A WebSocket that is open. Made by a handshake (`accept`, `dial`); `stop_reader` ends the library's own task.

    ::

        async with trio.open_nursery() as nursery:
            socket.start(nursery)
            await socket.read(handle)
            nursery.cancel_scope.cancel()
        await socket.close()

    `close` must be called in the end, whatever happened.
    """

    __slots__ = (
        "_drained",
        "_limits",
        "_over_by",
        "_queue",
        "_queued_bytes",
        "_reading",
        "_stop_reader",
        "_stream",
        "_writer",
        "_ws",
        "code",
        "reason",
    )

    code: int | None
    """Why it ends, as a close code of RFC 6455; None while it goes on."""
    reason: str

    def __init__(
        self,
        ws: WebSocketConnection,
        stream: GuardedStream,
        limits: SocketLimits,
        stop_reader: Callable[[], object],
    ) -> None:
        self._ws = ws
        self._stream = stream
        self._limits = limits
        self._stop_reader = stop_reader
        self._queue: list[bytes] = []  # a deque takes 700 bytes, and most connections are idle
        self._queued_bytes = 0
        self._writer = trio.lowlevel.ParkingLot()
        self._reading = trio.CancelScope()
        self._drained: trio.Event | None = None
        """Somebody waits for it; nobody does on most connections."""
        self._over_by = inf
        self.code = None
        self.reason = ""

    @property
    def queued(self) -> int:
        """How many frames wait to be sent."""
        return len(self._queue)

    def start(self, nursery: trio.Nursery) -> None:
        """Start the writer and the heartbeat. They end with the nursery, which never sees them fail."""
        nursery.start_soon(self._write, nursery)

    def send(self, frame: bytes, *, asked: bool = False) -> None:
        """Put one message into the line of those to be sent; returns at once.

        A line that is full ends the connection: its peer does not keep up. What the peer has `asked` for finds room,
        however large it is, unless the line is half full. After an end the message is dropped.
        """
        if self.code is not None:
            return
        if self._queue and (self._is_half_full() if asked else self._is_full(len(frame))):
            self._queue.clear()
            self.end(TRY_AGAIN, "too slow: connect again, what is pending will be shown again")
            return
        self._queue.append(frame)
        self._queued_bytes += len(frame)
        self._writer.unpark()

    def _is_full(self, more: int) -> bool:
        most = self._limits
        return len(self._queue) >= most.queued_frames or self._queued_bytes + more > most.queued_bytes

    def _is_half_full(self) -> bool:
        return 2 * len(self._queue) > self._limits.queued_frames or 2 * self._queued_bytes > self._limits.queued_bytes

    async def drain(self) -> None:
        """Wait until nothing waits to be sent: one message fits then, however large. No deadline but that of a send."""
        await trio.lowlevel.checkpoint()
        while self._queue:
            if self._drained is None:
                self._drained = trio.Event()
            await self._drained.wait()

    def end(self, code: int, reason: str = "") -> None:
        """Begin to end: `read` returns, and `close` will tell the peer. Only the first end counts."""
        if self.code is None:
            self.code, self.reason = code, reason
            self._hurry()
            self._reading.cancel()

    def _hurry(self) -> None:
        """From now on everything together may take no longer than `close_timeout`."""
        if self._over_by == inf:
            self._over_by = trio.current_time() + self._limits.close_timeout
            self._stream.hurry(self._limits.close_timeout)

    async def read(self, handle: Callable[[str | bytes], object], *, paced: bool = False) -> None:
        """Hand each message to `handle`, in order, until the connection ends; without a deadline but the heartbeat's.

        With `paced`, a peer that lets half a line of messages wait is not listened to before it has read them, so that
        what it asks for all at once comes one after another. Only one end of a connection may do so.

        What `handle` raises is raised here. On every way out the connection has begun to end.
        """
        try:
            with self._reading:
                while True:
                    message = await self._ws.get_message()
                    if paced and self._is_half_full():
                        await self.drain()
                    handle(message)
        except ConnectionClosed as closed:
            self._end_as(closed, "")
        finally:
            self._hurry()

    def _end_as(self, closed: ConnectionClosed, otherwise: str) -> None:
        """End for the reason that the peer gave, whoever of the tasks here notices first that it has closed."""
        told = closed.reason
        if told is None or told.code == ABNORMAL:
            self.end(ABNORMAL, otherwise)
        else:
            self.end(told.code, told.reason or "")

    async def _write(self, nursery: trio.Nursery) -> None:
        """Send what waits, and see to it that the peer is pinged: a task for that alone would be one for every idle
        connection."""
        beat = trio.current_time() + self._limits.ping_interval
        try:
            while True:
                if trio.current_time() >= beat:
                    nursery.start_soon(self._ping)
                    beat = trio.current_time() + self._limits.ping_interval
                if not self._queue:
                    with trio.move_on_at(beat):
                        await self._writer.park()
                    continue
                # Taken from the line when it is sent: if that is cancelled before it began, `close` sends it.
                await self._ws.send_message(self._queue[0].decode())
                if self._queue:
                    self._queued_bytes -= len(self._queue.pop(0))
                if self._drained is not None and not self._queue:
                    self._drained.set()
                    self._drained = None
        except ConnectionClosed as closed:
            self._end_as(closed, "the peer takes nothing any more")

    async def _ping(self) -> None:
        scope = trio.move_on_after(self._limits.ping_timeout)
        try:
            with scope:
                await self._ws.ping()
        except ConnectionClosed as closed:
            self._end_as(closed, "the peer takes nothing any more")
        if scope.cancelled_caught:
            self.end(ABNORMAL, f"no answer to a ping within {self._limits.ping_timeout:g} s")

    async def close(self, last: Sequence[bytes] = ()) -> None:
        """End the connection for good: tell the peer, with the messages of `last` before, if it can still be told.

        Takes at most `close_timeout` seconds, and is not cancelled before: what the peer is told last matters most when
        everything here is being cancelled.
        """
        if self.code is None:
            self.end(NORMAL)
        with trio.CancelScope(shield=True):
            with trio.move_on_at(self._over_by):
                with suppress(ConnectionClosed, trio.BrokenResourceError, trio.ClosedResourceError):
                    await self._say_goodbye((*self._queue, *last))
            self._stop_reader()
            await self._stream.kill()

    async def _say_goodbye(self, frames: Sequence[bytes]) -> None:
        code = self.code or NORMAL
        if self._stream.dead or code == ABNORMAL:
            return
        if self._ws.closed is None:
            for frame in frames:
                await self._ws.send_message(frame.decode())
            await self._ws.aclose(code, self.reason or None)
            return
        self._stop_reader()
        if code in _UNTOLD:
            await self._stream.deliver(FrameProtocol(client=self._ws.is_client, extensions=[]).close(code))
            await self._stream.linger()  # the peer may still be sending
