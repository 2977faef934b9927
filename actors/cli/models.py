"""The models that `greenroom chat` talks to, by name."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from greenroom.actors.cli.files import read_json
from greenroom.actors.providers import ScriptedProvider
from greenroom.protocol.agents import ChatMessage, ProviderResult
from greenroom.protocol.errors import ConfigError
from greenroom.protocol.tools import ToolCall, ToolDefinition
from greenroom.runtime.provider import Provider

__all__ = ["ProviderName", "open_model", "read_script"]

ProviderName: TypeAlias = Literal["scripted", "openai", "anthropic"]


@asynccontextmanager
async def open_model(
    provider: ProviderName, model: str | None, *, base_url: str | None = None, script: Path | None = None
) -> AsyncGenerator[Provider]:
    """The model for the length of the block. `scripted` plays the script, or without one a little conversation.

    Raises ConfigError MODEL where a real one is not named, EXTRA where the package that reaches it is missing; FILE,
    JSON and SCRIPT for a script that cannot be played; and what opening a provider raises.
    """
    if provider == "scripted":
        yield ScriptedProvider([converse] if script is None else await read_script(script), deltas_of=_by_word)
        return
    if model is None:
        raise ConfigError("MODEL", f"Say which model of {provider} is to answer: --model NAME.")
    async with _made(provider, model, {} if base_url is None else {"base_url": base_url}) as opened:
        yield opened


def _made(provider: str, model: str, options: dict[str, Any]) -> AbstractAsyncContextManager[Provider]:
    try:
        if provider == "openai":
            from greenroom.actors.providers.openai import OpenAIProvider

            return OpenAIProvider(model, **options)
        from greenroom.actors.providers.anthropic import AnthropicProvider

        return AnthropicProvider(model, **options)
    except ModuleNotFoundError as missing:
        if missing.name not in ("httpx", "httpx_sse"):
            raise
        raise ConfigError(
            "EXTRA", f"Models of {provider} are reached over {missing.name}: run `pip install 'greenroom[agents]'`."
        ) from None


async def read_script(path: Path) -> list[ProviderResult]:
    """The turns of a scripted model: a JSON list of `{"content": ..., "tools": [{"id", "name", "arguments"}]}`."""
    try:
        turns = msgspec.convert(await read_json(path), list[ProviderResult])
    except msgspec.ValidationError as error:
        raise ConfigError("SCRIPT", f"{path} is no list of a model's turns: {error}.", {"file": str(path)}) from None
    if not turns:
        raise ConfigError("SCRIPT", f"{path} has no turn: a model says something.", {"file": str(path)})
    return turns


def converse(messages: Sequence[ChatMessage], _tools: Sequence[ToolDefinition] | None) -> ProviderResult:
    """What a model says that only shows how a conversation goes: it asks, and repeats the answer."""
    last = messages[-1]
    if last.role == "tool":
        return ProviderResult(f"You answered {last.content}. (This is a script; --provider names a model.)")
    form = {
        "label": "A question",
        "fields": [
            {"control": "confirm", "name": "sure", "label": f"Did you mean {json.dumps(last.content[:60])}?"},
            {"control": "text", "name": "more", "label": "What else?"},
        ],
    }
    return ProviderResult("Let me ask.", tools=(ToolCall("1", "ask", {"to": "you", "schema": form}),))


def _by_word(text: str) -> list[str]:
    words = text.split(" ")
    return [f"{word} " for word in words[:-1]] + words[-1:]
