"""Results that are one of two records, told apart by their member `success`.

msgspec tells records apart by words, not by true and false, so these two are read by hand.
"""

from __future__ import annotations

from typing import Any

import msgspec

from greenroom.protocol.terminals import AnswerFailure, AnswerRefusal, AnswerResult, AnswerSuccess
from greenroom.protocol.tools import ToolFailure, ToolResult, ToolSuccess

__all__ = ["read_answer", "read_tool_result"]


class _Answer(msgspec.Struct):
    success: bool
    value: dict[str, Any] = {}
    error: AnswerRefusal | None = None


class _ToolResult(msgspec.Struct):
    id: str
    name: str
    success: bool
    value: Any = None
    error: str = ""


_ANSWER = msgspec.json.Decoder(_Answer)
_TOOL_RESULT = msgspec.json.Decoder(_ToolResult)


def read_answer(data: msgspec.Raw) -> AnswerResult:
    """The outcome of `terminal/answer`. Raises msgspec.DecodeError for anything else."""
    answer = _ANSWER.decode(data)
    if answer.success:
        return AnswerSuccess(value=answer.value)
    if answer.error is None:
        raise msgspec.ValidationError("Object missing required field `error`")
    return AnswerFailure(error=answer.error)


def read_tool_result(data: msgspec.Raw) -> ToolResult:
    """The outcome of `tool/call`. Raises msgspec.DecodeError for anything else."""
    result = _TOOL_RESULT.decode(data)
    if result.success:
        return ToolSuccess(id=result.id, name=result.name, value=result.value)
    return ToolFailure(id=result.id, name=result.name, error=result.error)
