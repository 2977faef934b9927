"""A provider that answers as it is told to: for tests, and for demos without a network."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias, final

import trio
from msgspec import Struct

from greenroom.actors.providers.aborted import refuse_if_set
from greenroom.protocol.agents import ChatMessage, Delta, PromptFormat, ProviderOptions, ProviderResult
from greenroom.protocol.errors import ProviderError
from greenroom.protocol.tools import ToolDefinition
from greenroom.runtime.cancel import CancelToken
from greenroom.runtime.provider import collected

__all__ = ["ScriptedCall", "ScriptedProvider", "ScriptedTurn"]


@final
class ScriptedTurn(Struct, frozen=True):
    """One answer: its pieces, and then its result, or a failure in place of that."""

    result: ProviderResult = ProviderResult()
    deltas: tuple[str, ...] | None = None
    """How the content comes. `None`: as the provider cuts it."""
    thoughts: tuple[str, ...] | None = None
    """How the reasoning comes, all of it before the content. `None`: in one piece."""
    delay: float | None = None
    """Seconds before the first piece. `None`: the provider's."""
    pause: float = 0.0
    """Seconds before each further piece, and before the end."""
    failure: Exception | None = None
    """Raised after the last piece."""


Script: TypeAlias = (
    ProviderResult
    | ScriptedTurn
    | Callable[[Sequence[ChatMessage], Sequence[ToolDefinition] | None], ProviderResult | ScriptedTurn]
)


@final
class ScriptedCall(Struct, frozen=True):
    """What one call was given."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolDefinition, ...] | None
    options: ProviderOptions | None


@final
class ScriptedProvider:
    """Answers one turn after another, whoever calls; a function of (messages, tools) decides when its turn comes.

    After the last turn that one is repeated, or with `exhaust="raise"` ProviderError PROTOCOL raised. `delay` is how
    many seconds each answer takes to begin; `deltas_of` cuts content into pieces; every call raises `failure` while
    that is set.
    """

    def __init__(
        self,
        turns: Iterable[Script],
        *,
        id: str | None = None,
        name: str = "scripted",
        format: PromptFormat | None = None,
        delay: float = 0.0,
        deltas_of: Callable[[str], Iterable[str]] | None = None,
        exhaust: Literal["repeat", "raise"] = "repeat",
        record: bool = True,
        failure: Exception | None = None,
    ) -> None:
        self.id = str(uuid.uuid4()) if id is None else id
        self.name = name
        self.format = format
        self.failure = failure
        self.started = 0
        """How many calls there were."""
        self.max_in_flight = 0
        """How many there were at a time, at most."""
        self.in_flight = 0
        self.calls: list[ScriptedCall] = []
        """What they were given, unless `record` is off."""
        self._turns = list(turns)
        self._next = 0
        self._delay = delay
        self._deltas_of = deltas_of or _whole
        self._exhaust = exhaust
        self._record = record

    async def generate(
        self,
        messages: Sequence[ChatMessage],
        cancel: CancelToken,
        tools: Sequence[ToolDefinition] | None = None,
        options: ProviderOptions | None = None,
    ) -> ProviderResult:
        return await collected(self.stream(messages, cancel, tools, options))

    @asynccontextmanager
    async def stream(
        self,
        messages: Sequence[ChatMessage],
        cancel: CancelToken,
        tools: Sequence[ToolDefinition] | None = None,
        options: ProviderOptions | None = None,
    ) -> AsyncGenerator[_Stream]:
        if self._record:
            self.calls.append(ScriptedCall(tuple(messages), None if tools is None else tuple(tools), options))
        self.started += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            refuse_if_set(cancel, ProviderResult())
            if self.failure is not None:
                raise self.failure
            turn = self._take(messages, tools)
            await trio.sleep(self._delay if turn.delay is None else turn.delay)
            yield _Stream(turn, cancel, self._deltas_of)
        finally:
            self.in_flight -= 1

    def _take(self, messages: Sequence[ChatMessage], tools: Sequence[ToolDefinition] | None) -> ScriptedTurn:
        if self._next < len(self._turns):
            script = self._turns[self._next]
            self._next += 1
        elif self._exhaust == "repeat" and self._turns:
            script = self._turns[-1]
        else:
            raise ProviderError("PROTOCOL", f"The script of {self.id} has no turn {self._next + 1}: write it longer.")
        said = script(messages, tools) if callable(script) else script
        return said if isinstance(said, ScriptedTurn) else ScriptedTurn(said)


@final
class _Stream:
    """One scripted answer as it comes."""

    def __init__(self, turn: ScriptedTurn, cancel: CancelToken, deltas_of: Callable[[str], Iterable[str]]) -> None:
        self._turn = turn
        self._cancel = cancel
        result = turn.result
        thoughts = _whole(result.thinking or "") if turn.thoughts is None else turn.thoughts
        deltas = deltas_of(result.content) if turn.deltas is None else turn.deltas
        self._deltas = iter(
            [Delta("thinking", text) for text in thoughts if text] + [Delta("content", text) for text in deltas if text]
        )
        self._begun = False
        self._said: dict[str, str] = {"content": "", "thinking": ""}

    @property
    def result(self) -> ProviderResult:
        return self._turn.result

    @property
    def partial(self) -> ProviderResult:
        return ProviderResult(self._said["content"], self._said["thinking"] or None)

    def __aiter__(self) -> _Stream:
        return self

    async def __anext__(self) -> Delta:
        if self._begun and self._turn.pause:
            await trio.sleep(self._turn.pause)
        else:
            await trio.lowlevel.checkpoint()
        self._begun = True
        refuse_if_set(self._cancel, self.partial)
        delta = next(self._deltas, None)
        if delta is not None:
            self._said[delta.type] += delta.text
            return delta
        if self._turn.failure is not None:
            raise self._turn.failure
        raise StopAsyncIteration


def _whole(text: str) -> tuple[str, ...]:
    return (text,)
