"""A conversation as backends take it: every call with its answer, and no answer without its call.

Messages answer calls by position, and folding, stops and other programs leave gaps; a backend refuses the whole request
for one of them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Final, TypeAlias, final

from msgspec import Struct

from greenroom.protocol.agents import ChatMessage
from greenroom.protocol.errors import ProviderError
from greenroom.protocol.tools import ToolCall, ToolDefinition
from greenroom.protocol.workspace.files import IMAGES, infer_mime

__all__ = ["AnsweredCall", "AssistantTurn", "SystemTurn", "Turn", "UserTurn", "check_tools", "data_of", "mended"]

_NO_RESULT: Final = "no result"
_LONGEST: Final = 64
_NAME: Final = re.compile(f"[A-Za-z0-9_-]{{1,{_LONGEST}}}")
_OTHER: Final = re.compile("[^A-Za-z0-9_-]")


@final
class SystemTurn(Struct, frozen=True):
    text: str


@final
class UserTurn(Struct, frozen=True):
    text: str
    images: tuple[str, ...] = ()


@final
class AnsweredCall(Struct, frozen=True):
    """A call and what became of it, under an id that no other call has and a name that every backend takes."""

    id: str
    name: str
    call: ToolCall
    answer: str


@final
class AssistantTurn(Struct, frozen=True):
    text: str
    calls: tuple[AnsweredCall, ...] = ()


Turn: TypeAlias = SystemTurn | UserTurn | AssistantTurn


def mended(messages: Sequence[ChatMessage], *, plain_ids: bool = False) -> list[Turn]:
    """The messages as turns. A call without an answer gets one, an answer without a call becomes the user's.

    With `plain_ids`, ids have only letters, digits, _ and -, as Anthropic demands; those of other servers have more.
    """
    turns: list[Turn] = []
    taken: set[int] = set()
    ids = _Ids(plain=plain_ids)
    for index, message in enumerate(messages):
        match message.role:
            case "system":
                turns.append(SystemTurn(message.content))
            case "assistant":
                turns.append(AssistantTurn(message.content, _answered(messages, index, taken, ids)))
            case "tool":
                if index not in taken:
                    turns.append(UserTurn(f"Result of an earlier tool call: {message.content}"))
            case _:
                turns.append(UserTurn(message.content, message.images))
    return turns


def _answered(messages: Sequence[ChatMessage], index: int, taken: set[int], ids: _Ids) -> tuple[AnsweredCall, ...]:
    """The calls of the assistant's message at the index, each with the tool message that answers it.

    `taken` are the places of tool messages that answer a call.
    """
    calls = messages[index].calls
    answers: list[str] = []
    for later in range(index + 1, len(messages)):
        if len(answers) == len(calls) or messages[later].role == "assistant":
            break
        if messages[later].role == "tool":
            taken.add(later)
            answers.append(messages[later].content)
    answers += [_NO_RESULT] * (len(calls) - len(answers))
    return tuple(
        AnsweredCall(ids.of(call), _said(call.name), call, answer) for call, answer in zip(calls, answers, strict=True)
    )


@final
class _Ids:
    """The ids of the calls of one request, no two alike.

    Some servers count calls anew in each answer, and others refuse a request that has the same id twice.
    """

    def __init__(self, *, plain: bool) -> None:
        self._plain = plain
        self._taken: set[str] = set()

    def of(self, call: ToolCall) -> str:
        """The id of the next call: its own, made different if it is empty or one that there was."""
        own = _OTHER.sub("_", call.id) if self._plain else call.id
        free, number = own, len(self._taken)
        while not free or free in self._taken:
            free = f"{own or 'call'}-{number}"
            number += 1
        self._taken.add(free)
        return free


def _said(name: str) -> str:
    """The name of a call as backends take it: models make names up, and a request with an odd one is refused."""
    return _OTHER.sub("_", name)[:_LONGEST] or "_"


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
