"""Servers that fail, are slow, silent or gone: what is tried again, what is raised, and that nothing hangs."""

from __future__ import annotations

import json
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.agent import Agent
from greenroom.actors.providers.anthropic import AnthropicProvider
from greenroom.actors.providers.exchange import Limits
from greenroom.actors.providers.failures import retry_after
from greenroom.actors.providers.openai import OpenAIProvider
from greenroom.actors.system import open_runtime
from greenroom.protocol.agents import ChatMessage, Delta, MessageInput, ProviderResult
from greenroom.protocol.errors import ConfigError, ProviderError
from greenroom.protocol.tools import ToolCall, ToolDefinition
from greenroom.runtime.cancel import Cancel
from tests.providers.conftest import GO, KEY, answer, failure, pieces
from tests.providers.server import Act, Gesture, ModelServer, event, sse

H = {"choices": [{"index": 0, "delta": {"content": "h"}}]}
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
WHOLE = sse(H, END, "[DONE]")
OVERLOADED = {"error": {"type": "overloaded_error", "message": "busy"}}


def refusal(status: int, error: Any = None, **headers: str) -> Act:
    body = json.dumps({"error": error or {"message": "no"}}).encode()
    return Act((body,), status, {name.replace("_", "-"): value for name, value in headers.items()}, "application/json")


Clock = trio.testing.MockClock


# -------------------------------------------------------------------- statuses


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "request", False),
        (401, "auth", False),
        (403, "auth", False),
        (404, "request", False),
        (408, "timeout", True),
        (429, "rate", True),
        (500, "server", True),
        (503, "server", True),
        (529, "overload", True),
        (302, "request", False),
    ],
)
async def test_a_status_says_what_failed(
    server: ModelServer, openai: OpenAIProvider, autojump_clock: Clock, status: int, kind: str, retryable: bool
) -> None:
    server.plays(refusal(status, {"message": f"your key {KEY} is bad"}))
    error = await failure(openai)
    assert (error.kind, error.status, error.retryable) == (kind, status, retryable)
    assert "your key *** is bad" in error.message
    assert len(server.received) == (3 if retryable else 1)
    assert autojump_clock.current_time() == pytest.approx(1.5 if retryable else 0, abs=0.1)


async def test_a_used_up_quota_is_not_waited_for(server: ModelServer, openai: OpenAIProvider) -> None:
    server.plays(refusal(429, {"code": "insufficient_quota", "message": "pay"}))
    error = await failure(openai)
    assert (error.kind, error.retryable) == ("rate", False)
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after_ms": "2500", "retry_after": "7"}, 2.5),
        ({"retry_after": "soon"}, 0.5),
        ({}, 0.5),
    ],
)
async def test_a_server_says_how_long_to_wait(
    server: ModelServer, openai: OpenAIProvider, autojump_clock: Clock, headers: dict[str, str], wait: float
) -> None:
    server.plays(refusal(429, **headers), WHOLE)
    assert await answer(openai) == ProviderResult("h")
    assert server.at[1] - server.at[0] == pytest.approx(wait, abs=0.1)


def test_a_date_says_it_too() -> None:
    now = 1_800_000_000.0
    assert retry_after({"retry-after": formatdate(now + 30, usegmt=True)}, now) == pytest.approx(30, abs=1)
    assert retry_after({"retry-after": formatdate(now - 30, usegmt=True)}, now) == 0
    assert retry_after({}, now) is None


async def test_a_wait_that_is_too_long_is_not_begun(
    server: ModelServer, openai: OpenAIProvider, autojump_clock: Clock
) -> None:
    server.plays(refusal(429, retry_after="61"))
    assert (await failure(openai)).retry_after == 61
    server.plays(refusal(429, retry_after="30"))
    with trio.fail_after(20):
        await failure(openai)
    assert autojump_clock.current_time() < 1


async def test_only_an_answer_of_which_nothing_was_given_out_is_tried_again(
    server: ModelServer, openai: OpenAIProvider, autojump_clock: Clock
) -> None:
    server.plays(sse(OVERLOADED), sse(OVERLOADED), WHOLE)
    assert await answer(openai) == ProviderResult("h")
    server.plays(sse(H, OVERLOADED))
    before = len(server.received)
    error = await failure(openai)
    assert (error.kind, error.retryable, error.partial) == ("overload", True, ProviderResult("h"))
    assert len(server.received) == before + 1


@pytest.mark.case("reports/providers", 2)
@pytest.mark.parametrize("last", [sse({"error": {"message": "broken"}}), event({"message": "broken"}, "error")])
async def test_an_error_after_two_pieces_keeps_what_came(
    server: ModelServer, openai: OpenAIProvider, last: bytes
) -> None:
    server.plays(sse(H, H) + last)
    error = await failure(openai)
    assert (error.kind, error.context["partial"]) == ("server", "hh")
    assert "broken" in error.message


# -------------------------------------------------------------------- connections


