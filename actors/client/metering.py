"""The frames of a WebSocket as they come in, counted before the protocol takes them apart.

A frame costs whoever reads it about the same, however little is in it, and the protocol reads all frames that came
together in one step. A peer that sends nothing but empty ones would take all of the time there is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, final

import trio

from greenroom.actors.client.allowance import Allowance
from greenroom.actors.client.socket import POLICY_VIOLATION, TOO_BIG, SocketLimits
from greenroom.actors.client.stream import GuardedStream

__all__ = ["MeteredStream"]

_STEP: Final = 32
"""How many frames are handed on before everybody else has a turn."""
_BURST: Final = 10
"""Seconds whose allowance of frames may come at once."""
_HEAD_END: Final = re.compile(rb"\n\r?\n")
"""What ends the head of an HTTP message, for a reader as lenient as h11."""


@final
class MeteredStream(trio.abc.Stream):
    """A stream that begins with the head of an HTTP message and goes on with the frames of a WebSocket.

    What goes beyond the limits (a message's bytes and frames, and the frames that complete no message) is told to the
    function given to `watch`; nothing more is handed on then, and what still comes is dropped until the peer ends it.
    """

    __slots__ = (
        "_begun",
        "_fault",
        "_fragments",
        "_held",
        "_idle",
        "_in_head",
        "_limits",
        "_payload",
        "_size",
        "_stream",
        "_tell",
    )

    def __init__(self, stream: GuardedStream, limits: SocketLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._in_head = True
        self._begun = b""
        """The beginning of what is not whole yet: the end of the head, or the header of a frame."""
        self._payload = 0
        """How many bytes of the current frame are still to come."""
        self._size = self._fragments = 0
        """Of the message that is not whole yet."""
        self._idle = Allowance()
        self._held = b""
        """What has come and was not handed on yet."""
        self._fault: tuple[int, str] | None = None
        self._tell: Callable[[int, str], object] | None = None

    def watch(self, tell: Callable[[int, str], object]) -> None:
        """Call `tell` with a close code and a reason when the peer goes beyond the limits, at once if it has."""
        self._tell = tell
        if self._fault is not None:
            tell(*self._fault)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if self._held:
            await trio.lowlevel.checkpoint()
            data, self._held = self._held, b""
        else:
            data = await self._stream.receive_some(max_bytes)
        whole = self._count(data)
        if self._fault is None:
            self._held = data[whole:]
            return data[:whole]
        while await self._stream.receive_some(max_bytes):
            pass
        return b""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()

    # ---------------------------------------------------------------- counting

    def _count(self, data: bytes) -> int:
        """Take note of the frames that begin in it; how many of its bytes may be handed on in one step."""
        at = self._skip_head(data) if self._in_head else 0
        frames = 0
        while at < len(data) and self._fault is None:
            if self._payload:
                step = min(self._payload, len(data) - at)
                self._payload -= step
                at += step
            elif frames == _STEP:
                break
            else:
                more = data[at : at + _header_size(self._begun) - len(self._begun)]
                self._begun += more
                at += len(more)
                if len(self._begun) == _header_size(self._begun):
                    header, self._begun = self._begun, b""
                    self._begin_frame(header)
                    frames += 1
        return at

    def _skip_head(self, data: bytes) -> int:
        """Where in the data the frames begin."""
        seen = self._begun + data
        end = _HEAD_END.search(seen)
        if end is None:
            self._begun = seen[-2:]
            return len(data)
        self._in_head = False
        before, self._begun = len(self._begun), b""
        return end.end() - before

    def _begin_frame(self, header: bytes) -> None:
        """Hold a frame against the limits (RFC 6455, section 5.2: FIN, the opcode, the length of the payload)."""
        self._payload = _payload_size(header)
        if self._payload >> 63:
            return  # this is no length, and the protocol will say so
        final, control = header[0] & 0x80, header[0] & 0x08
        if not control:
            self._size += self._payload
            self._fragments += 1
        if self._size > self._limits.message_size:
            self._refuse(TOO_BIG, f"a message has at most {self._limits.message_size} bytes")
        elif self._fragments > self._limits.fragments:
            self._refuse(POLICY_VIOLATION, f"a message comes in at most {self._limits.fragments} frames")
        elif final and not control:
            self._size = self._fragments = 0
        elif not self._idle.spend(trio.current_time(), self._limits.idle_frames, _BURST * self._limits.idle_frames):
            most = f"{self._limits.idle_frames:g} frames a second"
            self._refuse(POLICY_VIOLATION, f"at most {most} may be pings, pongs or parts of messages")

    def _refuse(self, code: int, reason: str) -> None:
        self._fault = code, reason
        if self._tell is not None:
            self._tell(code, reason)


def _header_size(begun: bytes) -> int:
    """How many bytes the header of a frame has, as far as can be told from its beginning."""
    if len(begun) < 2:
        return 2
    length, masked = begun[1] & 0x7F, begun[1] & 0x80
    return 2 + (8 if length == 127 else 2 if length == 126 else 0) + (4 if masked else 0)


def _payload_size(header: bytes) -> int:
    length = header[1] & 0x7F
    return length if length < 126 else int.from_bytes(header[2 : 4 if length == 126 else 10], "big")
