"""What one run goes by: what its agent was made with, and in its place what the run was given."""

from __future__ import annotations

from typing import Final, final

import msgspec

from greenroom.protocol.agents import Budget
from greenroom.protocol.schemas import Schema
from greenroom.runtime.cancel import CancelToken
from greenroom.runtime.provider import Decides, Scheduler

__all__ = ["DEFAULT_AGENT_LIMIT", "Settings"]

DEFAULT_AGENT_LIMIT: Final = 10
"""How many turns a run has, where nothing else is said."""


@final
class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """`None` in a bound: there is none."""

    limit: int
    timeout: float | None
    """Seconds."""
    patience: bool
    budget: Budget | None
    cancel: tuple[CancelToken, ...]
    scheduler: Scheduler | None
    authority: Decides | None
    think: bool | None = None
    schema: Schema | None = None
