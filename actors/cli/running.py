"""Runs of workflows in this process: a runtime for them, and watching one until it is over or somebody leaves."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import trio
from rich.console import Console as Screen
from rich.live import Live
from rich.text import Text

from greenroom.actors.cli.behaviours import behaviours_of, import_behaviours
from greenroom.actors.cli.drawing import plain
from greenroom.actors.cli.leaving import race, until_signalled
from greenroom.actors.cli.options import PORT
from greenroom.actors.cli.printing import screen
from greenroom.actors.cli.progress import describe, draw_run
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.workflow import Run
from greenroom.actors.workflow.picture import picture_of
from greenroom.protocol.errors import ConfigError
from greenroom.protocol.workflows import WorkflowEvent

__all__ = ["Place", "check_file", "open_file", "run_at", "show_event"]

PAUSE: Final = 0.2
"""Seconds between two drawings."""


class Place(NamedTuple):
    """Where a run goes on: with which behaviours, in which file it is recorded, and who can be asked there."""

    functions: str | None = None
    data: Path | None = None
    terminals: Sequence[str] = ()
    port: int | None = None

    def way_back(self, id: str) -> str:
        """The command that takes the run up again."""
        words = ["greenroom", "resume", id, "--data", str(self.data)]
        words += [] if self.functions is None else ["--functions", self.functions]
        for name in self.terminals:
            words += ["--terminal", name]
        words += [] if self.port is None else ["--port", str(self.port)]
        return shlex.join(words)


@asynccontextmanager
async def _open_place(place: Place) -> AsyncGenerator[Runtime]:
    """A runtime in which runs can go on; people reach it while there are terminals or a port.

    Raises ConfigError FUNCTIONS and BIND, and JournalError.
    """
    module = None if place.functions is None else import_behaviours(place.functions)
    async with open_runtime(data=place.data, timeout=None) as runtime:
        if module is not None:
            runtime.workflows.functions.update(behaviours_of(module, runtime))
        for name in place.terminals:
            runtime.terminals.add(name)
        if place.terminals or place.port is not None:
            await _serve(runtime, place)
        yield runtime


@asynccontextmanager
async def open_file(data: Path) -> AsyncGenerator[Runtime]:
    """A runtime on a file that is there already, to look at what it holds. Raises ConfigError DATA and JournalError."""
    await check_file(data)
    async with open_runtime(data=data) as runtime:
        yield runtime


async def check_file(data: Path) -> None:
    """Raise ConfigError DATA if there is no such file: opening it would make one, in which there are no runs."""
    if not await trio.Path(data).is_file():
        raise ConfigError("DATA", f"There is no file {data} in which runs are recorded.", {"file": str(data)})


async def _serve(runtime: Runtime, place: Place) -> None:
    port = PORT if place.port is None else place.port
    gateway = await runtime.serve(port=port)
    notes = Screen(stderr=True, soft_wrap=True)
    notes.print(Text(f"Its page is http://127.0.0.1:{gateway.port}/, its gateway {gateway.url}", "dim"))
    for name in place.terminals:
        words = shlex.join(["greenroom", "attach", name, "--url", gateway.url])
        notes.print(Text(f"Answer for {plain(name)} there, or with: {plain(words)}", "dim"))


async def run_at(place: Place, begin: Callable[[Runtime], Awaitable[Run]], *, json: bool) -> int:
    """Begin a run and show it until it is over; the exit code: 0 if it completed and 1 if not.

    At a terminal it is drawn as it stands, elsewhere there is a line for each thing that happens, with `json` one
    object each. A signal ends it, with 128 and its number: a run that is recorded is suspended, another one stopped.
    """
    begun: list[Run] = []

    async def work() -> int:
        async with _open_place(place) as runtime:
            begun.append(await begin(runtime))
            return await _watch(runtime, begun[0], json=json)

    code = await race(work, until_signalled)
    for run in begun:
        if not run.workflow.terminal and place.data is not None:
            _note(f"{run.id} is suspended. It goes on with: {place.way_back(run.id)}")
        elif not run.workflow.terminal:
            _note(f"{run.id} was stopped. With --data FILE it would go on another time.")
    return code


async def _watch(runtime: Runtime, run: Run, *, json: bool) -> int:
    out = screen()
    if json or not out.is_terminal:
        async for event in run.events():
            show_event(event, out, json=json)
    else:
        await _draw(runtime, run, out)
    result = await run.wait()
    if result.fault:
        _note(f"The run was stopped, since it could not be recorded: {result.fault.message}")
    return 0 if result.status == "completed" and result.durable is not False else 1


async def _draw(runtime: Runtime, run: Run, out: Screen) -> None:
    with Live(console=out, auto_refresh=False) as live:
        while True:
            over = run.over
            live.update(draw_run(picture_of(run, runtime.snapshot())), refresh=True)
            if over:
                return
            await trio.sleep(PAUSE)


def show_event(event: WorkflowEvent, out: Screen, *, json: bool) -> None:
    """Print one line about it."""
    if json:
        print(msgspec.json.encode(event).decode(), flush=True)
    else:
        out.print(describe(event))


def _note(text: str) -> None:
    Screen(stderr=True, soft_wrap=True).print(Text(plain(text)))
