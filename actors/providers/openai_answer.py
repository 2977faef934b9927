"""Reading the chunks of a chat completion, from all the servers that send something like them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeGuard, final

from greenroom.actors.providers.answer import figure
from greenroom.actors.providers.arguments import Spelled, calls_of, decode
from greenroom.actors.providers.failures import protocol_failure, stream_failure
from greenroom.protocol.agents import Delta, ProviderResult, ThinkSplitter, Usage
from greenroom.protocol.schemas.gates import is_array, is_record
from greenroom.protocol.sse import SSEEvent
from greenroom.protocol.tools import ToolCall

__all__ = ["OpenAIAnswer", "Remember"]

Remember = Callable[[Iterable[str], str], object]
"""Called with the ids of calls, and the reasoning that led to them."""

_DONE: Final = "[DONE]"


@final
class OpenAIAnswer:
    """See `Answer`. What decides is what came: calls are calls whatever the reason for the end."""

    def __init__(self, host: str, *, split_thinking: bool = True, remember: Remember | None = None) -> None:
        self.finished = False
        self._host = host
        self._splitter = ThinkSplitter() if split_thinking else None
        self._remember = remember
        self._content: list[str] = []
        self._thinking: list[str] = []
        self._reason: str | None = None
        self._calls: list[Spelled] = []
        self._places: dict[int, Spelled] = {}
        """The call that fragments of an index go on with."""
        self._named: dict[str, Spelled] = {}
        """The call that fragments of an id without an index go on with."""
        self._usage: Usage | None = None
        self._made: tuple[ToolCall, ...] | None = None

    @property
    def complete(self) -> bool:
        return self.finished or self._reason is not None

    def take(self, event: SSEEvent) -> list[Delta]:
        if event.data.strip() == _DONE:
            self.finished = True
            return []
        if event.event == "error":
            raise stream_failure(self._host, decode(event.data))
        return self._chunk(decode(event.data), "delta")

    def take_whole(self, body: object) -> list[Delta]:
        deltas = self._chunk(body, "message")
        self.finished = True
        return deltas

    def end(self) -> list[Delta]:
        rest = "" if self._splitter is None else self._splitter.flush()
        self._made = self._ended_calls()
        if self._remember is not None and self._made and (thought := self._thought()):
            self._remember([call.id for call in self._made], thought)
        return [Delta("content", rest)] if rest else []

    def result(self) -> ProviderResult:
        content = "".join(self._content) if self._splitter is None else self._splitter.content
        return ProviderResult(content, self._thought() or None, self._made or (), self._usage)

    def _thought(self) -> str:
        return "".join(self._thinking) + ("" if self._splitter is None else self._splitter.thinking)

    # ---------------------------------------------------------------- one chunk

    def _chunk(self, chunk: object, member: str) -> list[Delta]:
        if not is_record(chunk):
            raise protocol_failure(self._host, "what is no chunk of an answer")
        if (error := chunk.get("error")) is not None:
            raise stream_failure(self._host, error)
        if is_record(usage := chunk.get("usage")):
            self._usage = _usage(usage)
        choices = chunk.get("choices")
        choice = next(filter(_is_first, choices), None) if is_array(choices) else None
        if choice is None:
            return []
        if isinstance(reason := choice.get("finish_reason"), str):
            self._reason = reason
        said = choice.get(member)
        return self._said(said) if is_record(said) else []

    def _said(self, said: dict[str, Any]) -> list[Delta]:
        deltas: list[Delta] = []
        thought = said.get("reasoning_content") or said.get("reasoning")
        if isinstance(thought, str) and thought:
            self._thinking.append(thought)
            deltas.append(Delta("thinking", thought))
        text = said.get("content") or said.get("refusal")
        if isinstance(text, str) and text:
            deltas += self._text(text)
        fragments = said.get("tool_calls")
        for fragment in filter(is_record, fragments if is_array(fragments) else ()):
            self._fragment(fragment)
        return deltas

    def _text(self, text: str) -> list[Delta]:
        if self._splitter is None:
            self._content.append(text)
            return [Delta("content", text)]
        shown = self._splitter.split(text)
        deltas = [Delta("thinking", self._splitter.thought)] if self._splitter.thought else []
        return [*deltas, Delta("content", shown)] if shown else deltas

    # ---------------------------------------------------------------- calls

    def _fragment(self, fragment: dict[str, Any]) -> None:
        call = self._place(fragment.get("index"), fragment.get("id"))
        function = fragment.get("function")
        if not is_record(function):
            return
        if isinstance(name := function.get("name"), str) and name and not call.name:
            call.name = name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.pieces.append(arguments)
        elif arguments is not None:
            call.ready = arguments

    def _place(self, index: object, id: object) -> Spelled:
        """The call that a fragment belongs to. Servers leave out the index, or give one to several calls."""
        named = id if isinstance(id, str) else ""
        if type(index) is int:
            found = self._places.get(index)
            if found is None or (named and found.id and named != found.id):
                found = self._places[index] = self._begin(named)
            found.id = found.id or named
            self._named.setdefault(found.id, found)
            return found
        if named:
            return self._named.get(named) or self._begin(named)
        return self._calls[-1] if self._calls else self._begin(named)

    def _begin(self, id: str) -> Spelled:
        call = Spelled(id)
        self._calls.append(call)
        self._named.setdefault(id, call)
        return call

    def _ended_calls(self) -> tuple[ToolCall, ...]:
        if self._reason == "content_filter":
            return ()
        if self._reason == "length" and self._calls:
            self._calls[-1].cut = True
        return calls_of(self._calls)


def _is_first(choice: object) -> TypeGuard[dict[str, Any]]:
    return is_record(choice) and choice.get("index") in (0, None)


def _usage(figures: dict[str, Any]) -> Usage:
    prompt, completion, total = (figure(figures.get(f"{name}_tokens")) for name in ("prompt", "completion", "total"))
    return Usage(prompt or 0, completion or 0, (prompt or 0) + (completion or 0) if total is None else total)
