"""HTTP/1.1 as far as a gateway speaks it: one request at a time, under limits and deadlines, and its response."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from math import inf
from typing import Final, final
from urllib.parse import unquote

import h11
import msgspec
import trio

from greenroom.actors.bridge.route import NO_BODY, ByteStream
from greenroom.actors.client.stream import GuardedStream

__all__ = ["HttpConnection", "HttpRequest", "HttpResponse", "Refused", "text_response"]

_RECEIVE: Final = 16_384
_END: Final = h11.EndOfMessage()


class HttpRequest(msgspec.Struct, frozen=True):
    """A request. Header names are in lower case."""

    method: str
    target: str
    version: str
    headers: tuple[tuple[str, str], ...]
    body: AsyncIterable[bytes] = NO_BODY
    """Its pieces, as they arrive. Reading them raises Refused if they are malformed or too slow."""
    gone: Callable[[], Awaitable[None]] = trio.sleep_forever
    """Returns when its sender has gone, and waits for that as long as it takes. Once the body was read to its end, and
    in one task."""

    @property
    def path(self) -> str:
        """The target without its query, as it was sent (percent-encoded)."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """What follows the path's `?`, as it was sent."""
        return self.target.partition("?")[2]

    @property
    def segments(self) -> tuple[str, ...]:
        """The path's segments, each decoded by itself, so that an encoded slash stays within its own."""
        return tuple(unquote(segment, errors="strict") for segment in self.path.split("/")[1:])

    def values(self, name: str) -> list[str]:
        """What was sent under that header, once for each time."""
        return [value for key, value in self.headers if key == name]

    def listed(self, name: str) -> list[str]:
        """The entries of a header that is a list separated by commas, in lower case (RFC 9110, section 5.6.1)."""
        return [entry.strip().lower() for value in self.values(name) for entry in value.split(",") if entry.strip()]


class HttpResponse(msgspec.Struct, frozen=True):
    """A response. One of its `headers` takes the place of what would be sent under that name otherwise."""

    status: int
    body: bytes | ByteStream = b""
    """A stream ends with its reader, and its connection with it."""
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


