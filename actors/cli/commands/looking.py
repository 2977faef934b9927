"""`greenroom tree`: what lives in a running gateway."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from greenroom.actors.cli.drawing import draw
from greenroom.actors.cli.options import DEFAULT_URL, AsJson, Url
from greenroom.actors.cli.printing import print_json, screen
from greenroom.actors.cli.reach import reach
from greenroom.actors.cli.watching import watch

__all__ = ["tree"]


async def tree(
    *,
    watch_: Annotated[bool, Parameter(name="--watch", negative=())] = False,
    json_: AsJson = False,
    url: Url = DEFAULT_URL,
) -> int:
    """Draw every actor of a running gateway, and who waits for whom.

    With --watch it goes on, until q or Ctrl-C; where the output is no terminal, each change is printed.

        greenroom tree --watch

    Parameters
    ----------
    watch_
        Draw it again and again, until q or Ctrl-C.
    """
    async with reach(url) as client:
        if watch_:
            return await watch(client, screen(), json=json_)
        snapshot = await client.tree()
    if json_:
        print_json(snapshot)
    else:
        screen().print(draw(snapshot))
    return 0
