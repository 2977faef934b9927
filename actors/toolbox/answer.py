"""The tool `answer`: a model sees the forms that are put to it and answers them."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct

from greenroom.actors.terminal import TerminalManager
from greenroom.protocol.errors import ToolError
from greenroom.protocol.forms import Value, is_field_value, is_form_values, serialize_form
from greenroom.protocol.schemas.gates import is_record
from greenroom.protocol.terminals import AnswerFailure, AnswerRefusal, PendingForm
from greenroom.runtime.tools import Tool

__all__ = ["answer_tool"]

SUMMARY: Final = "Lists the forms that wait for your answer, or answers one by its id; see describe({name!r}) for how."

DESCRIPTION: Final = """\
Shows the forms that others have put to you and answers them. Whoever asked waits until you do.

Operations:
- {"operation": "pending"} returns a list of {"id", "from", "schema"}, oldest first: who asks (absent if nobody in \
particular) and the form with its `fields`.
- {"operation": "answer", "id": "...", "values": {...}} answers one of them and returns {"answered": id}. `values` has \
one member for each field that you answer, by the field's name: text for text, editor, password, date, time, datetime, \
color and select (the `value` of a choice, not its label), a number for number, true or false for confirm, a list of \
text for checkbox and file. Leave out what you do not answer; fields marked `required` need an answer.

Example: the form {"fields": [{"control": "confirm", "name": "ship", "label": "Ship it?", "rule": {"required": true}}, \
{"control": "text", "name": "why", "label": "Why?"}]} with id 7f3a is answered by
{"operation": "answer", "id": "7f3a", "values": {"ship": false, "why": "Two tests fail."}}

If an answer is refused, the error names each field and what is wrong with it. What you filled in before the refusal \
is kept: send the fields at fault again. A form that is answered, expired or withdrawn is no longer pending.
"""


class Pending(Struct, tag_field="operation", tag="pending"):
    """Lists the forms that wait for an answer."""


class Answer(Struct, tag_field="operation", tag="answer"):
    """Answers one of them."""

    id: Annotated[str, Meta(min_length=1, description="The form's id, as it is listed.")]
    values: Annotated[Any, Meta(description="The values by field name.")]


def answer_tool(terminals: TerminalManager, to: str, *, name: str = "answer") -> Tool:
    """The tool `answer` for the forms at the terminal `to`, and at no other.

    It raises `ToolError`: ANSWER with `id` and `reason` (and `errors` if the form refused the values; the message names
    each field), TOOL for values that no form could take. Whoever answers a form first has answered it.
    """

    async def answer(call: Pending | Answer) -> list[dict[str, Any]] | dict[str, str]:
        if isinstance(call, Pending):
            return [_listed(record) for record in terminals.pending(to)]
        pending = [record.id for record in terminals.pending(to)]
        if call.id not in pending:
            raise _refused(to, call.id, AnswerRefusal("unknown"), pending)
        result = await terminals.answer(to, call.id, _values(call.values))
        if isinstance(result, AnswerFailure):
            raise _refused(to, call.id, result.error, pending)
        return {"answered": call.id}

    return Tool(name, answer, summary=SUMMARY.format(name=name), description=DESCRIPTION, parameters=Pending | Answer)


def _listed(record: PendingForm) -> dict[str, Any]:
    from_ = {} if record.from_ is UNSET else {"from": record.from_}
    return {"id": record.id, **from_, "schema": serialize_form(record.schema)}


def _values(values: object) -> dict[str, Value]:
    if is_form_values(values):
        return values
    told = "`values` has to be an object with the values by field name"
    if is_record(values):
        odd = [name for name, value in values.items() if not is_field_value(value)]
        told = f"a value is text, a finite number, true, false or a list of text, which {', '.join(odd)} is not"
    raise ToolError("TOOL", told, {"values": values})


def _refused(to: str, id: str, refusal: AnswerRefusal, pending: list[str]) -> ToolError:
    context: dict[str, Any] = {"id": id, "reason": refusal.reason}
    if refusal.reason == "unknown":
        known = [other for other in pending if other != id]
        told = f"no form {id} is pending at {to}; pending there: {', '.join(known[:20]) or 'none'}"
    elif refusal.reason == "target":
        told = f"there is no terminal {to} any more, and nothing of it can be answered"
    else:
        errors = refusal.errors or ()
        context["errors"] = [msgspec.to_builtins(error) for error in errors]
        faults = "; ".join(f"{error.field}: {error.message}" for error in errors)
        told = f"the form {id} does not take this answer: {faults}"
    return ToolError("ANSWER", told, context)
