"""How long a task rests before its next attempt."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from greenroom.protocol.workflows.definition import MAX_TIMER_MS, Backoff

__all__ = ["rest_before"]

_FACTOR: Final = 2.0


def rest_before(attempt: int, backoff: Backoff, chance: float) -> float:
    """The seconds between attempt `attempt - 1`, which failed, and `attempt` (2 or more).

    `chance`, from 0 to 1, decides where the rest lies within its jitter: 0.5 is the undisturbed middle.
    """
    factor = _FACTOR if backoff.factor is UNSET else backoff.factor
    jitter = 0.0 if backoff.jitter is UNSET else backoff.jitter
    limit = float(MAX_TIMER_MS if backoff.max is UNSET else backoff.max)
    try:
        rest = backoff.initial * factor ** (attempt - 2)
    except OverflowError:
        rest = limit if backoff.initial else 0.0
    spread = 1 + jitter * (2 * chance - 1)
    return min(min(rest, limit) * spread, limit) / 1000
