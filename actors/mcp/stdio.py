"""MCP over standard input and output: a message a line, as the program that started this one sends and reads them."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, cast, final

import trio
from mcp.server import Server
from mcp.server.stdio import stdio_server

from greenroom.protocol.errors import RpcError

__all__ = ["LINE", "run_stdio"]

LINE: Final = 4 << 20
"""The most bytes of one message; as much as the package takes over HTTP."""

_CHUNK: Final = 65_536
_PIECE: Final = 4096
"""What a pipe that is writable takes without blocking: PIPE_BUF, on every system that trio runs on at least 512, and
this on Linux."""


async def run_stdio(server: Server[Any], *, stdin: int = 0, stdout: int = 1) -> None:
    """Serve the client at these descriptors until it closes its end. Waits without a deadline.

    What anybody prints meanwhile goes to standard error, so that it is no part of a message. Raises BrokenPipeError if
    the client has gone while it was told something, and RpcError SIZE for a message of more than `LINE` bytes.
    Cancelled: calls under way are cancelled, and no thread is left that reads.
    """
    with _private(stdout) as out:
        # The package reads and writes in threads, which cannot be cancelled; both ends are used as these two are.
        lines, writer = cast("Any", _Lines(stdin)), cast("Any", _Writer(out))
        async with stdio_server(stdin=lines, stdout=writer) as (read, write):
            await server.run(read, write, server.create_initialization_options())


@contextmanager
def _private(fd: int) -> Generator[int]:
    """A copy of a descriptor that only the block has: under its own number there is standard error meanwhile."""
    copy = os.dup(fd)
    try:
        if fd != 2:
            os.dup2(2, fd)
        yield copy
    finally:
        os.dup2(copy, fd)
        os.close(copy)


@final
class _Lines:
    """The lines of a descriptor, until it ends."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __aiter__(self) -> AsyncIterator[str]:
        return self._read()

    async def _read(self) -> AsyncGenerator[str, None]:
        unread = bytearray()
        while data := await self._receive():
            *lines, rest = data.split(b"\n")
            for line in lines:
                whole, unread = unread + line, bytearray()
                yield whole.decode("utf-8", "replace")
            unread += rest
            if len(unread) > LINE:
                raise RpcError("SIZE", f"A message has at most {LINE} bytes, and this one goes on.", {"most": LINE})

    async def _receive(self) -> bytes:
        with suppress(PermissionError):  # of epoll: a regular file is always readable
            await trio.lowlevel.wait_readable(self._fd)
        return os.read(self._fd, _CHUNK)


@final
class _Writer:
    """Writes text to a descriptor. Cancelled, a message may be cut off: nothing follows it then."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def write(self, text: str) -> None:
        data = memoryview(text.encode())
        while data:
            with suppress(PermissionError):  # as above
                await trio.lowlevel.wait_writable(self._fd)
            data = data[os.write(self._fd, data[:_PIECE]) :]

    async def flush(self) -> None:
        """Nothing: all of it was written."""
        await trio.lowlevel.checkpoint()
