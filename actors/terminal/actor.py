"""The terminal's actor: it parks forms until somebody answers them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, final

import msgspec
import trio

from greenroom.actors.terminal.notice import NoticeKind
from greenroom.actors.terminal.ticket import Ticket
from greenroom.protocol.errors import FormError, TerminalError
from greenroom.protocol.forms import FieldError, Form, FormFailure
from greenroom.protocol.terminals import AnswerFailure, AnswerRefusal, AnswerResult, AnswerSuccess, TicketStatus
from greenroom.runtime.actor import Leaf, handles
from greenroom.runtime.deadlines import Due
from greenroom.runtime.messages import Message, Request, Withdrawn
from greenroom.runtime.reply import Reply

if TYPE_CHECKING:
    from greenroom.actors.terminal.broker import Terminal

__all__ = ["Answer", "Ask", "Park", "Release", "TerminalActor"]

UNKNOWN = AnswerFailure(error=AnswerRefusal("unknown"))

_RAISED = "This answer could not be checked. Try again, or answer differently."
"""What is said of a check that raised: nothing of the exception."""


class Ask(Request[dict[str, Any]], frozen=True):
    """Park the form; the answer is its submitted values."""

    form: Form
    from_: str | None
    timeout: float | None | msgspec.UnsetType


class Park(Request[str], frozen=True):
    """Park the form and answer at once, with the ticket's id."""

    form: Form
    from_: str | None
    to: str | None
    timeout: float | None | msgspec.UnsetType


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
class TerminalActor(Leaf):
    """Holds the tickets of one terminal. Its handlers are plain, so each of them is one step for everybody else."""

    __slots__ = ("terminal", "tickets")

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self.terminal = terminal
        self.tickets: dict[str, Ticket] | None = None

    # ---------------------------------------------------------------- parking

    @handles(Ask)
    def ask(self, message: Ask) -> None:
        self._refuse_over_cap(message.form)
        reply = self.take_reply()
        ticket = Ticket(message.form, reply, message.from_, self.terminal.name, self.terminal.wall_clock())
        message.form.on_end(ticket.on_form_end)
        if reply.settled:  # the form ended, or the asker went, on the way here
            return
        reply.note = ticket.id
        self._park(ticket, message.timeout)

    @handles(Park)
    def park(self, message: Park) -> str:
        self._refuse_over_cap(message.form)
        ticket = Ticket(message.form, None, message.from_, message.to, self.terminal.wall_clock())
        self._park(ticket, message.timeout)
        return ticket.id

    def _refuse_over_cap(self, form: Form) -> None:
        cap = self.terminal.cap
        if cap is not None and len(self.tickets or ()) >= cap:
            form.destroy()
            raise TerminalError(
                "LIMIT",
                f"The terminal {self.terminal.name} holds {cap} unanswered forms, as many as it may. "
                "Wait until one of them is answered.",
                {"cap": cap},
            )

    def _park(self, ticket: Ticket, timeout: float | None | msgspec.UnsetType) -> None:
        if self.tickets is None:
            self.tickets = {}
        self.tickets[ticket.id] = ticket
        seconds = self.terminal.timeout if timeout is msgspec.UNSET else timeout
        if seconds is not None:
            self.tree.deadlines.arm(trio.current_time() + seconds, self.ref, ticket)
        self.terminal.announce("pending", ticket)

    # ---------------------------------------------------------------- answering

    @handles(Answer)
    def answer(self, message: Answer) -> AnswerResult:
        ticket = (self.tickets or {}).get(message.id)
        if ticket is None or ticket.status != "pending" or not ticket.listed:
            return UNKNOWN
        form, field = ticket.form, _first_name(ticket.form)
        try:
            if message.whole:
                trial = form.trial(message.values, start=ticket.opened)
                if trial.errors:
                    return _rejected(trial.errors)
                form.fill({name: trial.values.get(name) for name in {**form.values, **trial.values}})
            else:
                if ticket.opened is None:
                    ticket.opened = dict(form.values)
                for name, value in message.values.items():
                    field = name
                    form.fill(name, value)
                field = _first_name(form)
            result = form.submit()
        except FormError as error:
            return _rejected([FieldError(field=error.context.get("field", field), message=error.message)])
        except Exception:  # a custom rule of the form's owner
            return _rejected([FieldError(field=field, message=_RAISED)])
        if isinstance(result, FormFailure):
            return _rejected(result.error)
        self._end(ticket, "answered", "answered", result.value)
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
        if ticket is not None:
            ticket.form.destroy()
            self._end(ticket, "withdrawn", "withdrawn")

    @handles(Release)
    def release(self, message: Release) -> bool:
        tickets = dict(self.tickets or {})
        there = message.ids is None or all(id in tickets for id in message.ids)
        for id in tuple(tickets) if message.ids is None else message.ids:
            ticket = tickets.pop(id, None)
            if ticket is None:
                continue
            if message.withdraw:
                ticket.reason = "withdrawn"
                ticket.form.destroy()
                self._end(ticket, "withdrawn", "withdrawn")
            else:
                self._expire(ticket, "stopped")
        return there

    def on_end(self, reason: str) -> None:
        self._expire_all(reason)

    def refusal(self, message: Message, reason: str) -> Exception:
        if not isinstance(message, Ask | Park):
            return super().refusal(message, reason)
        message.form.destroy()
        return self.terminal.expired(reason)

    def _expire_all(self, reason: str) -> None:
        for ticket in list((self.tickets or {}).values()):
            self._expire(ticket, reason)

    def _expire(self, ticket: Ticket, reason: str) -> None:
        ticket.reason = reason
        self.tree.deadlines.disarm(ticket)
        ticket.status = "expired"
        ticket.form.destroy()
        self._end(ticket, "expired", "expired")

    def _end(
        self, ticket: Ticket, status: TicketStatus, kind: NoticeKind, values: dict[str, Any] | None = None
    ) -> None:
        """The form has ended, its asker has been told; tell everybody else while the ticket is still listed, then drop it."""
        ticket.status = status
        self.tree.deadlines.disarm(ticket)
        self.terminal.announce(kind, ticket, values)
        tickets = self.tickets
        if tickets is not None:
            tickets.pop(ticket.id, None)
            if not tickets:
                self.tickets = None
        ticket.reply = None  # a settled form may outlive its ticket; the reply need not


def _first_name(form: Form) -> str:
    """The field that is named where no other can be: the first, else the schema, else the form as such."""
    schema = form.schema
    return schema.fields[0].name if schema.fields else (schema.name or "form")


def _rejected(errors: Iterable[FieldError]) -> AnswerFailure:
    return AnswerFailure(error=AnswerRefusal("rejected", tuple(errors)))
