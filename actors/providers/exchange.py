"""One call of a model over HTTP: its attempts, its deadlines, and its answer as it comes."""

from __future__ import annotations

import codecs
import contextlib
import math
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, final

import httpx
import msgspec
import trio

from greenroom.actors.providers.answer import Answer
from greenroom.actors.providers.arguments import decode
from greenroom.actors.providers.failures import (
    overrun,
    protocol_failure,
    silence,
    status_failure,
    transport_failure,
    truncated,
)
from greenroom.protocol.agents import Delta, ProviderResult
from greenroom.protocol.errors import BridgeError, ProviderError
from greenroom.protocol.sse import SSEEvent, SSEParser

__all__ = ["Attempts", "Exchange", "Limits"]

DRAIN: Final = 0.2
"""Seconds that the end of a stream may take to come after that of its answer; with it the connection serves again."""
LARGEST_EVENT: Final = 16_000_000
LARGEST_BODY: Final = 64_000_000
"""Bytes that an answer may have, however it comes: a stream that never ends would fill the memory while it lives."""
_LINE_END: Final = re.compile("\r\n|\r|\n")


@final
class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a provider waits, in seconds, and how often it tries. `None`: there is no limit."""

    connect: float | None = 10.0
    read: float | None = 60.0
    """Between two pieces of anything."""
    write: float | None = 30.0
    pool: float | None = 10.0
    """For a free connection, where `connections` are all in use."""
    connections: int | None = None
    """How many calls there may be at a time."""
    idle: float | None = 120.0
    """Between two pieces of an answer: comments, which keep a connection alive, are none."""
    total: float | None = None
    """For a whole call with all its attempts."""
    retries: int = 2
    """How many more attempts there are, while nothing of an answer was given out."""
    longest_wait: float = 60.0
    """A server that wants to be left alone for longer is not waited for."""

    @property
    def timeout(self) -> httpx.Timeout:
        """Those that hold for each step on a connection."""
        return httpx.Timeout(connect=self.connect, read=self.read, write=self.write, pool=self.pool)


@final
class Attempts(msgspec.Struct, frozen=True, kw_only=True):
    """What every attempt of a call is made with."""

    send: Callable[[], Awaitable[httpx.Response]]
    """Sends the request; the response, its body yet to be read."""
    answer: Callable[[], Answer]
    host: str
    limits: Limits
    jitter: Callable[[], float]
    """A random number from 0 to 1."""
    wall_clock: Callable[[], float]


@final
class Exchange:
    """A model's answer as it comes. To be closed, also after a cancellation; no scope is open between two pieces."""

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        self._limits = attempts.limits
        self._answer = attempts.answer()
        self._deltas: deque[Delta] = deque()
        self._surfaced = False
        self._failure: ProviderError | None = None
        """What is to be seen to, once all pieces were given out."""
        self._failures = 0
        self._ended = False
        self._end = trio.current_time() + _seconds(self._limits.total)
        self._response: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None
        """What the body of the response comes in."""
        self._reading: _Reading | None = None
        self._silent = 0.0
        """How many seconds have been spent waiting since something of the answer came. A slow consumer's are none."""

    @property
    def result(self) -> ProviderResult:
        return self._answer.result()

    @property
    def partial(self) -> ProviderResult:
        return self._answer.result()

    def __aiter__(self) -> Exchange:
        return self

    async def __anext__(self) -> Delta:
        while not self._deltas:
            if self._ended:
                raise StopAsyncIteration
            failure, self._failure = self._failure, None
            if failure is not None:
                await self._recover(failure)
                continue
            try:
                await self._advance()
            except ProviderError as error:
                self._failure = error  # behind what came before it, in however many segments that was
        self._surfaced = True
        return self._deltas.popleft()

    async def aclose(self) -> None:
        """End the request, or keep its connection if the answer is at its end. Nothing more comes of it."""
        self._ended = True
        await self._hang_up()

    async def _hang_up(self) -> None:
        response, pieces = self._response, self._pieces
        self._response = self._pieces = self._reading = None
        if response is not None and pieces is not None:
            await _drain(pieces)
            await response.aclose()

    async def _advance(self) -> None:
        """One step: the request, or one piece of its answer."""
        began = trio.current_time()
        with trio.CancelScope(deadline=min(self._end, began + _seconds(self._limits.idle) - self._silent)) as scope:
            try:
                if self._reading is None:
                    await self._send()
                else:
                    await self._read(self._reading)
            except httpx.HTTPError as error:
                raise transport_failure(self._attempts.host, error) from None
            alive = self._reading is None or self._reading.alive
            self._silent = 0.0 if alive else self._silent + trio.current_time() - began
        if scope.cancelled_caught:
            host = self._attempts.host
            raise overrun(host) if trio.current_time() >= self._end else silence(host, _seconds(self._limits.idle))

    async def _send(self) -> None:
        response = await self._attempts.send()
        pieces: AsyncIterator[bytes] = response.aiter_raw()
        self._response, self._pieces = response, pieces
        host = self._attempts.host
        if response.headers.get("content-encoding", "identity") != "identity":
            raise protocol_failure(host, "an answer that is compressed, though that was not asked for")
        if response.status_code != 200:
            body = await _whole(pieces, host)
            raise status_failure(response, body, self._attempts.wall_clock())
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if kind == "text/html":
            raise protocol_failure(host, "a page in place of an answer")
        if kind == "application/json":
            body = await _whole(pieces, host)
            self._deltas.extend(self._answer.take_whole(decode(body)))
            self._finish()
        else:
            self._reading = _Reading(pieces)

    async def _read(self, reading: _Reading) -> None:
        events = await reading.events(self._attempts.host)
        if events is None:
            self._finish()
            return
        for event in events:
            self._deltas.extend(self._answer.take(event))
            if self._answer.finished:
                self._finish()
                return

    def _finish(self) -> None:
        if not self._answer.complete:
            raise truncated(self._attempts.host)
        self._deltas.extend(self._answer.end())
        self._ended = True

    async def _recover(self, error: ProviderError) -> None:
        """Wait for the next attempt, or raise the error if there is none."""
        await self._hang_up()
        await trio.lowlevel.checkpoint_if_cancelled()  # what failed may have failed by that
        if self._answer.complete and error.code in ("TIMEOUT", "NETWORK"):
            self._finish()  # all that was still to come were figures
            return
        self._failures += 1
        wait = self._wait(error)
        if wait is None:
            error.partial = self._answer.result()
            if error.partial.content:
                error.context["partial"] = error.partial.content
            raise error
        await trio.sleep(wait)
        self._answer, self._silent = self._attempts.answer(), 0.0

    def _wait(self, error: ProviderError) -> float | None:
        """The seconds before another attempt. `None`: there is none, or it would come too late."""
        if self._surfaced or not error.retryable or self._failures > self._limits.retries:
            return None
        wait = error.retry_after
        if wait is None:
            wait = min(0.5 * 2.0 ** (self._failures - 1), 8.0) * (1 - self._attempts.jitter() / 4)
        by = min(self._end, trio.current_effective_deadline())
        return None if wait > self._limits.longest_wait or trio.current_time() + wait >= by else wait


