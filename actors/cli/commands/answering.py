"""`greenroom pending`, `answer` and `attach`: what waits for an answer, and answering it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.console import Console as Screen
from rich.table import Table
from rich.text import Text

from greenroom.actors.cli.attach import choose_prompts, drive
from greenroom.actors.cli.drawing import plain
from greenroom.actors.cli.files import read_object, spoken
from greenroom.actors.cli.options import DEFAULT_URL, AsJson, JsonFile, Url
from greenroom.actors.cli.printing import print_json, screen
from greenroom.actors.cli.reach import reach
from greenroom.actors.client import Client
from greenroom.protocol.errors import ConfigError
from greenroom.protocol.terminals import AnswerFailure, PendingForm

__all__ = ["answer", "attach", "pending"]


async def pending(terminal: str | None = None, /, *, json_: AsJson = False, url: Url = DEFAULT_URL) -> int:
    """List the forms that wait for an answer.

    `greenroom answer` takes their ids, or the first characters of one.

        greenroom pending reviewer --json

    Parameters
    ----------
    terminal
        The terminal to look at; all of them without it.
    """
    async with reach(url) as client:
        forms = await client.pending(terminal)
    if json_:
        print_json(forms)
        return 0
    table = Table(box=None, header_style="dim")
    table.add_column("id", min_width=max((len(record.id) for record in forms), default=0))
    for title in ("at", "asked by", "form", "fields", "kept"):
        table.add_column(title, overflow="fold")
    for record in forms:
        table.add_row(*(Text(plain(text)) for text in _row(record)))
    screen().print(table if forms else Text("Nothing is pending.", "dim"))
    return 0


def _row(record: PendingForm) -> tuple[str, ...]:
    schema = record.schema
    title = schema.label if schema.label is not msgspec.UNSET else schema.name
    return (
        record.id,
        "" if record.to is msgspec.UNSET else record.to,
        "" if record.from_ is msgspec.UNSET else record.from_,
        "" if title is msgspec.UNSET else title,
        ", ".join(field.name for field in schema.fields),
        "durable" if record.durable else "",
    )


async def answer(terminal: str, id: str, values: JsonFile, /, *, url: Url = DEFAULT_URL) -> int:
    """Answer a pending form, with values from a file.

    All of the values are accepted, or none: then each field at fault is named, and the form still waits.

        echo '{"publish": false, "reason": "Not on a Friday."}' | greenroom answer reviewer 3f2a -

    Exits with 0 when they were accepted, and 1 when they were not, or no such form waits.

    Parameters
    ----------
    terminal
        The terminal at which the form waits.
    id
        The form's id, as `greenroom pending` lists it, or its first characters.
    values
        A file with the values as a JSON object, or - for standard input.
    """
    given = await read_object(values)
    if given is None:
        raise ConfigError(
            "VALUES", f"{spoken(values)} holds no values: they are a JSON object, field names to answers."
        )
    async with reach(url) as client:
        result = await client.answer(terminal, await _whole_id(client, terminal, id), given)
    if not isinstance(result, AnswerFailure):
        print_json(result.value)
        return 0
    said = Screen(stderr=True, soft_wrap=True)
    refusal = result.error
    if refusal.reason == "rejected" and refusal.errors is not msgspec.UNSET:
        said.print(Text("The answer was refused; the form still waits.", "bold red"))
        for error in refusal.errors:
            said.print(Text(f"  {plain(error.field)}: {plain(error.message)}"))
    elif refusal.reason == "target":
        said.print(Text(f"There is no terminal {plain(terminal)}.", "bold red"))
    else:
        named = f"{plain(id)} waits at {plain(terminal)} (any more)" if id else "has an empty id"
        said.print(Text(f"No form {named}; `greenroom pending {plain(terminal)}` lists those that wait.", "bold red"))
    return 1


async def _whole_id(client: Client, terminal: str, id: str) -> str:
    """The id that begins so, if there is just one; else what was given."""
    if len(id) < 4:
        return id
    found = [record.id for record in await client.pending(terminal) if record.id.startswith(id)]
    return found[0] if len(found) == 1 else id


async def attach(name: str, /, *, once: Annotated[bool, Parameter(negative=())] = False, url: Url = DEFAULT_URL) -> int:
    """Answer the forms of a terminal, one after another.

    At a terminal every field is a prompt; Ctrl-C leaves, and so does q between two forms. Where the input is piped in,
    every field takes a line of it: y or n; a choice by its number, its value or its label, several with commas between;
    an empty line for the default, and `none` for no choice. An editor takes lines up to one with a single dot, and
    several files come one a line, up to an empty one.

        printf '%s\\n' y 'Read every change.' . stable 25 '' 1,3 | greenroom attach reviewer --once

    A line that its field does not take is refused: then the next lines are for the fields that were refused, and for no
    others. A form that the input has no lines for is not answered.

    Exits with 0 when it was left, with 1 when the input ended before a form was answered, which then still waits, and
    with 130 after Ctrl-C.

    Parameters
    ----------
    name
        The terminal to attach to.
    once
        Answer what waits now, and then end, instead of waiting for the next form.
    """
    prompts = choose_prompts()
    async with reach(url) as client:
        return await drive(client, name, prompts, once=once)
