"""The tool `ask`: a model puts a whole form to somebody and waits for the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, NoReturn

from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.actors.terminal import TerminalManager
from greenroom.protocol.errors import Deadlock, FormError, TerminalError, ToolDeadlock, ToolError
from greenroom.protocol.forms import CheckboxField, Form, FormSchema, SelectField, Value, audit_schema, parse_form
from greenroom.runtime.lineage import current_lineage
from greenroom.runtime.tools import Tool

__all__ = ["ask_tool", "asking_tool", "infer_terminal_code", "refuse_delegated", "reraise"]

SUMMARY: Final = (
    "Asks a person or an agent to fill in a form and waits for the values; see describe({name!r}) for forms."
)

DESCRIPTION: Final = """\
Puts one form to a terminal, which a person, an agent or a program answers, and waits until it is answered. Ask \
everything you need to know in one form.

Arguments:
- `to`: the name of the terminal.
- `schema`: the form, an object with `fields` (in the order in which they are asked) and optionally `name`, `label`, \
`help` and `groups` (a list of {name, label, help?}).

Each field has `control`, a `name` of its own, a `label`, and optionally `help`, `group` (the name of a declared \
group), `hidden`, `disabled`, `locked`, `default` and `rule`. The controls, and what their answer is:
- `text`, `editor` (several lines): text; also `placeholder`
- `password`: text; also `mask`, no default
- `number`: a number; also `placeholder`
- `date` 2026-03-31, `time` 09:30 or 09:30:00, `datetime` 2026-03-31T09:30, `color` #00ff80: text in that form
- `confirm`: true or false
- `select`: the value of one choice; `choices` is a list of {value, label, help?, disabled?}; `open` admits other text
- `checkbox`: a list of choice values; `choices` as above
- `file`: a list of names; also `accept` (a list) and `multiple`, no default
Every `select` and `checkbox` needs a choice that is not disabled. Unknown members are refused.

`rule` has any of `required`, `minimum` and `maximum` (of a number; of a text's length; of how many are ticked; of a \
date or time, as text), `step` (number), `pattern` (a regular expression without lookaround and back-references), \
`email`, `url`, `integer`, `alphanumeric`.

Example:
{"to": "reviewer", "schema": {"label": "Release 2.4", "fields": [
  {"control": "confirm", "name": "ship", "label": "Ship it today?", "rule": {"required": true}},
  {"control": "select", "name": "track", "label": "Track", "default": "beta",
   "choices": [{"value": "stable", "label": "Stable"}, {"value": "beta", "label": "Beta"}]},
  {"control": "editor", "name": "notes", "label": "Anything to change first?", "rule": {"maximum": 2000}}]}}
returns {"ship": true, "track": "beta"}: one object with the values by field name; what was not answered is left out.

The call fails, and nothing is asked, if the form has a fault or there is no such terminal. It also fails if that \
terminal waits for you, directly or through others (answer what you are asked first, or decide without asking), and if \
nobody answers in time.
"""


class Ask(Struct):
    to: Annotated[str, Meta(min_length=1, description="The name of the terminal to ask.")]
    schema: Annotated[Any, Meta(description="The form: an object with `fields`.")]


def ask_tool(
    terminals: TerminalManager,
    from_: str | None,
    *,
    name: str = "ask",
    timeout: float | UnsetType | None = UNSET,
    delegated: bool = True,
) -> Tool:
    """The tool `ask`, which asks in the name of `from_` (`None`: in nobody's) and in no other.

    It returns the values by field name. `timeout` is in seconds, `None` for no limit; where it is not given the
    terminal's own holds. With `delegated=False` an agent that works for another agent asks nothing by it: its questions
    are to go upward, to whoever knows what it works on.

    It raises `ToolError`: TOOL for a form that cannot be asked or a terminal that cannot take it, EXPIRE if nobody
    answered, DELEGATED_CALLER; and `ToolDeadlock` with the circle that the wait would have closed. A call runs in the
    task of its caller, so that cancelling it withdraws the form.
    """

    async def put(to: str, schema: FormSchema) -> dict[str, Value]:
        if not delegated:
            refuse_delegated(to)
        return await terminals.ask(from_, to, Form(schema), timeout=timeout)

    return asking_tool(put, name=name)


def asking_tool(put: Callable[[str, FormSchema], Awaitable[dict[str, Value]]], *, name: str = "ask") -> Tool:
    """The tool `ask` over whatever puts forms to terminals: `put` takes the terminal's name and a sound form, and gives
    back the values. What it raises as `TerminalError` or `FormError` becomes the `ToolError` that stands for it.
    """

    async def ask(call: Ask) -> dict[str, Value]:
        schema = _read_schema(call.schema)
        try:
            return await put(call.to, schema)
        except (TerminalError, FormError) as error:
            reraise(error, call.to)

    return Tool(name, ask, summary=SUMMARY.format(name=name), description=DESCRIPTION, parameters=Ask)


def infer_terminal_code(error: BaseException) -> str | None:
    """The code of the `ToolError` that stands for a terminal's error: DEADLOCK and EXPIRE are their own, every other
    `TerminalError` is TOOL. `None` for an error of another kind, which is to be raised again as it is.
    """
    if not isinstance(error, TerminalError):
        return None
    return error.code if error.code in ("DEADLOCK", "EXPIRE") else "TOOL"


def _read_schema(document: object) -> FormSchema:
    """The form that the model spelled, or `ToolError` TOOL with what is wrong with it."""
    schema = parse_form(document)
    if schema is None:
        faults = [f"{fault.field}: {fault.detail}" if fault.field else fault.detail for fault in audit_schema(document)]
        raise ToolError("TOOL", f"this form cannot be asked: {' '.join(faults)}", {"schema": document})
    for field in schema.fields:
        if isinstance(field, SelectField | CheckboxField) and all(choice.disabled is True for choice in field.choices):
            control = "select" if isinstance(field, SelectField) else "checkbox"
            raise ToolError(
                "TOOL",
                f"the {control} field {field.name!r} offers nothing to choose: give it a choice that is not disabled",
                {"control": control, "field": field.name},
            )
    return schema


def refuse_delegated(to: str) -> None:
    """Raise `ToolError` DELEGATED_CALLER if it is an agent that works for another one which is about to ask."""
    lineage = current_lineage()
    if lineage.delegated:
        raise ToolError(
            "DELEGATED_CALLER",
            f"An agent that works for another one asks {to} nothing, as nobody may be looking there for it;"
            " nobody was asked. Go on without, or say in your answer what you have to know, so that whoever gave"
            " you the task can ask.",
            {"to": to, "lineage": list(lineage.tags)},
        )


def reraise(error: TerminalError | FormError, to: str) -> NoReturn:
    """Raise the `ToolError` that stands for what an ask of `to` ended with; the error itself if none does."""
    code = infer_terminal_code(error)
    if code == "EXPIRE" or (isinstance(error, FormError) and error.code == "ABANDONED"):
        raise ToolError("EXPIRE", error.message, {**error.context, "to": to}) from error
    if code is None:
        raise error
    if isinstance(error, Deadlock):
        raise ToolDeadlock(code, error.message, error.context) from error
    raise ToolError(code, error.message, error.context if error.code == "TARGET" else {"to": to}) from error
