"""Sub-agents as others see them: what one is asked for, what it came to, and how it is listed."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias, final

from msgspec import Meta, Struct

__all__ = [
    "MAX_DIAGNOSTIC",
    "ChildAccepted",
    "ChildInfo",
    "ChildRequest",
    "ChildResult",
    "ChildStatus",
    "ChildUnreadable",
    "StopReason",
    "cut_diagnostic",
]

MAX_DIAGNOSTIC: Final = 4096
"""How many bytes of UTF-8 a diagnostic has at most."""

StopReason: TypeAlias = Literal["completed", "aborted", "error", "max-tokens"]

ChildStatus: TypeAlias = Literal["running", "idle", "ready"]


@final
class ChildRequest(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A task for a sub-agent. What is given of `persona`, `tools` and `max_depth` must be something that its provider
    can do."""

    description: Annotated[str, Meta(min_length=1)]
    """A few words by which people and models know it again."""
    prompt: Annotated[str, Meta(min_length=1)]
    """The whole task."""
    persona: str | None = None
    """What it is told to be."""
    tools: tuple[str, ...] | None = None
    """The names of the tools that it may use, of those that it would have."""
    max_depth: Annotated[int, Meta(ge=0)] | None = None
    """How deep agents may be nested beneath the root, it and those beneath it included. Never more than before."""


@final
class ChildResult(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """What a sub-agent came to. `output` is its latest message with anything in it, none if it has said nothing.

    `completed`: it had nothing more to do. `max-tokens`: its budget was used up. `aborted`: it was stopped. `error`: it
    failed, or its turns were used up. The `diagnostic` says more, in `MAX_DIAGNOSTIC` bytes at most, without secrets.
    """

    run_id: str
    output: tuple[str, ...] = ()
    stop_reason: StopReason = "completed"
    diagnostic: str | None = None


@final
class ChildAccepted(Struct, frozen=True, rename="camel"):
    """A sub-agent has taken its first message, and goes on by itself."""

    child_id: str
    message_id: str


@final
class ChildInfo(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`running`: at work, or waiting for sub-agents of its own. `idle`: it can be given more. `ready`: likewise, but it
    is only stored. `parent` and `depth` are told of descendants."""

    id: str
    label: str
    status: ChildStatus
    parent: str | None = None
    depth: int | None = None


@final
class ChildUnreadable(Struct, frozen=True):
    """A sub-agent that is stored and cannot be listed: `corrupt`, `unsupported` or `unavailable`."""

    id: str
    reason: str


def cut_diagnostic(text: str) -> str:
    """The text, or as much of its beginning as a diagnostic may have."""
    whole = text.encode(errors="backslashreplace")
    return whole[:MAX_DIAGNOSTIC].decode(errors="ignore")
