"""OpenAI's chat completions, and every server that speaks like them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Unpack, final

from greenroom.actors.providers.answer import Answer
from greenroom.actors.providers.arguments import to_json
from greenroom.actors.providers.history import AnsweredCall, AssistantTurn, SystemTurn, Turn, UserTurn, data_of, mended
from greenroom.actors.providers.http import HttpOptions, HttpProvider
from greenroom.actors.providers.openai_answer import OpenAIAnswer
from greenroom.actors.providers.recollection import Recollection
from greenroom.protocol.agents import ChatMessage, ProviderOptions
from greenroom.protocol.tools import ToolDefinition

__all__ = ["OpenAIProvider"]


@final
class OpenAIProvider(HttpProvider):
    """A model behind `POST <base_url>/chat/completions`; see `HttpProvider`.

    ::

        async with OpenAIProvider("gpt-5", key_env="OPENAI_API_KEY") as provider:
            agent = runtime.agents.add(Agent(provider))

    `report_usage` asks for figures (`stream_options`), which some servers refuse. `split_thinking` takes reasoning out
    of the text where it stands between `<think>` and `</think>`. `thinking` says what goes into the body where a run
    sets `think`. `return_thinking` sends reasoning back with the calls it led to, as some servers demand.
    """

    path: ClassVar = "/chat/completions"

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://api.openai.com/v1",
        key_env: str | None = "OPENAI_API_KEY",
        key_file: str | os.PathLike[str] | None = None,
        report_usage: bool = True,
        split_thinking: bool = True,
        thinking: Callable[[bool], Mapping[str, Any]] | None = None,
        return_thinking: bool = False,
        **options: Unpack[HttpOptions],
    ) -> None:
        super().__init__(model, base_url=base_url, key_env=key_env, key_file=key_file, **options)
        self._report_usage = report_usage
        self._split_thinking = split_thinking
        self._thinking = thinking
        self._thoughts: Recollection[str] | None = Recollection() if return_thinking else None

    def _headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def _body(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolDefinition] | None,
        options: ProviderOptions | None,
    ) -> dict[str, Any]:
        turns = mended(messages)
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [message for turn in turns for message in self._messages(turn)],
            "stream": True,
        }
        if self._report_usage:
            body["stream_options"] = {"include_usage": True}
        if tools:
            body["tools"] = [{"type": "function", "function": _function(tool)} for tool in tools]
        if options is not None and isinstance(options.schema, dict):
            schema = {"name": "answer", "schema": options.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if options is not None and isinstance(options.think, bool) and self._thinking is not None:
            body |= self._thinking(options.think)
        return body

    def _messages(self, turn: Turn) -> list[dict[str, Any]]:
        match turn:
            case SystemTurn(text):
                return [{"role": "system", "content": text}]
            case UserTurn(text, images):
                return [{"role": "user", "content": _parts(text, images) if images else text}]
            case AssistantTurn(text, ()):
                return [{"role": "assistant", "content": text}]
            case AssistantTurn(text, calls):
                said: dict[str, Any] = {
                    "role": "assistant",
                    "content": text or None,
                    "tool_calls": [_call(each) for each in calls],
                }
                thought = None if self._thoughts is None else self._thoughts.of(each.call.id for each in calls)
                if thought is not None:
                    said["reasoning_content"] = thought
                return [
                    said,
                    *({"role": "tool", "tool_call_id": each.id, "content": each.answer} for each in calls),
                ]

    def _answer(self) -> Answer:
        remember = None if self._thoughts is None else self._thoughts.keep
        return OpenAIAnswer(self._url.host, split_thinking=self._split_thinking, remember=remember)


def _function(tool: ToolDefinition) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    function["parameters"] = tool.parameters or {"type": "object", "properties": {}}
    return function


def _parts(text: str, images: tuple[str, ...]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    for image in images:
        mime, data = data_of(image)
        parts.append({"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}})
    return parts


def _call(call: AnsweredCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": to_json(call.call.arguments)}
    return {"id": call.id, "type": "function", "function": function}
