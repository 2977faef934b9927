"""A runtime with a gateway in a thread of its own, driven from plain test functions: a browser is driven from those."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlencode

import trio

from greenroom.actors.gateway import Gateway
from greenroom.actors.gateway.access import Access
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.terminal import Terminal
from greenroom.protocol.forms import Form
from greenroom.protocol.terminals import AnswerResult

__all__ = ["Asked", "Stage", "staged"]

T = TypeVar("T")

PATIENCE = 10.0
"""Seconds within which whatever a test waits for has happened; a machine under load is slow."""


class Asked:
    """A form that somebody asks, and waits for."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._outcome: Future[dict[str, Any]] = Future()
        self._scope = trio.CancelScope()

    @property
    def answer(self) -> dict[str, Any]:
        """What the asker got. Raises what the asker's wait raised."""
        return self._outcome.result(PATIENCE)

    @property
    def answered(self) -> bool:
        return self._outcome.done()

    def cancel(self) -> None:
        """The asker goes away."""
        self._stage.do(self._scope.cancel)

    async def run(self, ask: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        try:
            with self._scope:
                self._outcome.set_result(await ask())
        except Exception as error:
            self._outcome.set_exception(error)


class Stage:
    """What a test has hold of: the runtime, and the gateway, which can go away and come back on the same port."""

    home: str
    """The terminal that belongs to the test."""

    def __init__(self, access: Access | None = None) -> None:
        self._access = access
        self._tests = 0
        self._listening = True
        self._up = threading.Event()
        self._token: trio.lowlevel.TrioToken
        self._nursery: trio.Nursery
        self._down: trio.Event
        self.runtime: Runtime
        self.gateway: Gateway
        self.port = 0

    # ---------------------------------------------------------------- the thread

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._down = trio.Event()
        async with open_runtime(data=":memory:", timeout=None) as self.runtime, trio.open_nursery() as self._nursery:
            self.gateway = await self.runtime.serve(port=self.port, access=self._access)
            self.port = self.gateway.port
            self._listening = True
            self._up.set()
            await self._down.wait()
            self._nursery.cancel_scope.cancel()

    def start(self) -> None:
        """Start a runtime, at the same port as the one before."""
        self._up.clear()
        self._thread = threading.Thread(target=trio.run, args=(self._main,))
        self._thread.start()
        assert self._up.wait(PATIENCE)

    def stop(self) -> None:
        """Stop it with everything in it."""
        self.do(self._down.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def do(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a plain function within the runtime."""
        return trio.from_thread.run_sync(function, *arguments, trio_token=self._token)

    def wait_for(self, function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Call an async function within the runtime, and wait."""
        return trio.from_thread.run(function, *arguments, trio_token=self._token)

    def begin(self) -> None:
        """Be new to a test: a terminal that nothing has happened at, and nobody else."""
        if not self._listening:
            self.listen_again()
        self.wait_for(self.runtime.terminals.remove)
        self._tests += 1
        self.home = f"ops {self._tests}"
        self.add(self.home)

    # ---------------------------------------------------------------- what happens there

    @property
    def url(self) -> str:
        """Where the page is, with no terminal chosen."""
        return f"http://127.0.0.1:{self.port}/"

    def url_of(self, terminal: str) -> str:
        """Where the page shows that terminal."""
        return f"{self.url}?{urlencode({'terminal': terminal})}"

    def add(self, *names: str) -> Terminal:
        """Add terminals; the last one."""
        return [self.do(self.runtime.terminals.add, name) for name in names][-1]

    def ask(
        self,
        schema: Mapping[str, Any],
        *,
        to: str | None = None,
        from_: str | None = None,
        timeout: float | None = None,
        key: str | None = None,
        **options: Any,
    ) -> Asked:
        """Ask a terminal (added if it is not there); the form is parked when this returns. `options` are the form's."""
        name = self.home if to is None else to
        terminal = self.add(name)
        asked = Asked(self)

        async def park() -> None:
            form = Form(schema, **options)
            parked = trio.Event()

            def hear(record: object) -> None:
                parked.set()

            stop_listening = terminal.emitter.on("pending", hear)
            self._nursery.start_soon(
                asked.run, lambda: self.runtime.terminals.ask(from_, name, form, timeout=timeout, key=key), name="asker"
            )
            with trio.fail_after(PATIENCE):
                await parked.wait()
            stop_listening()

        self.wait_for(park)
        return asked

    def answer(self, values: Mapping[str, Any], *, to: str | None = None) -> AnswerResult:
        """Answer the oldest form of a terminal, as somebody who uses no page."""
        name = self.home if to is None else to
        oldest = self.do(self.runtime.terminals.pending, name)[0]
        return self.wait_for(self.runtime.terminals.answer, name, oldest.id, values)

    def break_connections(self) -> None:
        """Stop the gateway, and with it every connection; the runtime and its forms go on."""
        self._listening = False
        self.wait_for(self.gateway.stop)

    def listen_again(self) -> None:
        """Let a new gateway listen where the old one did."""

        async def listen() -> None:
            self.gateway = await self.runtime.serve(port=self.port, access=self._access)

        self.wait_for(listen)
        self._listening = True


@contextmanager
def staged(access: Access | None = None) -> Generator[Stage]:
    """A stage for the length of a block, open to everybody unless `access` says who may come in."""
    stage = Stage(access)
    stage.start()
    try:
        yield stage
    finally:
        stage.stop()
