"""Anthropic's messages, and every server that speaks like them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Unpack, final

from greenroom.actors.providers.answer import Answer
from greenroom.actors.providers.anthropic_answer import AnthropicAnswer
from greenroom.actors.providers.history import AssistantTurn, SystemTurn, Turn, UserTurn, data_of, mended
from greenroom.actors.providers.http import HttpOptions, HttpProvider
from greenroom.actors.providers.recollection import Recollection
from greenroom.protocol.agents import ChatMessage, ProviderOptions
from greenroom.protocol.tools import ToolDefinition

__all__ = ["AnthropicProvider"]

Block = dict[str, Any]

_OPENING: Final = "This is what was said so far."
_GO_ON: Final = "Go on."


@final
class AnthropicProvider(HttpProvider):
    """A model behind `POST <base_url>/v1/messages`; see `HttpProvider`.

    ::

        async with AnthropicProvider("claude-opus-4-5", key_env="ANTHROPIC_API_KEY") as provider:
            agent = runtime.agents.add(Agent(provider))

    `max_tokens` bounds each answer, reasoning included. `thinking` goes into the body where a run sets `think`. Signed
    reasoning is kept apart from the conversation and sent back with the calls that it led to, as the API demands.
    """

    path: ClassVar = "/v1/messages"

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://api.anthropic.com",
        key_env: str | None = "ANTHROPIC_API_KEY",
        key_file: str | os.PathLike[str] | None = None,
        version: str = "2023-06-01",
        max_tokens: int = 8192,
        thinking: Mapping[str, Any] | None = None,
        **options: Unpack[HttpOptions],
    ) -> None:
        super().__init__(model, base_url=base_url, key_env=key_env, key_file=key_file, **options)
        self._version = version
        self._max_tokens = max_tokens
        self._thinking = dict(thinking or {"type": "enabled", "budget_tokens": max(1024, max_tokens // 2)})
        self._signed: Recollection[list[Block]] = Recollection()

    def _headers(self, key: str) -> dict[str, str]:
        headers = {"anthropic-version": self._version}
        return {**headers, "x-api-key": key} if key else headers

    def _body(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolDefinition] | None,
        options: ProviderOptions | None,
    ) -> dict[str, Any]:
        turns = mended(messages, plain_ids=True)
        system = "\n\n".join(turn.text for turn in turns if isinstance(turn, SystemTurn) and turn.text.strip())
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self._max_tokens,
            "messages": self._alternating(turns),
            "stream": True,
        }
        if system:
            body["system"] = system
        if tools:
            body["tools"] = [_tool(tool) for tool in tools]
        if options is not None and isinstance(options.think, bool):
            body["thinking"] = self._thinking if options.think else {"type": "disabled"}
        if options is not None and isinstance(options.schema, dict):
            body["output_config"] = {"format": {"type": "json_schema", "schema": options.schema}}
        return body

    def _alternating(self, turns: Sequence[Turn]) -> list[dict[str, Any]]:
        """The turns as messages of user and assistant by turns, with the user at both ends."""
        messages: list[dict[str, Any]] = []

        def add(role: str, blocks: list[Block]) -> None:
            if not blocks:
                return
            if not messages or messages[-1]["role"] != role:
                messages.append({"role": role, "content": []})
            messages[-1]["content"] += blocks

        for turn in turns:
            if isinstance(turn, UserTurn):
                add("user", [*_text(turn.text), *map(_image, turn.images)])
            elif isinstance(turn, AssistantTurn):
                if not messages:
                    add("user", _text(_OPENING))
                signed = self._signed.of(each.call.id for each in turn.calls) or []
                calls = [_call(each.id, each.name, each.call.arguments) for each in turn.calls]
                add("assistant", [*signed, *_text(turn.text), *calls])
                add("user", [_result(each.id, each.answer) for each in turn.calls])
        if not messages or messages[-1]["role"] == "assistant":
            add("user", _text(_GO_ON))
        return messages

    def _answer(self) -> Answer:
        return AnthropicAnswer(self._url.host, remember=self._signed.keep)


def _text(text: str) -> list[Block]:
    """A block, or none: a blank one is refused."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _image(image: str) -> Block:
    mime, data = data_of(image)
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


def _call(id: str, name: str, arguments: dict[str, Any]) -> Block:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def _result(id: str, answer: str) -> Block:
    return {"type": "tool_result", "tool_use_id": id, "content": answer}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        shown["description"] = tool.description
    shown["input_schema"] = tool.parameters or {"type": "object", "properties": {}}
    return shown
