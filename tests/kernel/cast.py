"""Actors that do what a test tells them to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
import trio.testing

from greenroom.runtime.actor import Actor, Leaf, handles
from greenroom.runtime.messages import Message, Request, Withdrawn
from greenroom.runtime.ref import Ref
from greenroom.runtime.reply import Reply
from greenroom.runtime.tree import Tree

__all__ = [
    "Call",
    "Do",
    "Echo",
    "Keep",
    "Note",
    "Player",
    "Prop",
    "Run",
    "Unknown",
    "forever",
    "nothing_is_left",
    "quiet",
    "sleep",
]


class Echo(Request[int], frozen=True):
    """Answered with its value."""

    value: int


class Note(Message, frozen=True):
    """Written down."""

    text: str


class Keep(Request[str], frozen=True):
    """Its reply is kept."""

    text: str = ""


class Do(Request[Any], frozen=True):
    """`await action(actor)` in an async handler is the answer."""

    action: Callable[[Any], Awaitable[Any]]


class Run(Message, frozen=True):
    """`await action(actor)` in an async handler, with nobody who waits."""

    action: Callable[[Any], Awaitable[Any]]


class Call(Request[Any], frozen=True):
    """`action(actor)` in a plain handler is the answer."""

    action: Callable[[Any], Any]


class Unknown(Request[None], frozen=True):
    """Nobody handles it."""


class Player(Actor):
    """An actor with a nursery. It writes down what happens to it."""

    def __init__(self, start: Callable[[Player], Awaitable[Any]] | None = None) -> None:
        self.start = start
        self.notes: list[str] = []
        self.kept: list[Reply[str]] = []
        self.withdrawn: list[Reply[str]] = []
        self.ends: list[str] = []

    async def on_start(self) -> None:
        if self.start is not None:
            await self.start(self)

    def on_end(self, reason: str) -> None:
        self.ends.append(reason)

    @handles(Echo)
    async def echo(self, message: Echo) -> int:
        return message.value

    @handles(Note)
    def note(self, message: Note) -> None:
        self.notes.append(message.text)

    @handles(Keep)
    def keep(self, message: Keep) -> None:
        self.kept.append(self.take_reply())

    @handles(Withdrawn)
    def forget(self, message: Withdrawn) -> None:
        self.withdrawn.append(message.reply)

    @handles(Do)
    async def do(self, message: Do) -> Any:
        return await message.action(self)

    @handles(Run)
    async def run(self, message: Run) -> None:
        await message.action(self)

    @handles(Call)
    def call(self, message: Call) -> Any:
        return message.action(self)


class Prop(Leaf):
    """A leaf. It writes down what happens to it."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.kept: list[Reply[str]] = []
        self.withdrawn: list[Reply[str]] = []
        self.ends: list[str] = []

    def on_end(self, reason: str) -> None:
        self.ends.append(reason)

    @handles(Echo)
    def echo(self, message: Echo) -> int:
        return message.value

    @handles(Note)
    def note(self, message: Note) -> None:
        self.notes.append(message.text)

    @handles(Keep)
    def keep(self, message: Keep) -> None:
        self.kept.append(self.take_reply())

    @handles(Withdrawn)
    def forget(self, message: Withdrawn) -> None:
        self.withdrawn.append(message.reply)

    @handles(Call)
    def call(self, message: Call) -> Any:
        return message.action(self)


async def forever(_: Any = None) -> None:
    """An action that never ends by itself."""
    await trio.sleep_forever()


def sleep(seconds: float) -> Callable[[Any], Awaitable[None]]:
    """An action that takes so long."""

    async def action(_: Any) -> None:
        await trio.sleep(seconds)

    return action


async def quiet() -> None:
    """Let everything happen that can happen without the clock."""
    await trio.testing.wait_all_tasks_blocked()


def nothing_is_left(*places: Ref | Tree) -> bool:
    """No message is queued, nobody stands in line, and no wait starts or leads here."""
    refs = [place.root if isinstance(place, Tree) else place for place in places]
    return all(
        ref.mailbox.depth == 0 and all(node.asked is None and node.waiting is None for node in ref.nodes())
        for ref in refs
    )
