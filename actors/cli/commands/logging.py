"""`greenroom log`: what an agent's session holds, read as a transcript or exported, and followed as it grows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Final, Protocol

import trio
from cyclopts import Parameter
from cyclopts.validators import Number

from greenroom.actors.cli.drawing import plain
from greenroom.actors.cli.leaving import race, until_signalled
from greenroom.actors.cli.options import AsJson
from greenroom.actors.cli.printing import print_json, screen
from greenroom.actors.cli.results import print_note
from greenroom.actors.cli.running import check_file
from greenroom.actors.cli.transcript import describe_event
from greenroom.actors.session import JournalLogs, JsonlPersistence, Stored
from greenroom.actors.session.loading import restored
from greenroom.protocol.errors import ConfigError, SessionError
from greenroom.protocol.sessions import TURNS, SessionHeader, Turns, project
from greenroom.protocol.sessions.codec import encode
from greenroom.runtime.journal import open_reader

__all__ = ["log"]

PAUSE: Final = 0.2
"""Seconds between two looks at a log that is followed: as long as its process may keep it from the disk."""


class Logs(Protocol):
    """Logs that are looked at, whoever writes them."""

    async def read(self, id: str, after: int = -1) -> Stored | None: ...

    async def list(self) -> list[SessionHeader]: ...


async def log(
    agent: str | None = None,
    /,
    *,
    follow: Annotated[bool, Parameter(negative=())] = False,
    after: Annotated[int, Parameter(validator=Number(gte=-1))] = -1,
    data: Path | None = None,
    root: Path | None = None,
    project: str = "default",
    json_: AsJson = False,
) -> int:
    """Print an agent's log: what was said, which tools it called, and how its turns ended.

    It is read from the file of a journal (--data) or from a folder of JSONL files (--root), also while a process writes
    it, and nothing is changed. With --json it is exported: the header, then an event a line, which is a JSONL file as
    --root has them. With --follow it goes on with what is written from now on, until Ctrl-C.

        greenroom log planner --data work.db --follow

    Without an agent it names those of which there is a log.

    Parameters
    ----------
    agent
        The id of the agent, which is its session's; without it, all ids are listed.
    follow
        Go on with what is written from now on.
    after
        Begin behind the event of this number.
    data
        The file of the journal.
    root
        The folder of the JSONL files.
    project
        The project beneath that folder.
    """
    async with _opened(data, root, project) as logs:
        if agent is None:
            return _list(await logs.list(), json=json_)
        stored = await logs.read(agent, after)
        if stored is None:
            known = [header.id for header in await logs.list()]
            raise SessionError(
                "SESSION_NOT_FOUND",
                f"There is no log of {agent} here; there are {', '.join(known[:20]) or 'none'}.",
                {"session": agent, "known": known[:20]},
            )
        if json_ and after < 0:
            print(encode(stored.header).decode(), flush=True)
        last = _show(stored, after, json=json_)
        if not follow:
            if not json_ and _open_turn(await logs.read(agent) or stored):  # all of it: a turn may have begun before
                print_note("The turn is open: it goes on, or its process ended in it.")
            return 0

        async def go_on() -> int:
            at = last
            while True:
                await trio.sleep(PAUSE)
                more = await logs.read(agent, at)
                at = at if more is None else _show(more, at, json=json_)

        return await race(go_on, until_signalled)


@asynccontextmanager
async def _opened(data: Path | None, root: Path | None, project: str) -> AsyncGenerator[Logs]:
    if (data is None) == (root is None):
        raise ConfigError("DATA", "Say where the log is: --data FILE, or --root FOLDER; one of them.")
    if root is not None:
        yield JsonlPersistence(root, project=project)
    elif data is not None:
        await check_file(data)
        async with open_reader(data) as reader:
            yield JournalLogs(reader)


def _list(headers: Sequence[SessionHeader], *, json: bool) -> int:
    """Print the ids of the logs, one a line; with `json`, what their headers say."""
    if json:
        print_json(headers)
    for header in () if json else headers:
        print(plain(header.id), flush=True)
    if not headers and not json:
        print_note("There are no logs here.")
    return 0


def _show(stored: Stored, last: int, *, json: bool) -> int:
    """Print these events; the number of the last one there is."""
    out = screen()
    for event in stored.events:
        if json:
            print(encode(event).decode(), flush=True)
        else:
            for line in describe_event(event):
                out.print(line)
        last = event.seq
    return last


def _open_turn(stored: Stored) -> bool:
    turns: Turns = project((TURNS,), map(restored, stored.events)).values[TURNS.key]
    return turns.open
