"""Jobs, work in the background, as they cross a wire or a model's context."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, final

from msgspec import Struct

__all__ = ["Ending", "JobSnapshot", "JobStatus", "Killing", "cut", "line"]

JobStatus: TypeAlias = Literal["running", "stopping", "completed", "killed", "failed"]
Ending: TypeAlias = Literal["completed", "killed", "failed"]
"""How a job ends. The first one counts."""

Killing: TypeAlias = Literal["cancellation-requested", "already-finished"]
"""What a kill comes to."""

LINE: Final = 200
"""How many characters of a label or a detail are kept."""


@final
class JobSnapshot(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A job as it is at one moment."""

    id: str
    kind: str
    label: str
    status: JobStatus
    started_at: int
    """Milliseconds since 1970."""
    detail: str | None = None
    """How it ended, or why it is to."""
    finished_at: int | None = None


def line(text: str) -> str:
    """A text as one line that is not too long, without what no JSON holds."""
    whole = " ".join(text.encode("utf-8", "replace").decode().split())
    return whole if len(whole) <= LINE else f"{whole[: LINE - 3]}..."


def cut(text: str, most: int, dropped: int = 0) -> str:
    """The end of a text, in at most so many bytes of UTF-8, behind a notice of what is missing: `dropped` characters
    and what does not fit."""
    whole = text.encode("utf-8", "replace")
    kept = whole[max(0, len(whole) - most) :].decode("utf-8", "ignore")
    dropped += len(text) - len(kept)
    return f"[... {dropped} characters before this were dropped ...]\n{kept}" if dropped else kept
