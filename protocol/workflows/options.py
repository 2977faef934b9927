"""What a host may say about the nodes of a workflow when it builds them, besides the definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from greenroom.protocol.emitter import ErrorHandler, Listener
from greenroom.protocol.workflows.definition import MAX_TIMER_MS

__all__ = ["PhaseOptions", "TaskOptions", "silence_in_force"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """`metadata` replaces the definition's input. `silence` is in seconds; one that is out of range means none."""

    metadata: dict[str, Any] | None = None
    silence: float | None = None
    on: Mapping[str, Listener] = field(default_factory=dict[str, Listener])
    error: ErrorHandler | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseOptions:
    """`tasks` are options by task id."""

    tasks: Mapping[str, TaskOptions] = field(default_factory=dict[str, TaskOptions])
    on: Mapping[str, Listener] = field(default_factory=dict[str, Listener])
    error: ErrorHandler | None = None


def silence_in_force(own: float | None, inherited: float | None) -> float | None:
    """The seconds of silence after which a task is said to be silent, or `None` for never."""
    seconds = inherited if own is None else own
    return seconds if seconds is not None and 0 < seconds <= MAX_TIMER_MS / 1000 else None
