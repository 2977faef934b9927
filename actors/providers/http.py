"""What providers over HTTP share: one client, a key that is only referred to, and the calls."""

from __future__ import annotations

import functools
import os
import random
import ssl
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, ClassVar, Final, Self, TypedDict, Unpack

import httpx
import trio

from greenroom.actors.providers.aborted import refuse_if_set
from greenroom.actors.providers.answer import Answer
from greenroom.actors.providers.arguments import to_json
from greenroom.actors.providers.exchange import Attempts, Exchange, Limits
from greenroom.actors.providers.history import check_tools
from greenroom.protocol.agents import ChatMessage, PromptFormat, ProviderOptions, ProviderResult
from greenroom.protocol.errors import ConfigError, ProviderError
from greenroom.protocol.tools import ToolDefinition
from greenroom.runtime.cancel import CancelToken
from greenroom.runtime.provider import collected

__all__ = ["HttpOptions", "HttpProvider"]

KEPT: Final = 100
"""How many connections wait for their next call."""

_ALWAYS: Final = {"content-type": "application/json", "accept-encoding": "identity"}
"""A stream that is compressed comes in larger pieces, and later."""


class HttpOptions(TypedDict, total=False):
    """What every provider over HTTP can be made with, beside its model, its server and its key."""

    id: str
    """What traces call it; by default a UUID."""
    format: PromptFormat
    limits: Limits
    credentials: Mapping[str, str]
    """Where `key_env` is looked up; by default the environment."""
    headers: Mapping[str, str]
    """Go with every request."""
    extra: Mapping[str, Any]
    """Goes into the body of every request, in place of what is there."""
    jitter: Callable[[], float]
    """A random number from 0 to 1."""
    wall_clock: Callable[[], float]
    """Seconds since 1970."""


