"""Tokens that were used, and budgets of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import final

from msgspec import Struct

from greenroom.protocol.agents.messages import ChatMessage, estimate_messages

__all__ = ["Budget", "Usage", "Window"]


@final
class Usage(Struct, frozen=True):
    """Tokens of a prompt, of what a model wrote, and of both. A provider's own figures need not add up."""

    prompt: float = 0
    completion: float = 0
    total: float = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.prompt + other.prompt, self.completion + other.completion, self.total + other.total)

    def sanitised(self) -> Usage:
        """With 0 for what is no positive finite number, and no fractions."""
        return Usage(_sane(self.prompt), _sane(self.completion), _sane(self.total))


def _sane(figure: float) -> int:
    try:
        return math.floor(figure) if math.isfinite(figure) and figure > 0 else 0
    except OverflowError:  # an integer that no double can hold
        return 0


@final
class Budget:
    """How many tokens may be used; exhausted once one of its bounds is reached. `None`: no bound.

    Runs charge it as they go and stop when it is exhausted; it keeps its tally from run to run, until `clear`. Several
    runs may share one: it stops them all. What is charged to it is charged to `parent` too, which may be exhausted
    first and stops the same runs then.
    """

    __slots__ = ("_bounds", "_listeners", "_parent", "_used")

    def __init__(
        self,
        *,
        prompt: float | None = None,
        completion: float | None = None,
        total: float | None = None,
        parent: Budget | None = None,
    ) -> None:
        self._bounds = (prompt, completion, total)
        self._parent = parent
        self._used = Usage()
        self._listeners: dict[object, Callable[[], object]] = {}

    @property
    def used(self) -> Usage:
        """What was charged since it was made or cleared."""
        return self._used

    @property
    def exhausted(self) -> bool:
        """Whether one of its bounds, or of its parent's, is reached."""
        used = (self._used.prompt, self._used.completion, self._used.total)
        reached = any(bound is not None and figure >= bound for figure, bound in zip(used, self._bounds, strict=True))
        return reached or (self._parent is not None and self._parent.exhausted)

    def consume(self, usage: Usage) -> None:
        """Charge it. Those who started it are called if it is exhausted by then."""
        self._used += usage
        if self._parent is not None:
            self._parent.consume(usage)
        if self._listeners and self.exhausted:
            for fire in tuple(self._listeners.values()):
                fire()

    def clear(self) -> None:
        """Begin again from nothing. The parent's tally stays."""
        self._used = Usage()

    def start(self, on_exhausted: Callable[[], object]) -> Callable[[], None]:
        """Call `on_exhausted` once when it is exhausted, at once if it is. What comes back ends that."""
        if self.exhausted:
            on_exhausted()
            return _nothing
        key = object()

        def fire() -> None:
            close()
            on_exhausted()

        def close() -> None:
            self._listeners.pop(key, None)
            above()

        self._listeners[key] = fire
        above = _nothing if self._parent is None else self._parent.start(fire)
        return close


def _nothing() -> None:
    pass


@final
class Window:
    """How large a prompt may be before older messages are summarized: below `bound`, as `estimate` counts tokens."""

    __slots__ = ("_bound", "_estimate")

    def __init__(self, bound: float, *, estimate: Callable[[Sequence[ChatMessage]], float] = estimate_messages) -> None:
        self._bound = bound
        self._estimate = estimate

    def holds(self, prompt: Sequence[ChatMessage]) -> bool:
        """Whether the prompt is small enough as it is."""
        return self._estimate(prompt) < self._bound
