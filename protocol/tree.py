"""How the tree of actors looks to somebody outside: one immutable picture of it."""

from __future__ import annotations

import msgspec

__all__ = ["ActorSnapshot", "PatienceSnapshot", "TreeSnapshot", "WaitSnapshot"]


class ActorSnapshot(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One actor and all beneath it."""

    path: str
    kind: str
    """What it is: the name of its class, in lower case."""
    state: str
    """`starting`, `running`, `restarting`, `stopping` or `ended`."""
    mailbox: int = 0
    """How many messages wait, those in line before a full mailbox included."""
    restarts: int = 0
    operates: str | None = None
    """The terminal that it answers for."""
    children: tuple[ActorSnapshot, ...] = ()


class WaitSnapshot(msgspec.Struct, frozen=True, rename="camel"):
    """One blocking wait between parties."""

    from_: tuple[str, ...] = msgspec.field(name="from")
    """Who waits: the running party, and the name it asks as where that is another one. Empty: somebody outside."""
    to: str
    message: str
    """What it waits with: the request's type, `send` in line before a full mailbox, `join` for an actor's end."""


class PatienceSnapshot(msgspec.Struct, frozen=True, rename="camel"):
    """A deadline on the work of an actor whose clock stands still while a person is asked beneath it."""

    at: str
    """Whose work it limits."""
    remaining: float
    """Seconds of work that are left."""
    still: bool
    """Whether the clock stands still."""


class TreeSnapshot(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The whole tree, and who waits for whom in it."""

    root: ActorSnapshot
    waits: tuple[WaitSnapshot, ...] = ()
    deadlines: int = 0
    """How many expiries are armed."""
    next_due: float | None = None
    """When the earliest of them is due, in seconds of the runtime's monotonic clock."""
    patient: tuple[PatienceSnapshot, ...] = ()
    """In no promised order."""
