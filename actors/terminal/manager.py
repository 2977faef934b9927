"""All terminals of a runtime, by name: who can be asked, and the asking."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any, final, overload

import msgspec
from trio.lowlevel import (
    cancel_shielded_checkpoint,
    checkpoint,
    current_task,
    enable_ki_protection,
    wait_task_rescheduled,
)

from greenroom.actors.terminal.actor import Ask, TerminalActor
from greenroom.actors.terminal.broker import EVENTS, Terminal
from greenroom.actors.terminal.durable import DurableAsks, check_key, ending, refuse_undurable
from greenroom.actors.terminal.notice import Notice, NoticeKind, Subscriber
from greenroom.actors.terminal.options import MILLISECONDS, check_cap, check_name, check_operator, check_timeout
from greenroom.actors.terminal.recording import AskDurably, Forget, Resume
from greenroom.actors.terminal.store import TerminalStore
from greenroom.actors.terminal.ticket import Ticket
from greenroom.actors.terminal.waiting import begin_wait, hand_over
from greenroom.protocol.emitter import Emitter, ErrorHandler, Listener
from greenroom.protocol.errors import FormError, JournalError, TerminalError
from greenroom.protocol.forms import Form, mask_values
from greenroom.protocol.terminals import AnswerFailure, AnswerRefusal, AnswerResult, PendingForm, TerminalSnapshot
from greenroom.runtime.actor import Actor
from greenroom.runtime.context import current_actor
from greenroom.runtime.ref import Ref
from greenroom.runtime.restart import Restart
from greenroom.runtime.tree import Tree, free_place
from greenroom.runtime.waits import Node

__all__ = ["TerminalManager"]

UNSET = msgspec.UNSET

PROGRAM = "/"
"""Who owns what is asked outside the tree, where nobody else is named."""


@final
class Terminals(Actor):
    """Parent of every terminal's actor; it has no messages of its own."""

    __slots__ = ()


