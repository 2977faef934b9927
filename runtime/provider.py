"""What an agent needs of a model, and of who summarizes, schedules and decides for it: Protocols to be filled in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from greenroom.protocol.agents import (
    ChatMessage,
    Delta,
    PromptFormat,
    ProviderOptions,
    ProviderResult,
    Verdict,
)
from greenroom.protocol.tools import ToolCall, ToolDefinition
from greenroom.runtime.cancel import CancelToken

__all__ = ["Decides", "Provider", "ProviderStream", "Scheduler", "Summarize", "collected"]


class ProviderStream(Protocol):
    """One answer as it comes."""

    def __aiter__(self) -> AsyncIterator[Delta]:
        """Its pieces, none of them empty. Iterated over once."""
        ...

    @property
    def result(self) -> ProviderResult:
        """The whole answer, once the pieces are at their end. Its `content` counts, whatever the pieces were."""
        ...

    @property
    def partial(self) -> ProviderResult:
        """What there is of it so far, at any time."""
        ...


class Provider(Protocol):
    """A model behind one interface. It serves any number of calls at a time.

    `messages` begin with at most one system message. `tools` is `None` where nothing is offered, never empty. `options`
    is `None` where nothing is set. Calls that come back have ids that are not empty. Raises `ProviderError`; one that
    watches `cancel` by itself raises it with the code ABORTED and what there is as `partial`, and one whose `cancel` is
    set from the start sends nothing. It never swallows `trio.Cancelled`.
    """

    @property
    def id(self) -> str:
        """What traces call it."""
        ...

    @property
    def name(self) -> str:
        """What is behind it."""
        ...

    @property
    def format(self) -> PromptFormat | None:
        """How it wants instructions written, if it has a wish."""
        ...

    async def generate(
        self,
        messages: Sequence[ChatMessage],
        cancel: CancelToken,
        tools: Sequence[ToolDefinition] | None = None,
        options: ProviderOptions | None = None,
    ) -> ProviderResult:
        """The whole answer."""
        ...

    def stream(
        self,
        messages: Sequence[ChatMessage],
        cancel: CancelToken,
        tools: Sequence[ToolDefinition] | None = None,
        options: ProviderOptions | None = None,
    ) -> AbstractAsyncContextManager[ProviderStream]:
        """The answer as it comes. The block is entered and left in one task; leaving it early ends the request."""
        ...


async def collected(answer: AbstractAsyncContextManager[ProviderStream]) -> ProviderResult:
    """The whole of an answer that comes in pieces: what `Provider.generate` gives of what `stream` does."""
    async with answer as stream:
        async for _ in stream:
            pass
        return stream.result


class Summarize(Protocol):
    """Puts messages into fewer words. Any async function of them will do."""

    async def __call__(self, messages: Sequence[ChatMessage], /) -> str: ...


class Scheduler(Protocol):
    """Says when an agent's next turn may begin: between two turns of a run it waits for `yield_`."""

    async def yield_(self) -> None: ...


class Decides(Protocol):
    """Says whether a call may run; see `greenroom.protocol.agents.Authority`."""

    def evaluate(self, call: ToolCall, /) -> Verdict: ...
