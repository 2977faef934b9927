"""The tool `ask_user_question`: a model puts a few questions to the person at a terminal, in one form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, NoReturn

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.actors.terminal import TerminalManager
from greenroom.actors.toolbox.ask import refuse_delegated, reraise
from greenroom.protocol.errors import FormError, TerminalError, ToolError
from greenroom.protocol.forms import (
    CheckboxField,
    FieldChoice,
    FieldRule,
    Form,
    FormField,
    FormGroup,
    FormSchema,
    SelectField,
    TextField,
    Value,
)
from greenroom.runtime.context import current_actor
from greenroom.runtime.lineage import current_lineage
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.tools import Tool

__all__ = ["QuestionAnswers", "ask_user_question_tool"]

SUMMARY: Final = "Asks the person you work for, and waits for the answers: several questions at once, with options."

DESCRIPTION: Final = """\
Asks the person you work for, and waits until they have answered. Put all that you have to know into one call. \
`questions` is a list; each question has
- `id`: by which you find its answer
- `question`: what is asked, as a person reads it
- `header`: a word or two above it (may be left out)
- `options`: what can be chosen, each {label, description?}; without any the answer is free text
- `multi_select`: true if several may be chosen; otherwise one

Whatever there is to choose, a person can also answer in words of their own.

Returns {"answers": [{"id", "selected": [labels], "custom"?: text}]}, in the order of the questions.

Example: {"questions": [{"id": "track", "question": "Which track is it for?", "options": [{"label": "stable"}, \
{"label": "beta", "description": "for testers"}]}]} returns {"answers": [{"id": "track", "selected": ["beta"]}]}.

