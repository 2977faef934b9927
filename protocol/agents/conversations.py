"""A conversation as it is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeGuard, TypeVar, cast, final

from msgspec import Struct

from greenroom.protocol.agents.messages import ChatMessage
from greenroom.protocol.tools import ToolCall, is_tool_call

__all__ = ["CONVERSATION_RECAP_PREFIX", "ConversationSnapshot", "Section", "parse_conversation"]

T = TypeVar("T")

CONVERSATION_RECAP_PREFIX: Final = "[Summary of earlier messages] "
"""What a section's summary begins with where a model reads it."""


@final
class Section(Struct, frozen=True):
    """Messages that were folded into a summary, with the originals."""

    id: str
    summary: str
    messages: tuple[ChatMessage, ...]


@final
class ConversationSnapshot(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """All of one conversation. `summary` is that of all its sections together."""

    id: str
    summary: str | None = None
    sections: tuple[Section, ...]
    messages: tuple[ChatMessage, ...]


def parse_conversation(value: object) -> ConversationSnapshot | None:
    """The snapshot that decoded JSON spells, or `None` if any part of it is none.

    Undeclared members are dropped. A role may be any text.
    """
    if not _is_object(value) or not isinstance(id := value.get("id"), str):
        return None
    summary = value.get("summary")
    sections = _parse_each(value.get("sections"), _parse_section)
    messages = _parse_each(value.get("messages"), _parse_message)
    if sections is None or messages is None or not (summary is None or isinstance(summary, str)):
        return None
    return ConversationSnapshot(id=id, summary=summary, sections=sections, messages=messages)


def _parse_section(value: object) -> Section | None:
    if not _is_object(value):
        return None
    messages = _parse_each(value.get("messages"), _parse_message)
    match value:
        case {"id": str(id), "summary": str(summary)} if messages is not None:
            return Section(id, summary, messages)
        case _:
            return None


def _parse_message(value: object) -> ChatMessage | None:
    if not _is_object(value):
        return None
    calls = _parse_each(value.get("calls", []), _parse_call)
    images = _parse_each(value.get("images", []), _parse_image)
    match value:
        case {"id": str(id), "role": str(role), "content": str(content)} if calls is not None and images is not None:
            return ChatMessage(id, role, content, calls, images)
        case _:
            return None


def _parse_call(value: object) -> ToolCall | None:
    return ToolCall(value["id"], value["name"], value["arguments"]) if is_tool_call(value) else None


def _parse_image(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _parse_each(values: object, parse: Callable[[object], T | None]) -> tuple[T, ...] | None:
    """All of them, or `None` if one is malformed or there is no list."""
    if not isinstance(values, list):
        return None
    parsed = [parse(value) for value in cast("list[object]", values)]
    known = [each for each in parsed if each is not None]
    return tuple(known) if len(known) == len(parsed) else None


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)
