"""The tickets of a terminal that are rows of the journal: asked by a key, and there again after a restart."""

from __future__ import annotations

import logging
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
import trio

from greenroom.actors.terminal.durable import DurableAsk, DurableAsks, ending
from greenroom.actors.terminal.ticket import Ticket, abandonment, uuid4
from greenroom.protocol.errors import ActorError, FormError, JournalError, TerminalError
from greenroom.protocol.forms import Form, Outcome, Settled
from greenroom.runtime.actor import Leaf, handles
from greenroom.runtime.messages import Message, Request
from greenroom.runtime.reply import Reply

if TYPE_CHECKING:
    from greenroom.actors.terminal.broker import Terminal

__all__ = ["AskDurably", "DurableTickets", "End", "Forget", "Resume"]

End: TypeAlias = Literal["answered", "expired", "withdrawn"]

logger = logging.getLogger("greenroom.terminals")


class AskDurably(Request[dict[str, Any]], frozen=True):
    """Park the form under a key of its owner's, or wait for the one that is parked under it."""

    form: Form
    from_: str | None
    timeout: float | msgspec.UnsetType | None
    owner: str
    key: str


class Forget(Request[bool], frozen=True):
    """Take a durable ask away, and its row. False: no ticket of it is here."""

    ask: DurableAsk


class Resume(Message, frozen=True):
    """Offer recorded forms: the terminal is new, or begins anew."""

    asks: tuple[DurableAsk, ...]


class Recorded(Message, frozen=True):
    """The journal has committed a change of an ask's row, or has not."""

    ask: DurableAsk
    how: Literal["pending"] | End
    """What its ticket has become by it."""
    outcome: Any
    """The submitted values, or why there are none."""
    reply: Reply[Any] | None
    """Who waits for the change."""
    result: Any
    """What they get. UNSET: they wait for another change, which follows."""
    fault: JournalError | None


class FormEnded(Message, frozen=True):
    """The form of a durable ask has ended, by whomever."""

    ask: DurableAsk
    outcome: Outcome


