"""The gateway under many who look: what a frame costs, whom one that does not read holds up, and how soon it stops."""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import trio
import trio.testing

from bench.harness import cost, rate, times, workload
from bench.limits import raise_descriptor_limit
from bench.peers import SENT_AT
from greenroom import FormSchema, Runtime, open_runtime, parse_form
from greenroom.actors.bridge.connection import Frames, TerminalConnection
from greenroom.actors.bridge.forms import pending_frame
from greenroom.actors.terminal import Notice
from greenroom.actors.terminal.ticket import Ticket
from greenroom.protocol.forms import Form

__all__ = ["Peers", "peers"]

ONE, TEN = workload("one-field"), workload("ten-field")
OWN, ELSEWHERE = 1_000, 5_000
WATCHING = 10
"""Streams of the terminal itself, while those of others are what is measured."""
READERS = 1_000
FRAMES = 4
"""To each of the readers, before and after one that reads nothing has come."""
MUTE = 100
POSTS = 300
FLOOD = 4 << 20
"""Bytes that are more than what the kernel holds for a peer that reads nothing."""


class Peers:
    """Other ends of connections, in another process; see `bench.peers` for what they do."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None, "it is a pipe"
        assert process.stdout is not None, "and so is this"
        self._stdin, self._stdout = process.stdin, process.stdout

    async def tell(self, command: str, *arguments: Any) -> None:
        """Give a command whose answer will be read later."""
        await self._stdin.send_all(json.dumps([command, *arguments]).encode() + b"\n")

    async def heard(self) -> Any:
        """The answer to the command that was given last."""
        line = b""
        while not line.endswith(b"\n"):
            piece = await self._stdout.receive_some()
            assert piece, "the process of the peers has ended"
            line += piece
        return json.loads(line)

    async def do(self, command: str, *arguments: Any) -> Any:
        """Give a command and wait for its answer."""
        await self.tell(command, *arguments)
        return await self.heard()


@asynccontextmanager
async def peers(port: int) -> AsyncGenerator[Peers, None]:
    """A process of peers of the gateway at that port; it ends with the block, and so do its connections."""
    raise_descriptor_limit()
    command = [sys.executable, "-m", "bench.peers", str(port)]
    async with trio.open_nursery() as nursery:
        start = functools.partial(
            trio.run_process,
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            check=False,
            cwd=Path(__file__).parent.parent,
        )
        process: trio.Process = await nursery.start(start)
        try:
            yield Peers(process)
        finally:
            nursery.cancel_scope.cancel()


def _schema(source: Any) -> FormSchema:
    parsed = parse_form(source)
    assert parsed is not None, "the workload is a sound schema"
    return parsed


# -------------------------------------------------------------------- streams


class _Streams:
    """Event streams of one runtime, each read by a task as a connection does it, and how often a frame was encoded."""

    def __init__(self, runtime: Runtime, nursery: trio.Nursery) -> None:
        self._terminals = runtime.terminals
        self._nursery = nursery
        self._frames = Frames(pending_frame, self._encode)
        self.encoded = 0
        self.received = 0
        self._wanted = 0
        self._all = trio.Event()

    def _encode(self, notice: Notice) -> bytes:
        self.encoded += 1
        return pending_frame(notice.record)

    def open(self, name: str, count: int) -> None:
        terminal = self._terminals.add(name)
        for _ in range(count):
            stream = TerminalConnection(self._terminals, terminal, self._frames, admitted=lambda: True, keepalive=60)
            self._nursery.start_soon(self._read, stream)

    async def _read(self, stream: TerminalConnection) -> None:
        async for _ in stream:
            self.received += 1
            if self.received == self._wanted:
                self._all.set()

    async def announce(self, name: str, ticket: Ticket, count: int) -> None:
        """Announce a form, and wait until so many streams have its frame."""
        terminal = self._terminals.add(name)
        self._wanted = self.received + count
        self._all = trio.Event()
        self._terminals.announce(terminal, "pending", ticket)
        await self._all.wait()


async def _seconds_of_a_frame(own: int, elsewhere: int, rounds: int) -> float:
    """One frame from its announcement until all streams of its terminal have it."""
    async with open_runtime(tune_gc=True) as runtime, trio.open_nursery() as nursery:
        streams = _Streams(runtime, nursery)
        streams.open("reviewer", own)
        for number in range(50):
            streams.open(f"terminal-{number}", elsewhere // 50)
        await trio.testing.wait_all_tasks_blocked()
        ticket = Ticket("id", Form(_schema(TEN["schema"])), None, "agent", "reviewer", 0.0)
        start = time.perf_counter()
        for _ in range(rounds):
            await streams.announce("reviewer", ticket, own)
        taken = time.perf_counter() - start
        assert (streams.encoded, streams.received) == (rounds, rounds * own), "each frame is encoded once, for all"
        nursery.cancel_scope.cancel()
    return taken / rounds


@times("gateway/foreign-streams", against=functools.partial(_seconds_of_a_frame, WATCHING, 0, 500))
async def foreign_streams() -> float:
    """A frame at a terminal while there are 5,000 streams of others, against none."""
    return await _seconds_of_a_frame(WATCHING, ELSEWHERE, 500)


@cost("gateway/own-streams")
async def own_streams() -> float:
    """A frame to 1,000 streams of its terminal, for each of them."""
    return await _seconds_of_a_frame(OWN, 0, 10) / OWN


# -------------------------------------------------------------------- peers that read nothing


async def _flood(runtime: Runtime, terminal: str) -> None:
    """Park forms until whoever looks there and reads nothing has frames waiting for it."""
    label = "x" * 60_000
    form = {"fields": [{"control": "text", "name": "name", "label": label}]}
    for _ in range(FLOOD // len(label)):
        await runtime.terminals.add(terminal).park(Form(form))


class Latencies(NamedTuple):
    """Of frames at the clients that read, in seconds."""

    p50: float
    p99: float


async def _latencies(runtime: Runtime, peers: Peers, frames: int = FRAMES) -> Latencies:
    seconds: list[float] = []
    terminal = runtime.terminals.add("reviewer")
    for _ in range(frames):
        await peers.tell("latencies", READERS)
        label = SENT_AT.format(time.monotonic_ns())
        await terminal.park(Form({"fields": [{"control": "text", "name": "name", "label": label}]}))
        seconds += await peers.heard()
    return Latencies(statistics.median(seconds), statistics.quantiles(seconds, n=100)[98])


_p99: list[float] = []
"""What the run of a round's p50 found; its p99 is of the same run."""