class Refused(Exception):
    """A request that ends with this response, and its connection with it: what follows on the wire is not looked at."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(response.status)
        self.response = response


def text_response(status: int, text: str, *headers: tuple[str, str]) -> HttpResponse:
    """A response of one sentence for whoever reads it."""
    return HttpResponse(status, f"{text}\n".encode(), headers=headers)


@final
class HttpConnection:
    """The server's side of one connection, on which requests follow each other.

    A request is read, then answered, or taken over with `hand_over`. A request whose body was not read to its end is
    the last of its connection. All times are in seconds: `head_timeout` and `body_timeout` are how long either may
    take, `close_timeout` how long the end of a stream may.
    """

    def __init__(
        self,
        stream: GuardedStream,
        *,
        head_limit: int,
        head_timeout: float,
        body_timeout: float,
        close_timeout: float,
    ) -> None:
        self._stream = stream
        self._head_limit = head_limit
        self._head_timeout = head_timeout
        self._body_timeout = body_timeout
        self._close_timeout = close_timeout
        self._protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=head_limit)
        self._raw = b""
        """What was received of the head of the request that is read or answered now."""
        self._method = ""
        self.patience = trio.CancelScope()
        """Around all reading of requests; one for each request would cost as much as four scheduler rounds."""

    async def read(self) -> HttpRequest | None:
        """The next request's head; None when the peer has ended. To be called within `patience`, which is cancelled if
        the head takes too long.

        Raises Refused for a head that is malformed (400) or too large (431).
        """
        self.patience.deadline = trio.current_time() + self._head_timeout
        try:
            return await self._read()
        finally:
            self.patience.deadline = inf

    def late(self) -> HttpResponse | None:
        """What to answer once `patience` was cancelled: nothing if no part of a head had come."""
        if not self._raw:
            return None
        return text_response(408, f"The head of a request has to come within {self._head_timeout:g} s.")

    async def _read(self) -> HttpRequest | None:
        try:
            event = self._protocol.next_event() if self._raw else h11.NEED_DATA
            while event is h11.NEED_DATA:
                data = await self._stream.receive_some(_RECEIVE)
                self._raw += data
                self._protocol.receive_data(data)
                event = self._protocol.next_event()
        except h11.RemoteProtocolError as error:
            status = error.error_status_hint
            why = "The head of a request is too long." if status == 431 else "This is no HTTP/1.1 request."
            raise Refused(text_response(status, why)) from None
        if not isinstance(event, h11.Request):
            return None
        self._method = event.method.decode("ascii")
        if len(self._raw) - len(self._protocol.trailing_data[0]) > self._head_limit:
            raise Refused(text_response(431, f"The head of a request has at most {self._head_limit} bytes."))
        if event.http_version not in (b"1.0", b"1.1"):
            raise Refused(text_response(505, "This server speaks HTTP/1.1."))
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in event.headers}:
            # Whoever stands in front may have believed the other one (RFC 9112, section 6.1).
            raise Refused(text_response(400, "A request has a Content-Length or a Transfer-Encoding, not both."))
        if not event.target.startswith(b"/"):
            raise Refused(text_response(400, "The target of a request has to be a path on this server."))
        return HttpRequest(
            method=self._method,
            target=event.target.decode("ascii"),
            version=event.http_version.decode("ascii"),
            headers=tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in event.headers),
            body=_Body(self, trio.current_time() + self._body_timeout),
            gone=self._wait_until_gone,
        )

    async def read_body(self, deadline: float) -> bytes:
        """The next piece of the request's body; nothing (no bytes) at its end.

        Raises Refused for a body that is malformed, or breaks off (400), and if it is not there by the deadline (408).
        """
        try:
            event = self._protocol.next_event()
            if event is h11.NEED_DATA:
                with trio.move_on_at(deadline):
                    event = await self._wait_for_event()
        except h11.RemoteProtocolError:
            raise Refused(text_response(400, "The body of this request is malformed.")) from None
        if event is h11.NEED_DATA:
            raise Refused(text_response(408, f"The body of a request has to come within {self._body_timeout:g} s."))
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def _wait_until_gone(self) -> None:
        """A peer that sends far ahead is taken to have gone: whether it has could not be seen behind what it sends."""
        ahead = 0
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while ahead <= self._head_limit and (data := await self._stream.receive_some(_RECEIVE)):
                self._protocol.receive_data(data)
                ahead += len(data)

    async def _wait_for_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        if self._protocol.they_are_waiting_for_100_continue:
            await self._send_events(h11.InformationalResponse(status_code=100, headers=[]))
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            self._protocol.receive_data(await self._stream.receive_some(_RECEIVE))
        return event

    async def answer(self, response: HttpResponse) -> bool:
        """Send a response. Whether another request may follow; the connection is in a state to read it then.

        A stream is sent until it ends. It is closed on every way out.
        """
        if not isinstance(response.body, bytes):
            await self._send_stream(response, response.body)
            return False
        self._drop_body()
        last = self._protocol.their_state is not h11.DONE
        await self._send(response, response.body, last=last)
        if self._protocol.our_state is not h11.DONE or self._protocol.their_state is not h11.DONE:
            return False
        self._raw = self._protocol.trailing_data[0]
        self._protocol.start_next_cycle()
        return True

    async def refuse(self, response: HttpResponse) -> None:
        """Send a last response, whatever the peer has sent, and let it arrive."""
        if self._protocol.our_state in (h11.IDLE, h11.SEND_RESPONSE) and isinstance(response.body, bytes):
            await self._send(response, response.body, last=True)

    def hand_over(self) -> None:
        """Put the whole request back into the stream, for another protocol to read."""
        self._stream.put_back(self._raw)

    def _drop_body(self) -> None:
        """Let the protocol see that the request has no body, if it has none."""
        if self._protocol.their_state is h11.DONE:
            return
        try:
            while isinstance(self._protocol.next_event(), h11.Data):
                pass
        except h11.RemoteProtocolError:
            pass  # the response is the last one then

    async def _send(self, response: HttpResponse, body: bytes, *, last: bool) -> None:
        length = () if response.status == HTTPStatus.NO_CONTENT else (("Content-Length", str(len(body))),)
        close = (("Connection", "close"),) if last else ()
        data = [h11.Data(data=body)] if body and self._method != "HEAD" else []
        await self._send_events(_head_of(response, (*length, *close)), *data, _END)

    async def _send_stream(self, response: HttpResponse, body: ByteStream) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._wait_for_end, body)
            try:
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):  # its reader has gone
                    await self._send_events(_head_of(response))
                    async for piece in body:
                        await self._send_events(h11.Data(data=piece))
            finally:
                body.close()
                if self._protocol.our_state is h11.SEND_BODY:
                    with trio.move_on_after(self._close_timeout, shield=True):
                        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                            await self._send_events(h11.EndOfMessage())
            nursery.cancel_scope.cancel()

    async def _wait_for_end(self, body: ByteStream) -> None:
        """End a stream with its reader. What that sends meanwhile is not looked at."""
        try:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                while await self._stream.receive_some(_RECEIVE):
                    pass
        finally:
            self._stream.hurry(self._close_timeout)  # a send that is under way cannot be cancelled
        body.close()

    async def _send_events(self, *events: h11.Event) -> None:
        await self._stream.send_all(b"".join(self._protocol.send(event) or b"" for event in events))


@final
class _Body:
    """The body of a request, to be iterated once."""

    def __init__(self, connection: HttpConnection, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if piece := await self._connection.read_body(self._deadline):
            return piece
        raise StopAsyncIteration


def _head_of(response: HttpResponse, framing: tuple[tuple[str, str], ...] = ()) -> h11.Response:
    return _head(response.status, response.content_type, response.headers + framing, int(time.time()))


@lru_cache(maxsize=256)
def _head(status: int, content_type: str, headers: tuple[tuple[str, str], ...], now: int) -> h11.Response:
    """The head of a response. Most of those of one second are alike, and each is checked name by name when it is made.

    `now` is in seconds since 1970.
    """
    usual = [
        ("Date", formatdate(now, usegmt=True)),
        ("Content-Type", content_type),
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-store"),
    ]
    named = {name for name, _ in headers}
    first = [(name, value) for name, value in usual if name not in named and value]
    return h11.Response(status_code=status, headers=[*first, *headers], reason=HTTPStatus(status).phrase.encode())
