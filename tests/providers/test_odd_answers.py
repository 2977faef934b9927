"""Answers that no honest server sends, and histories that no backend takes as they are."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from greenroom.actors.providers.anthropic import AnthropicProvider
from greenroom.actors.providers.anthropic_answer import AnthropicAnswer
from greenroom.actors.providers.openai import OpenAIProvider
from greenroom.actors.providers.openai_answer import OpenAIAnswer
from greenroom.protocol.agents import ChatMessage, ProviderResult, Usage
from greenroom.protocol.sse import SSEEvent
from greenroom.protocol.tools import ToolCall
from tests.providers.conftest import answer
from tests.providers.server import ModelServer, event

HUGE = "1" + "0" * 400
"""A number that JSON can spell, and no double can hold."""


def read(kind: type[AnthropicAnswer] | type[OpenAIAnswer], *chunks: dict[str, Any] | str) -> ProviderResult:
    reading = kind("models.example")
    for chunk in chunks:
        reading.take(SSEEvent(chunk if isinstance(chunk, str) else json.dumps(chunk)))
    reading.end()
    return reading.result()


@pytest.mark.parametrize("index", [[1], {"a": 1}, None, 1.5, "x"])
def test_a_block_whose_index_is_none_is_read_all_the_same(index: Any) -> None:
    result = read(
        AnthropicAnswer,
        {"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": "1", "name": "n"}},
        {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": index},
    )
    assert result.tools == (ToolCall("1", "n", {}),)


def test_a_signature_that_is_no_text_is_none() -> None:
    kept: list[list[dict[str, Any]]] = []
    reading = AnthropicAnswer("models.example", remember=lambda _, blocks: kept.append(blocks))
    for chunk in (
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "signature": [1]}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "abc"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "1", "name": "n"}},
    ):
        reading.take(SSEEvent(json.dumps(chunk)))
    reading.end()
    assert kept == [[{"type": "thinking", "thinking": "hm", "signature": "abc"}]]


def test_figures_that_no_double_can_hold_count_for_nothing() -> None:
    results = [
        read(AnthropicAnswer, f'{{"type": "message_start", "message": {{"usage": {{"input_tokens": {HUGE}}}}}}}'),
        read(OpenAIAnswer, f'{{"usage": {{"prompt_tokens": {HUGE}}}}}'),
        ProviderResult(usage=Usage(int(HUGE), math.nan, -int(HUGE))),
    ]
    assert [each.usage.sanitised() for each in results if each.usage is not None] == [Usage(0, 0, 0)] * 3


def test_calls_find_together_by_an_id_that_came_late() -> None:
    def fragment(**about: Any) -> dict[str, Any]:
        return {"choices": [{"delta": {"tool_calls": [about]}}]}

    result = read(
        OpenAIAnswer,
        fragment(index=0, function={"name": "a", "arguments": "{"}),
        fragment(index=0, id="1"),
        fragment(id="1", function={"arguments": "}"}),
    )
    assert result.tools == (ToolCall("1", "a", {}),)


def test_reasoning_that_was_never_opened_is_told_as_what_it_is_from_there_on() -> None:
    reading = OpenAIAnswer("models.example")
    deltas = [
        (delta.type, delta.text)
        for text in ("ab", "c</think>de<think>f")
        for delta in reading.take(SSEEvent(json.dumps({"choices": [{"delta": {"content": text}}]})))
    ]
    assert deltas == [("content", "ab"), ("thinking", "cf"), ("content", "de")]
    assert (reading.result().content, reading.result().thinking) == ("de", "abcf")


CALLS = (
    ToolCall("functions.read:0", "browser.tabs open\x1b", {}),
    ToolCall("a-2", "read", {}),
    ToolCall("a", "", {}),
    ToolCall("a", "x" * 100, {}),
)
ODD = [
    ChatMessage("1", "user", "go"),
    ChatMessage("2", "assistant", "", CALLS),
    *(ChatMessage(f"t{number}", "tool", str(number)) for number in range(4)),
    ChatMessage("3", "assistant", "", (ToolCall("a", "read", {}), ToolCall("functions_read_0", "read", {}))),
    *(ChatMessage(f"u{number}", "tool", str(number)) for number in range(4, 6)),
]
"""What other models have called: names that they made up, and ids that come again."""


async def test_calls_of_any_name_and_id_can_be_sent_back(
    server: ModelServer, openai: OpenAIProvider, anthropic: AnthropicProvider
) -> None:
    server.plays([event({"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]})])
    await answer(openai, ODD)
    said = [each for each in server.received[0].body["messages"] if each["role"] in ("assistant", "tool")]
    sent = [call for each in said for call in each.get("tool_calls", ())]
    answers = [each["tool_call_id"] for each in said if each["role"] == "tool"]
    _are_sound([(call["id"], call["function"]["name"]) for call in sent], answers)

    server.plays([event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})])
    await answer(anthropic, ODD)
    blocks = [block for each in server.received[1].body["messages"] for block in each["content"]]
    sent = [block for block in blocks if block["type"] == "tool_use"]
    answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    _are_sound([(call["id"], call["name"]) for call in sent], answers)
    assert all(re.fullmatch("[A-Za-z0-9_-]+", id) for id in answers)


def _are_sound(calls: list[tuple[str, str]], answers: list[str]) -> None:
    ids, names = [id for id, _ in calls], [name for _, name in calls]
    assert ids == answers
    assert len(set(ids)) == len(ids) == 6
    assert names == ["browser_tabs_open_", "read", "_", "x" * 64, "read", "read"]
