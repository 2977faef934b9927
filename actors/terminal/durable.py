"""Durable asks: what is asked by a key of its owner's, each a row of the journal with its answer beside it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from math import inf
from typing import Any, Final, Literal, TypeAlias, final

import msgspec
import trio

from greenroom.actors.terminal.ticket import abandonment
from greenroom.protocol.errors import JournalError, TerminalError
from greenroom.protocol.forms import Form, PasswordField, Value
from greenroom.runtime.journal import Journal, Outcome, Statement, Table
from greenroom.runtime.reply import Reply
from greenroom.runtime.tree import Tree

__all__ = [
    "ASKS",
    "AskStatus",
    "DurableAsk",
    "DurableAsks",
    "Told",
    "check_key",
    "ending",
    "open_durable_asks",
    "refuse_undurable",
]

logger = logging.getLogger("greenroom.terminals")

ASKS: Final = Table(
    "asks",
    {
        "id": str,
        "owner": str,
        "key": str,
        "terminal": str,
        "asker": str,
        "form": bytes,
        "opened": str,
        "time": float,
        "due": float,
        "status": str,
        "outcome": str,
    },
    "id",
    not_null={"owner", "key", "terminal", "form", "opened", "time", "status"},
    unique=[("owner", "key")],
)
"""One row an ask: `form` is its schema's document, `opened` the values it was asked with, `outcome` the values that
were submitted or the reason why there are none. Times are in seconds since 1970."""

_ROWS = (
    "SELECT rowid, id, owner, key, terminal, asker, form, opened, time, due, status, outcome FROM asks "
    "WHERE rowid > ? ORDER BY rowid LIMIT ?"
)
_END = "UPDATE asks SET status = ?, outcome = ? WHERE id = ? AND status = 'pending'"
_PAGE = 1_000

AskStatus: TypeAlias = Literal["recording", "pending", "answered", "expired"]

Told: TypeAlias = Callable[[JournalError | None], object]
"""Hears, in a later step, that a change is committed (None) or why it is not. It must not wait."""


class DurableAsk(msgspec.Struct, eq=False, kw_only=True):
    """One ask as its row has it, and who waits for it in this process."""

    id: str
    """Also its ticket's."""
    owner: str
    key: str
    to: str
    from_: str | None
    document: bytes
    opened: dict[str, Value]
    """The values that the form was asked with."""
    time: float
    due: float | None
    """By the wall clock: the time that no process runs counts."""
    status: AskStatus = "recording"
    """What is committed; `recording` until anything is."""
    outcome: Any = None
    """The submitted values, or the reason of an expiry."""
    changing: int = 0
    """How many changes of the row are under way."""
    changer: Reply[Any] | None = None
    """Who is to be told of the latest of them."""
    waiting: list[Reply[dict[str, Any]]] = []

    @property
    def ended(self) -> bool:
        """Its outcome is recorded."""
        return self.status in ("answered", "expired")

    def form(self) -> Form:
        """A form as it was asked. Raises FormError SCHEMA if this program does not know such a schema any more."""
        return Form(json.loads(self.document), values=self.opened)

    def result(self) -> dict[str, Any]:
        """The recorded values of one that has ended. Raises FormError ABANDONED with the recorded reason."""
        if self.status == "answered":
            return dict(self.outcome)
        raise abandonment(self.outcome, self.to)


