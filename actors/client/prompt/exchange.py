"""One HTTP request and its response, on a connection of its own."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from math import inf
from typing import Final, NamedTuple, final

import h11
import trio

from greenroom.actors.client.dialing import Address, open_stream
from greenroom.protocol.errors import BridgeError

__all__ = ["Exchange", "Place", "encoded", "exchange"]

_RECEIVE: Final = 65_536
_HEAD: Final = 65_536
"""The most bytes of a response's head."""
_WHOLE: Final = 16 << 20
"""The most bytes of a body that is read whole."""


class Place(NamedTuple):
    """Where a terminal is on a bridge, and how one gets in there."""

    address: Address
    headers: tuple[tuple[str, str], ...]
    """What every request presents."""
    tls: ssl.SSLContext | None
    """Whom to trust."""


@final
class Exchange:
    """A response whose head has come. Made by `exchange`. Every wait raises BridgeError CONNECT if the connection
    breaks, or nothing comes in time; cancelled, it can be read no further.
    """

    def __init__(self, stream: trio.abc.Stream, address: Address) -> None:
        self.status = 0
        self._stream = stream
        self._address = address
        self._protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD)

    @property
    def succeeded(self) -> bool:
        """The status is one of success."""
        return 200 <= self.status < 300

    @property
    def bodiless(self) -> bool:
        """The status says that no body follows."""
        return self.status in (204, 205)

    async def piece(self, silence: float | None) -> bytes:
        """The next piece of the body; nothing (no bytes) at its end.

        `silence` is how many seconds it may take (None: any number).
        """
        with _failures(self._address), trio.fail_after(inf if silence is None else silence):
            event = await self._next()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def whole(self, timeout: float) -> bytes:
        """The body, which has to be there within `timeout` seconds. Raises BridgeError ANSWER for one without end."""
        body = bytearray()
        with _failures(self._address), trio.fail_after(timeout):
            while len(body) <= _WHOLE and isinstance(event := await self._next(), h11.Data):
                body += event.data
        if len(body) > _WHOLE:
            raise BridgeError("ANSWER", f"The reply of {self._address.url} has more than {_WHOLE} bytes.")
        return bytes(body)

    async def begin(self, method: str, query: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        """Send the request and wait for the head of its response. Called once, by `exchange`."""
        head = [("Host", self._address.authority), ("Accept-Encoding", "identity"), ("Connection", "close"), *headers]
        if body:
            head.append(("Content-Length", str(len(body))))
        events: list[h11.Event] = [
            h11.Request(
                method=method,
                target=self._address.resource + query,
                headers=encoded(head),
            ),
            *([h11.Data(data=body)] if body else []),
            h11.EndOfMessage(),
        ]
        await self._stream.send_all(b"".join(self._protocol.send(event) or b"" for event in events))
        while not isinstance(event := await self._next(), h11.Response):
            pass  # what comes before it is only about the connection
        self.status = event.status_code

    async def _next(self) -> h11.Event:
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            self._protocol.receive_data(bytes(await self._stream.receive_some(_RECEIVE)))
        if not isinstance(event, h11.Event):
            raise trio.BrokenResourceError("the connection is over")
        return event


@asynccontextmanager
async def exchange(
    place: Place, method: str, headers: Sequence[tuple[str, str]], body: bytes = b"", *, query: str = "", timeout: float
) -> AsyncGenerator[Exchange]:
    """Connect and send a request; the block begins when the head of the response has come, within `timeout` seconds.

    The connection ends with the block. Raises BridgeError CONNECT (`url`).
    """
    stream: trio.abc.Stream | None = None
    try:
        with _failures(place.address), trio.fail_after(timeout):
            stream = await open_stream(place.address, place.tls)
            response = Exchange(stream, place.address)
            await response.begin(method, query, (*place.headers, *headers), body)
        yield response
    finally:
        if stream is not None:
            await trio.aclose_forcefully(stream)


@contextmanager
def _failures(address: Address) -> Generator[None]:
    """Whatever goes wrong with a connection, as a BridgeError."""
    try:
        yield
    except trio.TooSlowError as error:
        raise _broken(address, "nothing came from it in time") from error
    except h11.ProtocolError as error:
        raise _broken(address, "what came from it is no HTTP/1.1") from error
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        raise _broken(address, "the connection broke") from error
    except OSError as error:
        raise _broken(address, error.strerror or str(error)) from error


def encoded(headers: Sequence[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Headers as bytes. Raises UnicodeEncodeError for what is not Latin-1."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _broken(address: Address, why: str) -> BridgeError:
    return BridgeError(
        "CONNECT", f"There is no getting through to the bridge at {address.url}: {why}.", {"url": address.url}
    )
