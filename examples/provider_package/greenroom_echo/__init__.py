"""A model that says again what it was told: the smallest provider of greenroom's seam `llm`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import msgspec

from greenroom import ModelSettings, ScriptedProvider
from greenroom.protocol.agents import ChatMessage, ProviderResult
from greenroom.protocol.tools import ToolDefinition
from greenroom.runtime.provider import Provider


class EchoOptions(msgspec.Struct, forbid_unknown_fields=True):
    """What `[llm.options]` may hold while this provider is chosen."""

    prefix: str = ""


@asynccontextmanager
async def open_echo(settings: ModelSettings) -> AsyncGenerator[Provider]:
    """The model for the length of the block; what it holds open would be closed behind the yield."""
    options = msgspec.convert(settings.options, EchoOptions)

    def echo(messages: Sequence[ChatMessage], _tools: Sequence[ToolDefinition] | None) -> ProviderResult:
        return ProviderResult(options.prefix + messages[-1].content)

    yield ScriptedProvider([echo])
