"""What a call under policy comes to, and how its text is made."""

from __future__ import annotations

import json
from typing import Any, cast, final

from msgspec import Struct

from greenroom.protocol.errors import GreenroomError, ToolError
from greenroom.protocol.schemas.gates import encodable

__all__ = [
    "MalformedOutcome",
    "Outcome",
    "ToolFail",
    "ToolOk",
    "compact",
    "error_text",
    "failure",
    "legible",
    "plain",
    "plain_all",
]


class Outcome(Struct, frozen=True, kw_only=True):
    """A `ToolOk` or a `ToolFail`."""

    content: str | None = None
    """What a model is shown. None: what the tool renders (compact JSON if it says nothing else), or `Error: ` and the
    message."""
    contexts: tuple[str, ...] = ()
    """Texts for the model's next step, each a message of its own, after all results of the batch."""


@final
class ToolOk(Outcome, frozen=True):
    """What a tool returned. `value` is a frozen snapshot once the pipeline has seen it."""

    value: Any
    concludes_turn: bool = False
    """The model is not asked again after this batch."""


@final
class ToolFail(Outcome, frozen=True):
    """Why a tool returned nothing. It never has a value."""

    message: str
    code: str = "TOOL"
    """For programs: DENIED, ABORTED, ABORTED_BEFORE_DISPATCH, TOOL_TIMEOUT, UNKNOWN_TOOL, TOOL_CHANGED, DEPTH,
    INVALID_ARGS, INVALID_TOOL_OUTPUT, GRANT_SPENT, the code of the `GreenroomError` that was raised, or TOOL for what
    else was."""
    cause: Exception | None = None
    """What was raised, if something was; it stays in this process."""


class MalformedOutcome(ToolError):
    """A value, a verdict or a result that is none (its code says which): always turned into a `ToolFail`."""


def failure(error: Exception) -> ToolFail:
    """What a call comes to whose tool, or whose policy, raised that."""
    code = error.code if isinstance(error, GreenroomError) else "TOOL"
    return ToolFail(error_text(error), code, cause=error)


def error_text(error: BaseException) -> str:
    """The message of an error, of the one leaf if it is a group with one, however deep. Never raises. It has a UTF-8
    form, which the name of a file, say, need not have."""
    found: object = error
    while isinstance(found, BaseExceptionGroup):
        leaves = cast("BaseExceptionGroup[BaseException]", found).exceptions
        if len(leaves) != 1:
            break
        found = leaves[0]
    try:
        return legible(str(cast("BaseException", found)))
    except Exception:
        return "Unknown thrown value"


def legible(text: str) -> str:
    """The text, with what has no UTF-8 form spelled out."""
    return text.encode(errors="backslashreplace").decode()


def plain(text: object) -> str | None:
    """The text, as a `str` and no subclass. None: it is no text, or has no UTF-8 form."""
    if not isinstance(text, str):
        return None
    bare = str.__str__(text)
    return bare if encodable(bare) else None


def plain_all(texts: object) -> tuple[str, ...] | None:
    """Several texts, each as `plain` gives it. None: they are not several, or one of them is none."""
    if not isinstance(texts, (tuple, list)):
        return None
    found = [plain(text) for text in cast("tuple[object, ...]", texts)]
    kept = tuple(text for text in found if text is not None)
    return kept if len(kept) == len(found) else None


def compact(value: object) -> str:
    """A JSON value as a model is shown it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
