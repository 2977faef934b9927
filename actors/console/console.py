"""The walk: one form, field by field, until it is submitted."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import final

import trio
from msgspec import UNSET

from greenroom.actors.console import wording
from greenroom.actors.console.prompts import Prompts
from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import FieldError, Form, FormField, FormSuccess, Settled, Value, parse_value

__all__ = ["Console"]


@final
class Console:
    """Fills in forms with a person, one form at a time.

    ::

        console = Console(LinePrompts(LineReader(sys.stdin.fileno()), sys.stdout))
        values = await console.ask(Form(schema))
    """

    def __init__(self, prompts: Prompts) -> None:
        self._prompts = prompts

    async def ask(self, form: Form, *, only: Collection[str] | None = None) -> dict[str, Value]:
        """Ask field after field, submit, ask again what was refused, and return the values.

        Hidden and disabled fields are not asked, locked ones are only shown. `only` names the fields to begin with; a
        form of which some answers have been refused before needs no others. Waits without a deadline.

        Raises FormError ABANDONED if the form is destroyed meanwhile, and destroys it and raises the same if it cannot
        get better: nothing that was refused can be asked, or the input has ended before every field had its answer.
        Raises TerminalError CANCEL for Ctrl-C. After that, or cancelled, the form is still edited and holds what was
        answered, and the terminal is as it was before. Whoever settles the form meanwhile ends the walk with that
        settlement.
        """
        if form.outcome is None:
            with trio.CancelScope() as walking:
                stop_listening = form.on_end(lambda _: walking.cancel())
                try:
                    await self._walk(form, only)
                finally:
                    stop_listening()
        if isinstance(form.outcome, Settled):
            return form.outcome.values.copy()
        raise FormError("ABANDONED", "This form was taken away before it was answered.")

    async def _walk(self, form: Form, only: Collection[str] | None) -> None:
        self._prompts.begin()
        fields = [field for field in form.schema.fields if only is None or field.name in only]
        self._complain(form, _told(form))
        while form.outcome is None:
            try:
                await self._ask_each(form, fields)
            except EOFError:
                form.destroy()
            if form.outcome is not None:
                return
            result = form.submit()
            if isinstance(result, FormSuccess):
                return
            self._complain(form, result.error)
            fields = _askable(form, result.error)
            if not fields or self._prompts.ended:
                form.destroy()

    async def _ask_each(self, form: Form, fields: Iterable[FormField]) -> None:
        groups = {group.name: group for group in form.schema.groups or ()}
        inside: object = UNSET
        for field in fields:
            if field.hidden is True or field.name in form.disabled:
                continue
            if field.group != inside:
                inside = field.group
                if isinstance(inside, str) and (group := groups.get(inside)) is not None:
                    self._prompts.say(wording.group_title(group), "heading")
                    self._explain(wording.help_text(group))
            if field.locked is True:
                self._prompts.say(f"{wording.title(field)} (locked) {wording.value_text(form.values.get(field.name))}")
                continue
            self._explain(wording.help_text(field))
            answer = await self._prompts.ask(field, form.values.get(field.name))
            if form.outcome is not None:
                return
            _bind(form, field, answer)

    def _complain(self, form: Form, errors: Iterable[FieldError]) -> None:
        for error in errors:
            self._prompts.say(wording.failure_text(form.schema.fields, error), "failure")

    def _explain(self, help: str) -> None:
        if help:
            self._prompts.say(help, "help")


def _told(form: Form) -> list[FieldError]:
    """The failures of answers that were given, or that somebody has told; the others are none before they are asked."""
    return [error for error in form.errors if error.rule is UNSET or error.field in form.touched]


def _askable(form: Form, errors: Iterable[FieldError]) -> list[FormField]:
    """The fields of the errors that a person can do something about, each once, in the order of the errors."""
    fields = (form.field(name) for name in dict.fromkeys(error.field for error in errors))
    return [
        field
        for field in fields
        if field is not None
        and field.hidden is not True
        and field.locked is not True
        and field.name not in form.disabled
    ]


def _bind(form: Form, field: FormField, answer: Value | None) -> None:
    """Write an answer, or say that the control cannot hold it."""
    form.touch(field.name)
    value = None if answer is None else parse_value(field, answer)
    if answer is not None and value is None:
        form.invalidate(field.name, wording.unheld_text(field))
    else:
        form.fill(field.name, value)
