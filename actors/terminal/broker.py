"""One terminal, as the program that owns it sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, final, overload

import msgspec

from greenroom.actors.terminal.actor import Answer, Park, Release, TerminalActor
from greenroom.actors.terminal.durable import DurableAsk
from greenroom.actors.terminal.notice import NoticeKind
from greenroom.actors.terminal.options import check_name, check_timeout
from greenroom.actors.terminal.recording import Forget
from greenroom.actors.terminal.ticket import Ticket
from greenroom.protocol.emitter import Emitter, ErrorHandler, Listener
from greenroom.protocol.errors import ActorError, TerminalError
from greenroom.protocol.forms import Form
from greenroom.protocol.terminals import AnswerFailure, AnswerRefusal, AnswerResult, PendingForm
from greenroom.runtime.ref import Ref
from greenroom.runtime.waits import Party

if TYPE_CHECKING:
    from greenroom.actors.terminal.manager import TerminalManager

__all__ = ["Terminal"]

EVENTS = ("pending", "answer", "expire", "withdraw")


@final
class Terminal:
    """A named party that can be asked. Made by `TerminalManager.add`.

    Events of its `emitter`, in the terminal's own step: `pending(record)`, `answer(id, values)` with passwords masked,
    `expire(id)`, `withdraw(id)`. The ticket is still listed then, with its new status. A listener is a plain function:
    it may tell, but not await. A task that it starts waits for itself, also for the same terminal, which goes on.
    """

    __slots__ = ("_emitter", "_error", "cap", "manager", "name", "operator", "own_timeout", "party", "ref", "timeout")

    ref: Ref
    """The address of its actor, `/terminals/<name>`."""

    def __init__(
        self,
        manager: TerminalManager,
        name: str,
        *,
        party: Party,
        timeout: float | None,
        own_timeout: float | msgspec.UnsetType | None,
        cap: int | None,
        operator: Ref | None,
        on: Mapping[str, Listener] | None,
        error: ErrorHandler | None,
    ) -> None:
        self.manager = manager
        self.name = name
        self.party = party
        """Its name's node in the wait-for graph, apart from its actor's."""
        self.timeout = timeout
        """Seconds until a form that is parked here expires, where its ask says nothing else. None: never."""
        self.own_timeout = own_timeout
        self.cap = cap
        """How many forms may be parked here at once. None: any number. A form that was settled by somebody else stays
        parked until it is answered in vain or expires, and counts until then."""
        self.operator = operator
        """The actor that answers for it. Asks of this terminal wait for that actor."""
        self._error = error
        self._emitter: Emitter | None = Emitter(EVENTS, on=on, error=error) if on else None

    def __repr__(self) -> str:
        return f"<Terminal {self.name}>"

    @property
    def emitter(self) -> Emitter:
        """Where its events can be listened to."""
        if self._emitter is None:
            self._emitter = Emitter(EVENTS, error=self._error)
        return self._emitter

    @property
    def heard(self) -> bool:
        """Somebody listens to its own events."""
        return self._emitter is not None and self._emitter.heard

    @property
    def destroyed(self) -> bool:
        """It takes no more forms, for good."""
        return not self.ref.alive

    @property
    def count(self) -> int:
        """How many tickets it holds."""
        return len(self._tickets())

    @overload
    def pending(self) -> list[PendingForm]: ...

    @overload
    def pending(self, id: str) -> PendingForm | None: ...

    def pending(self, id: str | None = None) -> list[PendingForm] | PendingForm | None:
        """The parked forms in the order of parking, or the one of that id. A snapshot: any task may take it."""
        tickets = self._tickets()
        if id is None:
            return [ticket.record for ticket in tickets.values() if ticket.listed]
        ticket = tickets.get(id)
        return ticket.record if ticket is not None and ticket.listed else None

    def remaining(self) -> dict[str, float]:
        """By id, the seconds from now until a parked form expires;

        those that never do are left out. A snapshot as well.
        """
        spans = ((id, ticket.remaining) for id, ticket in self._tickets().items() if ticket.listed)
        return {id: span for id, span in spans if span is not None}

    async def park(
        self,
        form: Form,
        *,
        from_: str | None = None,
        to: str | None = None,
        timeout: float | msgspec.UnsetType | None = msgspec.UNSET,
    ) -> str:
        """Park a form that nobody waits for, and return its ticket's id. `timeout` as in `TerminalManager.ask`.

        Raises TerminalError EXPIRE (the terminal is destroyed) or LIMIT, which both abandon the form, and INVALID for
        another timeout, and for names that are none. Cancelled: it is parked or it is not; look at `pending`.
        """
        if timeout is not msgspec.UNSET:
            check_timeout(timeout, "this form")
        for name, whose in ((from_, "An asker's"), (to, "A terminal's")):
            if name is not None:
                check_name(name, whose)
        try:
            return await self.ref.ask(Park(form, from_, to, timeout))
        except ActorError as error:
            if error.code != "STOPPED":
                raise
            form.destroy()
            raise self.expired(self.ref.reason or "stopped") from None

    async def answer(self, id: str, values: Mapping[str, Any], *, whole: bool = False) -> AnswerResult:
        """Fill the ticket's form and submit it.

        An answer that is refused leaves the ticket parked. Fields are filled in the given order until one is refused,
        and what was filled stays for the next attempt; with `whole` everything is checked on a copy of the form as it
        was parked, and either all of it is written or nothing. Values that are no mapping are refused, and an id of no
        form is unknown, whatever they are. Cancelled: the answer counted or it did not.

        The answer to a durable form counts once it is recorded, and this returns then. Raises JournalError if it cannot
        be recorded, and the form is pending as it was asked; TerminalError EXPIRE if the terminal ended meanwhile.
        """
        try:
            return await self.ref.ask(Answer(id, values, whole))
        except ActorError as error:
            if error.code != "STOPPED":
                raise
            return AnswerFailure(error=AnswerRefusal("unknown"))

    @overload
    async def stop(self, ids: str | Iterable[str]) -> bool: ...

    @overload
    async def stop(self) -> None: ...

    async def stop(self, ids: str | Iterable[str] | None = None) -> bool | None:
        """Take tickets away unanswered, as expired: one, several or all. The terminal stays usable.

        True if every id was parked (None where all were meant); those that were are released in any case. Raises
        JournalError if that cannot be recorded of a durable one, which stays then.
        """
        wanted = None if ids is None else (ids,) if isinstance(ids, str) else tuple(ids)
        there = await self._release(Release(wanted))
        return None if wanted is None else there

    async def withdraw(self, id: str) -> bool:
        """Take a form back in its asker's name: everybody who looks at it is told, and its asker ends as ABANDONED.

        False if no such form is pending. (An asker that is cancelled needs no such call.)
        """
        return await self._release(Release((id,), withdraw=True))

    async def forget(self, ask: DurableAsk) -> bool:
        """Take a durable ask and its record away; called by the manager. False: it is not (any more) here."""
        try:
            return await self.ref.ask(Forget(ask))
        except ActorError as error:
            if error.code != "STOPPED":
                raise
            return False

    async def _release(self, message: Release) -> bool:
        try:
            return await self.ref.ask(message)
        except ActorError as error:
            if error.code != "STOPPED":
                raise
            return not message.ids

    async def destroy(self) -> None:
        """End every ticket as expired and take no more, for good; idempotent. The manager still lists the name.

        Cancelled: it comes true nevertheless.
        """
        self.ref.watch(self._silence)
        await self.ref.stop()

    def _silence(self, _ended: Ref) -> None:
        if self._emitter is not None:
            self._emitter.close()

    def emit(self, kind: NoticeKind, ticket: Ticket, values: dict[str, Any] | None) -> None:
        """Tell its own listeners. Called by the manager, in the terminal's step, passwords masked already."""
        emitter = self._emitter
        if emitter is not None:
            if kind == "pending":
                emitter.emit("pending", ticket.record)
            elif kind == "answered":
                emitter.emit("answer", ticket.id, values)
            else:
                emitter.emit("expire" if kind == "expired" else "withdraw", ticket.id)

    def expired(self, reason: str) -> TerminalError:
        """What an asker gets that came too late for this terminal."""
        return TerminalError(
            "EXPIRE",
            f"The terminal {self.name} takes no forms any more ({reason}); ask another one, or add it again.",
            {"reason": reason},
        )

    def _tickets(self) -> dict[str, Ticket]:
        actor = self.ref.actor
        return (actor.tickets if isinstance(actor, TerminalActor) else None) or {}
