"""Chat completions: what is sent, and what is made of all that servers send back."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import trio.testing

from greenroom.actors.providers.openai import OpenAIProvider
from greenroom.protocol.agents import ChatMessage, Delta, ProviderOptions, ProviderResult, Usage
from greenroom.protocol.tools import ToolCall, ToolDefinition
from tests.providers.conftest import GO, KEY, answer, failure, pieces
from tests.providers.server import Act, Gesture, ModelServer, sse

DONE = "[DONE]"


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(arguments: Any = None, **fragment: Any) -> dict[str, Any]:
    """A fragment of a call."""
    function = {name: fragment.pop(name) for name in ("name",) if name in fragment}
    return {**fragment, "function": function if arguments is None else {**function, "arguments": arguments}}


def calls(*fragments: dict[str, Any], finish: str | None = "tool_calls") -> bytes:
    """An answer that calls tools, a chunk a fragment."""
    return sse(*(chunk(tool_calls=[each]) for each in fragments), chunk(finish), DONE)


def spelled(result: ProviderResult) -> list[tuple[str, dict[str, Any], str | None]]:
    return [(each.name, each.arguments, each.invalid) for each in result.tools]


FIGURES = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}


async def test_an_answer_comes_in_pieces(server: ModelServer, openai: OpenAIProvider) -> None:
    server.plays(sse(chunk(content="h"), chunk(content=""), chunk(content="i"), chunk("stop"), DONE))
    deltas, result = await pieces(openai)
    assert deltas == [Delta("content", "h"), Delta("content", "i")]
    assert result == ProviderResult("hi")
    (request,) = server.received
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "go"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_connections_serve_again(server: ModelServer, openai: OpenAIProvider) -> None:
    server.plays(sse(chunk("stop", content="hi"), DONE))
    for _ in range(3):
        await answer(openai)
    assert server.connections == 1


async def test_all_that_a_request_can_hold(server: ModelServer, openai: OpenAIProvider) -> None:
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    server.plays(sse(chunk("stop"), DONE))
    messages = [
        ChatMessage("0", "system", "S"),
        ChatMessage("1", "user", "look \ud83d", images=(png.rstrip("="),)),
        ChatMessage("2", "assistant", "", (ToolCall("a", "e", {"v": 1}), ToolCall("a", "f", {}))),
        ChatMessage("3", "tool", "5"),
        ChatMessage("4", "tool", "6"),
        ChatMessage("5", "assistant", "done"),
    ]
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    tools = [ToolDefinition("e", "Does e.", schema), ToolDefinition("f")]
    await answer(openai, messages, tools=tools, options=ProviderOptions(think=True, schema=schema))
    body = server.received[0].body
    assert body["messages"] == [
        {"role": "system", "content": "S"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look ?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "e", "arguments": '{"v":1}'}},
                {"id": "a-1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "5"},
        {"role": "tool", "tool_call_id": "a-1", "content": "6"},
        {"role": "assistant", "content": "done"},
    ]
    assert body["tools"] == [
        {"type": "function", "function": {"name": "e", "description": "Does e.", "parameters": schema}},
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}},
    ]
    assert body["response_format"] == {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


async def test_a_history_with_gaps_is_mended(server: ModelServer, openai: OpenAIProvider) -> None:
    server.plays(sse(chunk("stop"), DONE))
    messages = [
        ChatMessage("1", "tool", "lost"),
        ChatMessage("2", "assistant", "c", (ToolCall("a", "e", {}), ToolCall("b", "e", {}))),
        ChatMessage("3", "tool", "5"),
        ChatMessage("4", "user", "and?"),
    ]
    await answer(openai, messages)
    sent = server.received[0].body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user"]
    assert sent[0]["content"] == "Result of an earlier tool call: lost"
    assert [message["content"] for message in sent[2:4]] == ["5", "no result"]


# -------------------------------------------------------------------- calls


@pytest.mark.parametrize(
    "fragments",
    [
        [call('{"v":', index=0, id="a", name="e"), call("1}", index=0), call("{}", index=1, id="b", name="f")],
        [call('{"v":', id="a", name="e"), call("1}"), call("{}", id="b", name="f")],
        [call('{"v":', index=None, id="a", name="e"), call("1}", index=None, id="a"), call("{}", id="b", name="f")],
        [call('{"v":1}', index=0, id="a", name="e"), call("{}", index=0, id="b", name="f")],
        [call({"v": 1}, index=0, id="a", name="e"), call({}, index=1, id="b", name="f")],
        [call('{"v":', index=0, name="e"), call("1}", index=0, id="a", name="e"), call("", index=1, id="b", name="f")],
    ],
)
async def test_fragments_of_calls_find_together(
    server: ModelServer, openai: OpenAIProvider, fragments: list[dict[str, Any]]
) -> None:
    server.plays(calls(*fragments))
    result = await answer(openai)
    assert result.tools == (ToolCall("a", "e", {"v": 1}), ToolCall("b", "f", {}))


@pytest.mark.case("reports/providers", 1)
async def test_arguments_that_are_no_object_fail_their_call_alone(server: ModelServer, openai: OpenAIProvider) -> None:
    texts = ["", None, "  ", "null", "[]", "{}", '"{}"', '{"a":']
    server.plays(calls(*(call(text, index=at, id=str(at), name="e") for at, text in enumerate(texts))))
    result = await answer(openai)
    assert [each.arguments for each in result.tools] == [{}] * 8
    faults = [each.invalid for each in result.tools]
    assert faults[:7] == [None] * 3 + ["they are null, not an object", "they are a list, not an object", None] + [
        "they are a text, not an object"
    ]
    assert (faults[7] or "").startswith("they are no JSON: ")


async def test_a_call_that_the_length_has_cut_off_is_not_run(server: ModelServer, openai: OpenAIProvider) -> None:
    fragments = [call("{}", index=0, id="a", name="e"), call("{}", index=1, id="b", name="f")]
    server.plays(calls(*fragments, finish="length"))
    first, last = (await answer(openai)).tools
    assert first.invalid is None
    assert "cut off" in (last.invalid or "")


async def test_calls_count_whatever_the_reason_for_the_end(server: ModelServer, openai: OpenAIProvider) -> None:
    one = call("{}", index=0, id="a", name="e")
    server.plays(calls(one, finish="stop"), calls(one, finish="content_filter"))
    assert len((await answer(openai)).tools) == 1
    assert (await answer(openai)).tools == ()


async def test_ids_that_are_missing_or_repeated_are_made_up(server: ModelServer, openai: OpenAIProvider) -> None:
    fragments = [call("{}", index=at, id=id, name="e") for at, id in enumerate(("", "x", "x"))]
    server.plays(calls(*fragments))
    ids = [each.id for each in (await answer(openai)).tools]
    assert ids[1] == "x"
    assert len(set(ids)) == 3
    assert all(ids)


async def test_numbers_of_arguments_are_exact(server: ModelServer, openai: OpenAIProvider) -> None:
    server.plays(calls(call('{"key":2512292042121000001}', index=0, id="a", name="e")))
    assert spelled(await answer(openai)) == [("e", {"key": 2512292042121000001}, None)]


# -------------------------------------------------------------------- reasoning, figures


@pytest.mark.parametrize("member", ["reasoning_content", "reasoning"])
async def test_reasoning_is_kept_apart(server: ModelServer, openai: OpenAIProvider, member: str) -> None:
    server.plays(sse(chunk(**{member: "hm"}), chunk("stop", content="hi"), DONE))
    deltas, result = await pieces(openai)
    assert deltas == [Delta("thinking", "hm"), Delta("content", "hi")]
    assert result == ProviderResult("hi", "hm")


async def test_reasoning_between_tags_is_kept_apart_too(server: ModelServer, openai: OpenAIProvider) -> None:
    server.plays(sse(chunk(content="<thi"), chunk(content="nk>hm</think>h"), chunk("stop", content="i <"), DONE))
    deltas, result = await pieces(openai)
    assert deltas == [Delta("thinking", "hm"), Delta("content", "h"), Delta("content", "i "), Delta("content", "<")]
    assert result == ProviderResult("hi <", "hm")


async def test_tags_can_be_left_alone(server: ModelServer, keyed: None) -> None:
    server.plays(sse(chunk("stop", content="a<think>b"), DONE))
    async with OpenAIProvider("m", base_url=server.url, key_env="MODEL_KEY", split_thinking=False) as provider:
        assert await answer(provider) == ProviderResult("a<think>b")


async def test_reasoning_goes_back_with_the_calls_it_led_to_where_that_is_wanted(
    server: ModelServer, keyed: None
) -> None:
    thinking = {True: {"reasoning_effort": "high"}, False: {"reasoning_effort": "none"}}
    async with OpenAIProvider(
        "m",
        base_url=server.url,
        key_env=None,
        return_thinking=True,
        report_usage=False,
        thinking=lambda think: thinking[think],
        extra={"temperature": 0},
        headers={"x-team": "a"},
    ) as provider:
        one = chunk("tool_calls", tool_calls=[call("{}", index=0, id="a", name="e")])
        server.plays(sse(chunk(reasoning_content="hm"), one, DONE))
        result = await answer(provider, options=ProviderOptions(think=True))
        await answer(provider, [*GO, ChatMessage("2", "assistant", "", result.tools)], options=ProviderOptions())
    first, second = server.received
    assert "authorization" not in first.headers
    assert first.headers["x-team"] == "a"
    assert (first.body["reasoning_effort"], first.body["temperature"]) == ("high", 0)
    assert "stream_options" not in first.body
    assert second.body["messages"][1]["reasoning_content"] == "hm"


@pytest.mark.parametrize(
    ("last", "usage"),
    [
        ({"choices": [], "usage": FIGURES}, Usage(5, 7, 12)),
        ({"choices": None, "usage": FIGURES}, Usage(5, 7, 12)),
        ({"usage": {"prompt_tokens": 5, "completion_tokens": 7}}, Usage(5, 7, 12)),
        ({"usage": {"prompt_tokens": None, "completion_tokens": True}}, Usage()),
        ({"choices": []}, Usage(1, 1, 2)),
        ({}, Usage(1, 1, 2)),
    ],
)
async def test_the_last_figures_count(
    server: ModelServer, openai: OpenAIProvider, last: dict[str, Any], usage: Usage
) -> None:
    early = {**chunk(content="hi"), "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
    server.plays(sse(early, chunk("stop"), last, DONE))
    assert await answer(openai) == ProviderResult("hi", usage=usage)


# -------------------------------------------------------------------- streams


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
async def test_a_stream_is_read_however_it_is_cut(
    server: ModelServer, openai: OpenAIProvider, size: int, end: str
) -> None:
    text = "é😀\u2028\u2029\u0085\v\f\x1c"
    lines = [": comment", "data: " + json.dumps(chunk(content=text), ensure_ascii=False), ""]
    lines += [
        'data: {"choices": [{"index": 0,',
        'data: "delta": {}, "finish_reason": "stop"}]}',
        "",
        "data: [DONE]",
        "",
    ]
    body = end.join([*lines, ""]).encode()
    server.plays([body[at : at + size] for at in range(0, len(body), size)])
    assert await answer(openai) == ProviderResult(text)


async def test_a_stream_that_ends_without_a_blank_line_is_whole(server: ModelServer, openai: OpenAIProvider) -> None:
    server.plays(sse(chunk(content="hi")) + f"data: {json.dumps(chunk('stop'))}".encode())
    assert await answer(openai) == ProviderResult("hi")


async def test_a_whole_body_in_place_of_a_stream_is_read(server: ModelServer, openai: OpenAIProvider) -> None:
    message = {"content": "hi", "tool_calls": [call('{"v":1}', id="a", name="e")]}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": FIGURES}
    server.plays(Act((json.dumps(body).encode(),), type="application/json; charset=utf-8"))
    deltas, result = await pieces(openai)
    assert deltas == [Delta("content", "hi")]
    assert result == ProviderResult("hi", None, (ToolCall("a", "e", {"v": 1}),), Usage(5, 7, 12))


async def test_a_refusal_is_an_answer(server: ModelServer, openai: OpenAIProvider) -> None:
    server.plays(sse(chunk(content=None, refusal="No, "), chunk("stop", refusal="I won't."), DONE))
    assert await answer(openai) == ProviderResult("No, I won't.")


async def test_a_page_is_no_answer(server: ModelServer, openai: OpenAIProvider) -> None:
    server.plays(Act((b"<html>",), type="text/html; charset=utf-8"))
    assert (await failure(openai)).kind == "protocol"


async def test_other_choices_are_passed_over(server: ModelServer, openai: OpenAIProvider) -> None:
    two = {"choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "hi"}}]}
    server.plays(sse(two, chunk("stop"), DONE))
    assert await answer(openai) == ProviderResult("hi")


@pytest.mark.parametrize(
    "bad", ["{", "[]", "null", "<html>", '{"choices": [{"index": 0, "delta": {"content": "\\ud83d"}}]}']
)
async def test_what_is_no_chunk_is_a_failure(server: ModelServer, openai: OpenAIProvider, bad: str) -> None:
    server.plays(sse(chunk(content="hi"), bad, DONE))
    error = await failure(openai)
    assert (error.kind, error.retryable) == ("protocol", False)
    assert error.partial == ProviderResult("hi")


async def test_a_server_may_hang_behind_the_end_of_its_answer(
    server: ModelServer, openai: OpenAIProvider, autojump_clock: trio.testing.MockClock
) -> None:
    server.plays(
        [sse(chunk("stop", content="hi")), Gesture.HANG], [sse(chunk("stop", content="ho"), DONE), Gesture.HANG]
    )
    assert await answer(openai) == ProviderResult("hi")
    began = autojump_clock.current_time()
    assert await answer(openai) == ProviderResult("ho")
    assert autojump_clock.current_time() - began < 1