@final
class _Reading:
    """The events of one response."""

    __slots__ = ("_decoder", "_in_comment", "_in_line", "_parser", "_pieces", "_received", "alive")

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._received = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._parser = SSEParser(LARGEST_EVENT)
        self._in_line = False
        self._in_comment = False
        self.alive = True
        """Whether there was something in the last piece that is no comment."""

    async def events(self, host: str) -> list[SSEEvent] | None:
        """Those that end in the next piece; `None` at the end of the stream."""
        async for piece in self._pieces:
            self._received += len(piece)
            if self._received > LARGEST_BODY:
                raise _too_large(host)
            text = self._decoder.decode(piece)
            self._note(text)
            try:
                return self._parser.parse(text)
            except BridgeError:
                raise protocol_failure(host, f"an event of more than {LARGEST_EVENT:,} characters") from None
        # Some servers leave out the blank line behind the last event.
        return self._parser.flush() or None

    def _note(self, text: str) -> None:
        self.alive = False
        for number, line in enumerate(_LINE_END.split(text)):
            self._in_line = self._in_line and not number
            if line:
                self._in_comment = self._in_comment if self._in_line else line[0] == ":"
                self._in_line = True
                self.alive = self.alive or not self._in_comment


async def _whole(pieces: AsyncIterator[bytes], host: str) -> bytes:
    """A body that is no stream."""
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > LARGEST_BODY:
            raise _too_large(host)
    return bytes(body)


def _too_large(host: str) -> ProviderError:
    return protocol_failure(host, f"an answer of more than {LARGEST_BODY:,} bytes")


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Read to the end if that is near. In any case httpx's iterators are at their end then: they would complain of
    being left in the middle."""
    with trio.move_on_after(DRAIN), contextlib.suppress(httpx.HTTPError):
        async for _ in pieces:
            pass


def _seconds(limit: float | None) -> float:
    return math.inf if limit is None else limit
