"""How runs of workflows look to somebody outside: at a glance, and one of them as it stands."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from greenroom.protocol.workflows import Status, WorkflowSnapshot

__all__ = ["RunInfo", "RunPicture", "RunWait"]


class RunInfo(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A run at a glance."""

    id: str
    name: str
    status: Status
    live: bool = False
    """It is under way in this process. One that is not, and whose status is `pending` or `running`, was cut off or
    suspended, and can be resumed."""
    updated: int
    """When it last changed, in milliseconds since 1970."""
    tasks: int | UnsetType = UNSET
    """How many it has; absent, with `over`, for one of which only the record is there."""
    over: int | UnsetType = UNSET
    """How many of them are over, however they ended."""


class RunWait(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Something in a run waits for somebody."""

    task: str
    """The key of the task, `<workflow>/<phase>/<task>`."""
    to: str
    """Who is waited for: a terminal, or the path of an actor."""
    message: str
    """What it waits with: `Ask` for a form."""


class RunPicture(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One run as it stands."""

    run: WorkflowSnapshot
    live: bool = False
    """It is under way in this process."""
    last: int
    """The number of the last event that has happened; whoever follows from it on misses nothing."""
    waits: tuple[RunWait, ...] = ()
    """Who is waited for."""
