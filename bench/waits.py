"""The wait-for graph where it is long: asking the head of a chain of 10,000 actors that wait for each other."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise

import trio
import trio.testing

from bench.harness import cost
from greenroom.protocol.errors import ActorDeadlock
from greenroom.runtime.actor import Actor, Leaf, handles
from greenroom.runtime.messages import Request
from greenroom.runtime.ref import Ref
from greenroom.runtime.tree import Tree, run_tree
from greenroom.runtime.waits import Wait

LENGTH = 10_000
ASKS = 500
REFUSALS = 3


class Echo(Request[int], frozen=True):
    value: int


class Link(Leaf):
    """One of the chain. It is idle, so that only the graph is measured, but it counts as waiting."""

    @handles(Echo)
    def echo(self, message: Echo) -> int:
        return message.value


class Work(Request[float], frozen=True):
    """Ask this actor so many times; answered with the seconds of one ask."""

    to: Ref
    count: int
    refused: bool


class Asker(Actor):
    @handles(Work)
    async def work(self, message: Work) -> float:
        refusals = 0
        start = time.perf_counter()
        for number in range(message.count):
            try:
                await message.to.ask(Echo(number))
            except ActorDeadlock:
                refusals += 1
        seconds = (time.perf_counter() - start) / message.count
        assert refusals == message.count * message.refused
        return seconds


@asynccontextmanager
async def _chain(tree: Tree) -> AsyncGenerator[list[Ref]]:
    """Actors of which each waits for the next."""
    links = [tree.spawn(Link(), f"link-{number}") for number in range(LENGTH)]
    await trio.testing.wait_all_tasks_blocked()
    waits = [Wait(one, other) for one, other in pairwise(links)]
    try:
        yield links
    finally:
        for wait in waits:
            wait.release()


@cost("waits/head-of-10k")
async def head_of_10k() -> float:
    """An actor that is waited for itself asks the head of the chain, and closes no circle."""
    async with run_tree() as tree, _chain(tree) as links:
        asker, other = tree.spawn(Asker(), "asker"), tree.spawn(Link(), "other")
        waited_for = Wait(other, asker)
        seconds = await asker.ask(Work(links[0], ASKS, refused=False))
        waited_for.release()
        return seconds


@cost("waits/refuse-10k")
async def refuse_10k() -> float:
    """An actor that the last of the chain waits for asks the head, which would close the circle."""
    async with run_tree() as tree, _chain(tree) as links:
        asker = tree.spawn(Asker(), "asker")
        waits_for = Wait(links[-1], asker)
        seconds = await asker.ask(Work(links[0], REFUSALS, refused=True))
        waits_for.release()
        return seconds
