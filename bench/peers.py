"""`python -m bench.peers PORT`: the other end of a gateway's connections, in a process of its own.

It takes one command a line, a JSON array of its name and its arguments, and answers each with one line of JSON. There
is no trio here and hardly any parsing: a peer that took its time would be measured with the gateway.

| command | what it does | answer |
| --- | --- | --- |
| `attach, COUNT, TERMINAL` | open so many WebSockets, each attached to that terminal | how many are open |
| `mute, COUNT, TERMINAL...` | the same, to all of these, and read nothing more from them | how many are open |
| `latencies, COUNT` | read until so many frames have come whose label tells when they were sent | their seconds |
| `post, TERMINAL, VALUES, IDS` | answer these forms, one after another over one connection | the seconds it took |
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.limits import raise_descriptor_limit

__all__ = ["SENT_AT"]

SENT_AT = "sent-at-{}"
"""A label with the sender's monotonic clock in nanoseconds, which all processes of a machine share."""

_LABEL = re.compile(rb'"sent-at-(\d+)"')
_UPGRADE = (
    b"GET /rpc HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
_POST = "POST /terminals/{} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}"
_AT_ONCE = 200
"""How many connections are opened before the first of them is waited for: fewer than a listener's backlog."""
_RECEIVE = 65_536
_SMALL = 4096
"""The kernel's buffer for one that reads nothing, so that it is full soon."""


class Peers:
    """All connections of this process."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._readers = selectors.DefaultSelector()
        self._mute: list[socket.socket] = []

    def attach(self, count: int, terminal: str) -> int:
        for peer in self._open(count, [terminal]):
            self._readers.register(peer, selectors.EVENT_READ)
        return len(self._readers.get_map())

    def mute(self, count: int, *terminals: str) -> int:
        self._mute += self._open(count, terminals, buffer=_SMALL)
        return len(self._mute)

    def latencies(self, count: int) -> list[float]:
        seconds: list[float] = []
        while len(seconds) < count:
            for key, _ in self._readers.select():
                peer = key.fileobj
                assert isinstance(peer, socket.socket)
                received = peer.recv(_RECEIVE)
                now = time.monotonic_ns()
                assert received, "the gateway has ended a connection"
                seconds += ((now - int(sent)) / 1e9 for sent in _LABEL.findall(received))
        return seconds

    def post(self, terminal: str, values: dict[str, str], ids: list[str]) -> float:
        bodies = [json.dumps({"id": id, "values": values}) for id in ids]
        requests = [_POST.format(terminal, len(body), body).encode() for body in bodies]
        with self._connect() as connection:
            start = time.perf_counter()
            for request in requests:
                connection.sendall(request)
                response = connection.recv(_RECEIVE)
                assert response.startswith(b"HTTP/1.1 200 "), response
            return time.perf_counter() - start

    def _open(self, count: int, terminals: Sequence[str], buffer: int | None = None) -> list[socket.socket]:
        opened: list[socket.socket] = []
        while len(opened) < count:
            some = [self._connect(buffer) for _ in range(min(_AT_ONCE, count - len(opened)))]
            for peer in some:
                peer.sendall(_UPGRADE)
            for peer in some:
                _wait_for(peer, b"\r\n\r\n", 1)
                peer.sendall(b"".join(map(_attach, terminals)))
            for peer in some:
                _wait_for(peer, b'"pending":[', len(terminals))
            opened += some
        return opened

    def _connect(self, buffer: int | None = None) -> socket.socket:
        peer = socket.socket()
        if buffer is not None:  # it has to be said before there is a connection
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        peer.connect(("127.0.0.1", self._port))
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return peer


def _wait_for(peer: socket.socket, part: bytes, times: int) -> None:
    received = b""
    while received.count(part) < times:
        piece = peer.recv(_RECEIVE)
        assert piece, received
        received += piece


def _attach(terminal: str) -> bytes:
    """A request as one frame whose mask changes nothing (RFC 6455, section 5.2)."""
    request = {"jsonrpc": "2.0", "id": terminal, "method": "terminal/attach", "params": {"terminal": terminal}}
    text = json.dumps(request).encode()
    size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + len(text).to_bytes(2, "big")
    return b"\x81" + size + b"\0\0\0\0" + text


def main(port: str) -> None:
    """Do what standard input says until it ends."""
    raise_descriptor_limit()
    peers = Peers(int(port))
    commands: dict[str, Callable[..., Any]] = {
        "attach": peers.attach,
        "mute": peers.mute,
        "latencies": peers.latencies,
        "post": peers.post,
    }
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(commands[name](*arguments)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
