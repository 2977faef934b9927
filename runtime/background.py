"""Tools in the background: how a call says that it is to go on by itself, and what the tool can tell meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final, Protocol, cast

from greenroom.protocol.jobs import Ending
from greenroom.protocol.schemas import Refusal, Schema
from greenroom.protocol.schemas.variants import Variants

__all__ = ["FLAG", "Background", "Work", "current_job", "offering", "wanted"]

FLAG: Final = "run_in_background"
"""The argument by which a call says so."""

_FLAG: Final[Schema] = {
    "type": "boolean",
    "description": "Do not wait for it: return {jobId} at once. Read, await or end the job by its id.",
}
_READING: Final = Variants({"": {"type": "object", "properties": {FLAG: _FLAG}}})


class Work(Protocol):
    """A job, for what is done in it."""

    @property
    def id(self) -> str:
        """By which others know it."""
        ...

    def write(self, text: str) -> None:
        """Let this be read while it goes on. A job that has written anything, if only an empty text, has no other
        output."""

    def note(self, detail: str, *, ending: Ending = "completed") -> None:
        """What is to be told of it, and as what, once its work has returned."""

    def on_kill(self, listener: Callable[[str | None], object]) -> None:
        """Call `listener(reason)` when it is to be killed, instead of cancelling the work, which is to return then. If
        the listener raises, the job is not killed."""


class Background(Protocol):
    """Where calls go on that nobody waits for: `runtime.jobs`."""

    async def begin(self, kind: str, label: str, run: Callable[[Work], Awaitable[str | None]]) -> str:
        """Start a job for whoever calls; its id. What `run` returns is its output."""
        ...


JOB: Final[ContextVar[Work | None]] = ContextVar("greenroom_job", default=None)


def current_job() -> Work | None:
    """Within a tool: the job that this very call is. None: somebody waits for the call."""
    return JOB.get()


def offering(schema: Schema | None) -> Schema:
    """The schema of a tool's arguments with the flag among them. Raises ValueError if they have one of that name."""
    shown: Schema = {"type": "object"} if schema is None else schema
    properties = shown.get("properties", {})
    if FLAG in properties:
        raise ValueError(f"its arguments have a {FLAG} already, which a tool with a background gets by itself")
    return {**shown, "properties": {**properties, FLAG: _FLAG}}


def wanted(args: Any) -> tuple[bool | Refusal, Any]:
    """Whether a call with these arguments is to go on by itself, or why that cannot be read; and its other arguments.

    Never raises, whatever they are.
    """
    if not isinstance(args, dict):
        return False, args
    given = cast("dict[str, Any]", args)
    if FLAG not in given:
        return False, given
    reading = _READING.parse({FLAG: given[FLAG]})
    rest = {name: value for name, value in given.items() if name != FLAG}
    return (reading if isinstance(reading, Refusal) else bool(reading[FLAG])), rest