class HttpProvider(ABC):
    """A model behind a server. To be used within `async with`, which holds its connections; they serve many calls.

    The key is read when it is opened, from the file `key_file` or else from the environment variable `key_env`; for a
    server that needs none both are `None`. It is in no error, event or snapshot. `credentials` are asked for `key_env`
    in a worker thread.
    """

    path: ClassVar[str]
    """Of the requests, behind the base URL."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        key_env: str | None,
        key_file: str | os.PathLike[str] | None,
        **options: Unpack[HttpOptions],
    ) -> None:
        if unknown := options.keys() - HttpOptions.__annotations__.keys():
            raise TypeError(f"{type(self).__name__} has no option {', '.join(sorted(unknown))}")
        self.model = model
        self.id = options.get("id") or str(uuid.uuid4())
        self.format = options.get("format")
        self._url = _url(base_url, self.path)
        self._key_env = key_env
        self._key_file = key_file
        self._key = ""
        self._limits = options.get("limits") or Limits()
        self._credentials = options.get("credentials", os.environ)
        self._given = dict(options.get("headers") or {})
        self._extra = dict(options.get("extra") or {})
        self._jitter = options.get("jitter") or random.random
        self._wall_clock = options.get("wall_clock") or time.time
        self._client: httpx.AsyncClient | None = None

    @property
    def name(self) -> str:
        """The model."""
        return self.model

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model}>"

    async def __aenter__(self) -> Self:
        """Raises ConfigError KEY if the key is not where it should be."""
        self._key = await self._read_key()
        self._client = httpx.AsyncClient(
            headers={**self._headers(self._key), **self._given, **_ALWAYS},
            timeout=self._limits.timeout,
            limits=httpx.Limits(max_connections=self._limits.connections, max_keepalive_connections=KEPT),
            verify=_tls(),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _read_key(self) -> str:
        if self._key_file is not None:
            place = f"the file {os.fspath(self._key_file)}"
            try:
                key = (await trio.Path(self._key_file).read_text(encoding="utf-8")).strip()
            except (OSError, ValueError):
                key = ""
        elif self._key_env is not None:
            place = f"the environment variable {self._key_env}"
            key = (await trio.to_thread.run_sync(self._credentials.get, self._key_env, "")).strip()
        else:
            return ""
        if not (key.isascii() and key.isprintable()):
            raise ConfigError("KEY", f"What {place} holds is no key: it has characters that no key has.")
        if not key:
            raise ConfigError(
                "KEY", f"There is no key for {self.model} in {place}: put it there.", {"model": self.model}
            )
        return key

    # ---------------------------------------------------------------- calls

    async def generate(
        self,
        messages: Sequence[ChatMessage],
        cancel: CancelToken,
        tools: Sequence[ToolDefinition] | None = None,
        options: ProviderOptions | None = None,
    ) -> ProviderResult:
        """The whole answer; see `Provider`."""
        return await collected(self.stream(messages, cancel, tools, options))

    @asynccontextmanager
    async def stream(
        self,
        messages: Sequence[ChatMessage],
        cancel: CancelToken,
        tools: Sequence[ToolDefinition] | None = None,
        options: ProviderOptions | None = None,
    ) -> AsyncGenerator[Exchange]:
        """The answer as it comes; see `Provider`. The request is sent when its first piece is wanted."""
        refuse_if_set(cancel, ProviderResult())
        if self._client is None:
            raise ConfigError("CLOSED", f"The provider of {self.model} is not open: use it within `async with`.")
        check_tools(tools)
        body = self._request(messages, tools, options)
        exchange = Exchange(
            Attempts(
                send=lambda: self._send(body, cancel),
                answer=self._answer,
                host=self._url.host,
                limits=self._limits,
                jitter=self._jitter,
                wall_clock=self._wall_clock,
            )
        )
        try:
            yield exchange
        except ProviderError as error:
            raise self._without_key(error) from None
        finally:
            await exchange.aclose()

    def _request(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolDefinition] | None,
        options: ProviderOptions | None,
    ) -> bytes:
        try:
            text = to_json({**self._body(messages, tools, options), **self._extra})
        except (TypeError, ValueError, RecursionError) as error:
            raise ProviderError("REQUEST", f"What is to be sent is no JSON: {error}.") from None
        # Half a character, which UTF-8 does not have, is sent as a question mark: backends refuse its escape.
        return text.encode(errors="replace")

    async def _send(self, body: bytes, cancel: CancelToken) -> httpx.Response:
        refuse_if_set(cancel, ProviderResult())
        if self._client is None:
            raise ConfigError("CLOSED", f"The provider of {self.model} was closed.")
        request = self._client.build_request("POST", self._url, content=body)
        request.stream = _Body(body)
        return await self._client.send(request, stream=True)

    def _without_key(self, error: ProviderError) -> ProviderError:
        """The error, without the key if a server repeated it."""
        if not self._key or self._key not in error.message:
            return error
        clean = ProviderError(error.code, error.message.replace(self._key, "***"), error.context)
        clean.partial = error.partial
        return clean

    # ---------------------------------------------------------------- the language of a server

    @abstractmethod
    def _headers(self, key: str) -> dict[str, str]:
        """Those that carry the key (an empty one: there is none), and what else the API asks for."""

    @abstractmethod
    def _body(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolDefinition] | None,
        options: ProviderOptions | None,
    ) -> dict[str, Any]:
        """A request that asks for a stream."""

    @abstractmethod
    def _answer(self) -> Answer:
        """What reads an answer to it."""


class _Body(httpx.AsyncByteStream):
    """The body of one request, in one piece. httpx's own is a generator, and complains of being left half way."""

    def __init__(self, body: bytes) -> None:
        self._left = body

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece, self._left = self._left, b""
        if not piece:
            raise StopAsyncIteration
        return piece


@functools.cache
def _tls() -> ssl.SSLContext:
    """One for all: to read the certificates of the authorities takes a tenth of a second."""
    return httpx.create_ssl_context()


def _url(base_url: str, path: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url.rstrip("/") + path)
    except (httpx.InvalidURL, ValueError):
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError("URL", f"{base_url!r} is no base URL of a server: it begins with https:// or http://.")
    return url
