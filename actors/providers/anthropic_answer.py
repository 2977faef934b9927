"""Reading the events of a message, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, final

from greenroom.actors.providers.answer import figure
from greenroom.actors.providers.arguments import Spelled, calls_of, decode
from greenroom.actors.providers.failures import protocol_failure, stream_failure
from greenroom.protocol.agents import Delta, ProviderResult, Usage
from greenroom.protocol.schemas.gates import is_array, is_record
from greenroom.protocol.sse import SSEEvent
from greenroom.protocol.tools import ToolCall

__all__ = ["AnthropicAnswer", "RememberBlocks"]

RememberBlocks = Callable[[Iterable[str], list[dict[str, Any]]], object]
"""Called with the ids of calls, and the signed blocks that came before them."""


@final
class _Thought:
    """A block of reasoning, in pieces."""

    __slots__ = ("signature", "text")

    def __init__(self) -> None:
        self.text: list[str] = []
        self.signature: list[str] = []


@final
class AnthropicAnswer:
    """See `Answer`. Events and blocks of kinds that it does not know are passed over."""

    def __init__(self, host: str, *, remember: RememberBlocks | None = None) -> None:
        self.finished = False
        self._host = host
        self._remember = remember
        self._content: list[str] = []
        self._thinking: list[str] = []
        self._signed: list[dict[str, Any]] = []
        self._thoughts: dict[int | None, _Thought] = {}
        """Reasoning that is open, by index; blocks without one are one."""
        self._open: dict[int | None, Spelled] = {}
        """Calls that are open, by index."""
        self._calls: list[Spelled] = []
        self._reason: str | None = None
        self._figures: dict[str, float] = {}
        self._made: tuple[ToolCall, ...] | None = None

    @property
    def complete(self) -> bool:
        return self.finished or self._reason is not None

    def take(self, event: SSEEvent) -> list[Delta]:
        data = decode(event.data)
        if not is_record(data):
            raise protocol_failure(self._host, "what is no event of an answer")
        index = place if isinstance(place := data.get("index"), int) else None
        match data.get("type"):
            case "error":
                raise stream_failure(self._host, data.get("error"))
            case "message_start" if is_record(message := data.get("message")):
                self._count(message.get("usage"))
            case "content_block_start" if is_record(block := data.get("content_block")):
                return self._begin(index, block)
            case "content_block_delta" if is_record(delta := data.get("delta")):
                return self._go_on(index, delta)
            case "content_block_stop":
                self._open.pop(index, None)
                self._close(index)
            case "message_delta":
                self._count(data.get("usage"))
                if is_record(delta := data.get("delta")) and isinstance(reason := delta.get("stop_reason"), str):
                    self._reason = reason
            case "message_stop":
                self.finished = True
            case _:
                pass
        return []

    def take_whole(self, body: object) -> list[Delta]:
        if not is_record(body) or not is_array(blocks := body.get("content")):
            if is_record(body) and (error := body.get("error")) is not None:
                raise stream_failure(self._host, error)
            raise protocol_failure(self._host, "what is no message")
        deltas: list[Delta] = []
        for index, block in enumerate(filter(is_record, blocks)):
            deltas += self._begin(index, block)
            self._close(index)
        self._count(body.get("usage"))
        self._reason = str(body.get("stop_reason"))
        if self._reason != "max_tokens":
            self._open.clear()
        self.finished = True
        return deltas

    def end(self) -> list[Delta]:
        if self._reason == "max_tokens":
            for call in self._open.values():
                call.cut = True
        self._made = calls_of(self._calls)
        if self._remember is not None and self._made and self._signed:
            self._remember([call.id for call in self._made], self._signed)
        return []

    def result(self) -> ProviderResult:
        thinking = "".join(self._thinking)
        return ProviderResult("".join(self._content), thinking or None, self._made or (), self._usage())

    # ---------------------------------------------------------------- blocks

    def _begin(self, index: int | None, block: dict[str, Any]) -> list[Delta]:
        match block.get("type"):
            case "text":
                return self._write(block.get("text"))
            case "thinking":
                self._thoughts[index] = _Thought()
                self._sign(index, block.get("signature"))
                return self._think(index, block.get("thinking"))
            case "redacted_thinking":
                self._signed.append(dict(block))
            case "tool_use":
                id, name = block.get("id"), block.get("name")
                call = Spelled(id if isinstance(id, str) else "")
                call.name = name if isinstance(name, str) else ""
                call.ready = block.get("input")
                self._calls.append(call)
                self._open[index] = call
            case _:
                pass
        return []

    def _go_on(self, index: int | None, delta: dict[str, Any]) -> list[Delta]:
        match delta.get("type"):
            case "text_delta":
                return self._write(delta.get("text"))
            case "thinking_delta":
                return self._think(index, delta.get("thinking"))
            case "signature_delta":
                self._sign(index, delta.get("signature"))
            case "input_json_delta" if index in self._open and isinstance(piece := delta.get("partial_json"), str):
                self._open[index].pieces.append(piece)
            case _:
                pass
        return []

    def _write(self, text: object) -> list[Delta]:
        if not isinstance(text, str) or not text:
            return []
        self._content.append(text)
        return [Delta("content", text)]

    def _think(self, index: int | None, text: object) -> list[Delta]:
        if not isinstance(text, str) or not text:
            return []
        self._thinking.append(text)
        if index in self._thoughts:
            self._thoughts[index].text.append(text)
        return [Delta("thinking", text)]

    def _sign(self, index: int | None, signature: object) -> None:
        if isinstance(signature, str) and index in self._thoughts:
            self._thoughts[index].signature.append(signature)

    def _close(self, index: int | None) -> None:
        """Keep reasoning that has ended, with its signature."""
        if (thought := self._thoughts.pop(index, None)) is not None:
            text, signature = "".join(thought.text), "".join(thought.signature)
            self._signed.append({"type": "thinking", "thinking": text, "signature": signature})

    # ---------------------------------------------------------------- figures

    def _count(self, usage: object) -> None:
        """Take figures over: each is a sum so far, so that the last one counts."""
        if is_record(usage):
            read = {name: figure(value) for name, value in usage.items()}
            self._figures |= {name: value for name, value in read.items() if value is not None}

    def _usage(self) -> Usage | None:
        if not self._figures:
            return None
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        prompt = sum(self._figures.get(name, 0) for name in names)
        completion = self._figures.get("output_tokens", 0)
        return Usage(prompt, completion, prompt + completion)
