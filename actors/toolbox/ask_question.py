"""The older tool `ask`: a model puts one question to somebody and gets one bare value."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.actors.terminal import TerminalManager
from greenroom.actors.toolbox.ask import reraise
from greenroom.protocol.errors import FormError, TerminalError, ToolError
from greenroom.protocol.forms import Form, Value
from greenroom.protocol.questions import (
    FIELD,
    Kind,
    Question,
    QuestionChoice,
    QuestionOptions,
    QuestionRules,
    question_schema,
)
from greenroom.runtime.tools import Tool

__all__ = ["ask_question_tool"]

SUMMARY: Final = (
    "Asks a person or an agent one question and waits for the answer; see describe({name!r}) for the kinds."
)

DESCRIPTION: Final = """\
Puts one question to a terminal, which a person, an agent or a program answers, and waits until it is answered. It \
returns the answer itself.

Arguments:
- `to`: the name of the terminal.
- `form`: what it is answered with, and what is returned: `input` (a line of text), `password` (a secret line), \
`editor` (text of several lines), `confirm` (true or false), `select` (the `value` of one choice), `checkbox` (a list \
of values of choices)
- `message`: the question.
- `default`: what the answer is if nothing else is given; "true" or "false" for `confirm`, the `value` of a choice for \
`select`, none for `password` and `checkbox`
- `choices`: for `select` and `checkbox`, a list of {"name", "value", "description"?}; `name` is what is shown
- `min`, `max`: how many choices of a `checkbox` may be ticked
- `mask`: what is shown for each character of a `password`
- `validate`: for `input`, `password` and `editor`, what the text has to be: any of `required` (not blank), `minimum` \
and `maximum` (characters), `pattern` (a regular expression without lookaround and back-references), `email`, `url`, \
`numeric`, `integer`, `alphanumeric`
- `timeout`: after how many milliseconds to give up; 0 or nothing leaves it to the terminal

Example: {"to": "reviewer", "form": "select", "message": "Which track?", "choices": [{"name": "Stable", "value": \
"stable"}, {"name": "Beta", "value": "beta"}]} returns "beta".

The call fails, and nothing is asked, if the question has a fault or there is no such terminal. It also fails if that \
terminal waits for you, directly or through others (answer what you are asked first, or decide without asking), and if \
nobody answers in time.
"""

_Count = Annotated[int, Meta(ge=0)]


class AskQuestion(Struct):
    to: Annotated[str, Meta(min_length=1, description="The name of the terminal to ask.")]
    form: Annotated[Kind, Meta(description="What the question is answered with.")]
    message: Annotated[str, Meta(min_length=1, description="The question.")]
    default: Annotated[str | UnsetType, Meta(description="The answer if nothing else is given.")] = UNSET
    choices: Annotated[list[QuestionChoice] | UnsetType, Meta(description="What can be chosen.")] = UNSET
    mask: Annotated[str | UnsetType, Meta(description="What is shown for each character of a password.")] = UNSET
    min: Annotated[_Count | UnsetType, Meta(description="The fewest choices to tick.")] = UNSET
    max: Annotated[_Count | UnsetType, Meta(description="The most choices to tick.")] = UNSET
    validate: Annotated[QuestionRules | UnsetType, Meta(description="What a text has to be.")] = UNSET
    timeout: Annotated[_Count | UnsetType, Meta(description="Milliseconds to wait.")] = UNSET


def ask_question_tool(terminals: TerminalManager, from_: str | None, *, name: str = "ask") -> Tool:
    """The older tool `ask`, which asks in the name of `from_` (`None`: in nobody's) and in no other.

    It returns a text, a bool or a list of texts, and raises what `ask_tool` does. The question is a form of one field,
    so that whoever answers forms can answer it too.
    """

    async def ask(call: AskQuestion) -> Value:
        form = _opened(call)
        timeout = call.timeout / 1000 if call.timeout else UNSET
        try:
            values = await terminals.ask(from_, call.to, form, timeout=timeout)
        except (TerminalError, FormError) as error:
            reraise(error, call.to)
        answer: Value = values[FIELD]
        return answer

    return Tool(name, ask, summary=SUMMARY.format(name=name), description=DESCRIPTION, parameters=AskQuestion)


def _opened(call: AskQuestion) -> Form:
    if call.form in ("select", "checkbox") and not call.choices:
        raise ToolError(
            "TOOL", f"a question of the kind {call.form} needs `choices`, at least one", {"form": call.form}
        )
    options = QuestionOptions(
        message=call.message,
        default=call.default,
        choices=UNSET if call.choices is UNSET else tuple(call.choices),
        mask=call.mask,
        min=call.min,
        max=call.max,
        validate=call.validate,
    )
    try:
        return Form(question_schema(Question(call.form, options)))
    except FormError as error:
        raise ToolError("TOOL", f"this question cannot be asked: {error.message}", error.context) from error
