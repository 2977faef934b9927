"""HTTP/1.1 as far as a gateway speaks it: one head at a time under a limit and a deadline, and whole responses."""

from __future__ import annotations

from collections.abc import Sequence
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, final
from urllib.parse import unquote

import h11
import msgspec
import trio

from greenroom.actors.client.stream import GuardedStream

__all__ = ["HttpConnection", "HttpRequest", "HttpResponse", "Refused", "text_response"]

_RECEIVE: Final = 16_384


class HttpRequest(msgspec.Struct, frozen=True):
    """The head of a request. Header names are in lower case."""

    method: str
    target: str
    version: str
    headers: tuple[tuple[str, str], ...]

    @property
    def path(self) -> str:
        """The target without its query, as it was sent (percent-encoded)."""
        return self.target.partition("?")[0]

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
    """A response that is known whole."""

    status: int
    body: bytes = b""
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

    A request is read, then answered, or taken over with `hand_over`. Nothing is read of a body; a request that has one
    is the last of its connection.
    """

    def __init__(self, stream: GuardedStream, *, head_limit: int, head_timeout: float) -> None:
        self._stream = stream
        self._head_limit = head_limit
        self._head_timeout = head_timeout
        self._protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=head_limit)
        self._raw = b""
        """What was received since the last request ended."""
        self._method = ""

    async def read(self) -> HttpRequest | None:
        """The next request's head; None when the peer has ended, or sends nothing for as long as a head may take.

        Raises Refused for a head that is malformed (400), too large (431) or too slow (408).
        """
        with trio.move_on_after(self._head_timeout):
            return await self._read()
        if self._raw:
            raise Refused(text_response(408, f"The head of a request has to come within {self._head_timeout:g} s."))
        return None

    async def _read(self) -> HttpRequest | None:
        try:
            while (event := self._protocol.next_event()) is h11.NEED_DATA:
                data = await self._stream.receive_some(_RECEIVE)
                self._raw += data
                self._protocol.receive_data(data)
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
        if not event.target.startswith(b"/"):
            raise Refused(text_response(400, "The target of a request has to be a path on this server."))
        return HttpRequest(
            method=self._method,
            target=event.target.decode("ascii"),
            version=event.http_version.decode("ascii"),
            headers=tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in event.headers),
        )

    async def answer(self, response: HttpResponse) -> bool:
        """Send a response. Whether another request may follow; the connection is in a state to read it then."""
        self._drop_body()
        last = self._protocol.their_state is not h11.DONE
        await self._send(response, last=last)
        if self._protocol.our_state is not h11.DONE or self._protocol.their_state is not h11.DONE:
            return False
        self._raw = self._protocol.trailing_data[0]
        self._protocol.start_next_cycle()
        return True

    async def refuse(self, response: HttpResponse) -> None:
        """Send a last response, whatever the peer has sent, and let it arrive."""
        if self._protocol.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await self._send(response, last=True)

    def hand_over(self) -> None:
        """Put the whole request back into the stream, for another protocol to read."""
        self._stream.put_back(self._raw)

    def _drop_body(self) -> None:
        """Let the protocol see that the request has no body, if it has none."""
        try:
            while isinstance(self._protocol.next_event(), h11.Data):
                pass
        except h11.RemoteProtocolError:
            pass  # the response is the last one then

    async def _send(self, response: HttpResponse, *, last: bool) -> None:
        headers: list[tuple[str, str]] = [
            ("Date", formatdate(usegmt=True)),
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(response.body))),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
            *response.headers,
        ]
        if last:
            headers.append(("Connection", "close"))
        reason = HTTPStatus(response.status).phrase.encode()
        events: Sequence[h11.Event] = [
            h11.Response(status_code=response.status, headers=headers, reason=reason),
            *([h11.Data(data=response.body)] if response.body and self._method != "HEAD" else []),
            h11.EndOfMessage(),
        ]
        await self._stream.send_all(b"".join(self._protocol.send(event) or b"" for event in events))
