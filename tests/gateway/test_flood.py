"""Frames that carry nothing, sent as fast as they go: whoever sends them is closed, and nobody else waits for it."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.client import SocketLimits
from greenroom.actors.client.metering import MeteredStream
from greenroom.actors.client.stream import GuardedStream
from greenroom.actors.gateway import GatewayLimits
from tests.gateway.conftest import Peer, Site, site_with
from tests.gateway.raw import UPGRADE, Raw, frame, head, raw

PING, PONG, TEXT, TEXT_BEGINS, GOES_ON, ENDS = 0x89, 0x8A, 0x81, 0x01, 0x00, 0x80
LIST = b'{"jsonrpc":"2.0","id":1,"method":"terminal/list"}'


async def opened(site: Site, connection: Raw) -> None:
    await connection.stream.send_all(head("GET", "/rpc", {"Host": "localhost", **UPGRADE}))
    assert (await connection.response()).status == 101


async def closed_with(connection: Raw) -> tuple[int, str]:
    """The code and the reason of the close frame that came last."""
    received = await connection.ended()
    close = received.rindex(b"\x88")
    return int.from_bytes(received[close + 2 : close + 4], "big"), received[close + 4 :].decode()


@pytest.mark.parametrize(
    "pieces",
    [
        [frame(PONG, b"")],
        [frame(PING, b"")],
        [frame(TEXT_BEGINS, b""), frame(GOES_ON, b"")],
        [frame(TEXT_BEGINS, b"["), frame(GOES_ON, b" "), frame(PONG, b"")],
    ],
    ids=["pongs", "pings", "empty fragments", "tiny fragments"],
)
async def test_a_flood_of_frames_that_complete_no_message_is_closed_with_a_reason(
    site: Site, caller: Peer, pieces: list[bytes]
) -> None:
    async with raw(site.gateway.port) as connection, trio.open_nursery() as nursery:
        await opened(site, connection)

        async def flood() -> None:
            with suppress(trio.BrokenResourceError):
                await connection.stream.send_all(pieces[0])
                while True:
                    await connection.stream.send_all(b"".join(pieces[1:] or pieces) * 10_000)

        nursery.start_soon(flood)
        longest = 0.0
        while site.gateway.connections > 1:
            before = trio.current_time()
            await caller.result("terminal/list")
            longest = max(longest, trio.current_time() - before)
        assert longest < 0.5


async def test_whoever_sends_too_many_frames_is_told_so(site: Site) -> None:
    limits = SocketLimits()
    most = math.ceil(10 * limits.idle_frames)
    async with raw(site.gateway.port) as connection:
        await opened(site, connection)
        await connection.stream.send_all(frame(PONG, b"") * most + frame(TEXT, LIST))
        await connection.until(b'"result"')
        await connection.stream.send_all(frame(PONG, b"") * most)
        code, reason = await closed_with(connection)
        assert (code, "200 frames a second" in reason) == (1008, True)


async def test_a_message_comes_in_a_bounded_number_of_frames() -> None:
    async with site_with(GatewayLimits(socket=SocketLimits(fragments=7))) as site, raw(site.gateway.port) as connection:
        await opened(site, connection)
        pieces = [LIST[at : at + 7] for at in range(0, len(LIST), 7)]
        middle = b"".join(frame(GOES_ON, piece) for piece in pieces[1:-1])
        fits = frame(TEXT_BEGINS, pieces[0]) + middle + frame(ENDS, pieces[-1])
        assert len(pieces) == 7
        for _ in range(2):
            await connection.stream.send_all(fits)
            await connection.until(b'"result"')
            connection._waiting = b""
        await connection.stream.send_all(frame(TEXT_BEGINS, b"") + middle + frame(GOES_ON, b"") * 2)
        code, reason = await closed_with(connection)
        assert (code, "at most 7 frames" in reason) == (1008, True)


async def test_a_message_of_a_mebibyte_may_come_in_pieces_of_a_kibibyte(site: Site) -> None:
    async with raw(site.gateway.port) as connection:
        await opened(site, connection)
        text = LIST[:-1].ljust(2**20 - 1) + b"}"
        pieces = [text[at : at + 1024] for at in range(0, len(text), 1024)]
        await connection.stream.send_all(frame(TEXT_BEGINS, pieces[0]))
        for piece in pieces[1:-1]:
            await connection.stream.send_all(frame(GOES_ON, piece))
        await connection.stream.send_all(frame(ENDS, pieces[-1]))
        await connection.until(b'"result"')


# -------------------------------------------------------------------- what is counted goes by unchanged


class Pieces(trio.abc.Stream):
    """A stream whose bytes come in given pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        return self._pieces.pop(0) if self._pieces else b""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        raise NotImplementedError

    async def wait_send_all_might_not_block(self) -> None:
        raise NotImplementedError

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


FIRST = st.sampled_from([PING, PONG, TEXT, TEXT_BEGINS, GOES_ON, ENDS])


@given(
    st.lists(st.tuples(FIRST, st.binary(max_size=300), st.booleans()), max_size=100),
    st.lists(st.integers(1, 200), min_size=1),
    st.sampled_from([b"\n\n", b"\r\n\r\n"]),
)
def test_however_frames_are_cut_they_go_by_unchanged(
    sent: list[tuple[int, bytes, bool]], sizes: list[int], end: bytes
) -> None:
    whole = b"HTTP/1.1 101 Switching\r\nUpgrade: websocket" + end
    whole += b"".join(frame(first, data, mask=b"abcd" if masked else None) for first, data, masked in sent)
    pieces: list[bytes] = []
    at = 0
    while at < len(whole):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(whole[at : at + size])
        at += size

    async def read() -> bytes:
        faults: list[tuple[int, str]] = []
        stream = MeteredStream(GuardedStream(Pieces(pieces), send_timeout=1), SocketLimits())
        stream.watch(lambda code, reason: faults.append((code, reason)))
        received = b""
        while data := await stream.receive_some(16_384):
            received += data
        assert faults == []
        return received

    assert trio.run(read) == whole
