"""A model's server a test, and providers that ask it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from greenroom.actors.providers.anthropic import AnthropicProvider
from greenroom.actors.providers.http import HttpProvider
from greenroom.actors.providers.openai import OpenAIProvider
from greenroom.protocol.agents import ChatMessage, Delta, ProviderResult
from greenroom.protocol.errors import ProviderError
from greenroom.runtime.cancel import Cancel
from tests.providers.server import ModelServer, model_server

__all__ = ["GO", "KEY", "answer", "failure", "pieces"]

KEY = "sk-very-secret"
GO = [ChatMessage("1", "user", "go")]


async def answer(provider: HttpProvider, messages: Sequence[ChatMessage] = GO, **options: Any) -> ProviderResult:
    """The whole answer."""
    return await provider.generate(messages, Cancel(), **options)


async def pieces(provider: HttpProvider, **options: Any) -> tuple[list[Delta], ProviderResult]:
    """The answer as it comes, and the whole of it."""
    async with provider.stream(GO, Cancel(), **options) as stream:
        return [delta async for delta in stream], stream.result


async def failure(provider: HttpProvider, messages: Sequence[ChatMessage] = GO, **options: Any) -> ProviderError:
    """What a call fails with. The key is in none of it."""
    with pytest.raises(ProviderError) as caught:
        await answer(provider, messages, **options)
    assert KEY not in f"{caught.value} {caught.value.encode()}"
    return caught.value


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with model_server() as server:
        yield server


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)


@pytest.fixture
async def openai(server: ModelServer, keyed: None) -> AsyncIterator[OpenAIProvider]:
    async with OpenAIProvider("m", base_url=f"{server.url}/v1", key_env="MODEL_KEY", jitter=lambda: 0.0) as provider:
        yield provider


@pytest.fixture
async def anthropic(server: ModelServer, keyed: None) -> AsyncIterator[AnthropicProvider]:
    async with AnthropicProvider("m", base_url=server.url, key_env="MODEL_KEY", jitter=lambda: 0.0) as provider:
        yield provider
