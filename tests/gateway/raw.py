"""HTTP as bytes on a socket, so that a test can send what no client library would."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import h11
import trio

__all__ = ["UPGRADE", "Raw", "frame", "head", "raw"]

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
"""The headers that ask for a WebSocket (the key is RFC 6455's own example)."""


def head(method: str, target: str, headers: dict[str, str] | list[tuple[str, str]], version: str = "1.1") -> bytes:
    lines = [f"{method} {target} HTTP/{version}"]
    lines += [f"{name}: {value}" for name, value in (headers.items() if isinstance(headers, dict) else headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def frame(first: int, payload: bytes, *, mask: bytes | None = b"\x01\x02\x03\x04", size: bytes | None = None) -> bytes:
    """A WebSocket frame (RFC 6455, section 5.2) from its first byte and its payload."""
    bit = 0x80 if mask is not None else 0
    if size is None:
        short = len(payload) < 126
        size = bytes([bit | len(payload)]) if short else bytes([bit | 126]) + len(payload).to_bytes(2, "big")
    if mask is not None:
        payload = mask + bytes(byte ^ mask[n % 4] for n, byte in enumerate(payload))
    return bytes([first]) + size + payload


class Response:
    """What a server answered."""

    def __init__(self, response: h11.Response | h11.InformationalResponse, body: bytes) -> None:
        self.status = response.status_code
        self.headers = {name.decode(): value.decode() for name, value in response.headers}
        self.text = body.decode()


class Raw:
    """One connection to a server."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self._waiting = b""

    async def get(self, target: str, headers: dict[str, str], method: str = "GET") -> Response:
        """Send one request with no body and read its answer."""
        await self.stream.send_all(head(method, target, headers))
        return await self.response(method)

    async def response(self, method: str = "GET") -> Response:
        """Read one response; further requests may follow on the connection."""
        parser = h11.Connection(h11.CLIENT)
        # The parser is told a request of its own: what was really sent may be none that it would let through.
        parser.send(h11.Request(method=method, target="/", headers=[("Host", "x"), *_switching(method)]))
        parser.send(h11.EndOfMessage())
        if self._waiting:  # to the parser, nothing at all means the end
            parser.receive_data(self._waiting)
        found: h11.Response | h11.InformationalResponse | None = None
        body = b""
        with trio.fail_after(5):
            while True:
                event = parser.next_event()
                if event is h11.NEED_DATA:
                    parser.receive_data(bytes(await self.stream.receive_some(65_536)))
                elif isinstance(event, h11.Response | h11.InformationalResponse):
                    found = event
                    if event.status_code == 101:
                        break
                elif isinstance(event, h11.Data):
                    body += event.data
                else:
                    break
        assert found is not None, "the connection ended without a response"
        self._waiting = bytes(parser.trailing_data[0])
        return Response(found, body)

    async def until(self, part: bytes) -> bytes:
        """Read until `part` has come; everything that came since the last response."""
        with trio.fail_after(5):
            while part not in self._waiting:
                data = await self.stream.receive_some(65_536)
                assert data, self._waiting
                self._waiting += data
        return self._waiting

    async def ended(self) -> bytes:
        """Read until the server ends the connection; what came before that."""
        rest = self._waiting
        with trio.fail_after(5):
            while data := await self.stream.receive_some(65_536):
                rest += data
        return rest


def _switching(method: str) -> list[tuple[str, str]]:
    return [("Connection", "upgrade"), ("Upgrade", "websocket")] if method == "GET" else []


@asynccontextmanager
async def raw(port: int) -> AsyncGenerator[Raw, None]:
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    try:
        yield Raw(stream)
    finally:
        await trio.aclose_forcefully(stream)
