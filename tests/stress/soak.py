"""Clients of a real port that come and go for as long as one likes: what is held must not grow."""

from __future__ import annotations

import gc
import json
import os
import random
import resource
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import trio

from greenroom.actors.client import Client, Reconnect, connect
from greenroom.actors.gateway import Gateway, GatewayLimits
from greenroom.actors.gateway.connection import Connection
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.errors import FormError, RpcError
from tests.stress.outcome import Failure, Outcome

__all__ = ["SUITE", "run"]

SUITE = 6
"""Rounds, each of all that `VISITS` says, at once."""

WARMING = 2
"""Rounds until whatever is made once has been made."""
VISITS = 40
ASKS = 3
SCHEMA: dict[str, Any] = {"fields": [{"control": "text", "name": "x", "rule": {"required": True}}]}
ANSWER = {"x": "yes"}
LIMITS = GatewayLimits(grace=0.05, kept_for=0.05)
QUICK = Reconnect(first=0.005, longest=0.02)
GROWTH = 8 << 20
"""Bytes of resident memory that an allocator may keep or take as it likes, however long a run is."""


class Held(NamedTuple):
    """What a process holds while nothing happens in it."""

    tasks: int
    descriptors: int
    memory: int

    @staticmethod
    def now() -> Held:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        tasks = trio.lowlevel.current_statistics().tasks_living
        return Held(tasks, len(os.listdir("/proc/self/fd")), pages * resource.getpagesize())


class Site:
    """A runtime with a gateway, an operator who answers everything, and its visitors."""

    def __init__(self, runtime: Runtime, gateway: Gateway, dice: random.Random) -> None:
        self._runtime = runtime
        self._gateway = gateway
        self._dice = dice
        self._asked = 0
        self._answered = 0

    async def round(self) -> None:
        """Everybody comes, does what the dice say, and has gone in the end."""
        visits = [self._ask, self._ask_and_vanish, self._read_and_post]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._operate)
            nursery.start_soon(self._cut)
            async with trio.open_nursery() as visitors:
                for _ in range(VISITS):
                    visitors.start_soon(self._dice.choice(visits))
            nursery.cancel_scope.cancel()
        assert self._asked == self._answered, "an ask did not end once"
        await self._empty()

    async def _empty(self) -> None:
        """Wait until the runtime has noticed that all have gone: when the grace is over."""
        with trio.fail_after(10):
            while self._left():  # noqa: ASYNC110  # real sockets: nothing tells
                await trio.sleep(0.02)

    def _left(self) -> bool:
        snapshot, terminals = self._runtime.snapshot(), self._runtime.terminals
        clients = (self._runtime.tree.root.children or {}).get("clients")
        return bool(
            terminals.pending()
            or terminals.subscriptions
            or snapshot.waits
            or snapshot.deadlines
            or self._gateway.connections
            or (clients is not None and clients.children)
        )

    # ---------------------------------------------------------------- who comes

    async def _operate(self) -> None:
        """Answer what was asked by those who wait for it."""
        async with connect(self._gateway.url, reconnect=QUICK) as client, client.attach("ops") as ops:
            while True:
                for id in list(ops.pending):
                    with suppress(RpcError):  # its outcome is unknown: it is pending still, or is not
                        await ops.answer(id, ANSWER)
                with trio.move_on_after(0.05):
                    await anext(ops)

    async def _cut(self) -> None:
        """End connections as a network does, one after another."""
        while True:
            await trio.sleep(0.01)
            refs = list((self._gateway._connections.children or {}).values())  # pyright: ignore[reportPrivateUsage]
            actor = self._dice.choice(refs).actor if refs else None
            if isinstance(actor, Connection) and actor._session is not None:  # pyright: ignore[reportPrivateUsage]
                await actor._stream.kill()  # pyright: ignore[reportPrivateUsage]

    async def _ask(self) -> None:
        async with connect(self._gateway.url, reconnect=QUICK) as client:
            for _ in range(ASKS):
                self._asked += 1
                try:
                    assert await client.ask("ops", SCHEMA) == ANSWER
                except RpcError as error:
                    if error.code != "OUTCOME":  # it was away for longer than the grace
                        raise
                self._answered += 1

    async def _ask_and_vanish(self) -> None:
        async with connect(self._gateway.url, reconnect=QUICK) as client, trio.open_nursery() as nursery:
            nursery.start_soon(_forget, partial(client.ask, "quiet", SCHEMA))
            nursery.start_soon(_forget, partial(self._attach, client))
            await trio.sleep(self._dice.random() / 50)
            nursery.cancel_scope.cancel()

    async def _attach(self, client: Client) -> None:
        async with client.attach("quiet") as quiet:
            async for _ in quiet:
                pass

    async def _read_and_post(self) -> None:
        """A browser: a stream that it leaves in the middle, and an answer that comes too late."""
        stream = await trio.open_tcp_stream("127.0.0.1", self._gateway.port)
        await stream.send_all(b"GET /terminals/ops HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in await stream.receive_some()
        body = json.dumps({"id": "gone", "values": ANSWER}).encode()
        head = f"POST /terminals/ops HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        async with await trio.open_tcp_stream("127.0.0.1", self._gateway.port) as poster:
            for _ in range(ASKS):
                await poster.send_all(head + body)
                assert b" 422 " in await poster.receive_some()
        await trio.aclose_forcefully(stream)


async def _forget(call: Callable[[], Awaitable[object]]) -> None:
    with suppress(RpcError, FormError):
        await call()


async def _soak(rounds: int, seed: int) -> None:
    async with open_runtime(timeout=None) as runtime:
        for name in ("ops", "quiet"):
            runtime.terminals.add(name)
        site = Site(runtime, await runtime.serve(limits=LIMITS), random.Random(seed))
        for _ in range(WARMING):
            await site.round()
        before = Held.now()
        for number in range(rounds):
            await site.round()
            held = Held.now()
            assert held.tasks <= before.tasks, f"round {number}: {held.tasks} tasks, which were {before.tasks}"
            assert held.descriptors <= before.descriptors, f"round {number}: {held.descriptors} descriptors"
            assert held.memory - before.memory <= GROWTH, f"round {number}: {held.memory - before.memory} bytes more"


def run(examples: int, seed: int) -> Outcome:
    """So many rounds in one run. The seed decides who comes, but not what a machine does with it."""
    try:
        trio.run(_soak, examples, seed)
    except Exception as failed:
        return Outcome(examples, [Failure(seed, f"{type(failed).__name__}: {failed!r}")])
    return Outcome(examples, [])