async def test_a_connection_that_is_refused_is_tried_again(keyed: None, autojump_clock: Clock) -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    async with OpenAIProvider("m", base_url=f"http://127.0.0.1:{port}", key_env="MODEL_KEY") as provider:
        error = await failure(provider)
    assert (error.kind, error.retryable) == ("network", True)
    assert autojump_clock.current_time() > 1


@pytest.mark.case("reports/providers", 2)
@pytest.mark.parametrize("clean", [False, True])
async def test_a_stream_that_ends_early_is_no_answer(
    server: ModelServer, openai: OpenAIProvider, autojump_clock: Clock, clean: bool
) -> None:
    server.plays([sse(H)] if clean else [sse(H), Gesture.CUT])
    error = await failure(openai)
    assert error.kind == ("truncated" if clean else "network")
    assert error.partial == ProviderResult("h")


async def test_an_empty_stream_is_no_answer(server: ModelServer, openai: OpenAIProvider) -> None:
    server.plays(())
    assert (await failure(openai)).kind == "truncated"


@pytest.mark.case("reports/providers", 2)
async def test_silence_ends_a_call(server: ModelServer, openai: OpenAIProvider, autojump_clock: Clock) -> None:
    server.plays([sse(H), Gesture.HANG])
    error = await failure(openai)
    assert (error.kind, error.retryable, error.partial) == ("timeout", True, ProviderResult("h"))
    assert autojump_clock.current_time() == pytest.approx(60, abs=1)
    await trio.testing.wait_all_tasks_blocked()
    assert server.open == 0


async def test_comments_keep_no_answer_alive(
    server: ModelServer, openai: OpenAIProvider, autojump_clock: Clock
) -> None:
    server.plays([sse(H), *(piece for _ in range(20) for piece in (20.0, b": still", 20.0, b" here\n\n"))])
    error = await failure(openai)
    assert error.kind == "timeout"
    assert autojump_clock.current_time() == pytest.approx(120, abs=1)


@pytest.mark.case("reports/providers", 2)
async def test_a_slow_answer_that_lives_is_not_cut(
    server: ModelServer, openai: OpenAIProvider, autojump_clock: Clock
) -> None:
    body = sse({"choices": [{"index": 0, "delta": {"content": "x" * 560}}]}, END)
    server.plays([piece for byte in body for piece in (1.0, bytes([byte]))])
    assert (await answer(openai)).content == "x" * 560
    assert autojump_clock.current_time() > 600


async def test_a_reader_may_take_its_time(server: ModelServer, openai: OpenAIProvider, autojump_clock: Clock) -> None:
    server.plays([sse(H), 1.0, WHOLE])
    async with openai.stream(GO, Cancel()) as stream:
        async for _ in stream:
            await trio.sleep(500)
    assert stream.result == ProviderResult("hh")


async def test_the_whole_call_can_have_a_deadline(server: ModelServer, keyed: None, autojump_clock: Clock) -> None:
    limits = Limits(total=30.0)
    server.plays([sse(H), *(piece for _ in range(20) for piece in (5.0, sse(H)))])
    async with OpenAIProvider("m", base_url=server.url, key_env="MODEL_KEY", limits=limits) as provider:
        error = await failure(provider)
    assert (error.kind, error.retryable) == ("timeout", False)
    assert error.partial is not None
    assert error.partial.content.startswith("hh")
    assert autojump_clock.current_time() == pytest.approx(30, abs=1)


@pytest.mark.case("reports/providers", 2)
@pytest.mark.parametrize("pieces", [(Gesture.HANG,), (sse(H), Gesture.HANG), (sse(H), 1.0, sse(H), Gesture.HANG)])
async def test_a_stop_ends_the_request_at_once(
    server: ModelServer, openai: OpenAIProvider, autojump_clock: Clock, pieces: tuple[Any, ...]
) -> None:
    server.plays(pieces)
    async with open_runtime() as runtime:
        agent = runtime.agents.add(Agent(openai, id="a"))
        agent.context.messages.add(MessageInput("user", "go"))
        async with agent.stream(timeout=5.0) as run:
            result = await run.result()
        assert (result.content, result.partial) == ("h" * (len(pieces) // 2), True)
        assert autojump_clock.current_time() == pytest.approx(5, abs=0.1)
        await trio.testing.wait_all_tasks_blocked()
        assert server.open == 0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_ignored, agent)
            await trio.testing.wait_all_tasks_blocked()
            await runtime.agents.remove("a")
        await trio.testing.wait_all_tasks_blocked()
        assert server.open == 0


async def _ignored(agent: Agent) -> None:
    with pytest.raises(Exception, match="stopped"):
        await agent.generate()


async def test_an_answer_that_is_left_early_ends_its_request(
    server: ModelServer, openai: OpenAIProvider, autojump_clock: Clock
) -> None:
    server.plays([sse(H, H), Gesture.HANG])
    async with openai.stream(GO, Cancel()) as stream:
        assert await anext(aiter(stream)) == Delta("content", "h")
    await trio.testing.wait_all_tasks_blocked()
    assert server.open == 0
    assert autojump_clock.current_time() < 1
    assert [delta.text async for delta in stream] == ["h"]  # it had come by then
    assert len(server.received) == 1, "whoever reads on sends no other request"


async def test_calls_go_on_beside_each_other(
    server: ModelServer, openai: OpenAIProvider, autojump_clock: Clock
) -> None:
    server.plays([10.0, WHOLE])
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(partial(answer, openai))
    assert autojump_clock.current_time() == pytest.approx(10, abs=0.5)
    assert server.connections == 5


async def test_calls_wait_for_a_free_connection_and_not_for_ever(
    server: ModelServer, keyed: None, autojump_clock: Clock
) -> None:
    server.plays([50.0, WHOLE])
    limits = Limits(connections=1, retries=0)
    async with OpenAIProvider("m", base_url=server.url, key_env="MODEL_KEY", limits=limits) as provider:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(answer, provider))
            await trio.sleep(1)
            error = await failure(provider)
            assert autojump_clock.current_time() == pytest.approx(11, abs=0.1)
    assert (error.kind, error.retryable) == ("timeout", True)
    assert "in use" in error.message
    assert server.connections == 1


