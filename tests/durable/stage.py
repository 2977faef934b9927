"""What the tests of durable asks have in common: a runtime on a file, life after life, and a journal that refuses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import trio

from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.terminal import Notice
from greenroom.protocol.errors import GreenroomError

__all__ = ["FORM", "Asking", "Life", "life", "refusing"]

FORM: dict[str, Any] = {
    "label": "Go?",
    "fields": [
        {"control": "text", "name": "x", "rule": {"required": True}},
        {"control": "number", "name": "n", "default": 3},
    ],
}


class Asking:
    """An ask that runs beside the test, and what became of it."""

    def __init__(self) -> None:
        self.values: dict[str, Any] | None = None
        self.error: GreenroomError | None = None
        self.scope = trio.CancelScope()
        self.done = trio.Event()

    async def run(self, ask: Callable[[], Any]) -> None:
        with self.scope:
            try:
                self.values = await ask()
            except GreenroomError as error:
                self.error = error
        self.done.set()

    async def result(self) -> dict[str, Any]:
        """What it returned, or the raise of what it raised."""
        await self.done.wait()
        if self.error is not None:
            raise self.error
        assert self.values is not None, "it was cancelled"
        return self.values


class Life:
    """One opening of the file, with the terminal `ops` and what was told of it."""

    def __init__(self, runtime: Runtime, nursery: trio.Nursery) -> None:
        self.runtime = runtime
        self.terminals = runtime.terminals
        self.nursery = nursery
        self.told: list[str] = []
        self._news = trio.Event()
        self.terminals.subscribe("ops", self._hear)
        self.ops = self.terminals.add("ops")

    def _hear(self, notice: Notice) -> None:
        self.told.append(notice.kind if notice.kind != "expired" else f"expired: {notice.reason}")
        self._news.set()
        self._news = trio.Event()

    async def until_told(self, count: int) -> None:
        """Wait until so many things were told of the terminal."""
        while len(self.told) < count:
            await self._news.wait()

    def ask(self, key: str, form: Any = None, **options: Any) -> Asking:
        """Begin a durable ask."""
        asking = Asking()
        self.nursery.start_soon(
            asking.run, lambda: self.runtime.ask("ops", FORM if form is None else form, key=key, **options)
        )
        return asking

    async def shown(self, key: str, form: Any = None, **options: Any) -> tuple[str, Asking]:
        """Begin one and wait until it is shown: its id."""
        before = {record.id for record in self.ops.pending()}
        told = len(self.told)
        asking = self.ask(key, form, **options)
        await self.until_told(told + 1)
        (id,) = {record.id for record in self.ops.pending()} - before
        return id, asking

    async def rows(self) -> list[tuple[Any, ...]]:
        """Key, status and outcome of every row, in the order of asking."""
        assert self.runtime.journal is not None
        return await self.runtime.journal.select("SELECT key, status, outcome FROM asks ORDER BY rowid")


@asynccontextmanager
async def life(path: Path | str | None, **options: Any) -> AsyncGenerator[Life]:
    """The runtime for the length of a block, which at its end stops as a program does."""
    async with trio.open_nursery() as nursery:
        async with open_runtime(data=path, **options) as runtime:
            yield Life(runtime, nursery)
        nursery.cancel_scope.cancel()


@contextmanager
def refusing(runtime: Runtime) -> Generator[None]:
    """The journal's file cannot be written within the block."""
    writer = runtime.journal._writer._file.writer  # type: ignore[union-attr]  # there is one
    writer.execute("PRAGMA query_only = ON")
    try:
        yield
    finally:
        writer.execute("PRAGMA query_only = OFF")
