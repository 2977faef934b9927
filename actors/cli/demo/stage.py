"""The stage of the demo: what its steps share, and the agent that asks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, final

import trio
from rich.console import Console as Screen
from rich.text import Text

from greenroom.actors.cli.demo.workshop import Workshop
from greenroom.actors.client import AttachedTerminal, Client
from greenroom.actors.gateway import Gateway
from greenroom.actors.system import Runtime
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.forms import Form
from greenroom.protocol.rpc import TerminalEvent
from greenroom.protocol.terminals import PendingForm
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.messages import Request, Withdrawn
from greenroom.runtime.ref import Ref
from greenroom.runtime.reply import Reply

__all__ = ["Failed", "Release", "ReleaseAgent", "Stage", "check", "example"]

PATIENCE: Final = 5.0
"""Seconds that a step may take before it counts as failed."""

_UNHEARD: Final = 64
"""How many outcomes of the agent's asks may wait to be looked at."""


class Failed(Exception):
    """A step has not happened as it should."""


def check(holds: object, what: str) -> None:
    if not holds:
        raise Failed(what)


class Release(Request[dict[str, Any]], frozen=True):
    """Ask the reviewer whether the release may go out."""

    form: Mapping[str, Any]
    timeout: float


@final
class ReleaseAgent(Actor):
    """Prepares a release and asks the reviewer before it publishes;

    it stops asking when nobody wants to know any more.
    """

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self.runtime = runtime
        self.asking: dict[Reply[Any], trio.CancelScope] = {}

    @handles(Release)
    def release(self, message: Release) -> None:
        reply = self.take_reply()
        self.asking[reply] = trio.CancelScope()
        self.start_soon(self._consult, reply, message)

    @handles(Withdrawn)
    def withdrawn(self, message: Withdrawn) -> None:
        if message.reply in self.asking:
            self.asking[message.reply].cancel()

    async def _consult(self, reply: Reply[Any], message: Release) -> None:
        terminals = self.runtime.terminals
        with self.asking[reply]:
            try:
                form = Form(message.form)
                reply.answer(await terminals.ask("release-agent", "reviewer", form, timeout=message.timeout))
            except GreenroomError as error:
                reply.fail(error)
        del self.asking[reply]


class Stage:
    """What the steps share, filled in as they go."""

    gateway: Gateway
    agent: Ref
    reviewer: Client
    terminal: AttachedTerminal
    form: PendingForm
    workshop: Workshop

    def __init__(
        self, screen: Screen, runtime: Runtime, nursery: trio.Nursery, stack: AsyncExitStack, broken: str | None
    ) -> None:
        self.screen = screen
        self.runtime = runtime
        self.nursery = nursery
        self.stack = stack
        """What the steps open, closed after the last one."""
        self.broken = broken
        self.step = ""
        self._ended, self._outcomes = trio.open_memory_channel[dict[str, Any] | GreenroomError](_UNHEARD)
        """How the agent's asks ended."""

    @property
    def sabotaged(self) -> bool:
        """The step that runs now is the one to break."""
        return self.step == self.broken

    def say(self, text: str) -> None:
        self.screen.print(Text("   " + text, "dim"), soft_wrap=True)

    def ask(self, form: Mapping[str, Any], timeout: float = 60) -> trio.CancelScope:
        """Let the agent ask, beside the demo; the scope cancels it."""
        scope = trio.CancelScope()

        async def run() -> None:
            with scope:
                try:
                    values = await self.agent.ask(Release(form, timeout))
                    self._ended.send_nowait(values)
                except GreenroomError as error:
                    self._ended.send_nowait(error)

        self.nursery.start_soon(run)
        return scope

    async def event(self, kind: type[TerminalEvent]) -> Any:
        """What the reviewer's connection is told next; it must be of that kind."""
        with trio.move_on_after(PATIENCE):
            event = await anext(self.terminal)
            check(isinstance(event, kind), f"the reviewer was told {type(event).__name__}, not {kind.__name__}")
            return event
        raise Failed(f"the reviewer was never told {kind.__name__}")

    async def outcome(self) -> dict[str, Any] | GreenroomError:
        """How the agent's last ask ended."""
        with trio.move_on_after(PATIENCE):
            return await self._outcomes.receive()
        raise Failed("the agent still waits")


async def example(name: str) -> str:
    """The text of an example: installed beside this module, or in the folder of examples of a checkout."""
    return await trio.to_thread.run_sync(_read_example, name)


def _read_example(name: str) -> str:
    here = Path(__file__).resolve()
    installed = here.with_name(name)
    return (installed if installed.is_file() else here.parents[3] / "examples" / name).read_text("utf-8")
