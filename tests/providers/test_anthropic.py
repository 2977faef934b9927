"""Messages: what is sent, and what is made of the events that come back."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import trio.testing

from greenroom.actors.providers.anthropic import AnthropicProvider
from greenroom.protocol.agents import ChatMessage, Delta, ProviderOptions, ProviderResult, Usage
from greenroom.protocol.tools import ToolCall, ToolDefinition
from tests.providers.conftest import GO, KEY, answer, failure, pieces
from tests.providers.server import Act, ModelServer, event

START = {
    "type": "message_start",
    "message": {"usage": {"input_tokens": 3, "cache_read_input_tokens": 1, "output_tokens": 1}},
}
STOP = {"type": "message_stop"}


def events(*each: dict[str, Any]) -> bytes:
    return b"".join(event(data, data["type"]) for data in each)


def block(index: int, kind: str, *deltas: dict[str, Any], **members: Any) -> list[dict[str, Any]]:
    """A block from its start to its stop."""
    return [
        {"type": "content_block_start", "index": index, "content_block": {"type": kind, **members}},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(index: int, *texts: str) -> list[dict[str, Any]]:
    return block(index, "text", *({"type": "text_delta", "text": each} for each in texts), text="")


def use(index: int, id: str, *jsons: str, **members: Any) -> list[dict[str, Any]]:
    deltas = [{"type": "input_json_delta", "partial_json": each} for each in jsons]
    return block(index, "tool_use", *deltas, id=id, name="e", **{"input": {}, **members})


def ended(reason: str = "end_turn", **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7, **usage}}


async def test_an_answer_comes_in_pieces(server: ModelServer, anthropic: AnthropicProvider) -> None:
    server.plays(events(START, {"type": "ping"}, *text(0, "h", "", "i"), {"type": "news", "x": 1}, ended(), STOP))
    deltas, result = await pieces(anthropic)
    assert deltas == [Delta("content", "h"), Delta("content", "i")]
    assert result == ProviderResult("hi", usage=Usage(4, 7, 11))
    (request,) = server.received
    assert request.path == "/v1/messages"
    assert (request.headers["x-api-key"], request.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert request.body == {
        "model": "m",
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "go"}]}],
        "stream": True,
    }


async def test_figures_are_sums_so_far(server: ModelServer, anthropic: AnthropicProvider) -> None:
    later = ended(output_tokens=9, cache_creation_input_tokens=2)
    server.plays(events(START, ended(output_tokens=5), later, STOP))
    assert (await answer(anthropic)).usage == Usage(6, 9, 15)


async def test_calls_are_read_block_by_block(server: ModelServer, anthropic: AnthropicProvider) -> None:
    blocks = [
        *text(0, "calling"),
        *use(1, "a", '{"v"', ":1}"),
        *use(2, "b"),
        *use(3, "c", input={"v": 2}),
        *use(4, "d", "[]"),
    ]
    server.plays(events(START, *blocks, ended("tool_use"), STOP))
    result = await answer(anthropic)
    assert [(each.id, each.arguments) for each in result.tools] == [
        ("a", {"v": 1}),
        ("b", {}),
        ("c", {"v": 2}),
        ("d", {}),
    ]
    assert [each.invalid for each in result.tools] == [None, None, None, "they are a list, not an object"]


async def test_a_call_that_the_length_has_cut_off_is_not_run(server: ModelServer, anthropic: AnthropicProvider) -> None:
    opened = use(1, "b", '{"v":1}')[:-1]
    server.plays(events(START, *use(0, "a"), *opened, ended("max_tokens"), STOP))
    whole, cut = (await answer(anthropic)).tools
    assert whole.invalid is None
    assert "cut off" in (cut.invalid or "")


async def test_signed_reasoning_goes_back_with_the_calls_it_led_to(
    server: ModelServer, anthropic: AnthropicProvider
) -> None:
    thinking = block(
        0,
        "thinking",
        {"type": "thinking_delta", "thinking": "h"},
        {"type": "thinking_delta", "thinking": "m"},
        {"type": "signature_delta", "signature": "sig"},
        thinking="",
    )
    redacted = block(1, "redacted_thinking", data="xyz")
    server.plays(events(START, *thinking, *redacted, *use(2, "a", "{}"), ended("tool_use"), STOP))
    deltas, result = await pieces(anthropic, options=ProviderOptions(think=True))
    assert deltas == [Delta("thinking", "h"), Delta("thinking", "m")]
    assert result.thinking == "hm"
    said = ChatMessage("2", "assistant", "", result.tools)
    await answer(anthropic, [*GO, said, ChatMessage("3", "tool", "5")], options=ProviderOptions(think=False))
    first, second = (request.body for request in server.received)
    assert first["thinking"] == {"type": "enabled", "budget_tokens": 4096}
    assert second["thinking"] == {"type": "disabled"}
    assert second["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "tool_use", "id": "a", "name": "e", "input": {}},
    ]


async def test_messages_alternate_and_results_come_first(server: ModelServer, anthropic: AnthropicProvider) -> None:
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    server.plays(events(START, ended(), STOP))
    both = (ToolCall("a", "e", {"v": 1}), ToolCall("b", "e", {}))
    schema = {"type": "object"}
    messages = [
        ChatMessage("0", "system", "S"),
        ChatMessage("1", "assistant", "recap one"),
        ChatMessage("2", "assistant", " \n"),
        ChatMessage("3", "assistant", "recap two"),
        ChatMessage("4", "user", "look", images=(png,)),
        ChatMessage("5", "assistant", "", both),
        ChatMessage("6", "tool", "5"),
        ChatMessage("7", "tool", "6"),
        ChatMessage("8", "user", "and?"),
        ChatMessage("9", "assistant", "\n"),
        ChatMessage("10", "assistant", "last"),
    ]
    tools = [ToolDefinition("e", "Does e.", schema), ToolDefinition("f")]
    await answer(anthropic, messages, tools=tools, options=ProviderOptions(schema=schema))
    body = server.received[0].body
    assert body["system"] == "S"
    assert [(message["role"], [part["type"] for part in message["content"]]) for message in body["messages"]] == [
        ("user", ["text"]),
        ("assistant", ["text", "text"]),
        ("user", ["text", "image"]),
        ("assistant", ["tool_use", "tool_use"]),
        ("user", ["tool_result", "tool_result", "text"]),
        ("assistant", ["text"]),
        ("user", ["text"]),
    ]
    assert body["messages"][2]["content"][1]["source"] == {"type": "base64", "media_type": "image/png", "data": png}
    assert body["messages"][4]["content"][0] == {"type": "tool_result", "tool_use_id": "a", "content": "5"}
    assert body["tools"] == [
        {"name": "e", "description": "Does e.", "input_schema": schema},
        {"name": "f", "input_schema": {"type": "object", "properties": {}}},
    ]
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": schema}}


async def test_a_whole_body_in_place_of_a_stream_is_read(server: ModelServer, anthropic: AnthropicProvider) -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "a", "name": "e", "input": {"v": 1}},
    ]
    body = {"content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 5, "output_tokens": 7}}
    server.plays(Act((json.dumps(body).encode(),), type="application/json"))
    assert await answer(anthropic) == ProviderResult("hi", "hm", (ToolCall("a", "e", {"v": 1}),), Usage(5, 7, 12))


@pytest.mark.parametrize("body", [{"x": 1}, [], {"error": {"type": "overloaded_error", "message": "busy"}}])
async def test_another_body_is_a_failure(
    server: ModelServer, anthropic: AnthropicProvider, autojump_clock: trio.testing.MockClock, body: Any
) -> None:
    server.plays(Act((json.dumps(body).encode(),), type="application/json"))
    error = await failure(anthropic)
    assert error.kind == ("overload" if isinstance(body, dict) and "error" in body else "protocol")


async def test_a_stream_without_an_end_is_cut_off(server: ModelServer, anthropic: AnthropicProvider) -> None:
    server.plays(events(START, *text(0, "hi")))
    error = await failure(anthropic)
    assert error.kind == "truncated"
    assert error.partial == ProviderResult("hi", usage=Usage(4, 1, 5))


async def test_an_error_within_the_stream_ends_the_answer(server: ModelServer, anthropic: AnthropicProvider) -> None:
    error = {"type": "error", "error": {"type": "api_error", "message": "broken"}}
    server.plays(events(START, *text(0, "h"), error))
    failed = await failure(anthropic)
    assert failed.kind == "server"
    assert "broken" in failed.message
    assert failed.context["partial"] == "h"
