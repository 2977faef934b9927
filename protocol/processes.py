"""What a command came to, as it crosses a wire or a model's context."""

from __future__ import annotations

from typing import final

from msgspec import Struct

__all__ = ["CommandResult", "Output"]


@final
class Output(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a command wrote to one of its streams."""

    text: str
    """The end of it; bytes that are no UTF-8 are replaced."""
    truncated: bool
    """There was more before that."""
    spill_path: str | None = None
    """The file that has all of it. None: `text` has, or it was too much for a file too."""


@final
class CommandResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """How a command ended. Each member tells of itself alone: one that was told to end may still exit with 0."""

    exit_code: int | None
    """None: a signal ended it."""
    signal: str | None
    """The signal that ended it: `SIGKILL`, say. None: it exited by itself."""
    timed_out: bool
    """Its time was over, and so it was told to end."""
    aborted: bool
    """Somebody told it to end."""
    timeout_ms: int | None
    """How long it might have run, in milliseconds. None: for ever."""
    stdout: Output
    stderr: Output
