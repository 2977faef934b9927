"""What a provider's own module has to know: how a request is spelled, and how an answer is read."""

from __future__ import annotations

import math
from typing import Protocol

from greenroom.protocol.agents import Delta, ProviderResult
from greenroom.protocol.sse import SSEEvent

__all__ = ["Answer", "figure"]


class Answer(Protocol):
    """Reads one answer. Nothing here waits."""

    @property
    def finished(self) -> bool:
        """Nothing more of it is to be read."""
        ...

    @property
    def complete(self) -> bool:
        """The model has ended its answer, though more about it may follow."""
        ...

    def take(self, event: SSEEvent) -> list[Delta]:
        """Read one event. Raises `ProviderError`."""
        ...

    def take_whole(self, body: object) -> list[Delta]:
        """Read an answer that came as one JSON body in place of a stream. Raises `ProviderError`."""
        ...

    def end(self) -> list[Delta]:
        """The stream has ended: what was held back."""
        ...

    def result(self) -> ProviderResult:
        """The whole of it, or what there is so far."""
        ...


def figure(value: object) -> float | None:
    """A figure of a server's, an infinite one where no double can hold it; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
