"""What goes to a model, and what comes back from it."""

from __future__ import annotations

from typing import Literal, final

from msgspec import UNSET, Struct, UnsetType

from greenroom.protocol.agents.usage import Usage
from greenroom.protocol.schemas.subschemas import Schema
from greenroom.protocol.tools import ToolCall

__all__ = ["Delta", "ProviderOptions", "ProviderResult"]


@final
class Delta(Struct, frozen=True):
    """A piece of what a model writes, as it comes. `text` is not empty."""

    type: Literal["content", "thinking"]
    text: str


@final
class ProviderResult(Struct, frozen=True, omit_defaults=True):
    """What a model answered, or so far: its clean text, its reasoning apart, the calls it asks for.

    `usage` is there only if it was reported.
    """

    content: str = ""
    thinking: str | None = None
    tools: tuple[ToolCall, ...] = ()
    usage: Usage | None = None


@final
class ProviderOptions(Struct, frozen=True, omit_defaults=True):
    """What one run asks of a model beside the messages. What is not set is missing.

    `think`: whether it is to reason first. `schema`: the JSON Schema that its answer is to follow.
    """

    think: bool | UnsetType = UNSET
    schema: Schema | UnsetType = UNSET
