"""`greenroom tree --watch`: the tree, looked at again and again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

import msgspec
import trio
from rich.console import Console as Screen
from rich.live import Live

from greenroom.actors.cli.drawing import draw
from greenroom.actors.cli.leaving import CTRL_C, race, until_signalled
from greenroom.actors.client import Client
from greenroom.actors.console.keyboard import Keyboard
from greenroom.protocol.errors import TerminalError
from greenroom.protocol.tree import TreeSnapshot

__all__ = ["watch"]

PAUSE: Final = 0.25
"""Seconds between two looks."""


async def watch(client: Client, screen: Screen, *, json: bool = False) -> int:
    """Show the tree until q, Ctrl-C or a signal; the exit code.

    At a terminal one drawing takes the place of the other. Where the output goes elsewhere, or with `json` (one object
    a line), each is printed that differs from the one before. Raises RpcError CLOSED when the connection ends.
    """
    if json:
        return await _until_left(client, _changes(lambda tree: print(msgspec.json.encode(tree).decode(), flush=True)))
    if not screen.is_terminal:
        return await _until_left(client, _changes(lambda tree: screen.print(draw(tree))))
    with Live(console=screen, auto_refresh=False) as live:
        return await _until_left(client, lambda tree: live.update(draw(tree), refresh=True))


def _changes(show: Callable[[TreeSnapshot], None]) -> Callable[[TreeSnapshot], None]:
    last: TreeSnapshot | None = None

    def show_changed(tree: TreeSnapshot) -> None:
        nonlocal last
        if tree != last:
            last = tree
            show(tree)

    return show_changed


async def _until_left(client: Client, show: Callable[[TreeSnapshot], None]) -> int:
    async def look() -> int:
        while True:
            show(await client.tree())
            await trio.sleep(PAUSE)

    async def leave() -> int:
        await Keyboard(sys.stdin.fileno()).wait_left()
        return 0

    seated = sys.stdin is not None and sys.stdin.isatty()
    try:
        return await race(look, until_signalled, *([leave] if seated else []))
    except TerminalError as error:
        if error.code != "CANCEL":
            raise
        return CTRL_C