@times("gateway/mute-client-p50")
async def mute_client_p50() -> float:
    """A frame's way to 1,000 clients, while one more reads nothing, against the same ones alone."""
    async with open_runtime(tune_gc=True) as runtime:
        gateway = await runtime.serve()
        for name in ("reviewer", "flooded"):
            runtime.terminals.add(name)
        async with peers(gateway.port) as clients:
            assert await clients.do("attach", READERS, "reviewer") == READERS
            await _latencies(runtime, clients, frames=1)
            alone = await _latencies(runtime, clients)
            assert await clients.do("mute", 1, "reviewer", "flooded") == 1
            await _flood(runtime, "flooded")
            beside = await _latencies(runtime, clients)
            assert gateway.connections == READERS + 1, "the one that reads nothing is still attached"
    _p99.append(beside.p99 / alone.p99)
    return beside.p50 / alone.p50


@times("gateway/mute-client-p99")
def mute_client_p99() -> float:
    """The slowest hundredth of the same frames."""
    return _p99.pop()


@times("gateway/stop-with-100-mute")
async def stop_with_100_mute() -> float:
    """Seconds until a gateway has stopped whose clients read nothing, each with frames waiting for it."""
    async with open_runtime(tune_gc=True) as runtime:
        gateway = await runtime.serve()
        runtime.terminals.add("flooded")
        async with peers(gateway.port) as clients:
            assert await clients.do("mute", MUTE, "flooded") == MUTE
            await _flood(runtime, "flooded")
            await trio.sleep(0.1)
            assert runtime.terminals.subscriptions == MUTE
            start = time.perf_counter()
            await gateway.stop()
            taken = time.perf_counter() - start
            assert gateway.connections == runtime.terminals.subscriptions == 0
    return taken


# -------------------------------------------------------------------- answers over HTTP


@rate("gateway/post")
async def post() -> float:
    """Answers per second that one client posts over one connection."""
    async with open_runtime(tune_gc=True) as runtime:
        gateway = await runtime.serve()
        terminal, schema = runtime.terminals.add("reviewer"), _schema(ONE["schema"])
        ids = [await terminal.park(Form(schema)) for _ in range(POSTS)]
        async with peers(gateway.port) as clients:
            taken: float = await clients.do("post", "reviewer", ONE["valid"], ids)
        assert terminal.count == 0
    return POSTS / taken