# -------------------------------------------------------------------- before anything is sent


async def test_a_token_that_was_set_lets_nothing_be_sent(server: ModelServer, openai: OpenAIProvider) -> None:
    cancel = Cancel()
    cancel.set()
    with pytest.raises(ProviderError) as refused:
        await openai.generate(GO, cancel)
    assert refused.value.kind == "aborted"
    assert server.received == []


@pytest.mark.parametrize("kind", [OpenAIProvider, AnthropicProvider])
async def test_what_no_backend_takes_is_not_sent(server: ModelServer, keyed: None, kind: Any) -> None:
    async with kind("m", base_url=server.url, key_env="MODEL_KEY") as provider:
        assert (await failure(provider, tools=[ToolDefinition("a b")])).kind == "request"
        for image in ("AAAA", "!"):
            error = await failure(provider, [ChatMessage("1", "user", "look", images=(image,))])
            assert error.kind == "request"
        for value in (float("nan"), {1j}):
            said = ChatMessage("1", "assistant", "", (ToolCall("1", "e", {"v": value}),))
            assert (await failure(provider, [said])).kind == "request"
    assert server.received == []


@pytest.mark.parametrize("url", ["", "api.openai.com/v1", "ftp://host", "http://", "http://\0"])
def test_a_base_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        OpenAIProvider("m", base_url=url)
    assert refused.value.code == "URL"


def test_an_option_that_there_is_not_is_refused() -> None:
    options: Any = {"temperature": 0}
    with pytest.raises(TypeError, match="temperature"):
        OpenAIProvider("m", **options)


@pytest.mark.parametrize("key", ["", " ", "kéy", "a\nb"])
async def test_a_key_that_is_none_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("MODEL_KEY", key)
    with pytest.raises(ConfigError) as refused:
        await OpenAIProvider("m", key_env="MODEL_KEY").__aenter__()
    assert refused.value.code == "KEY"
    assert not key.strip() or key not in refused.value.message


async def test_the_key_comes_from_a_file_or_from_the_environment(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    server.plays(WHOLE)
    file.write_text(f"{KEY}\n")
    async with OpenAIProvider("m", base_url=server.url, key_file=file) as provider:
        await pieces(provider)
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    file.write_bytes(b"\xff")
    for provider in (
        OpenAIProvider("m"),
        OpenAIProvider("m", key_file=tmp_path / "none"),
        OpenAIProvider("m", key_file=file),
    ):
        with pytest.raises(ConfigError) as refused:
            await provider.__aenter__()
        assert refused.value.code == "KEY"
        with pytest.raises(ConfigError) as refused:
            await provider.generate(GO, Cancel())
        assert refused.value.code == "CLOSED"


async def test_an_event_that_is_too_large_is_a_failure(
    server: ModelServer, openai: OpenAIProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.actors.providers.exchange.LARGEST_EVENT", 1000)
    server.plays([event("x" * 2000)])
    assert (await failure(openai)).kind == "protocol"


async def test_a_body_that_is_too_large_is_a_failure(
    server: ModelServer, openai: OpenAIProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.actors.providers.exchange.LARGEST_BODY", 1000)
    server.plays(Act((b"x" * 2000,), 500))
    assert (await failure(openai)).kind == "protocol"


async def test_a_stream_that_never_ends_is_a_failure_that_keeps_what_came(
    server: ModelServer, openai: OpenAIProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.actors.providers.exchange.LARGEST_BODY", 1000)
    server.plays([sse(H)] * 100)
    error = await failure(openai)
    assert error.kind == "protocol"
    assert error.partial is not None
    assert 0 < len(error.partial.content) < 100


async def test_an_encoding_that_is_not_kept_to_is_a_failure(server: ModelServer, openai: OpenAIProvider) -> None:
    server.plays(Act((b"no gzip",), headers={"content-encoding": "gzip"}))
    assert (await failure(openai)).kind == "protocol"
