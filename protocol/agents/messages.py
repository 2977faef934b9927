"""What a conversation holds, and rough figures of how much of a model's attention it takes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, final

import msgspec
from msgspec import Struct

from greenroom.protocol.text import utf16_length
from greenroom.protocol.tools import ToolCall

__all__ = [
    "IMAGE_TOKEN_ESTIMATE",
    "MESSAGE_TOKEN_OVERHEAD",
    "UNITS_A_TOKEN",
    "ChatMessage",
    "MessageInput",
    "Role",
    "estimate_messages",
    "estimate_tokens",
]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

MESSAGE_TOKEN_OVERHEAD: Final = 4
"""What a message is taken to cost beside its content."""

IMAGE_TOKEN_ESTIMATE: Final = 512

UNITS_A_TOKEN: Final = 4
"""How many UTF-16 code units a token is taken to have."""

_UNREADABLE: Final = 4
"""What calls are taken to cost that have no JSON."""


@final
class MessageInput(Struct, frozen=True, omit_defaults=True):
    """A message before it is in a conversation.

    `calls` are what an assistant asks for; the tool messages that follow it answer them by position. `images` are raw
    base64 without a media type.
    """

    role: Role
    content: str
    calls: tuple[ToolCall, ...] = ()
    images: tuple[str, ...] = ()


@final
class ChatMessage(Struct, frozen=True, omit_defaults=True):
    """A message of a conversation. Its id is a UUID of its own; see `MessageInput` for the rest."""

    id: str
    role: str
    """One of `Role`; another one that a store gave back is kept as it is."""
    content: str
    calls: tuple[ToolCall, ...] = ()
    images: tuple[str, ...] = ()


def estimate_tokens(text: str) -> int:
    """A token for every `UNITS_A_TOKEN`, rounded up."""
    return math.ceil(utf16_length(text) / UNITS_A_TOKEN)


def estimate_messages(messages: Iterable[ChatMessage]) -> int:
    """What these messages are taken to cost as a prompt, in tokens."""
    return sum(map(_estimate, messages))


def _estimate(message: ChatMessage) -> int:
    calls = 0
    if message.calls:
        try:
            calls = estimate_tokens(msgspec.json.encode(message.calls).decode())
        except Exception:  # arguments that came from anywhere need have no JSON
            calls = _UNREADABLE
    images = IMAGE_TOKEN_ESTIMATE * len(message.images)
    return estimate_tokens(message.content) + MESSAGE_TOKEN_OVERHEAD + calls + images
