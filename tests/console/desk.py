"""A gateway with the terminal `ops`, people who are asked there, and the command line that they run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

from greenroom.actors.gateway import Gateway
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.forms import Form
from tests.console.person import PATIENCE, Person

__all__ = ["Asked", "Desk", "Output", "ended", "open_desk"]

# Started in a session of its own, it makes the terminal at its standard input the session's: Ctrl-C is a signal there.
TAKES_TERMINAL: Final = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


class Asked:
    """A form that somebody asks, and what came of it."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.values: dict[str, Any] | None = None
        self.error: GreenroomError | None = None

    async def answer(self) -> dict[str, Any]:
        """The values that the asker got."""
        with trio.fail_after(PATIENCE):
            await self.ended.wait()
        assert self.values is not None, self.error
        return self.values


class Desk:
    """The runtime, the gateway and the processes of a test."""

    greenroom: Final = str(Path(sys.executable).with_name("greenroom"))
    """The command."""

    def __init__(self, runtime: Runtime, gateway: Gateway, nursery: trio.Nursery) -> None:
        self.runtime = runtime
        self.url = gateway.url
        self._gateway = gateway
        self._nursery = nursery
        self._changed = trio.Event()
        for event in ("pending", "answer", "expire", "withdraw"):
            runtime.terminals.emitter.on(event, self._change)

    def _change(self, *_: object) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until what happens at the terminals has made it true."""
        with trio.fail_after(PATIENCE):
            while not condition():
                await self._changed.wait()

    async def stop_listening(self) -> None:
        """Stop the gateway, and with it every connection; the runtime and its forms go on."""
        await self._gateway.stop()

    async def listen(self) -> None:
        """Let a new gateway listen where the old one did."""
        self._gateway = await self.runtime.serve(port=self._gateway.port)

    def pending(self) -> list[str]:
        """The ids of the forms that wait."""
        return [record.id for record in self.runtime.terminals.pending("ops")]

    async def ask(self, schema: Mapping[str, Any], *, timeout: float | None = None, **options: Any) -> Asked:
        """Ask `ops`; the form is parked when this returns. `options` are the form's."""
        asked, before = Asked(), len(self.pending())

        async def run() -> None:
            try:
                with asked.scope:
                    form = Form(schema, **options)
                    asked.values = await self.runtime.terminals.ask("planner", "ops", form, timeout=timeout)
            except GreenroomError as error:
                asked.error = error
            asked.ended.set()

        self._nursery.start_soon(run)
        await self.until(lambda: len(self.pending()) > before)
        return asked

    async def sits_down(self, person: Person, *words: str, **environment: str) -> trio.Process:
        """Run `greenroom` at the person's terminal."""
        return await trio.lowlevel.open_process(
            [sys.executable, "-ISc", TAKES_TERMINAL, self.greenroom, *words],
            stdin=person.slave,
            stdout=person.slave,
            stderr=person.slave,
            start_new_session=True,
            env={**os.environ, "GREENROOM_URL": self.url, "TERM": "xterm-256color", **environment},
        )

    async def pipes(self, text: str, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
        """Run `greenroom` to its end with this for standard input."""
        with trio.fail_after(PATIENCE):
            return await trio.run_process(
                [self.greenroom, *words],
                stdin=text.encode(),
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                env={**os.environ, "GREENROOM_URL": self.url, "NO_COLOR": "1", **environment},
            )


class Output:
    """What a process prints into a pipe."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._text = ""

    async def sees(self, text: str) -> str:
        """Wait for the text; everything from the last such wait up to it."""
        with trio.fail_after(PATIENCE):
            while text not in self._text:
                data = await self._stream.receive_some()
                assert data, f"ended before {text!r}, after {self._text!r}"
                self._text += data.decode()
        before, _, self._text = self._text.partition(text)
        return before + text


async def ended(process: trio.Process) -> int:
    """The exit code of a process that is about to end."""
    with trio.fail_after(PATIENCE):
        return await process.wait()


@asynccontextmanager
async def open_desk() -> AsyncGenerator[Desk]:
    """A desk for the length of the block."""
    async with open_runtime(timeout=None) as runtime:
        runtime.terminals.add("ops")
        gateway = await runtime.serve(port=0)
        async with trio.open_nursery() as nursery:
            yield Desk(runtime, gateway, nursery)
            nursery.cancel_scope.cancel()