The call fails if nobody answers in time, and if you work for another agent: say in your answer what you have to know.
"""


class Option(Struct):
    label: Annotated[str, Meta(min_length=1, description="What is chosen, and what comes back.")]
    description: Annotated[str, Meta(description="What choosing it means.")] | UnsetType = UNSET


class AskedQuestion(Struct):
    id: Annotated[str, Meta(min_length=1, description="By which its answer is found.")]
    question: Annotated[str, Meta(min_length=1, description="What is asked.")]
    header: Annotated[str, Meta(min_length=1, description="A word or two above it.")] | UnsetType = UNSET
    options: Annotated[list[Option], Meta(description="What can be chosen.")] | UnsetType = UNSET
    multi_select: Annotated[bool, Meta(description="Whether several may be chosen; false by default.")] = False


class AskUserQuestion(Struct):
    questions: Annotated[list[AskedQuestion], Meta(description="At least one question.")]


class QuestionAnswer(Struct, frozen=True, omit_defaults=True):
    """The labels that were chosen, and what was said in other words, if anything was."""

    id: str
    selected: list[str]
    custom: str | UnsetType = UNSET


class QuestionAnswers(Struct, frozen=True):
    """The answers, in the order of the questions."""

    answers: list[QuestionAnswer]


def ask_user_question_tool(
    terminals: TerminalManager,
    to: str,
    *,
    from_: str | None = None,
    name: str = "ask_user_question",
    timeout: float | UnsetType | None = UNSET,
    delegated: bool = False,
) -> Tool:
    """The tool `ask_user_question`, which asks the terminal `to`, in the name of `from_`. It returns what
    `QuestionAnswers` spells.

    `timeout` is in seconds, `None` for no limit; where it is not given the terminal's own holds. An agent that works
    for another one asks nothing, unless it is `delegated`: then the form names it, since whoever reads it may know
    nothing of it.

    It raises `ToolError`, and nothing is asked: EMPTY_QUESTIONS, INVALID_ARGS (ids or labels that are there twice, a
    form too large), DELEGATED_CALLER, CALLER_NOT_LIVE for an agent that is being stopped, NO_PROVIDER if there is no
    such terminal or it takes no more forms; and `ToolDeadlock` if the terminal waits for the caller. ASK_ABORTED, if
    nobody answered. A call runs in the task of its caller, so that cancelling it withdraws the form.
    """

    async def ask(call: AskUserQuestion) -> Any:
        form = _form(call)
        if not delegated:
            refuse_delegated(to)
        actor = current_actor()
        if actor is not None and not actor.ref.alive:
            raise ToolError(
                "CALLER_NOT_LIVE",
                f"{actor.ref.path} is being stopped, so nobody was asked. Ask again when it runs.",
                {"caller": actor.ref.path},
            )
        try:
            values = await terminals.ask(from_, to, form, timeout=timeout)
        except (TerminalError, FormError) as error:
            _failed(error, to)
        return msgspec.to_builtins(QuestionAnswers(list(_answers(call.questions, values))))

    return Tool(
        name,
        ask,
        summary=SUMMARY,
        description=DESCRIPTION,
        parameters=AskUserQuestion,
        handling=Handling(returns=QuestionAnswers, render=_rendered),
    )


def _form(call: AskUserQuestion) -> Form:
    """The form of these questions. Raises `ToolError` EMPTY_QUESTIONS, INVALID_ARGS."""
    if not call.questions:
        raise ToolError(
            "EMPTY_QUESTIONS", "Nobody was asked, since there is no question. Ask one, or go on without.", {}
        )
    _refuse_twice("questions", [question.id for question in call.questions])
    fields: list[FormField] = []
    groups: list[FormGroup] = []
    for number, question in enumerate(call.questions, 1):
        chosen, custom = _names(number)
        group: str | UnsetType = UNSET
        if question.header is not UNSET:
            group = f"group{number}"
            groups.append(FormGroup(group, question.header))
        if not question.options:
            fields.append(TextField(name=custom, label=question.question, group=group, rule=FieldRule(required=True)))
            continue
        _refuse_twice(f"the options of {question.id!r}", [option.label for option in question.options])
        choices = tuple(FieldChoice(each.label, each.label, help=each.description) for each in question.options)
        control = CheckboxField if question.multi_select else SelectField
        rule = FieldRule(custom=_either(custom))
        fields.append(control(name=chosen, label=question.question, group=group, choices=choices, rule=rule))
        fields.append(TextField(name=custom, label="Or in your own words", group=group))
    schema = FormSchema(
        name="questions",
        label="Questions",
        help=_whose(),
        fields=tuple(fields),
        groups=tuple(groups) if groups else UNSET,
    )
    try:
        return Form(schema)
    except FormError as error:
        raise ToolError("INVALID_ARGS", f"These questions cannot be asked: {error.message}", error.context) from error


def _names(number: int) -> tuple[str, str]:
    """The fields of a question: what was chosen, and what was said besides."""
    return f"question{number}", f"question{number}-custom"


def _either(custom: str) -> Callable[[Value | None, Mapping[str, Value]], str | None]:
    def rule(value: Value | None, values: Mapping[str, Value]) -> str | None:
        if value or str(values.get(custom, "")).strip():
            return None
        return "Choose, or answer in your own words."

    return rule


def _whose() -> str | UnsetType:
    """Who asks, where a person could not know."""
    actor = current_actor()
    if actor is None or not current_lineage().delegated:
        return UNSET
    return f"{actor.ref.path} asks this, an agent that works for another one."


def _refuse_twice(what: str, names: list[str]) -> None:
    known: set[str] = set()
    for name in names:
        if name in known:
            raise ToolError(
                "INVALID_ARGS",
                f"Nobody was asked, since {what} have {name!r} twice: give each a name of its own.",
                {"twice": name},
            )
        known.add(name)


def _answers(questions: list[AskedQuestion], values: dict[str, Any]) -> Iterator[QuestionAnswer]:
    for number, question in enumerate(questions, 1):
        chosen, custom = _names(number)
        found = values.get(chosen, [])
        said = values.get(custom, "")
        yield QuestionAnswer(question.id, [found] if isinstance(found, str) else found, said if said.strip() else UNSET)


def _rendered(_arguments: Any, value: Any) -> str:
    return "\n".join(
        f"{each['id']}: {', '.join([*each['selected'], *([each['custom']] if 'custom' in each else [])])}"
        for each in value["answers"]
    )


def _failed(error: TerminalError | FormError, to: str) -> NoReturn:
    """Raise the `ToolError` that stands for what an ask of the terminal `to` ended with."""
    if error.code in ("ABANDONED", "EXPIRE"):
        raise ToolError(
            "ASK_ABORTED",
            f"{error.message} Go on without, or ask again later.",
            {**error.context, "to": to},
        ) from error
    if error.code in ("TARGET", "LIMIT", "DESTROYED"):
        raise ToolError("NO_PROVIDER", f"Nobody can be asked: {error.message}", {**error.context, "to": to}) from error
    reraise(error, to)
