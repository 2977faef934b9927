"""Asks as waits: each begins in the same step in which it is found to close no circle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from greenroom.protocol.errors import TerminalDeadlock
from greenroom.runtime.context import CURRENT
from greenroom.runtime.ref import Ref, path_in_words
from greenroom.runtime.reply import Reply
from greenroom.runtime.waits import Node, Party, find_circle

if TYPE_CHECKING:
    from greenroom.actors.terminal.actor import Ask
    from greenroom.actors.terminal.broker import Terminal
    from greenroom.actors.terminal.recording import AskDurably

__all__ = ["begin_wait", "hand_over"]


def begin_wait(
    terminal: Terminal, from_: str | None, named: Node | None, message: Ask | AskDurably
) -> Reply[dict[str, Any]]:
    """Post an ask; `named` is who waits when something is asked in the name `from_`. Then `await reply.wait()`.

    Raises TerminalDeadlock, and nothing is posted; TerminalError EXPIRE with the form abandoned if the terminal ends.
    """
    current = CURRENT.get()
    waiter = named or current
    second = current if named is not None and current is not named else None
    operator = terminal.operator
    target: Node = terminal.party if operator is None else operator
    other = None if operator is None else operator.work
    if waiter is not None and (second is not None or other is not None or waiter is target or waiter.asked):
        _refuse_circle(from_, terminal.name, waiter, second, target, other)
    # No checkpoint between the check and the wait that the constructor links.
    ref = terminal.ref
    if ref.mailbox.closed:
        message.form.destroy()
        raise terminal.expired(ref.reason or "stopped")
    label = None if operator is None else terminal.name
    reply: Reply[dict[str, Any]] = Reply(message, ref, waiter, target, second, other, label)
    ref.post(reply)
    return reply


def hand_over(party: Party, operator: Ref) -> None:
    """Asks that were made in the name before somebody operated it are the operator's from now on.

    Raises TerminalDeadlock, and nothing is handed over.
    """
    waits = list(party.waiting or ())
    for wait in waits:
        if path := find_circle((operator.work,), wait.goals(), (party.name,), wait.label):
            raise _circle(party.name, path[1], path)
    for wait in waits:
        wait.move(party, operator.work)


def _refuse_circle(
    from_: str | None, to: str, waiter: Node, second: Node | None, target: Node, other: Node | None
) -> None:
    starts: tuple[Node, ...] = (waiter,)
    names: tuple[str, ...] = (from_ if from_ is not None else waiter.label,)
    if second is not None:
        starts, names = (waiter, second), (*names, second.label)
    if path := find_circle(starts, (target,) if other is None else (target, other), names, to):
        raise _circle(from_, to, path)


def _circle(from_: str | None, to: str, path: list[str]) -> TerminalDeadlock:
    asker = path[0]
    return TerminalDeadlock(
        "DEADLOCK",
        f"{asker} cannot ask {to}: that would close a circle of waiting, {path_in_words(path)}. "
        f"{to} can answer only after {asker} is done: first answer what {asker} is being asked, "
        "or decide without asking.",
        {"from": asker if from_ is None else from_, "to": to, "path": path},
    )
