"""What waits in the inbox of an agent."""

from __future__ import annotations

from typing import Literal, TypeAlias, final

from msgspec import Struct

__all__ = ["InboxKind", "InboxMessage"]

InboxKind: TypeAlias = Literal["followup", "steer", "inject"]


@final
class InboxMessage(Struct, frozen=True, omit_defaults=True):
    """One piece of input. A `followup` is for a later turn of its own, a `steer` and an `inject` are for the next step;
    all but an `inject` wake an agent that is idle."""

    id: str
    kind: InboxKind
    text: str
    source: str | None = None
    """What put it there, such as `job` or `subagent`. `None`: the program, or a user."""
