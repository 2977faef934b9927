"""A byte stream that cannot hang its owner: every send has a deadline, and an end that lets the last bytes through."""

from __future__ import annotations

from math import inf
from typing import final

import trio

__all__ = ["GuardedStream"]


@final
class GuardedStream(trio.abc.Stream):
    """A stream with three habits that a WebSocket needs of it.

    A send that takes longer than `send_timeout` seconds kills the stream (`BrokenResourceError`). It cannot be
    cancelled while bytes are under way, since half a frame would be the last thing that the peer sees; `hurry` shortens
    the wait.

    Bytes that were read can be put back in front, so that a head read once can be read again by another parser.

    `aclose` only hands the stream back to its owner, who alone ends it: politely with `linger`, or at once with `kill`.
    """

    __slots__ = ("_front", "_inner", "_limit", "_send_timeout", "_sending", "dead", "released")

    dead: bool
    """Nothing can be sent any more: a send failed, or it was killed."""
    released: bool
    """The protocol on top has closed it; what follows is up to the owner."""

    def __init__(self, inner: trio.abc.Stream, *, send_timeout: float) -> None:
        self._inner = inner
        self._send_timeout = send_timeout
        self._front = b""
        self._limit = inf
        self._sending: trio.CancelScope | None = None
        self.dead = False
        self.released = False

    def put_back(self, data: bytes) -> None:
        """Let the next reads begin with `data`."""
        self._front = data + self._front

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if self.released:
            raise trio.ClosedResourceError
        return await self._receive(max_bytes)

    async def _receive(self, max_bytes: int | None) -> bytes:
        if not self._front:
            return bytes(await self._inner.receive_some(max_bytes))
        await trio.lowlevel.checkpoint()
        front = self._front
        size = len(front) if max_bytes is None else max_bytes
        self._front = front[size:]
        return front[:size]

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self.released or self.dead:
            raise trio.ClosedResourceError
        await self.deliver(data)

    async def deliver(self, data: bytes | bytearray | memoryview) -> None:
        """Send as `send_all` does, also after `aclose`: for its owner.

        Cancelled: nothing was sent. Once the first byte may be on its way it is not cancelled any more.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        deadline = min(trio.current_time() + self._send_timeout, self._limit)
        whole = False
        try:
            with trio.CancelScope(deadline=deadline, shield=True) as self._sending:
                await self._inner.send_all(data)
                whole = True
        finally:
            self._sending = None
            if not whole:
                await self.kill()
        if not whole:
            raise trio.BrokenResourceError(f"the peer has read nothing for {self._send_timeout:g} s")

    def hurry(self, seconds: float) -> None:
        """Give the send under way and all later ones together no longer than this."""
        self._limit = min(self._limit, trio.current_time() + seconds)
        if self._sending is not None:
            self._sending.deadline = min(self._sending.deadline, self._limit)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        self.released = True
        await trio.lowlevel.checkpoint()

    async def linger(self) -> None:
        """Say that nothing more will be sent, and drop what the peer still sends until it ends, or for as long as the
        caller lets it.

        A socket that is closed with unread bytes resets the connection, and a reset can overtake the last thing sent,
        which tells why (RFC 9112, section 9.6).
        """
        try:
            if isinstance(self._inner, trio.abc.HalfCloseableStream):
                await self._inner.send_eof()
            while await self._receive(65_536):
                pass
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def kill(self) -> None:
        """End it now; idempotent. It does not wait for anything, so that a cancelled caller may await it."""
        self.dead = True
        await trio.aclose_forcefully(self._inner)
