"""The terminal's actor: it parks forms until somebody answers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import msgspec
import trio

from greenroom.actors.terminal.durable import DurableAsk
from greenroom.actors.terminal.filling import NO_MAPPING, UNKNOWN, fill_each, fill_whole, first_name, refused, rejected
from greenroom.actors.terminal.recording import AskDurably, DurableTickets, Resume
from greenroom.actors.terminal.ticket import Ticket, uuid4
from greenroom.protocol.forms import FieldError, Form, FormFailure
from greenroom.protocol.terminals import AnswerResult, AnswerSuccess
from greenroom.runtime.actor import handles
from greenroom.runtime.deadlines import Due
from greenroom.runtime.messages import Message, Request, Withdrawn

__all__ = ["Answer", "Ask", "Park", "Release", "TerminalActor"]


class Ask(Request[dict[str, Any]], frozen=True):
    """Park the form; the answer is its submitted values."""

    form: Form
    from_: str | None
    timeout: float | msgspec.UnsetType | None


class Park(Request[str], frozen=True):
    """Park the form and answer at once, with the ticket's id."""

    form: Form
    from_: str | None
    to: str | None
    timeout: float | msgspec.UnsetType | None


class Answer(Request[AnswerResult], frozen=True):
    """Fill and submit the form of a ticket. `whole`: check everything on a copy and write all or nothing."""

    id: str
    values: Mapping[str, Any]
    whole: bool = False


class Release(Request[bool], frozen=True):
    """End tickets unanswered: as expired, or as withdrawn in their askers' name. None: all of them."""

    ids: tuple[str, ...] | None = None
    withdraw: bool = False


@final
class TerminalActor(DurableTickets):
    """Holds the tickets of one terminal. Its handlers are plain, so each of them is one step for everybody else."""

    __slots__ = ()
    kind = "terminal"
    hosts = True

    # ---------------------------------------------------------------- parking

    @handles(Ask)
    def ask(self, message: Ask) -> None:
        form, terminal = message.form, self.terminal
        if terminal.cap is not None:
            self._refuse_over_cap(form)
        reply = self.take_reply()
        ticket = Ticket(uuid4(), form, reply, message.from_, terminal.name, terminal.manager.wall_clock())
        form.on_end(ticket.on_form_end)
        if reply.settled:  # the form ended, or the asker went, on the way here
            return
        reply.note = ticket.id
        self._park(ticket, message.timeout)

    @handles(Park)
    def park(self, message: Park) -> str:
        self._refuse_over_cap(message.form)
        time = self.terminal.manager.wall_clock()
        ticket = Ticket(uuid4(), message.form, None, message.from_, message.to, time)
        self._park(ticket, message.timeout)
        return ticket.id

    def _park(self, ticket: Ticket, timeout: float | msgspec.UnsetType | None) -> None:
        terminal = self.terminal
        seconds = terminal.timeout if timeout is msgspec.UNSET else timeout
        if seconds is not None:  # first, since it may raise
            ticket.due = trio.current_time() + seconds
            self.tree.deadlines.arm(ticket.due, self.ref, ticket)
        self._hold(ticket)
        terminal.manager.announce(terminal, "pending", ticket)

    # ---------------------------------------------------------------- answering

    @handles(Answer)
    def answer(self, message: Answer) -> AnswerResult:
        id, values = message.id, message.values
        # Both come from outside, whatever they are said to be.
        named = isinstance(id, str)  # pyright: ignore[reportUnnecessaryIsInstance]
        ticket = self.tickets.get(id) if self.tickets and named else None
        if ticket is None or ticket.status != "pending" or not ticket.listed:
            return UNKNOWN
        form = ticket.form
        if type(values) is not dict and not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            return rejected([FieldError(first_name(form), NO_MAPPING)])
        if message.whole:
            refusal = fill_whole(form, message.values, ticket.opened)
        else:
            if ticket.opened is None:
                ticket.opened = form.snapshot()
            refusal = fill_each(form, message.values)
        if refusal is not None:
            return refusal
        try:
            result = form.submit()
        except Exception as error:
            return refused(error, first_name(form))
        if isinstance(result, FormFailure):
            return rejected(result.error)
        if ticket.durable is not None:
            answer = AnswerSuccess(value=result.value)
            self._record(ticket, ticket.durable, "answered", result.value, self._reply_in_hand(), answer)
            return answer  # for nobody: whoever asked gets it when it is committed
        self._end(ticket, "answered", result.value)
        return AnswerSuccess(value=result.value)

    # ---------------------------------------------------------------- ending unanswered

    @handles(Due)
    def due(self, message: Due) -> None:
        ticket = message.what
        if isinstance(ticket, Ticket) and ticket.status == "pending" and ticket.listed:
            self._expire(ticket, "timeout")

    @handles(Withdrawn)
    def withdrawn(self, message: Withdrawn) -> None:
        ticket = (self.tickets or {}).get(message.reply.note)
        if ticket is None:
            return
        if ticket.durable is not None:  # it stays, for whoever comes with the key
            ticket.durable.waiting.remove(message.reply)
        else:
            ticket.form.destroy()
            self._end(ticket, "withdrawn")

    @handles(Release)
    def release(self, message: Release) -> bool:
        tickets = dict(self.tickets or {})
        there = message.ids is None or all(id in tickets for id in message.ids)
        wanted = tuple(tickets) if message.ids is None else message.ids
        durable: list[tuple[Ticket, DurableAsk]] = []
        for id in wanted:
            ticket = tickets.pop(id, None)
            if ticket is None:
                continue
            if ticket.durable is not None:
                durable.append((ticket, ticket.durable))
            elif message.withdraw:
                ticket.reason = "withdrawn"
                ticket.form.destroy()
                self._end(ticket, "withdrawn")
            else:
                self._expire(ticket, "stopped")
        if durable:
            self._release_durable(durable, there, withdraw=message.withdraw)
        return there

    def on_end(self, reason: str) -> None:
        durable: list[DurableAsk] = []
        for ticket in list((self.tickets or {}).values()):
            if ticket.durable is None:
                self._expire(ticket, reason)
            else:
                durable.append(ticket.durable)
                self._lay_down(ticket, ticket.durable, reason)
        if reason == "restarted" and durable:
            self.ref.notice(Resume(tuple(durable)))

    def refusal(self, message: Message, reason: str) -> Exception:
        if not isinstance(message, Ask | AskDurably | Park):
            return super().refusal(message, reason)
        message.form.destroy()
        return self.terminal.expired(reason)

    def _expire(self, ticket: Ticket, reason: str) -> None:
        if ticket.durable is not None:
            self._record(ticket, ticket.durable, "expired", reason)
            return
        ticket.reason = reason
        ticket.status = "expired"
        ticket.form.destroy()
        self._end(ticket, "expired")
