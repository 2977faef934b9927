"""A conversation as backends take it: every call with its answer, and no answer without its call.

Messages answer calls by position, and folding, stops and other programs leave gaps; a backend refuses the whole request
for one of them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, final

from msgspec import Struct

from greenroom.protocol.agents import ChatMessage
from greenroom.protocol.errors import ProviderError
from greenroom.protocol.tools import ToolCall, ToolDefinition
from greenroom.protocol.workspace.files import IMAGES, infer_mime

__all__ = ["AnsweredCall", "AssistantTurn", "SystemTurn", "Turn", "UserTurn", "check_tools", "data_of", "mended"]

_NO_RESULT: Final = "no result"
_NAME: Final = re.compile("[A-Za-z0-9_-]{1,64}")


@final
class SystemTurn(Struct, frozen=True):
    text: str


@final
class UserTurn(Struct, frozen=True):
    text: str
    images: tuple[str, ...] = ()


@final
class AnsweredCall(Struct, frozen=True):
    """A call, its id unlike those of its siblings, and what became of it."""

    id: str
    call: ToolCall
    answer: str


@final
class AssistantTurn(Struct, frozen=True):
    text: str
    calls: tuple[AnsweredCall, ...] = ()


Turn: TypeAlias = SystemTurn | UserTurn | AssistantTurn


def mended(messages: Sequence[ChatMessage]) -> list[Turn]:
    """The messages as turns. A call without an answer gets one, an answer without a call becomes the user's."""
    turns: list[Turn] = []
    taken: set[int] = set()
    for index, message in enumerate(messages):
        match message.role:
            case "system":
                turns.append(SystemTurn(message.content))
            case "assistant":
                turns.append(AssistantTurn(message.content, _answered(messages, index, taken)))
            case "tool":
                if index not in taken:
                    turns.append(UserTurn(f"Result of an earlier tool call: {message.content}"))
            case _:
                turns.append(UserTurn(message.content, message.images))
    return turns


def _answered(messages: Sequence[ChatMessage], index: int, taken: set[int]) -> tuple[AnsweredCall, ...]:
    """The calls of the assistant's message at the index, each with the tool message that answers it."""
    calls = messages[index].calls
    answers: list[str] = []
    for later in range(index + 1, len(messages)):
        if len(answers) == len(calls) or messages[later].role == "assistant":
            break
        if messages[later].role == "tool":
            taken.add(later)
            answers.append(messages[later].content)
    answers += [_NO_RESULT] * (len(calls) - len(answers))
    ids = _unlike(call.id for call in calls)
    return tuple(AnsweredCall(*each) for each in zip(ids, calls, answers, strict=True))


def _unlike(ids: Iterable[str]) -> list[str]:
    """The ids, those made different that are empty or repeated."""
    seen: list[str] = []
    for number, id in enumerate(ids):
        seen.append(id if id and id not in seen else f"{id or 'call'}-{number}")
    return seen


def check_tools(tools: Sequence[ToolDefinition] | None) -> None:
    """Raise ProviderError REQUEST for a tool whose name no backend takes."""
    for tool in tools or ():
        if not _NAME.fullmatch(tool.name):
            raise ProviderError(
                "REQUEST",
                f"No model takes a tool of the name {tool.name!r}: use 1 to 64 letters, digits, _ and -.",
                {"tool": tool.name},
            )


def data_of(image: str) -> tuple[str, str]:
    """The media type of an image in base64, by its first bytes, and its base64 with the padding that it may lack.

    Raises ProviderError REQUEST for what no backend takes.
    """
    padded = image + "=" * (-len(image) % 4)
    try:
        mime = infer_mime(base64.b64decode(padded[:64], validate=True))
    except (binascii.Error, ValueError):
        mime = ""
    if mime not in IMAGES:
        raise ProviderError("REQUEST", f"An image is none of {', '.join(IMAGES)}: leave it out, or convert it first.")
    return mime, padded
