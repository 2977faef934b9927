"""The models that `greenroom chat` talks to, which come with it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import trio

from greenroom.actors.cli.files import read_json
from greenroom.actors.cli.providers import entered
from greenroom.actors.config.seams import open_seam
from greenroom.actors.providers import ScriptedProvider
from greenroom.actors.providers.settings import ModelSettings, OpenModel
from greenroom.protocol.agents import ChatMessage, ProviderResult
from greenroom.protocol.errors import ConfigError, GreenroomError
from greenroom.protocol.tools import ToolCall, ToolDefinition
from greenroom.runtime.provider import Provider

__all__ = ["open_anthropic", "open_model", "open_openai", "open_scripted", "read_script"]


@asynccontextmanager
async def open_model(provider: str, settings: ModelSettings) -> AsyncGenerator[Provider]:
    """The model that this provider of the seam `llm` gives, for the length of the block.

    Raises ConfigError KEY if the settings refer to a credential that there is not, `SeamError` NO_PROVIDER, and
    BROKEN_PROVIDER for a provider that cannot be loaded or raises while it opens.
    """
    seam = await trio.to_thread.run_sync(open_seam, "llm")
    opening: OpenModel = await trio.to_thread.run_sync(seam.choose, provider)
    secret = None
    if settings.key is not None:
        secret = await trio.to_thread.run_sync(settings.credentials.get, settings.key)
        if secret is None:
            # What stands there may be the secret itself, so that it is not repeated.
            raise ConfigError(
                "KEY", "llm.key names no credential: neither the environment nor credentials.file has it."
            )
    async with AsyncExitStack() as stack:
        try:
            model: Provider = await entered(stack, seam, provider, lambda: opening(settings), "stream")
        except GreenroomError as error:
            if secret is None or secret not in error.message:
                raise
            raise type(error)(error.code, error.message.replace(secret, "***"), error.context) from None
        yield model


@asynccontextmanager
async def open_scripted(settings: ModelSettings) -> AsyncGenerator[Provider]:
    """A model that plays a script, or without one a little conversation.

    Raises ConfigError FILE, JSON and SCRIPT for a script that cannot be played.
    """
    yield ScriptedProvider(
        [converse] if settings.script is None else await read_script(settings.script), deltas_of=_by_word
    )


@asynccontextmanager
async def open_openai(settings: ModelSettings) -> AsyncGenerator[Provider]:
    """A model of OpenAI's, or of a server that speaks like theirs. Raises as `_over_http` and `HttpProvider` do."""
    given = _over_http("openai", settings)
    from greenroom.actors.providers.openai import OpenAIProvider

    async with OpenAIProvider(settings.model or "", **given) as provider:
        yield provider


@asynccontextmanager
async def open_anthropic(settings: ModelSettings) -> AsyncGenerator[Provider]:
    """A model of Anthropic's. Raises as `_over_http` and `HttpProvider` do."""
    given = _over_http("anthropic", settings)
    from greenroom.actors.providers.anthropic import AnthropicProvider

    async with AnthropicProvider(settings.model or "", **given) as provider:
        yield provider


def _over_http(name: str, settings: ModelSettings) -> dict[str, Any]:
    """The options of a provider over HTTP. Raises ConfigError MODEL where none is named, OPTION for what none of them
    knows, and EXTRA without the package that reaches it."""
    if settings.model is None:
        raise ConfigError(
            "MODEL", f"Say which model of {name} is to answer: --model NAME, or llm.model in the configuration."
        )
    if settings.options:
        raise ConfigError(
            "OPTION", f"{name} has no options of its own, but llm.options has {', '.join(settings.options)}."
        )
    if find_spec("httpx") is None:
        raise ConfigError("EXTRA", f"Models of {name} are reached over httpx: run `pip install 'greenroom[agents]'`.")
    given = {"base_url": settings.base_url, "key_env": settings.key}
    return {"credentials": settings.credentials} | {key: value for key, value in given.items() if value is not None}


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
