"""One open event stream: what is pending first, then what happens, with a sign of life in between."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final, NamedTuple, final

import trio

from greenroom.actors.terminal import Notice, Terminal, TerminalManager
from greenroom.protocol.bridge import SHUTDOWN
from greenroom.protocol.sse import COMMENT
from greenroom.protocol.terminals import PendingForm
from greenroom.runtime.ref import Ref

__all__ = ["Frames", "Removals", "TerminalConnection"]

QUEUED_FRAMES: Final = 1024
QUEUED_BYTES: Final = 16 << 20
"""What may wait to be read; a first frame always fits."""

_PIECE: Final = 65_536
"""Frames that wait are joined up to about this many bytes."""


class Frames(NamedTuple):
    """How a wire writes what its streams say. Nothing at all (no bytes) is not said."""

    pending: Callable[[PendingForm], bytes]
    """A form that is pending when the stream begins."""
    notice: Callable[[Notice], bytes]
    """What happens later; called once for all streams of a wire."""


@final
class Removals:
    """Tells the streams of a terminal that it was removed for good."""

    def __init__(self) -> None:
        self._streams: dict[Ref, dict[TerminalConnection, None]] = {}

    def watch(self, ref: Ref, stream: TerminalConnection) -> Callable[[], None]:
        """Shut `stream` down when that terminal is removed, at once if it was. The returned function ends it."""
        if ref not in self._streams:
            # Kept for as long as the terminal lives: it can be watched, but the watching cannot be ended.
            self._streams[ref] = {}
            ref.watch(self._ended)
        if ref in self._streams:
            self._streams[ref][stream] = None
        elif ref.reason == "removed":
            stream.shut_down()
        return lambda: self._forget(ref, stream)

    def _forget(self, ref: Ref, stream: TerminalConnection) -> None:
        self._streams.get(ref, {}).pop(stream, None)

    def _ended(self, ref: Ref) -> None:
        for stream in self._streams.pop(ref, {}):
            if ref.reason == "removed":
                stream.shut_down()


@final
class TerminalConnection:
    """The body of an event stream, a `ByteStream`. It begins when it is first read from, in one step: what is pending
    then is replayed, and whatever happens from then on follows.

    `admitted()` is asked again every `keepalive` seconds; while it says yes a comment is sent, and when it does not the
    stream just ends. A reader that lets too much wait is cut off: it connects again, and is told all that is pending.
    With `removals` the stream ends, with a word, when its terminal is removed for good; without, it goes on, for
    another terminal of that name.

    Waiting for the next piece may be cancelled, and nothing is lost by it; whoever gives up reading must `close` it.
    """

    def __init__(
        self,
        terminals: TerminalManager,
        terminal: Terminal,
        frames: Frames,
        *,
        admitted: Callable[[], bool],
        keepalive: float,
        removals: Removals | None = None,
    ) -> None:
        self._terminals = terminals
        self._terminal = terminal
        self._frames = frames
        self._admitted = admitted
        self._keepalive = keepalive
        self._removals = removals
        self._begun = False
        self._closed = False
        self._last = False
        """Nothing more comes after what waits."""
        self._replay: deque[str] = deque()
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._tick = 0.0
        self._reader = trio.lowlevel.ParkingLot()
        self._ends: list[Callable[[], None]] = []

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await trio.lowlevel.checkpoint()
        if not self._begun:
            self._begin()
        while not self._closed:
            if trio.current_time() >= self._tick:
                if not self._admitted():
                    break
                self._tick = trio.current_time() + self._keepalive
                return self._piece() + COMMENT
            if piece := self._piece():
                return piece
            if self._last:
                break
            with trio.move_on_at(self._tick):
                await self._reader.park()
            await trio.lowlevel.checkpoint()  # what is due at the same moment as the sign of life is told before it
        self.close()
        raise StopAsyncIteration

    def close(self) -> None:
        """End it, and leave nothing behind; idempotent, from any task."""
        self._begun = self._closed = True
        self._unsubscribe()
        self._replay.clear()
        self._queue.clear()
        self._reader.unpark_all()

    def shut_down(self) -> None:
        """The terminal was removed for good: say so after what waits, and end."""
        self._push(SHUTDOWN)
        self._last = True
        self._unsubscribe()
        self._reader.unpark_all()

    def _begin(self) -> None:
        self._begun = True
        self._replay.extend(record.id for record in self._terminal.pending())
        self._ends.append(self._terminals.subscribe(self._terminal.name, self._notify))
        self._tick = trio.current_time() + self._keepalive
        if self._removals is not None:
            self._ends.append(self._removals.watch(self._terminal.ref, self))

    def _unsubscribe(self) -> None:
        ends, self._ends = self._ends, []
        for end in ends:
            end()

    def _notify(self, notice: Notice) -> None:
        self._push(notice.frame(self._frames.notice))

    def _push(self, frame: bytes) -> None:
        if not frame or self._closed or self._last:
            return
        full = len(self._queue) >= QUEUED_FRAMES or self._queued_bytes + len(frame) > QUEUED_BYTES
        if self._queue and full:
            self.close()
            return
        self._queue.append(frame)
        self._queued_bytes += len(frame)
        self._reader.unpark()

    def _piece(self) -> bytes:
        """What waits, oldest first, up to a size that one write can carry."""
        frames: list[bytes] = []
        size = 0
        while size < _PIECE and (self._replay or self._queue):
            if self._replay:
                record = self._terminal.pending(self._replay.popleft())
                frame = b"" if record is None else self._frames.pending(record)  # it ended while it waited
            else:
                frame = self._queue.popleft()
                self._queued_bytes -= len(frame)
            frames.append(frame)
            size += len(frame)
        return b"".join(frames)
