"""A terminal as an attached client sees it: what is pending there, and what happens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

import trio
from msgspec import UnsetType

from greenroom.protocol.errors import RpcError
from greenroom.protocol.rpc import Attachment, FormExpired, FormPending, TerminalEvent
from greenroom.protocol.terminals import AnswerResult, PendingForm

if TYPE_CHECKING:
    from greenroom.actors.client.client import Client

__all__ = ["AttachedTerminal"]


@final
class AttachedTerminal:
    """Made by `Client.attach`. Iterating it gives events, each once, in order; the first follows what was pending.

    ::

        async with client.attach("ops") as ops:
            for form in ops.pending.values():
                ...
            async for event in ops:
                ...

    After a lost connection it goes on where it was: a form is told once, however often it is seen, and one that has
    gone meanwhile is told as expired, with the reason `missed`.

    Iterating ends with RpcError CLOSED when the connection does, and with OVERFLOW when more events than `buffer` wait
    to be taken: `pending` is right all the same, so look there and attach again. Leaving the block ends it quietly.
    """

    def __init__(self, client: Client, name: str, buffer: int) -> None:
        self._client = client
        self.name = name
        self.pending: dict[str, PendingForm] = {}
        """By id, oldest first. Kept current whether or not events are taken."""
        self._attached = False
        self._following: set[str] = set()
        """Forms that are pending and were not shown yet."""
        self._whole = trio.Event()
        """All that was pending in the beginning has been shown."""
        self._send, self._receive = trio.open_memory_channel[TerminalEvent](buffer)
        self._error: RpcError | None = None

    def __aiter__(self) -> AttachedTerminal:
        return self

    async def __anext__(self) -> TerminalEvent:
        """The next event, waiting without a deadline but the connection's. Cancelled: none is lost."""
        try:
            return await self._receive.receive()
        except trio.EndOfChannel:
            if self._error is not None:
                raise self._error from None
            raise StopAsyncIteration from None

    async def answer(self, id: str, values: Mapping[str, Any]) -> AnswerResult:
        """Answer a form that is pending here; see `Client.answer`."""
        return await self._client.answer(self.name, id, values)

    async def withdraw(self, id: str) -> bool:
        """Take a form back in its asker's name; see `Client.withdraw`."""
        return await self._client.withdraw(self.name, id)

    # ---------------------------------------------------------------- what the client calls

    async def wait_whole(self) -> None:
        """Wait until all that was pending has been shown. Raises the RpcError with which it ended before that."""
        await self._whole.wait()
        if self._error is not None:
            raise self._error

    @property
    def begun(self) -> bool:
        """It has been attached once."""
        return self._attached

    def resume(self, attachment: Attachment) -> None:
        """Attached again after the connection was lost: tell what is new, and what has gone meanwhile."""
        self._following = _following(attachment)
        there = {form.id for form in attachment.pending} | self._following
        for id in [id for id in self.pending if id not in there]:
            self.take(FormExpired(terminal=self.name, id=id, reason="missed"))
        for form in attachment.pending:
            self.take(FormPending(terminal=self.name, form=form))
        self._look_whether_whole()

    def begin(self, attachment: Attachment) -> None:
        """Start from what was pending when the server began to notify."""
        self.pending = {form.id: form for form in attachment.pending}
        self._following = _following(attachment)
        self._attached = True
        self._look_whether_whole()

    def take(self, event: TerminalEvent) -> None:
        """Something happened. Until all is there that was pending in the beginning, it is part of that."""
        if not self._attached:
            return
        if isinstance(event, FormPending):
            self._following.discard(event.form.id)
            known = event.form.id in self.pending
            self.pending.setdefault(event.form.id, event.form)
        else:
            self._following.discard(event.id)
            known = False
            self.pending.pop(event.id, None)
        if not self._whole.is_set():
            self._look_whether_whole()
        elif not known:
            self._tell(event)

    def _look_whether_whole(self) -> None:
        if not self._following:
            self._whole.set()

    def _tell(self, event: TerminalEvent) -> None:
        try:
            self._send.send_nowait(event)
        except trio.WouldBlock:
            self.end(
                RpcError(
                    "OVERFLOW",
                    f"More events of the terminal {self.name} wait than its buffer holds; look at `pending`, and "
                    "attach again with a larger buffer or take events sooner.",
                    {"terminal": self.name},
                )
            )
        except trio.ClosedResourceError:
            pass  # the iteration has ended, `pending` goes on

    def end(self, error: RpcError | None) -> None:
        """No more events: after those that wait the iteration ends, with that error if there is one."""
        if self._error is None:
            self._error = error
        self._send.close()
        self._whole.set()


def _following(attachment: Attachment) -> set[str]:
    return set() if isinstance(attachment.following, UnsetType) else set(attachment.following)
