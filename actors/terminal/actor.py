"""The terminal's actor: it parks forms until somebody answers them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, final

import msgspec
import trio

from greenroom.actors.terminal.ticket import Ticket, uuid4
from greenroom.protocol.errors import FormError, TerminalError
from greenroom.protocol.forms import FieldError, Form, FormFailure
from greenroom.protocol.terminals import AnswerFailure, AnswerRefusal, AnswerResult, AnswerSuccess
from greenroom.runtime.actor import Leaf, handles
from greenroom.runtime.deadlines import Due
from greenroom.runtime.messages import Message, Request, Withdrawn

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
class TerminalActor(Leaf):
    """Holds the tickets of one terminal. Its handlers are plain, so each of them is one step for everybody else."""

    __slots__ = ("terminal", "tickets")
    kind = "terminal"
    hosts = True

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self.terminal = terminal
        self.tickets: dict[str, Ticket] | None = None

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

    def _park(self, ticket: Ticket, timeout: float | msgspec.UnsetType | None) -> None:
        terminal = self.terminal
        seconds = terminal.timeout if timeout is msgspec.UNSET else timeout
        if seconds is not None:  # first, since it may raise
            ticket.due = trio.current_time() + seconds
            self.tree.deadlines.arm(ticket.due, self.ref, ticket)
        if self.tickets is None:
            self.tickets = {}
        self.tickets[ticket.id] = ticket
        terminal.manager.announce(terminal, "pending", ticket)

    # ---------------------------------------------------------------- answering

    @handles(Answer)
    def answer(self, message: Answer) -> AnswerResult:
        ticket = self.tickets.get(message.id) if self.tickets else None
        if ticket is None or ticket.status != "pending" or not ticket.listed:
            return UNKNOWN
        form = ticket.form
        if message.whole:
            refused = _fill_whole(form, message.values, ticket.opened)
        else:
            if ticket.opened is None:
                ticket.opened = form.snapshot()
            refused = _fill_each(form, message.values)
        if refused is not None:
            return refused
        try:
            result = form.submit()
        except Exception as error:
            return _refused(error, _first_name(form))
        if isinstance(result, FormFailure):
            return _rejected(result.error)
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
        if ticket is not None:
            ticket.form.destroy()
            self._end(ticket, "withdrawn")

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
                self._end(ticket, "withdrawn")
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
        ticket.status = "expired"
        ticket.form.destroy()
        self._end(ticket, "expired")

    def _end(
        self,
        ticket: Ticket,
        how: Literal["answered", "expired", "withdrawn"],
        values: dict[str, Any] | None = None,
    ) -> None:
        """The form has ended and its asker has been told.

        Tell all others while the ticket is still listed, then drop it.
        """
        ticket.status = how
        self.tree.deadlines.disarm(ticket)
        self.terminal.manager.announce(self.terminal, how, ticket, values)
        tickets = self.tickets
        if tickets is not None:
            tickets.pop(ticket.id, None)
            if not tickets:
                self.tickets = None
        ticket.reply = None  # a settled form may outlive its ticket; the reply need not


def _fill_each(form: Form, values: Mapping[str, Any]) -> AnswerFailure | None:
    """Fill field by field, in the given order, until one is refused; what came before stays."""
    if form.unobserved:
        try:
            form.fill(values)
        except FormError:
            pass  # by which field, and with what filled before it, the loop finds out
        else:
            return None
    for name, value in values.items():
        try:
            form.fill(name, value)
        except Exception as error:
            return _refused(error, name)
    return None


def _fill_whole(form: Form, values: Mapping[str, Any], opened: Mapping[str, Any] | None) -> AnswerFailure | None:
    """Try everything on a copy that starts from the values at parking;

    fill the form only if all of it would be accepted.
    """
    try:
        trial = form.trial(values, start=opened)
        if trial.errors:
            return _rejected(trial.errors)
        form.fill({name: trial.values.get(name) for name in {**form.values, **trial.values}})
    except Exception as error:
        return _refused(error, _first_name(form))
    return None


def _first_name(form: Form) -> str:
    """The field that is named where no other can be: the first, else the schema, else the form as such."""
    schema = form.schema
    return schema.fields[0].name if schema.fields else (schema.name or "form")


def _refused(error: Exception, field: str) -> AnswerFailure:
    """What the answerer learns of a raise: the form's own words, and nothing of what a custom rule raised."""
    if isinstance(error, FormError):
        return _rejected([FieldError(error.context.get("field", field), error.message)])
    return _rejected([FieldError(field, _RAISED)])


def _rejected(errors: Iterable[FieldError]) -> AnswerFailure:
    return AnswerFailure(error=AnswerRefusal("rejected", tuple(errors)))