@final
class DurableAsks:
    """All durable asks of a journal, by owner and key. Made by `open_durable_asks`.

    Reading is a look into memory: what a `DurableAsk` says is what was committed. Changes are handed to the journal,
    and whoever made one is told once it is committed. A change that the journal does not even take raises JournalError
    (CLOSED, BUSY) and nobody is told.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._asks: dict[tuple[str, str], DurableAsk] = {}
        """In the order of asking."""
        self._owned: dict[str, dict[str, DurableAsk]] = {}
        """By owner, and then by key."""
        self._fault: JournalError | None = None

    def find(self, owner: str, key: str) -> DurableAsk | None:
        """The ask of that owner and key."""
        return self._asks.get((owner, key))

    def match(self, owner: str, key: str, to: str, form: Form) -> DurableAsk | None:
        """The ask of that owner and key, if it is the same question. Raises TerminalError TAKEN if it is another."""
        ask = self.find(owner, key)
        if ask is None or (ask.to == to and ask.document == form.document):
            return ask
        what = f"of {ask.to}" if ask.to != to else "with another form"
        raise TerminalError(
            "TAKEN",
            f"The key {key} names another ask already, one {what}. Release it first, or take another key.",
            {"key": key, "owner": owner, "to": ask.to, "id": ask.id},
        )

    def pending_at(self, terminal: str) -> list[DurableAsk]:
        """What is to be offered at the terminal of that name, in the order of asking."""
        asks = self._asks.values()
        return [ask for ask in asks if ask.to == terminal and ask.status == "pending" and not ask.changing]

    def owners(self) -> list[str]:
        """Everybody who has asks."""
        return list(self._owned)

    def owned_by(self, owner: str) -> list[DurableAsk]:
        """Every ask of that owner."""
        return list(self._owned.get(owner, {}).values())

    # ---------------------------------------------------------------- changes

    def record(self, ask: DurableAsk, told: Told) -> None:
        """Record a new ask. Its key is taken from this step on; until it is committed its status is `recording`."""
        row = ASKS.insert(
            id=ask.id,
            owner=ask.owner,
            key=ask.key,
            terminal=ask.to,
            asker=ask.from_,
            form=ask.document,
            opened=_text(ask.opened),
            time=ask.time,
            due=ask.due,
            status="pending",
        )

        def committed(fault: JournalError | None) -> None:
            if fault is None:
                ask.status = "pending"
            else:
                self._drop(ask)
            told(fault)

        self._change(ask, row, committed)
        self._keep(ask)

    def end(self, ask: DurableAsk, status: Literal["answered", "expired"], outcome: Any, told: Told) -> None:
        """Record how a pending ask ended: with the values of its answer, or unanswered and why. The first end counts.

        That its time was over need not be recorded, and never fails: the row says when it is due.
        """
        overdue = outcome == "timeout"

        def committed(fault: JournalError | None) -> None:
            if (fault is None or overdue) and ask.status == "pending":
                ask.status, ask.outcome = status, outcome
            told(None if overdue else fault)

        try:
            self._change(ask, Statement(_END, (status, _text(outcome), ask.id)), committed)
        except JournalError as fault:
            if not overdue:
                raise
            committed(fault)

    def delete(self, ask: DurableAsk, told: Told) -> None:
        """Forget an ask and its answer."""

        def committed(fault: JournalError | None) -> None:
            if fault is None:
                self._drop(ask)
            told(fault)

        self._change(ask, ASKS.delete(ask.id), committed)

    async def forget(self, ask: DurableAsk) -> None:
        """Forget an ask that no terminal holds. Raises JournalError, and nothing is forgotten then.

        Cancelled: it is forgotten or it is not.
        """
        await self._journal.write(ASKS.delete(ask.id))
        self._drop(ask)

    async def settle(self) -> None:
        """Wait until all changes that were handed over are committed. Raises JournalError if one that nobody was told
        of has failed since the last call."""
        await self._journal.write()
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def missed(self, fault: JournalError | None) -> None:
        """Is told of changes that nobody waits for; `settle` raises what became of them."""
        if fault is not None:
            logger.error("What became of a durable ask was not recorded: %s", fault)
            self._fault = fault

    def _change(self, ask: DurableAsk, statement: Statement, told: Told) -> None:
        def committed(outcome: Outcome) -> None:
            ask.changing -= 1
            told(outcome if isinstance(outcome, JournalError) else None)

        self._journal.post(statement, done=committed)
        ask.changing += 1

    def _keep(self, ask: DurableAsk) -> None:
        self._asks[ask.owner, ask.key] = self._owned.setdefault(ask.owner, {})[ask.key] = ask

    def _drop(self, ask: DurableAsk) -> None:
        if self._asks.get((ask.owner, ask.key)) is ask:
            del self._asks[ask.owner, ask.key]
            del self._owned[ask.owner][ask.key]
            if not self._owned[ask.owner]:
                del self._owned[ask.owner]
        ask.status, ask.outcome = "expired", "withdrawn"

    async def load(self) -> None:
        """Read all rows."""
        last = 0
        while rows := await self._journal.select(_ROWS, (last, _PAGE)):
            last = rows[-1][0]
            for _, *row in rows:
                ask = _read(row)
                self._keep(ask)


async def open_durable_asks(journal: Journal) -> DurableAsks:
    """The durable asks that the journal holds. Its tables must have `ASKS` among them. Raises JournalError."""
    asks = DurableAsks(journal)
    await asks.load()
    return asks


def ending(tree: Tree) -> bool:
    """Whether all of the runtime ends, and not just the actor in whose task this runs."""
    return not tree.root.alive or trio.current_effective_deadline() == -inf


def check_key(key: object) -> None:
    """Raise TerminalError INVALID for what cannot be a key."""
    if not isinstance(key, str) or not key:
        raise TerminalError(
            "INVALID", "The key of a durable ask is a text that is not empty.", {"key": repr(key)[:100]}
        )


def refuse_undurable(form: Form) -> None:
    """Raise TerminalError DURABLE for a form that a row cannot hold, naming the fields that are why."""
    fields = form.schema.fields
    if secret := [field.name for field in fields if isinstance(field, PasswordField)]:
        raise _undurable(secret, "a password is written down nowhere")
    rules = {field.name: field.rule for field in fields}
    if ruled := [
        name for name, rule in rules.items() if rule is not msgspec.UNSET and rule.custom is not msgspec.UNSET
    ]:
        raise _undurable(ruled, "a custom rule is known to this process alone")


def _undurable(fields: list[str], why: str) -> TerminalError:
    return TerminalError(
        "DURABLE",
        f"This form cannot be asked durably, because of {', '.join(fields)}: {why}. Ask it without a key, or without "
        "these fields.",
        {"fields": fields},
    )


def _text(value: Any) -> str:
    """As JSON in ASCII, which can hold every text, a lone surrogate included."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _read(row: list[Any]) -> DurableAsk:
    id, owner, key, terminal, asker, form, opened, time, due, status, outcome = row
    return DurableAsk(
        id=id,
        owner=owner,
        key=key,
        to=terminal,
        from_=asker,
        document=form,
        opened=json.loads(opened),
        time=time,
        due=due,
        status=status,
        outcome=None if outcome is None else json.loads(outcome),
    )
