"""What policies say: of a call before it runs (`Verdict`), of its outcome afterwards (`Review`)."""

from __future__ import annotations

from typing import Any, final

from msgspec import UNSET, Struct, UnsetType

__all__ = ["Accept", "Allow", "Ask", "Block", "Deny", "Review", "Verdict"]


class Verdict(Struct, frozen=True):
    """An `Allow`, a `Deny` or an `Ask`."""


@final
class Allow(Verdict, frozen=True):
    """It may run, as far as this policy is concerned; guards may still deny it."""


@final
class Deny(Verdict, frozen=True):
    """It does not run. The model is told the reason."""

    reason: str


@final
class Ask(Verdict, frozen=True):
    """It runs if somebody approves of this very call; the reason is why they are asked."""

    reason: str | None = None


class Review(Struct, frozen=True, kw_only=True):
    """An `Accept` or a `Block`. `contexts` are texts for the model's next step."""

    contexts: tuple[str, ...] = ()


@final
class Accept(Review, frozen=True):
    """The outcome stands, with another text for the model (`content`; whoever reads the value still sees it all) or
    with another value, which is checked and rendered as the tool's own. Not both."""

    content: str | None = None
    value: Any | UnsetType = UNSET


@final
class Block(Review, frozen=True):
    """What the call came to goes nowhere, nor do the texts that the tool deferred: the model is told `feedback`."""

    feedback: str
