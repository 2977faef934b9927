"""Telling and asking: a mailbox by itself, and asks between actors, with their waits in the graph."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import pykka
import trio
import trio.testing

from bench.harness import rate, times
from greenroom.runtime.actor import Actor, Leaf, handles
from greenroom.runtime.mailbox import Mailbox
from greenroom.runtime.messages import Request
from greenroom.runtime.ref import Ref
from greenroom.runtime.tree import run_tree

MESSAGES = 40_000
ASKS = 10_000


class Echo(Request[int], frozen=True):
    value: int


class Echoer(Leaf):
    @handles(Echo)
    def echo(self, message: Echo) -> int:
        return message.value


class Asker(Actor):
    """Asks from its work, so that each ask is a wait between two parties."""

    def __init__(self, echoer: Ref, count: int, begin: trio.Event) -> None:
        super().__init__()
        self.echoer = echoer
        self.count = count
        self.begin = begin
        self.done = trio.Event()

    async def on_start(self) -> None:
        self.start_soon(self.ask)

    async def ask(self) -> None:
        await self.begin.wait()
        for number in range(self.count):
            assert await self.echoer.ask(Echo(number)) == number
        self.done.set()


class PykkaEchoer(pykka.ThreadingActor):
    def on_receive(self, message: object) -> object:
        return message


@rate("mailbox/tell")
async def tell() -> float:
    """Messages that are put without waiting, while a receiver takes them; the sender waits for room when it is full."""
    mailbox = Mailbox(1024)

    async def sender() -> None:
        for number in range(MESSAGES):
            if not mailbox.offer(number):
                await mailbox.send(number)

    return await _messages_per_second(mailbox, sender)


@rate("mailbox/send")
async def send() -> float:
    """Messages that are each put with `await`, while a receiver takes them."""
    mailbox = Mailbox(1024)

    async def sender() -> None:
        for number in range(MESSAGES):
            await mailbox.send(number)

    return await _messages_per_second(mailbox, sender)


async def _messages_per_second(mailbox: Mailbox, sender: Callable[[], Awaitable[None]]) -> float:
    async def receiver() -> None:  # as an actor's loop takes its messages
        for number in range(MESSAGES):
            while (message := mailbox.take()) is None:
                await mailbox.more()
            assert message == number

    start = time.perf_counter()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receiver)
        nursery.start_soon(sender)
    return MESSAGES / (time.perf_counter() - start)


async def _asks_per_second(askers: int) -> float:
    async with run_tree() as tree:
        echoer = tree.spawn(Echoer(), "echoer")
        begin = trio.Event()
        crowd = [Asker(echoer, ASKS // askers, begin) for _ in range(askers)]
        for number, asker in enumerate(crowd):
            tree.spawn(asker, f"asker-{number}")
        await trio.testing.wait_all_tasks_blocked()
        start = time.perf_counter()
        begin.set()
        for asker in crowd:
            await asker.done.wait()
        return ASKS / (time.perf_counter() - start)


@rate("actor/ask-1")
async def ask_1() -> float:
    """One actor asks another, one question after the other."""
    return await _asks_per_second(1)


@rate("actor/ask-100")
async def ask_100() -> float:
    """A hundred actors ask one at the same time, each one question after the other."""
    return await _asks_per_second(100)


def pykka_asks_per_second() -> float:
    ref = PykkaEchoer.start()
    try:
        start = time.perf_counter()
        for number in range(ASKS):
            assert ref.ask(number) == number
        return ASKS / (time.perf_counter() - start)
    finally:
        ref.stop()


@times("actor/ask-1-vs-pykka", against=pykka_asks_per_second)
async def ask_1_vs_pykka() -> float:
    """The same in another actor library, whose actors are threads."""
    return await _asks_per_second(1)
