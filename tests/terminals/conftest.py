"""One runtime a test, and what tests of terminals do again and again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.forms import Form

__all__ = ["NEED_X", "Asked"]

NEED_X = {"fields": [{"control": "text", "name": "x", "rule": {"required": True}}]}
"""A form with one required text `x`."""


class Asked:
    """An ask that runs beside the test: its form, and what became of it."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.values: dict[str, Any] | None = None
        self.error: GreenroomError | None = None
        self.cancelled = False
        self.scope = trio.CancelScope()

    @property
    def ended(self) -> bool:
        return self.values is not None or self.error is not None or self.cancelled

    async def run(self, ask: Callable[[], Any]) -> None:
        with self.scope:
            try:
                self.values = await ask()
            except GreenroomError as error:
                self.error = error
        self.cancelled = self.scope.cancelled_caught


class Room:
    """A runtime with a nursery beside it for those who ask."""

    def __init__(self, runtime: Runtime, nursery: trio.Nursery) -> None:
        self.runtime = runtime
        self.terminals = runtime.terminals
        self.nursery = nursery
        self.events: list[Any] = []
        emitter = self.terminals.emitter
        emitter.on("pending", lambda record: self.events.append(("pending", record.id)))
        emitter.on("answer", lambda to, id, values: self.events.append(("answer", to, id, values)))
        emitter.on("expire", lambda to, id: self.events.append(("expire", to, id)))
        emitter.on("withdraw", lambda to, id: self.events.append(("withdraw", to, id)))

    def mount(self, *names: str, **options: Any) -> None:
        for name in names:
            self.terminals.add(name, **options)

    async def ask(self, from_: str | None, to: str, schema: Any = NEED_X, **options: Any) -> Asked:
        """Begin an ask and let it come as far as it gets without the clock."""
        asked = Asked(schema if isinstance(schema, Form) else Form(schema))
        self.nursery.start_soon(asked.run, lambda: self.terminals.ask(from_, to, asked.form, **options))
        await trio.testing.wait_all_tasks_blocked()
        return asked

    def the_id(self, to: str) -> str:
        (record,) = self.terminals.pending(to)
        return record.id

    async def answer(self, to: str, values: dict[str, Any], **options: Any) -> Any:
        """Answer the one form that is pending there."""
        result = await self.terminals.answer(to, self.the_id(to), values, **options)
        await trio.testing.wait_all_tasks_blocked()
        return result

    def edges(self) -> int:
        return len(self.runtime.snapshot().waits)


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    async with open_runtime() as runtime, trio.open_nursery() as nursery:
        yield Room(runtime, nursery)
        nursery.cancel_scope.cancel()
