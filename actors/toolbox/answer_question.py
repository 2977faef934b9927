"""The older tool `answer`: a model sees the questions that are put to it and answers each with one bare value."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct

from greenroom.actors.terminal import TerminalManager
from greenroom.protocol.errors import ToolError
from greenroom.protocol.questions import QuestionRecord, answer_values, coerce_answer, read_question
from greenroom.protocol.terminals import AnswerFailure, AnswerRefusal
from greenroom.runtime.tools import Tool

__all__ = ["answer_question_tool"]

SUMMARY: Final = "Lists the questions that wait for your answer, or answers one by its id; see describe({name!r})."

DESCRIPTION: Final = """\
Shows the questions that others have put to you and answers them. Whoever asked waits until you do.

Operations:
- {"operation": "pending"} returns a list of {"id", "from", "form", "message", "choices"?}, oldest first: who asks \
(absent if nobody in particular), what it is answered with, the question, and the values that can be chosen.
- {"operation": "answer", "id": "...", "value": ...} answers one of them and returns {"answered": id}. `value` is text \
for `input`, `password` and `editor`, the value of a choice for `select`, a list of them for `checkbox`, true or false \
for `confirm`. The texts "true" and "false" are read as such for `confirm`, where any other text but the empty one \
means true; text with commas is read as a list for `checkbox`.

Example: {"operation": "answer", "id": "7f3a", "value": false} returns {"answered": "7f3a"}.

If an answer is refused, the error says why, and the question stays. One that is answered, expired or withdrawn is no \
longer pending.
"""


class Pending(Struct, tag_field="operation", tag="pending"):
    """Lists the questions that wait for an answer."""


class Answer(Struct, tag_field="operation", tag="answer"):
    """Answers one of them."""

    id: Annotated[str, Meta(min_length=1, description="The question's id, as it is listed.")]
    value: Annotated[str | bool | list[str], Meta(description="The answer.")]


def answer_question_tool(terminals: TerminalManager, to: str, *, name: str = "answer") -> Tool:
    """The older tool `answer` for the questions at the terminal `to`, and at no other. A form that is no question is
    not seen by it.

    It raises `ToolError` ANSWER with `id` and `reason`: `unknown`, `rejected`, or `terminal` if that is gone.
    """

    async def answer(call: Pending | Answer) -> list[dict[str, Any]] | dict[str, str]:
        questions = {record.id: question for record in terminals.pending(to) if (question := read_question(record))}
        if isinstance(call, Pending):
            return [_listed(question) for question in questions.values()]
        question = questions.get(call.id)
        if question is None:
            raise _refused(to, call.id, AnswerRefusal("unknown"))
        values = answer_values(coerce_answer(question.form, call.value))
        assert values is not None, "a field can hold whatever an answer comes to"
        result = await terminals.answer(to, call.id, values)
        if isinstance(result, AnswerFailure):
            raise _refused(to, call.id, result.error)
        return {"answered": call.id}

    return Tool(name, answer, summary=SUMMARY.format(name=name), description=DESCRIPTION, parameters=Pending | Answer)


def _listed(question: QuestionRecord) -> dict[str, Any]:
    from_ = {} if question.from_ is UNSET else {"from": question.from_}
    choices = question.options.choices
    offered = {} if choices is UNSET else {"choices": [choice.value for choice in choices]}
    return {"id": question.id, **from_, "form": question.form, "message": question.message, **offered}


def _refused(to: str, id: str, refusal: AnswerRefusal) -> ToolError:
    # The older word for a terminal that is not there.
    reason = "terminal" if refusal.reason == "target" else refusal.reason
    if reason == "rejected":
        told = f"the question {id} does not take this answer: {' '.join(e.message for e in refusal.errors or ())}"
    elif reason == "unknown":
        told = f"no question {id} is pending at {to}; list those that are with operation 'pending'"
    else:
        told = f"there is no terminal {to} any more, and nothing of it can be answered"
    return ToolError("ANSWER", told, {"id": id, "reason": reason})
