"""What a run came to, as JSON too, and the pieces in which it comes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeGuard, cast, final

from msgspec import UNSET, Struct

from greenroom.protocol.agents.usage import Usage
from greenroom.protocol.tools import ToolCall, ToolResult

__all__ = [
    "AgentChunk",
    "AgentResult",
    "ThinkChunk",
    "TokenChunk",
    "ToolChunk",
    "UsageChunk",
    "agent_result_to_json",
]


@final
class AgentResult(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a run came to.

    A run that ended by itself has the content of its last turn. One that was stopped or ran out of turns is `partial`
    and has all that it wrote in all turns. `usage` is the sum over the turns that reported any.
    """

    content: str
    thinking: str | None = None
    usage: Usage | None = None
    partial: bool


@final
class TokenChunk(Struct, frozen=True, tag_field="type", tag="token"):
    """A piece of text."""

    content: str


@final
class ThinkChunk(Struct, frozen=True, tag_field="type", tag="think"):
    """A piece of reasoning."""

    content: str


@final
class UsageChunk(Struct, frozen=True, tag_field="type", tag="usage"):
    """What one turn used."""

    usage: Usage


@final
class ToolChunk(Struct, frozen=True, tag_field="type", tag="tool"):
    """A call and what became of it."""

    call: ToolCall
    result: ToolResult


AgentChunk: TypeAlias = TokenChunk | ThinkChunk | UsageChunk | ToolChunk


def agent_result_to_json(value: object) -> dict[str, Any] | None:
    """The result that the value is, as plain JSON; `None` if it is none. Never raises.

    A mapping or any object with the fields will do. Each field is read once, and others are dropped; figures of usage
    are kept as they are, also negative and fractional ones.
    """
    try:
        content, partial = _field(value, "content"), _field(value, "partial")
        thinking, usage = _field(value, "thinking"), _field(value, "usage")
        if type(content) is not str or type(partial) is not bool:
            return None
        result: dict[str, Any] = {"content": content, "partial": partial}
        if thinking is not UNSET:
            if type(thinking) is not str:
                return None
            result["thinking"] = thinking
        if usage is not UNSET:
            figures = {name: _field(usage, name) for name in ("prompt", "completion", "total")}
            if not all(map(_is_finite, figures.values())):
                return None
            result["usage"] = figures
    except Exception:  # a value that cannot be read is no result
        return None
    return result


def _field(value: object, name: str) -> object:
    """The field, or UNSET if there is none. In our own structs `None` stands for an absent one."""
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        return mapping.get(name, UNSET)
    found = getattr(value, name, UNSET)
    return UNSET if found is None and isinstance(value, AgentResult) else found


def _is_finite(value: object) -> TypeGuard[int | float]:
    return type(value) in (int, float) and math.isfinite(cast("float", value))
