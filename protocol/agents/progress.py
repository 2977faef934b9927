"""What is told of a delegation to the agents above it."""

from __future__ import annotations

from typing import Literal, TypeAlias, final

from msgspec import Struct

__all__ = ["Progress", "ProgressEvent"]

ProgressEvent: TypeAlias = Literal["started", "turn", "tool", "finished", "stopped", "failed"]


@final
class Progress(Struct, frozen=True, omit_defaults=True):
    """`started` comes first; one of `finished`, `stopped` and `failed` comes last, once."""

    path: str
    """Where in the tree it works: `/agents/planner/delegations/1`."""
    agent: str
    """What the registry calls it."""
    depth: int
    """How many agents are nested beneath the root, itself included."""
    event: ProgressEvent
    detail: str = ""
    """The number of the turn, the name of the tool, what it came to, or why it failed."""