class DurableTickets(Leaf):
    """The part of a terminal's actor that holds tickets and lets them follow their rows.

    No handler waits for a commit. A change of a row is handed to the journal; the ticket is not shown until the journal
    has told what became of it, and only then does anybody else hear of the change. A change that could not be committed
    is undone: whoever made it gets the error, and the form is there again as it was asked.
    """

    __slots__ = ("terminal", "tickets")

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self.terminal = terminal
        self.tickets: dict[str, Ticket] | None = None

    # ---------------------------------------------------------------- holding

    def _hold(self, ticket: Ticket) -> None:
        if self.tickets is None:
            self.tickets = {}
        self.tickets[ticket.id] = ticket

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

    def _end(self, ticket: Ticket, how: End, values: dict[str, Any] | None = None) -> None:
        """The form has ended and its asker has been told.

        Tell all others while the ticket is still listed, then drop it.
        """
        ticket.status = how
        self.tree.deadlines.disarm(ticket)
        self.terminal.manager.announce(self.terminal, how, ticket, values)
        self._drop(ticket)

    def _drop(self, ticket: Ticket) -> None:
        tickets = self.tickets
        if tickets is not None:
            tickets.pop(ticket.id, None)
            if not tickets:
                self.tickets = None
        ticket.reply = None  # a settled form may outlive its ticket; the reply need not

    # ---------------------------------------------------------------- durable asks

    @property
    def _asks(self) -> DurableAsks:
        asks = self.terminal.manager.durable
        assert asks is not None, "the manager lets nobody ask durably who has no journal"
        return asks

    @handles(AskDurably)
    def ask_durably(self, message: AskDurably) -> dict[str, Any] | None:
        ask = self._asks.match(message.owner, message.key, self.terminal.name, message.form)
        if ask is None:
            self._refuse_over_cap(message.form)
            ask = self._park_durably(message)
        elif ask.ended:
            return ask.result()
        elif ask.id not in (self.tickets or {}):  # a terminal of this name was removed, which is just being recorded
            raise self.terminal.expired("removed")
        reply = self.take_reply()
        reply.note = ask.id
        ask.waiting.append(reply)
        return None

    def _park_durably(self, message: AskDurably) -> DurableAsk:
        form, terminal, now = message.form, self.terminal, self.terminal.manager.wall_clock()
        seconds = terminal.timeout if message.timeout is msgspec.UNSET else message.timeout
        ask = DurableAsk(
            id=uuid4(),
            owner=message.owner,
            key=message.key,
            to=terminal.name,
            from_=message.from_,
            document=form.document,
            opened=form.values,
            time=now,
            due=None if seconds is None or seconds == inf else now + seconds,
        )
        self._asks.record(ask, partial(self._tell_recorded, ask, "pending", None, None, msgspec.UNSET))
        self._hold(self._ticket(ask, form))
        return ask

    def _ticket(self, ask: DurableAsk, form: Form) -> Ticket:
        form.on_end(partial(self._tell_ended, ask))
        return Ticket(ask.id, form, None, ask.from_, ask.to, ask.time, durable=ask, shown=False)

    @handles(Resume)
    def resume(self, message: Resume) -> None:
        for ask in message.asks:
            if ask.ended or ask.id in (self.tickets or {}):
                continue
            try:
                ticket = self._ticket(ask, ask.form())
            except FormError as error:
                logger.error("The form %s, recorded for %s, cannot be shown any more: %s", ask.id, ask.to, error)
                self._end_unheard(ask, "unreadable")
                continue
            self._hold(ticket)
            if not ask.changing:
                self._show(ticket, ask)

    def _show(self, ticket: Ticket, ask: DurableAsk) -> None:
        """Offer a form whose row is committed, unless it is over already."""
        remaining = inf if ask.due is None else ask.due - self.terminal.manager.wall_clock()
        if remaining <= 0:
            self._record(ticket, ask, "expired", "timeout")
            return
        ticket.shown = True
        if (outcome := ticket.form.outcome) is not None:
            self.form_ended(FormEnded(ask, outcome))
            return
        if remaining < inf:
            ticket.due = trio.current_time() + remaining
            self.tree.deadlines.arm(ticket.due, self.ref, ticket)
        self.terminal.manager.announce(self.terminal, "pending", ticket)

    @handles(FormEnded)
    def form_ended(self, message: FormEnded) -> None:
        """By its owner, that is: what this actor ends itself is not pending any more when this comes."""
        ask, outcome = message.ask, message.outcome
        ticket = (self.tickets or {}).get(ask.id)
        if ticket is None or ticket.status != "pending" or not ticket.shown or ticket.form.outcome is not outcome:
            return
        if isinstance(outcome, Settled):
            self._record(ticket, ask, "answered", outcome.values)
        else:
            self._record(ticket, ask, "expired", "abandoned")

    @handles(Forget)
    def forget(self, message: Forget) -> bool:
        ticket = (self.tickets or {}).get(message.ask.id)
        if ticket is not None:
            self._record(ticket, message.ask, "withdrawn", "withdrawn", self._reply_in_hand(), True, delete=True)
        return ticket is not None

    def _release_durable(self, tickets: list[tuple[Ticket, DurableAsk]], there: bool, *, withdraw: bool) -> None:
        """End them unanswered; whoever asked for it is told when all of that is recorded."""
        reply = self._reply_in_hand()
        last, _ = tickets[-1]
        for ticket, ask in tickets:
            result = there if ticket is last else msgspec.UNSET
            if withdraw:
                self._record(ticket, ask, "withdrawn", "withdrawn", reply, result)
            else:
                self._record(ticket, ask, "expired", "stopped", reply, result)

    def _record(
        self,
        ticket: Ticket,
        ask: DurableAsk,
        how: End,
        outcome: Any,
        reply: Reply[Any] | None = None,
        result: Any = msgspec.UNSET,
        *,
        delete: bool = False,
    ) -> None:
        """Hand the end of a durable ask to the journal. Nobody is told before it is committed."""
        ticket.status, ticket.shown = how, False
        self.tree.deadlines.disarm(ticket)
        ask.changer = reply
        told = partial(self._tell_recorded, ask, how, outcome, reply, result)
        try:
            if delete:
                self._asks.delete(ask, told)
            else:
                self._asks.end(ask, "answered" if how == "answered" else "expired", outcome, told)
        except JournalError as fault:
            self.recorded(Recorded(ask, how, outcome, reply, result, fault))

    @handles(Recorded)
    def recorded(self, message: Recorded) -> None:
        ask, reply, fault = message.ask, message.reply, message.fault
        ticket = (self.tickets or {}).get(ask.id)
        if ticket is not None:
            if message.how == "pending" and fault is not None:
                self._drop(ticket)
                self._fail_waiting(ask, fault)
            elif message.how != "pending" and fault is None:
                self._conclude(ticket, ask, message.how, message.outcome)
            elif ask.status == "pending" and not ask.changing:
                self._offer(ticket, ask)
        if reply is not None:
            if ask.changer is reply:
                ask.changer = None
            if fault is not None:
                reply.fail(fault)
            elif message.result is not msgspec.UNSET:
                reply.answer(message.result)

    def _conclude(self, ticket: Ticket, ask: DurableAsk, how: End, outcome: Any) -> None:
        """The end is recorded. What the askers wait for leaves the graph, then all others are told."""
        ticket.shown = True
        if how == "answered":
            waiting, ask.waiting = ask.waiting, []
            for reply in waiting:
                reply.answer(dict(outcome))
            self._end(ticket, how, outcome)
        else:
            ticket.reason = outcome
            ticket.form.destroy()
            self._fail_waiting(ask, abandonment(outcome, ask.to))
            self._end(ticket, how)

    def _offer(self, ticket: Ticket, ask: DurableAsk) -> None:
        """Its row says that it is pending: show it, for the first time or again because an end was not recorded."""
        if ticket.status != "pending":
            ticket.status, ticket.opened = "pending", None
            if ticket.form.outcome is not None:
                ticket.form = ask.form()
                ticket.form.on_end(partial(self._tell_ended, ask))
        self._show(ticket, ask)

    def _lay_down(self, ticket: Ticket, ask: DurableAsk, reason: str) -> None:
        """The terminal ends. The ask ends with it if it was taken away, and not if everything else ends as well."""
        over = reason in ("removed", "stopped") and not ending(self.tree)
        if over:
            self._end_unheard(ask, reason)
        if ask.changer is not None:  # what becomes of the change is not known yet, and not by this actor any more
            ask.changer.fail(self.terminal.expired(reason))
            ask.changer = None
        ticket.reason = reason
        ticket.form.destroy()
        self._fail_waiting(ask, abandonment(reason, ask.to, kept=not over))
        self._end(ticket, "expired")

    def _end_unheard(self, ask: DurableAsk, reason: str) -> None:
        try:
            self._asks.end(ask, "expired", reason, self._asks.missed)
        except JournalError as fault:
            self._asks.missed(fault)

    @staticmethod
    def _fail_waiting(ask: DurableAsk, error: Exception) -> None:
        waiting, ask.waiting = ask.waiting, []
        for reply in waiting:
            reply.fail(error)

    def _reply_in_hand(self) -> Reply[Any] | None:
        """The reply in hand, to be kept. None: the message was told, and nobody waits."""
        try:
            return self.take_reply()
        except ActorError:
            return None

    def _tell_recorded(
        self,
        ask: DurableAsk,
        how: Literal["pending"] | End,
        outcome: Any,
        reply: Reply[Any] | None,
        result: Any,
        fault: JournalError | None,
    ) -> None:
        self.ref.notice(Recorded(ask, how, outcome, reply, result, fault))

    def _tell_ended(self, ask: DurableAsk, outcome: Outcome) -> None:
        self.ref.notice(FormEnded(ask, outcome))