@final
class TerminalManager:
    """The terminals of one tree.

    `timeout` is the default of every terminal, in seconds (None: forms never expire), `cap` how many forms each may
    hold (None: any number). `store` keeps terminals' own settings for `save` and `open`, `durable` the asks that have a
    key. `on` registers first listeners and `error(exception, event)` hears what listeners raise. Raises TerminalError
    INVALID for limits that cannot be.

    Events of its `emitter`: `pending(record)`, `answer(to, id, values)` with passwords masked, `expire(to, id)` and
    `withdraw(to, id)` (the asker has gone), each within the terminal's own step, after that terminal's own listeners.
    """

    def __init__(
        self,
        tree: Tree,
        *,
        store: TerminalStore | None = None,
        durable: DurableAsks | None = None,
        timeout: float | None = 300.0,
        cap: int | None = None,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        check_timeout(timeout, "the terminals")
        check_cap(cap, "the terminals")
        self._tree = tree
        self._store = store
        self._timeout = timeout
        self._cap = cap
        self._error = error
        self._terminals: dict[str, Terminal] = {}
        self._subscribers: dict[str, dict[Subscriber, None]] = {}
        self._destroyed = False
        self._watched: set[Ref] = set()
        """Actors that own durable asks."""
        self.durable = durable
        """The asks that have a key. None: there is no journal."""
        self.wall_clock = wall_clock
        self.emitter = Emitter(EVENTS, on=on, error=error)
        self._ref = tree.spawn(Terminals(), "terminals")

    # ---------------------------------------------------------------- the registry

    @property
    def count(self) -> int:
        """How many terminals there are."""
        return len(self._terminals)

    def terminal(self, name: str) -> Terminal | None:
        """The terminal of that name, if there is one."""
        return self._terminals.get(name)

    def terminals(self) -> list[str]:
        """All names, in order of adding."""
        return list(self._terminals)

    def add(
        self,
        name: str,
        *,
        timeout: float | msgspec.UnsetType | None = UNSET,
        cap: int | msgspec.UnsetType | None = UNSET,
        operator: Ref | None = None,
        restart: Restart | None = None,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
    ) -> Terminal:
        """Add a terminal that can be asked from now on. One that is there already is returned as it is.

        Options that are not given are the manager's; those for one that is there are ignored. `operator` is the actor
        that answers for it: asks of the terminal wait for that actor, and when it ends for good the terminal is
        removed. `restart` says whether the terminal begins anew when it fails (default: it does not): its forms expire
        then. Durable ones are offered again, and so are those that the journal has of this name from the start.

        Raises TerminalError DESTROYED, and INVALID for options that cannot be; TerminalDeadlock if the operator waits,
        by asks in this name, for itself.
        """
        if self._destroyed:
            raise self._gone()
        check_name(name)
        if (found := self._terminals.get(name)) is not None:
            return found
        check_operator(operator, f"the terminal {name}")
        if timeout is not UNSET:
            check_timeout(timeout, f"the terminal {name}")
        if cap is not UNSET:
            check_cap(cap, f"the terminal {name}")
        party = self._tree.waits.party(name)
        terminal = Terminal(
            self,
            name,
            party=party,
            timeout=self._timeout if timeout is UNSET else timeout,
            own_timeout=timeout,
            cap=self._cap if cap is UNSET else cap,
            operator=operator,
            on=on,
            error=error if error is not None else self._error,
        )
        if operator is not None:
            hand_over(party, operator)
        again = None if restart is None or restart.when == "never" else restart
        terminal.ref = self._tree.spawn(
            TerminalActor(terminal) if again is None else lambda: TerminalActor(terminal),
            free_place(self._ref, name),
            parent=self._ref,
            restart=again,
        )
        if self.durable is not None and (asks := self.durable.pending_at(name)):
            terminal.ref.notice(Resume(tuple(asks)))
        self._terminals[name] = terminal
        party.held = True
        if operator is not None:
            if operator.alias is None:
                operator.alias = name
            unwatch = operator.watch(lambda _ended: self._remove_soon(terminal))
            terminal.ref.watch(lambda _ended: unwatch())  # an operator may outlive many terminals
        return terminal

    def _remove_soon(self, terminal: Terminal) -> None:
        if self._terminals.get(terminal.name) is terminal:
            self._forget(terminal)
        terminal.ref.stop_soon(reason="removed")

    def _forget(self, terminal: Terminal) -> None:
        del self._terminals[terminal.name]
        terminal.party.held = False
        operator = terminal.operator
        if operator is not None and operator.alias == terminal.name:
            others = (other.name for other in self._terminals.values() if other.operator is operator)
            operator.alias = next(others, None)

    @overload
    async def remove(self, names: str | Iterable[str]) -> bool: ...

    @overload
    async def remove(self) -> None: ...

    async def remove(self, names: str | Iterable[str] | None = None) -> bool | None:
        """Remove one terminal, several or all, one after another in order of adding; their forms expire.

        True if at least one was there (None where all were meant). Raises JournalError if it was not recorded of a
        durable form; it is offered again then, to a terminal of that name. Cancelled: those begun with are removed, the
        rest stay.
        """
        wanted = None if names is None else {names} if isinstance(names, str) else set(names)
        removed = False
        for terminal in list(self._terminals.values()):
            if (wanted is None or terminal.name in wanted) and self._terminals.get(terminal.name) is terminal:
                removed = True
                self._forget(terminal)
                await terminal.ref.stop(reason="removed")
        if removed and self.durable is not None:
            await self.durable.settle()
        return None if wanted is None else removed

    async def destroy(self) -> None:
        """Remove all terminals and take no more, for good; idempotent. Every later ask ends as TARGET.

        Cancelled: all of it comes true nevertheless, only not one after another.
        """
        self._destroyed = True
        try:
            await self.remove()
        finally:
            for terminal in list(self._terminals.values()):
                self._remove_soon(terminal)
            self.emitter.close()
            self._subscribers.clear()

    async def open(self, name: str) -> Terminal | None:
        """The terminal of that name: the one there is, or a new one with the settings that the store has of it.

        None without a store, or if the store has none that can be read. Raises TerminalError DESTROYED and what the
        store raises.
        """
        if self._destroyed:
            raise self._gone()
        if (found := self._terminals.get(name)) is not None or self._store is None:
            return found
        snapshot = _readable(await self._store.get(name))
        if self._destroyed:  # pyright: ignore[reportUnnecessaryComparison] # it may be meanwhile
            raise self._gone()
        if snapshot is None:
            return self._terminals.get(name)
        return self.add(name, timeout=UNSET if snapshot.timeout is UNSET else snapshot.timeout / 1000)

    async def save(self, name: str) -> bool:
        """Store the settings that were given for this very terminal. False without a store or such a terminal."""
        terminal = self._terminals.get(name)
        if terminal is None or self._store is None:
            return False
        own = terminal.own_timeout
        limit = UNSET if own is UNSET or own is None or own == inf else round(own * 1000)
        await self._store.set(TerminalSnapshot(name, limit))
        return True

    # ---------------------------------------------------------------- asking and answering

    async def ask(
        self,
        from_: str | None,
        to: str,
        form: Form,
        *,
        timeout: float | msgspec.UnsetType | None = UNSET,
        key: str | None = None,
        owner: str | None = None,
    ) -> dict[str, Any]:
        """Park `form` at the terminal `to`, in the name of `from_` (None: in nobody's), and wait for its values.

        `timeout` is in seconds from parking, None for no limit; where it is not given, the terminal's own holds.

        Refused before anything is parked, the form still editing: TerminalError TARGET (context `to`, `known`) and
        INVALID (`timeout`), and TerminalDeadlock (`from`, `to`, `path`) if somebody the terminal waits for waits for
        the asker. Refused with the form abandoned: TerminalError LIMIT (`cap`), EXPIRE (`reason`). A form that nobody
        answered ends as FormError ABANDONED with the `reason`: `timeout`, `stopped`, `removed`, `restarted`.

        Cancelled: the form is withdrawn and everybody who looks at it is told at once.

        With a `key` the ask is durable: form and answer are recorded in the journal, the timeout is by the wall clock,
        and after a restart on the same file the form is at its terminal again, under the same id. Whoever asks the same
        with the same owner and key waits on, or gets what is recorded; of the form that comes with it nothing is shown
        then. `owner` is any name; where none is given, the task of a stored run beneath which it is asked, else the
        actor that asks, by its path, or the program outside the tree. Cancelled, such an ask stays where it is. Its
        record lives until `release`, or until the task or the actor is over that owns it; that a run is suspended or
        cut off is no end of its tasks. Refused as well, the form still editing: TerminalError DURABLE (no journal; or
        `fields` that cannot be recorded: a password, a custom rule), TAKEN (the key names another ask), and
        JournalError.
        """
        if key is None:
            return await self._wait(from_, to, form, Ask(form, from_, timeout))
        durable = self._journalled()
        check_key(key)
        refuse_undurable(form)
        owner = self._owner(owner, watch=True)
        message = AskDurably(form, from_, timeout, owner, key)
        while True:
            ask = durable.match(owner, key, to, form)
            if ask is not None and ask.ended:
                await checkpoint()
                return ask.result()
            try:
                return await self._wait(from_, to, form, message, joins=ask is not None)
            except FormError as error:
                if error.context.get("reason") != "restarted":
                    raise

    @enable_ki_protection
    async def _wait(
        self, from_: str | None, to: str, form: Form, message: Ask | AskDurably, *, joins: bool = False
    ) -> dict[str, Any]:
        """Post the ask and wait for its answer. `joins`: another form is parked already, and this one is not used."""
        terminal = self._terminals.get(to)
        if terminal is None:
            raise self._no_target(to)
        if form.outcome is not None and not joins:
            raise FormError(
                form.status.upper(), f"A form that is {form.status} cannot be asked; make a new one.", {"to": to}
            )
        if message.timeout is not UNSET:
            check_timeout(message.timeout, "this form")
        if from_ is not None:
            check_name(from_, "An asker's")
        reply = begin_wait(terminal, from_, None if from_ is None else self._asker(from_), message)
        try:
            # `await reply.wait()` without the coroutine between, as in `Ref.ask`.
            if reply.settled:
                await cancel_shielded_checkpoint()
            else:
                reply.task = current_task()
                await wait_task_rescheduled(reply.abort)
            return reply.result()
        finally:
            if reply.withdrawn and reply.note is None:  # cancelled before the terminal saw it
                form.destroy()

    async def release(self, key: str, *, owner: str | None = None) -> bool:
        """Forget the durable ask of that owner (see `ask`) and key, and its answer. False: there is none.

        One that is still pending is withdrawn, and ends as FormError ABANDONED for whoever waits for it. Raises
        TerminalError DURABLE without a journal, and JournalError: it is not forgotten then. Cancelled: it is forgotten
        or it is not.
        """
        durable = self._journalled()
        ask = durable.find(self._owner(owner), key)
        if ask is None:
            await checkpoint()
            return False
        terminal = self._terminals.get(ask.to)
        if ask.ended or terminal is None or not await terminal.forget(ask):
            await durable.forget(ask)
        return True

    async def release_all(self, owner: str) -> int:
        """Forget every durable ask of that owner: a run, say, that has ended. How many there were; see `release`."""
        asks = self._journalled().owned_by(owner)
        for ask in asks:
            await self.release(ask.key, owner=owner)
        return len(asks)

    def _journalled(self) -> DurableAsks:
        if self.durable is None:
            raise TerminalError(
                "DURABLE", "Nothing can be asked durably here: open the runtime with `data=FILE` to have a journal."
            )
        return self.durable

    def _owner(self, owner: str | None, *, watch: bool = False) -> str:
        if owner is not None:
            return owner
        actor = current_actor()
        if actor is None:
            return PROGRAM
        ref = actor.ref
        for place in ref.upward():
            if (name := place.actor.durable_name) is not None:
                return name  # who has one says itself what becomes of its asks: see `let_go`
        if watch and ref not in self._watched:
            self._watched.add(ref)
            ref.watch(self._owner_ended)
        return ref.path

    def _owner_ended(self, owner: Ref) -> None:
        """Its asks end with it. But where everything ends the record is what lets it go on another time."""
        self._watched.discard(owner)
        if not ending(self._tree):
            self.let_go(owner.path)

    def let_go(self, owner: str, *, over: Callable[[str], bool] | None = None) -> None:
        """Forget, without waiting for it, every durable ask of that owner and of those beneath it (`<owner>/...`), as
        far as they are `over`, if that is given."""
        if self.durable is None:
            return
        beneath = f"{owner}/"
        for each in self.durable.owners():
            if (each == owner or each.startswith(beneath)) and (over is None or over(each)):
                self._forget_all(self.durable, each)

    def _forget_all(self, durable: DurableAsks, owner: str) -> None:
        for ask in durable.owned_by(owner):
            terminal = self._terminals.get(ask.to)
            if terminal is not None and terminal.ref.alive and not ask.ended:
                terminal.ref.notice(Forget(ask))
            else:
                try:
                    durable.delete(ask, durable.missed)
                except JournalError as fault:
                    durable.missed(fault)

    def _asker(self, name: str) -> Node:
        """Who waits when something is asked in that name: its operator's work, or the name itself."""
        terminal = self._terminals.get(name)
        if terminal is None:
            return self._tree.waits.party(name)
        return terminal.party if terminal.operator is None else terminal.operator.work

    async def answer(self, to: str, id: str, values: Mapping[str, Any], *, whole: bool = False) -> AnswerResult:
        """Answer a form that is pending at `to`; see `Terminal.answer`. Never raises for a wrong name, id or value."""
        named = isinstance(to, str)  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from outside
        terminal = self._terminals.get(to) if named else None
        if terminal is None:
            return AnswerFailure(error=AnswerRefusal("target"))
        return await terminal.answer(id, values, whole=whole)

    def pending(self, to: str | None = None) -> list[PendingForm]:
        """The forms that are parked, at one terminal or at all, in order of adding and parking.

        Nothing for an unknown name.
        """
        if to is not None:
            terminal = self._terminals.get(to)
            return terminal.pending() if terminal is not None else []
        return [record for terminal in self._terminals.values() for record in terminal.pending()]

    # ---------------------------------------------------------------- being told

    def subscribe(self, name: str, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(notice)` for whatever happens at the terminal of that name, until the returned function is
        called.

        The subscription hangs on the name: it may precede the terminal and outlives its removal and re-adding. What
        happens at other terminals costs it nothing.
        """
        self._subscribers.setdefault(name, {})[subscriber] = None

        def unsubscribe() -> None:
            subscribers = self._subscribers.get(name)
            if subscribers is not None and subscribers.pop(subscriber, self) is None and not subscribers:
                del self._subscribers[name]

        return unsubscribe

    @property
    def subscriptions(self) -> int:
        """How many subscribers there are, over all names."""
        return sum(map(len, self._subscribers.values()))

    def announce(
        self, terminal: Terminal, kind: NoticeKind, ticket: Ticket, values: dict[str, Any] | None = None
    ) -> None:
        """Tell the terminal's own listeners, then this manager's, then the name's subscribers.

        Called in the terminal's step, which runs outside the tree.
        """
        if terminal.heard or self.emitter.heard:
            self._emit(terminal, kind, ticket, values)
        subscribers = self._subscribers.get(terminal.name)
        if subscribers:
            notice = Notice(kind, terminal.name, ticket)
            for subscriber in tuple(subscribers):
                try:
                    subscriber(notice)
                except Exception as error:
                    self.emitter.report(error, kind)

    def _emit(self, terminal: Terminal, kind: NoticeKind, ticket: Ticket, values: dict[str, Any] | None) -> None:
        if values is not None:
            values = mask_values(ticket.form.schema, values)
        terminal.emit(kind, ticket, values)
        if kind == "pending":
            self.emitter.emit("pending", ticket.record)
        elif kind == "answered":
            self.emitter.emit("answer", terminal.name, ticket.id, values)
        else:
            self.emitter.emit("expire" if kind == "expired" else "withdraw", terminal.name, ticket.id)

    # ---------------------------------------------------------------- refusals

    def _no_target(self, to: str) -> TerminalError:
        known = self.terminals()
        names = ", ".join(known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
        return TerminalError(
            "TARGET",
            f"There is no terminal {to}. "
            + (f"There {'is' if len(known) == 1 else 'are'} {names}." if known else "There is none yet; add it first."),
            {"to": to, "known": known},
        )

    @staticmethod
    def _gone() -> TerminalError:
        return TerminalError("DESTROYED", "These terminals were destroyed; nothing can be added or opened any more.")


def _readable(stored: object) -> TerminalSnapshot | None:
    """What a store gave, if it is a terminal's settings: a store is a user's own code, and its rows may be old."""
    try:
        snapshot = msgspec.convert(stored, TerminalSnapshot, from_attributes=True)
    except msgspec.ValidationError:
        return None
    possible = snapshot.timeout is UNSET or 0 <= snapshot.timeout <= MILLISECONDS
    return snapshot if snapshot.id and possible else None
