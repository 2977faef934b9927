"""The provider that answers as it is told to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
import trio.testing

from greenroom.actors.providers import ScriptedProvider, ScriptedTurn
from greenroom.actors.providers.recollection import Recollection
from greenroom.protocol.agents import ChatMessage, Delta, ProviderOptions, ProviderResult
from greenroom.protocol.errors import ProviderError
from greenroom.protocol.tools import ToolDefinition
from greenroom.runtime.cancel import Cancel
from tests.providers.conftest import GO

TOOLS = [ToolDefinition("e")]


async def deltas(provider: ScriptedProvider) -> list[tuple[str, str]]:
    async with provider.stream(GO, Cancel()) as stream:
        return [(delta.type, delta.text) async for delta in stream]


async def test_turns_come_one_after_another_and_the_last_again() -> None:
    provider = ScriptedProvider([ProviderResult("a"), ProviderResult("b")], name="script", id="s")
    answers = [(await provider.generate(GO, Cancel())).content for _ in range(3)]
    assert answers == ["a", "b", "b"]
    assert (provider.id, provider.name, provider.started) == ("s", "script", 3)


@pytest.mark.parametrize("turns", [[], [ProviderResult("a")]])
async def test_a_script_can_end(turns: list[ProviderResult]) -> None:
    provider = ScriptedProvider(turns, exhaust="raise")
    for _ in turns:
        await provider.generate(GO, Cancel())
    with pytest.raises(ProviderError) as refused:
        await provider.generate(GO, Cancel())
    assert refused.value.kind == "protocol"
    assert provider.in_flight == 0


async def test_a_turn_can_be_decided_when_it_comes() -> None:
    def echo(messages: Sequence[ChatMessage], tools: Sequence[ToolDefinition] | None) -> ProviderResult:
        return ProviderResult(f"{messages[-1].content} {len(tools or ())}")

    provider = ScriptedProvider([echo])
    assert (await provider.generate(GO, Cancel(), TOOLS)).content == "go 1"
    assert (await provider.generate(GO, Cancel())).content == "go 0"


async def test_pieces_are_cut_as_is_said_and_empty_ones_left_out() -> None:
    result = ProviderResult("hello", "hm")
    provider = ScriptedProvider(
        [result, ScriptedTurn(result, deltas=("", "hi"), thoughts=("h", "", "m")), ScriptedTurn(result, deltas=())],
        deltas_of=lambda text: (text[:2], "", text[2:]),
    )
    assert await deltas(provider) == [("thinking", "hm"), ("content", "he"), ("content", "llo")]
    assert await deltas(provider) == [("thinking", "h"), ("thinking", "m"), ("content", "hi")]
    assert await deltas(provider) == [("thinking", "hm")]


async def test_it_writes_down_what_it_was_given() -> None:
    provider = ScriptedProvider([ProviderResult("a")])
    options = ProviderOptions(think=True)
    await provider.generate(GO, Cancel(), TOOLS, options)
    await provider.generate(GO, Cancel())
    first, second = provider.calls
    assert (first.messages, first.tools, first.options) == (tuple(GO), tuple(TOOLS), options)
    assert (second.tools, second.options) == (None, None)
    quiet = ScriptedProvider([ProviderResult("a")], record=False)
    await quiet.generate(GO, Cancel())
    assert (quiet.calls, quiet.started) == ([], 1)


async def test_it_takes_its_time(autojump_clock: trio.testing.MockClock) -> None:
    slow = ScriptedTurn(ProviderResult("ab"), deltas=("a", "b"), delay=10.0, pause=1.0)
    provider = ScriptedProvider([slow, ProviderResult("c")], delay=3.0)
    await provider.generate(GO, Cancel())
    assert autojump_clock.current_time() == pytest.approx(12)
    await provider.generate(GO, Cancel())
    assert autojump_clock.current_time() == pytest.approx(15)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(provider.generate, GO, Cancel())
    assert provider.max_in_flight == 3


async def test_it_fails_as_it_is_told_to() -> None:
    failure = RuntimeError("turn")
    provider = ScriptedProvider([ScriptedTurn(ProviderResult("ab"), failure=failure), ProviderResult("c")])
    async with provider.stream(GO, Cancel()) as stream:
        assert await anext(aiter(stream)) == Delta("content", "ab")
        with pytest.raises(RuntimeError, match="turn"):
            await anext(aiter(stream))
        assert stream.partial == ProviderResult("ab")
    provider.failure = RuntimeError("all")
    with pytest.raises(RuntimeError, match="all"):
        await provider.generate(GO, Cancel())
    provider.failure = None
    assert (await provider.generate(GO, Cancel())).content == "c"


async def test_a_token_that_is_set_stops_it_with_what_there_is() -> None:
    provider = ScriptedProvider([ScriptedTurn(ProviderResult("ab", "hm"), deltas=("a", "b"))])
    cancel = Cancel()
    async with provider.stream(GO, cancel) as stream:
        await anext(aiter(stream))
        await anext(aiter(stream))
        cancel.set()
        with pytest.raises(ProviderError) as stopped:
            await anext(aiter(stream))
    assert stopped.value.kind == "aborted"
    assert stopped.value.partial == ProviderResult("a", "hm")


def test_only_so_much_is_remembered() -> None:
    memory: Recollection[str] = Recollection()
    memory.keep(["a"], "first")
    for number in range(5000):
        memory.keep([str(number)], "later")
    assert memory.of(["a"]) is None
    assert memory.of(["a", "4999"]) == "later"
